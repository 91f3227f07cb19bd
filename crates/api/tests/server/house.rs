//! A server with a collection of one event, and requests to it that are sent verbatim.

use crate::support::{Response, Server, read_response};
use serde_json::{Value, json};
use std::io::{BufReader, Write};

/// Sends a request verbatim, and returns its response.
pub fn raw(server: &Server, text: impl AsRef<[u8]>) -> Response {
    let mut stream = server.connect();
    // What is refused early may not be read to its end.
    let _ = stream.write_all(text.as_ref());
    read_response(&mut BufReader::new(stream)).unwrap()
}

/// Sends a request with these header fields.
pub fn with(server: &Server, method: &str, target: &str, fields: &[&str]) -> Response {
    raw(server, format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n{}\r\n", lines(fields)))
}

pub fn lines(fields: &[&str]) -> String {
    fields.iter().map(|field| format!("{field}\r\n")).collect()
}

/// Starts a server with a collection of one event, which must be unchanged after every attack.
pub fn house() -> Server {
    let server = Server::start();
    server.create("c", "n:Integer,*geom:Point");
    server.load("c", &[event()]);
    server
}

pub fn event() -> Value {
    json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": 1}})
}
