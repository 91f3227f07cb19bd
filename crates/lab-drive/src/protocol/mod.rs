//! Protocols: clients for the protocols of targets. One file each; [`connection`] chooses among them.

pub mod address;
pub(crate) mod body;
pub mod connection;
pub mod fault;
pub(crate) mod http;
mod http2;
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod resp;
pub mod scan;
mod stream;
mod tls;
mod trust;
pub(crate) mod websocket;

use crate::clock::Clock;
use crate::generate::Question;
use crate::scenario::ResultUnit;
use fault::ExchangeError;
use meridian_lab_results::record::Record;
use scan::Scan;

/// One request in flight, and the place for its progress. So an abandoned exchange keeps the bytes received until
/// then.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request.
    pub question: &'a Question,
    /// The unit of a result.
    pub unit: &'a ResultUnit,
    /// Times and status.
    pub record: &'a mut Record,
    /// The response's results.
    pub scan: &'a mut Scan,
    /// The trial's clock.
    pub clock: &'a Clock,
}

/// A connection of some protocol: one request and one response at a time. It opens when first needed, and reopens when
/// lost. An exchange may be dropped at any await: [`Client::abandon`] follows.
pub trait Client {
    /// Opens the connection as far as possible without a request: to check, before a load, whether the target is
    /// reachable.
    async fn open(&mut self) -> Result<(), ExchangeError>;

    /// Sends a request and reads its response.
    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError>;

    /// Drops the connection, and with it the response in flight.
    fn abandon(&mut self);
}
