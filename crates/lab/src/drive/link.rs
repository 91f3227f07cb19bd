//! What a seat speaks: the wire of its address.

use super::address::{Address, Protocol};
use super::fault::Fault;
use super::http::Http;
use super::resp::Resp;
use super::websocket::WebSocket;
use super::wire::{Exchange, Wire};
use crate::scenario::Request;

/// A connection of some protocol. An enumeration, because a box for each request would show in the lab's own cost.
#[derive(Debug)]
pub enum Link {
    /// HTTP/1.1, and Server-Sent Events over it.
    Http(Http),
    /// WebSocket: a question is a stream.
    WebSocket(WebSocket),
    /// RESP: a question's body is a command.
    Resp(Resp),
}

/// The same call on whichever wire it is.
macro_rules! on {
    ($link:expr, $wire:ident => $call:expr) => {
        match $link {
            Link::Http($wire) => $call,
            Link::WebSocket($wire) => $call,
            Link::Resp($wire) => $call,
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
        }
    }

    /// Whether a request can be asked over a protocol; errors say what was expected of it.
    pub fn can_ask(protocol: Protocol, request: &Request) -> Result<(), String> {
        match protocol {
            Protocol::Http | Protocol::WebSocket => Ok(()),
            Protocol::Redis => Resp::can_ask(request),
        }
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
