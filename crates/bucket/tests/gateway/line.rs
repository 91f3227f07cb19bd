//! A line to a store that breaks: before it passes a create on, or before it passes the answer on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What happens to the next requests that write.
#[derive(Debug, Default)]
struct State {
    /// How many are cut off before the store has them.
    before: AtomicUsize,
    /// How many are cut off when the store has answered.
    after: AtomicUsize,
    /// Requests that write, as they came.
    writes: AtomicUsize,
}

/// A line to a store, at an address of its own.
pub struct Line {
    pub endpoint: String,
    state: Arc<State>,
}

impl Line {
    /// A line to the store at this address.
    pub fn to(address: &str) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Line { endpoint: format!("http://{}", listener.local_addr().unwrap()), state: Arc::default() };
        let (address, state) = (address.to_owned(), line.state.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(store) = TcpStream::connect(&address) else { continue };
                join(&client, &store, &state);
            }
        });
        line
    }

    /// Cuts off `requests` of the next requests that write, before the store has them.
    pub fn cut_before(&self, requests: usize) {
        self.state.before.store(requests, Ordering::SeqCst);
    }

    /// Cuts off `requests` of the next requests that write, once the store has answered.
    pub fn cut_after(&self, requests: usize) {
        self.state.after.store(requests, Ordering::SeqCst);
    }

    /// How many requests that write have come.
    pub fn writes(&self) -> usize {
        self.state.writes.load(Ordering::SeqCst)
    }
}

fn join(client: &TcpStream, store: &TcpStream, state: &Arc<State>) {
    // Whether the request that is under way writes. Requests of one connection follow each other.
    let writing = Arc::new(AtomicBool::new(false));
    let (heard, counted) = (writing.clone(), state.clone());
    pass(client, store, move |bytes| {
        let methods = ["PUT ", "POST ", "GET ", "HEAD ", "DELETE "];
        if let Some(method) = methods.iter().find(|method| bytes.starts_with(method.as_bytes())) {
            let writes = matches!(*method, "PUT " | "POST ");
            heard.store(writes, Ordering::SeqCst);
            if writes {
                counted.writes.fetch_add(1, Ordering::SeqCst);
                return !taken(&counted.before);
            }
        }
        true
    });
    let state = state.clone();
    pass(store, client, move |_| !(writing.load(Ordering::SeqCst) && taken(&state.after)));
}

fn taken(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// Copies what one side says to the other, for as long as `may` says so.
fn pass(from: &TcpStream, to: &TcpStream, may: impl Fn(&[u8]) -> bool + Send + 'static) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        loop {
            match from.read(&mut piece) {
                Ok(bytes @ 1..) if may(&piece[..bytes]) && to.write_all(&piece[..bytes]).is_ok() => {}
                _ => break,
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
