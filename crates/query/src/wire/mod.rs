//! Queries over the wire: versioned JSON, written and read against a schema.
//!
//! Fields and columns go by name, filters by their source expression, page cursors as the bytes of [`crate::cursor`].
//! The query carries its remaining time, since clocks of two servers differ. Readers reject another version and
//! unknown members: an ignored condition would give wrong results.

mod question;

use crate::aggregate::Aggregate;
use crate::density::Density;
use crate::error::QueryError;
use crate::items::Items;
use crate::near::Circle;
use crate::passages::Passages;
use crate::tile::Tile;
use crate::track::Track;
use meridian_model::filter::Predicate;
use meridian_model::{Invalid, Projection, Schema};
use question::{Message, WireQuestion};
use serde::Deserialize;
use std::time::Duration;

/// Version of queries that is written and read.
pub const QUESTION_VERSION: u32 = 1;

/// Why a query or a partial result could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It has another version or kind.
    #[error("found {found}, expected {expected}: the servers must be of versions that go together")]
    Version {
        /// The value found.
        found: String,
        /// The version that this server reads.
        expected: String,
    },
    /// It does not fulfil its version's format.
    #[error("{what} is malformed: {detail}")]
    Malformed {
        /// The kind of message.
        what: &'static str,
        /// The error in it.
        detail: String,
    },
    /// It is well formed, but requests something that is refused.
    #[error(transparent)]
    Refused(#[from] QueryError),
}

impl From<Invalid> for WireError {
    fn from(invalid: Invalid) -> WireError {
        WireError::Refused(invalid.into())
    }
}

/// Any query on a snapshot.
#[derive(Debug, Clone)]
pub enum Question {
    /// Events: [`crate::items()`].
    Items(Items),
    /// A number of events: [`crate::count()`].
    Count(Count),
    /// Aggregates: [`crate::aggregate()`].
    Aggregate(Aggregate),
    /// Counts on a grid: [`crate::density()`].
    Density(Density),
    /// A map tile: [`crate::tile()`].
    Tile(Tile),
    /// The track of an object: [`crate::track()`].
    Track(Track),
    /// Passages of objects: [`crate::passages()`].
    Passages(Passages),
    /// The places in a circle: [`crate::near`].
    Near(NearCircle),
}

/// A query for a number of events.
#[derive(Debug, Clone)]
pub struct Count {
    /// The filter of events.
    pub predicate: Predicate,
    /// Counting is abandoned once more than this many events had to be tested one by one.
    pub tested_max: u64,
}

/// A query for the places in a circle.
#[derive(Debug, Clone)]
pub struct NearCircle {
    /// Longitude of the centre in degrees.
    pub lon: f64,
    /// Latitude of the centre in degrees.
    pub lat: f64,
    /// Radius in metres.
    pub radius_m: f64,
    /// Number of nearest places to return.
    pub k: usize,
    /// Their requested columns.
    pub projection: Projection,
}

impl NearCircle {
    /// The circle itself.
    pub fn circle(&self) -> Circle {
        Circle::new(self.lon, self.lat, self.radius_m)
    }
}

impl Question {
    /// Encodes the query as JSON, with its remaining time; `schema` is that of the collection.
    pub fn to_json(&self, schema: &Schema, time_left: Duration) -> Result<Vec<u8>, WireError> {
        let message = Message {
            version: QUESTION_VERSION,
            time_left_us: u64::try_from(time_left.as_micros()).unwrap_or(u64::MAX),
            question: WireQuestion::of(self, schema)?,
        };
        serde_json::to_vec(&message).map_err(|e| malformed(e.to_string()))
    }

    /// Decodes the output of [`Question::to_json`], against the schema of the collection.
    pub fn from_json(bytes: &[u8], schema: &Schema) -> Result<(Question, Duration), WireError> {
        /// The only field that is read before the version is known.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        // The version alone first: another version may have other members.
        let head: Head = serde_json::from_slice(bytes).map_err(|e| malformed(e.to_string()))?;
        if head.version != QUESTION_VERSION {
            let found = format!("a question of version {}", head.version);
            return Err(WireError::Version { found, expected: format!("version {QUESTION_VERSION}") });
        }
        let message: Message = serde_json::from_slice(bytes).map_err(|e| malformed(e.to_string()))?;
        Ok((message.question.bind(schema)?, Duration::from_micros(message.time_left_us)))
    }
}

fn malformed(detail: impl Into<String>) -> WireError {
    WireError::Malformed { what: "question", detail: detail.into() }
}

fn refused(field: &str, detail: String) -> WireError {
    WireError::Refused(QueryError::Invalid(Invalid::field(field, detail)))
}
