//! A proxy to a store that breaks the connection: before it forwards a create, or before it forwards the response.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What happens to the next write requests.
#[derive(Debug, Default)]
struct State {
    /// Number to cut off before the store receives them.
    before: AtomicUsize,
    /// Number to cut off once the store has responded.
    after: AtomicUsize,
    /// Write requests seen so far.
    writes: AtomicUsize,
}

/// A proxy to a store, at an address of its own.
pub struct Line {
    pub endpoint: String,
    state: Arc<State>,
}

impl Line {
    /// Starts a proxy to the store at this address.
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

    /// Cuts off the next `requests` write requests, before the store receives them.
    pub fn cut_before(&self, requests: usize) {
        self.state.before.store(requests, Ordering::SeqCst);
    }

    /// Cuts off the next `requests` write requests, once the store has responded.
    pub fn cut_after(&self, requests: usize) {
        self.state.after.store(requests, Ordering::SeqCst);
    }

    /// Returns the number of write requests so far.
    pub fn writes(&self) -> usize {
        self.state.writes.load(Ordering::SeqCst)
    }
}

fn join(client: &TcpStream, store: &TcpStream, state: &Arc<State>) {
    // Whether the current request writes. Requests of one connection follow each other.
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

/// Copies bytes from one side to the other, as long as `may` returns true.
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
