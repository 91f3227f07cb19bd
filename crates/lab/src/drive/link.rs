//! What a seat speaks.

use super::address::Address;
use super::clock::Clock;
use super::http::{Fault, Http};
use super::resp::Resp;
use super::scan::Scan;
use super::websocket::WebSocket;
use crate::generate::Question;
use crate::record::Record;
use crate::scenario::{Protocol, ResultUnit};

/// A connection of some protocol: one question, one answer, at a time.
#[derive(Debug)]
pub enum Link {
    /// HTTP/1.1, and Server-Sent Events over it.
    Http(Http),
    /// WebSocket: a question is a stream.
    WebSocket(WebSocket),
    /// RESP: a question's body is a command.
    Resp(Resp),
}

impl Link {
    /// A connection to be.
    pub fn new(address: &Address) -> Link {
        match address.protocol {
            Protocol::WebSocket => Link::WebSocket(WebSocket::new(address.clone())),
            Protocol::Redis => Link::Resp(Resp::new(address.clone())),
            _ => Link::Http(Http::new(address.clone())),
        }
    }

    /// Sends a question and reads its answer; times go into the record as they happen.
    pub async fn exchange(
        &mut self,
        question: &Question,
        unit: &ResultUnit,
        record: &mut Record,
        scan: &mut Scan,
        clock: &Clock,
    ) -> Result<(), Fault> {
        match self {
            Link::Http(http) => http.exchange(question, record, scan, clock).await,
            Link::Resp(resp) => resp.exchange(question, unit, record, scan, clock).await,
            Link::WebSocket(socket) => socket.exchange(question, unit, record, scan, clock).await,
        }
    }

    /// Forgets the connection.
    pub fn abandon(&mut self) {
        match self {
            Link::Http(http) => http.abandon(),
            Link::Resp(resp) => resp.abandon(),
            // Its stream ended with the exchange.
            Link::WebSocket(_) => {}
        }
    }
}
