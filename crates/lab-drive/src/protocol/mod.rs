//! Protocols: what a target speaks, as a client of it. One file each; [`connection`] chooses among them.

pub mod address;
mod body;
pub mod connection;
pub mod fault;
mod http;
mod http2;
mod nats;
mod postgres;
mod resp;
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

/// One question under way, and where its progress is written. So an exchange that is given up keeps the bytes that had come until then.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request.
    pub question: &'a Question,
    /// The unit of a result.
    pub unit: &'a ResultUnit,
    /// Times and status.
    pub record: &'a mut Record,
    /// The answer's results.
    pub scan: &'a mut Scan,
    /// The trial's clock.
    pub clock: &'a Clock,
}

/// A connection of some protocol: one question, one answer, at a time. It opens when it is first needed, and again when it was
/// lost. An exchange may be dropped at any await: [`Client::abandon`] follows.
pub trait Client {
    /// Opens the connection as far as it goes without a question: to see, before a load, whether the target is there.
    async fn open(&mut self) -> Result<(), ExchangeError>;

    /// Sends a question and reads its answer.
    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError>;

    /// Forgets the connection, and with it the answer that is on its way.
    fn abandon(&mut self);
}
