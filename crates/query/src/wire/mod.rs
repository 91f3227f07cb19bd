//! Questions over a wire: JSON with a version, written against a schema and read against one.
//!
//! Fields and columns go by name, filters by the expression that they were bound from, page cursors as the bytes of
//! [`crate::cursor`]. With the question goes the time that is left for it, since clocks of two servers differ. Readers
//! refuse another version and members they do not know: a condition left out would give wrong answers.

mod question;

use crate::aggregate::Aggregate;
use crate::density::Density;
use crate::error::QueryError;
use crate::items::Items;
use crate::near::Circle;
use crate::partial::WireError;
use crate::passages::Passages;
use crate::tile::Tile;
use crate::track::Track;
use meridian_model::filter::Predicate;
use meridian_model::{Invalid, Projection, Schema};
use question::{Message, WireQuestion};
use serde::Deserialize;
use std::time::Duration;

/// Version of questions that is written and read.
pub const QUESTION_VERSION: u32 = 1;

/// Any question that can be asked of a snapshot.
#[derive(Debug, Clone)]
pub enum Question {
    /// For events: [`crate::items()`].
    Items(Items),
    /// For a number of events: [`crate::count()`].
    Count(Count),
    /// For numbers over events: [`crate::aggregate()`].
    Aggregate(Aggregate),
    /// For counts on a grid: [`crate::density()`].
    Density(Density),
    /// For a map tile: [`crate::tile()`].
    Tile(Tile),
    /// For the track of an object: [`crate::track()`].
    Track(Track),
    /// For objects that passed: [`crate::passages()`].
    Passages(Passages),
    /// For the places in a circle: [`crate::near`].
    Near(NearCircle),
}

/// A question for a number of events.
#[derive(Debug, Clone)]
pub struct Count {
    /// The filter of events.
    pub predicate: Predicate,
    /// Counting is given up once more than this many events had to be tested one by one.
    pub tested_max: u64,
}

/// A question for the places in a circle.
#[derive(Debug, Clone)]
pub struct NearCircle {
    /// Longitude of the centre in degrees.
    pub lon: f64,
    /// Latitude of the centre in degrees.
    pub lat: f64,
    /// Radius in metres.
    pub radius_m: f64,
    /// How many of the nearest are wanted.
    pub k: usize,
    /// The columns wanted of them.
    pub projection: Projection,
}

impl NearCircle {
    /// The circle itself.
    pub fn circle(&self) -> Circle {
        Circle::new(self.lon, self.lat, self.radius_m)
    }
}

impl Question {
    /// The question as JSON, with the time that is left for it; `schema` is that of the collection asked.
    pub fn to_json(&self, schema: &Schema, time_left: Duration) -> Result<Vec<u8>, WireError> {
        let message = Message {
            version: QUESTION_VERSION,
            time_left_us: u64::try_from(time_left.as_micros()).unwrap_or(u64::MAX),
            question: WireQuestion::of(self, schema)?,
        };
        serde_json::to_vec(&message).map_err(|e| malformed(e.to_string()))
    }

    /// Reads what [`Question::to_json`] wrote, against the schema of the collection asked.
    pub fn from_json(bytes: &[u8], schema: &Schema) -> Result<(Question, Duration), WireError> {
        /// The only field that is read before the version is known.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        // The version alone first: the members of another version need not be those of this one.
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
