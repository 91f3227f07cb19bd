//! Requirements of an Arrow Flight call on a route, beyond its parameters. They never come from a client: the Flight
//! service puts them into the extensions of the request that it derives from a call.
#![cfg_attr(not(feature = "flight"), allow(dead_code, reason = "only the Flight service asks"))]

use crate::protocol::problem::Result;
use crate::request::dispatch::Segments;
use crate::request::scope::no_collection;
use meridian_model::Seqs;
use meridian_query::Cursor;

/// What a Flight call demands from a route.
#[derive(Debug, Clone)]
pub enum FlightOperation {
    /// Instead of the response, its schema and its number of rows: a [`ResponseDescription`].
    Describe {
        /// Number of parts to split the response into.
        parts: usize,
    },
    /// The response as an Arrow stream.
    Answer(Pin),
    /// The collections with their schemas: a [`FlightListing`].
    List,
}

/// The part and snapshot of a response that a ticket fixes.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The tenant of the caller that the ticket was issued to.
    pub tenant: String,
    /// The snapshot to read; `None` for the newest.
    pub snapshot: Option<Seqs>,
    /// When the content of that snapshot's collection began: at its creation or restore.
    pub began: Option<i64>,
    /// Only events after this place in natural order.
    pub after: Option<Cursor>,
    /// Only events up to and including this place in natural order.
    pub until: Option<Cursor>,
}

/// The idempotency key of one record batch of a writing call, as an extension of its request. It cannot equal a key
/// sent over HTTP, because it contains a byte that no header may contain.
#[derive(Debug, Clone)]
pub struct BatchKey(String);

impl BatchKey {
    /// Builds the key of the batch with this number in a call with this key.
    pub fn new(key: &str, batch: u64) -> BatchKey {
        BatchKey(format!("{key}\n{batch}"))
    }

    /// Returns the key as it is stored with the events.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A description of a response before it is read, as an extension of a response.
#[derive(Debug, Clone)]
pub struct ResponseDescription {
    /// Its schema, as the first message of an Arrow stream.
    pub schema: Vec<u8>,
    /// The number of its rows, if known.
    pub rows: Option<u64>,
    /// The snapshot that it will be read from; `None` for the newest one at that time.
    pub snapshot: Option<Seqs>,
    /// When the content of that snapshot's collection began: at its creation or restore.
    pub began: Option<i64>,
    /// The places at which it is split into parts, in ascending order.
    pub cuts: Vec<Cursor>,
}

/// The collections visible to a caller, as an extension of a response. Each has its name, and the schema of its events
/// as the first message of an Arrow stream.
#[derive(Debug, Clone)]
pub struct FlightListing(pub Vec<(String, Vec<u8>)>);

impl FlightOperation {
    /// Returns the pin of a ticket.
    pub fn pin(&self) -> Option<&Pin> {
        match self {
            FlightOperation::Answer(pin) => Some(pin),
            FlightOperation::Describe { .. } | FlightOperation::List => None,
        }
    }

    /// Checks that a ticket was issued for the tenant of its bearer, since a collection's name denotes a different one
    /// in each tenant.
    ///
    /// # Errors
    /// 404, as for an absent collection.
    pub fn check(&self, tenant: &str, segments: &Segments) -> Result<()> {
        match self.pin() {
            Some(pin) if pin.tenant != tenant => Err(no_collection(&segments.first()?)),
            _ => Ok(()),
        }
    }
}
