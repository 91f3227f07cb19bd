//! A user's connection: the client of its address's protocol.

use super::address::{Address, Protocol};
use super::fault::ExchangeError;
use super::http::Http;
use super::http2::{Http2, Line};
use super::nats::Nats;
use super::postgres::Postgres;
use super::resp::Resp;
use super::websocket::WebSocket;
use crate::generate::Encoding;
use crate::protocol::{Client, Exchange};
use crate::scenario::Request;
use std::cell::RefCell;
use std::rc::Rc;

/// A connection of some protocol. An enumeration, because a box for each request would show in the lab's own cost.
#[derive(Debug)]
pub enum Connection {
    /// HTTP/1.1, and Server-Sent Events over it.
    Http(Http),
    /// WebSocket: a request is a stream.
    WebSocket(WebSocket),
    /// RESP: a request's body is a command.
    Resp(Resp),
    /// HTTP/2: a request is a stream of a connection shared with other users.
    Http2(Http2),
    /// PostgreSQL: a request's body is a statement.
    Postgres(Postgres),
    /// NATS: a request is published, and replies arrive at an inbox.
    Nats(Nats),
}

/// Makes the same call on each kind of client.
macro_rules! on {
    ($connection:expr, $client:ident => $call:expr) => {
        match $connection {
            Connection::Http($client) => $call,
            Connection::WebSocket($client) => $call,
            Connection::Resp($client) => $call,
            Connection::Http2($client) => $call,
            Connection::Postgres($client) => $call,
            Connection::Nats($client) => $call,
        }
    };
}

impl Connection {
    /// Creates a connection that opens when first needed.
    pub fn new(address: &Address) -> Connection {
        match address.protocol {
            Protocol::Http => Connection::Http(Http::new(address.clone())),
            Protocol::WebSocket => Connection::WebSocket(WebSocket::new(address.clone())),
            Protocol::Redis => Connection::Resp(Resp::new(address.clone())),
            Protocol::Http2 => Connection::Http2(Http2::new(Line::new(address.clone()))),
            Protocol::Postgres => Connection::Postgres(Postgres::new(address.clone())),
            Protocol::Nats => Connection::Nats(Nats::new(address.clone())),
        }
    }

    /// Checks whether a request can be sent over a protocol; errors state what was expected of it.
    pub fn can_ask(protocol: Protocol, request: &Request) -> Result<(), String> {
        if protocol.encoding() != Encoding::Http && !request.headers.is_empty() {
            return Err(format!("request {}: headers are for HTTP and WebSocket", request.name));
        }
        if request.follow.is_some() && !matches!(protocol, Protocol::Http | Protocol::Http2) {
            return Err(format!("request {}: follow is for http:// and https://", request.name));
        }
        match protocol {
            Protocol::Http | Protocol::WebSocket | Protocol::Http2 => Ok(()),
            Protocol::Redis => Resp::can_ask(request),
            Protocol::Postgres => Postgres::can_ask(request),
            Protocol::Nats => Nats::can_ask(request),
        }
    }
}

/// The connections of a population: users rotate over the addresses, alone or (HTTP/2) several to a connection.
#[derive(Debug)]
pub struct ConnectionPool {
    addresses: Vec<Address>,
    streams: usize,
    lines: RefCell<Vec<Rc<Line>>>,
}

impl ConnectionPool {
    /// Creates connections to one or more addresses, with up to `streams` users per connection if they can share one.
    pub fn new(addresses: Vec<Address>, streams: usize) -> ConnectionPool {
        ConnectionPool { addresses, streams: streams.max(1), lines: RefCell::default() }
    }

    /// Returns the connection of a user; users are numbered from 0.
    pub fn of(&self, user: u32) -> Connection {
        let user = user as usize;
        let address = |number: usize| &self.addresses[number % self.addresses.len()];
        if address(0).protocol != Protocol::Http2 {
            return Connection::new(address(user));
        }
        let (mut lines, number) = (self.lines.borrow_mut(), user / self.streams);
        while lines.len() <= number {
            let line = Line::new(address(lines.len()).clone());
            lines.push(line);
        }
        Connection::Http2(Http2::new(Rc::clone(&lines[number])))
    }
}

impl Client for Connection {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        on!(self, client => client.open().await)
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        on!(self, client => client.ask(of).await)
    }

    fn abandon(&mut self) {
        on!(self, client => client.abandon());
    }
}
