//! A server's address that stays the same when the server behind it is restarted on another port.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Forwards connections to a server, or breaks them if there is none.
pub struct Relay {
    pub url: String,
    to: Arc<Mutex<Option<SocketAddr>>>,
}

impl Relay {
    /// Makes a relay to the server at this URL.
    pub fn to(url: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay { url: format!("http://{}", listener.local_addr().unwrap()), to: Arc::default() };
        relay.turn(url);
        let to = relay.to.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let to = *to.lock().unwrap();
                // Without a server, the client's connection is dropped.
                if let Some(Ok(server)) = to.map(TcpStream::connect) {
                    pass(&client, &server);
                    pass(&server, &client);
                }
            }
        });
        relay
    }

    /// Cuts off new connections from now on. Open ones stay.
    pub fn cut(&self) {
        *self.to.lock().unwrap() = None;
    }

    /// Forwards new connections to the server at this URL from now on.
    pub fn turn(&self, url: &str) {
        *self.to.lock().unwrap() = Some(url.strip_prefix("http://").unwrap().parse().unwrap());
    }
}

/// Copies one direction until its end.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
