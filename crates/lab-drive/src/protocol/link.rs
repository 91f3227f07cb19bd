//! What a seat speaks: the wire of its address.

use super::address::{Address, Protocol};
use super::fault::Fault;
use super::http::Http;
use super::http2::{Http2, Line};
use super::nats::Nats;
use super::postgres::Postgres;
use super::resp::Resp;
use super::websocket::WebSocket;
use crate::generate::Form;
use crate::protocol::{Exchange, Wire};
use crate::scenario::Request;
use std::cell::RefCell;
use std::rc::Rc;

/// A connection of some protocol. An enumeration, because a box for each request would show in the lab's own cost.
#[derive(Debug)]
pub enum Link {
    /// HTTP/1.1, and Server-Sent Events over it.
    Http(Http),
    /// WebSocket: a question is a stream.
    WebSocket(WebSocket),
    /// RESP: a question's body is a command.
    Resp(Resp),
    /// HTTP/2: a question is a stream of a connection that others use too.
    Http2(Http2),
    /// PostgreSQL: a question's body is a statement.
    Postgres(Postgres),
    /// NATS: a question is published, and replies come to an inbox.
    Nats(Nats),
}

/// The same call on whichever wire it is.
macro_rules! on {
    ($link:expr, $wire:ident => $call:expr) => {
        match $link {
            Link::Http($wire) => $call,
            Link::WebSocket($wire) => $call,
            Link::Resp($wire) => $call,
            Link::Http2($wire) => $call,
            Link::Postgres($wire) => $call,
            Link::Nats($wire) => $call,
        }
    };
}

impl Link {
    /// A connection to be.
    pub fn new(address: &Address) -> Link {
        match address.protocol {
            Protocol::Http => Link::Http(Http::new(address.clone())),
            Protocol::WebSocket => Link::WebSocket(WebSocket::new(address.clone())),
            Protocol::Redis => Link::Resp(Resp::new(address.clone())),
            Protocol::Http2 => Link::Http2(Http2::new(Line::new(address.clone()))),
            Protocol::Postgres => Link::Postgres(Postgres::new(address.clone())),
            Protocol::Nats => Link::Nats(Nats::new(address.clone())),
        }
    }

    /// Whether a request can be asked over a protocol; errors say what was expected of it.
    pub fn can_ask(protocol: Protocol, request: &Request) -> Result<(), String> {
        if protocol.form() != Form::Http && !request.headers.is_empty() {
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

/// The connections of a population: users go round the addresses, alone or (HTTP/2) so many to a connection.
#[derive(Debug)]
pub struct Links {
    addresses: Vec<Address>,
    streams: usize,
    lines: RefCell<Vec<Rc<Line>>>,
}

impl Links {
    /// Connections to be, at one address or more, with up to `streams` users to a connection where they can share one.
    pub fn new(addresses: Vec<Address>, streams: usize) -> Links {
        Links { addresses, streams: streams.max(1), lines: RefCell::default() }
    }

    /// The link of a user; users are numbered as they come.
    pub fn of(&self, user: u32) -> Link {
        let user = user as usize;
        let address = |number: usize| &self.addresses[number % self.addresses.len()];
        if address(0).protocol != Protocol::Http2 {
            return Link::new(address(user));
        }
        let (mut lines, number) = (self.lines.borrow_mut(), user / self.streams);
        while lines.len() <= number {
            let line = Line::new(address(lines.len()).clone());
            lines.push(line);
        }
        Link::Http2(Http2::new(Rc::clone(&lines[number])))
    }
}

impl Wire for Link {
    async fn open(&mut self) -> Result<(), Fault> {
        on!(self, wire => wire.open().await)
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), Fault> {
        on!(self, wire => wire.ask(of).await)
    }

    fn abandon(&mut self) {
        on!(self, wire => wire.abandon());
    }
}
