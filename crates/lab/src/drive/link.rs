//! What a seat speaks.

use super::address::Address;
use super::clock::Clock;
use super::http::{Fault, Http};
use super::scan::Scan;
use crate::generate::Question;
use crate::record::Record;

/// A connection of some protocol: one question, one answer, at a time.
#[derive(Debug)]
pub enum Link {
    /// HTTP/1.1, and Server-Sent Events over it.
    Http(Http),
}

impl Link {
    /// A connection to be.
    pub fn new(address: &Address) -> Link {
        Link::Http(Http::new(address.clone()))
    }

    /// Sends a question and reads its answer; times go into the record as they happen.
    pub async fn exchange(
        &mut self,
        question: &Question,
        record: &mut Record,
        scan: &mut Scan,
        clock: &Clock,
    ) -> Result<(), Fault> {
        match self {
            Link::Http(http) => http.exchange(question, record, scan, clock).await,
        }
    }

    /// Forgets the connection.
    pub fn abandon(&mut self) {
        match self {
            Link::Http(http) => http.abandon(),
        }
    }
}
