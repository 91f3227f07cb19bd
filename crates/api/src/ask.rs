//! The demands of an Arrow Flight call on a route beyond its parameters. No client sends this: the Flight
//! door puts it into the extensions of the request that it makes of a call.
#![cfg_attr(not(feature = "flight"), allow(dead_code, reason = "only the Flight door asks"))]

use crate::dispatch::Segments;
use crate::problem::Result;
use crate::scope::no_collection;
use meridian_model::Seqs;
use meridian_query::Cursor;

/// The demand.
#[derive(Debug, Clone)]
pub enum Ask {
    /// The schema of the answer and the number of its rows, in place of the answer: a [`Described`].
    Describe {
        /// Number of parts to cut the answer into.
        parts: usize,
    },
    /// The answer as an Arrow stream.
    Answer(Pin),
    /// The collections with their schemas: a [`Listed`].
    List,
}

/// The part and snapshot of an answer that a ticket fixes.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The tenant of the caller that the ticket was made for.
    pub tenant: String,
    /// The snapshot to read; `None`: the newest.
    pub snapshot: Option<Seqs>,
    /// When the collection of that snapshot began.
    pub began: Option<i64>,
    /// Only events after this place in natural order.
    pub after: Option<Cursor>,
    /// Only events up to this place in natural order, that of the place included.
    pub until: Option<Cursor>,
}

/// The idempotency key of one record batch of a call that writes, as an extension of its request. No key of HTTP is the same: it has a byte
/// that no header has.
#[derive(Debug, Clone)]
pub struct BatchKey(String);

impl BatchKey {
    /// The key of the batch of this number in a call with this key.
    pub fn new(key: &str, batch: u64) -> BatchKey {
        BatchKey(format!("{key}\n{batch}"))
    }

    /// The stored events.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// An answer before it is asked for, as an extension of a response.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its schema, as the first message of an Arrow stream.
    pub schema: Vec<u8>,
    /// The number of its rows, if that is known.
    pub rows: Option<u64>,
    /// The snapshot that it will be read from; `None`: the newest one by then.
    pub snapshot: Option<Seqs>,
    /// When the collection of that snapshot began.
    pub began: Option<i64>,
    /// The places at which it is cut into parts, ascending.
    pub cuts: Vec<Cursor>,
}

/// The collections that a caller sees, as an extension of a response. Each has its name, and the schema of
/// its events as the first message of an Arrow stream.
#[derive(Debug, Clone)]
pub struct Listed(pub Vec<(String, Vec<u8>)>);

impl Ask {
    /// The pin of a ticket.
    pub fn pin(&self) -> Option<&Pin> {
        match self {
            Ask::Answer(pin) => Some(pin),
            Ask::Describe { .. } | Ask::List => None,
        }
    }

    /// Checks that a ticket was made for the tenant of its bearer. The name of a collection means another one in another
    /// tenant.
    ///
    /// # Errors
    /// 404, as for a collection that is absent.
    pub fn check(&self, tenant: &str, segments: &Segments) -> Result<()> {
        match self.pin() {
            Some(pin) if pin.tenant != tenant => Err(no_collection(&segments.first()?)),
            _ => Ok(()),
        }
    }
}
