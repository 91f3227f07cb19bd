//! A server's address that stays while the server behind it is started again on another port.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Hands connections on to a server, or breaks them where none is there.
pub struct Relay {
    pub url: String,
    to: Arc<Mutex<Option<SocketAddr>>>,
}

impl Relay {
    /// A relay to the server at this URL.
    pub fn to(url: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay { url: format!("http://{}", listener.local_addr().unwrap()), to: Arc::default() };
        relay.turn(url);
        let to = relay.to.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let to = *to.lock().unwrap();
                // A client that cannot be connected is dropped.
                if let Some(Ok(server)) = to.map(TcpStream::connect) {
                    pass(&client, &server);
                    pass(&server, &client);
                }
            }
        });
        relay
    }

    /// From now on there is no server: new connections are cut off. Open ones stay.
    pub fn cut(&self) {
        *self.to.lock().unwrap() = None;
    }

    /// From now on connections go to the server at this URL.
    pub fn turn(&self, url: &str) {
        *self.to.lock().unwrap() = Some(url.strip_prefix("http://").unwrap().parse().unwrap());
    }
}

/// Copies what one side says to the other, to its end.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
