//! Aggregates of events, and their cost.

use super::Link;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// An aggregate.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Aggregate")]
pub struct Groups {
    /// Its groups, in order of window and value.
    pub groups: Vec<Group>,
}

/// One group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Group {
    /// Start of its window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Value of the property that is grouped by; of several properties, an object with the value of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Value>,
    /// Events in it.
    pub count: u64,
    /// The other functions by their names. A percentile, a number of different values and the most frequent values have
    /// their error beside them, as `error(NAME)`: 0 if they are exact.
    #[serde(flatten)]
    pub functions: Map<String, Value>,
}

/// Counts on a grid.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Density {
    /// Its box: west, south, east, north.
    pub bbox: [f64; 4],
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Events of each cell, row by row from the north-west.
    pub counts: Vec<u64>,
}

/// Objects that passed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tracks {
    /// Each of them.
    pub tracks: Vec<TrackSummary>,
    /// Objects of this page.
    pub number_returned: u64,
    /// This page, and the next one.
    pub links: Vec<Link>,
}

/// When an object was seen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrackSummary {
    /// The object: a number or a text.
    pub object: Value,
    /// Its events.
    pub count: u64,
    /// First instant; null where it is open.
    pub first: Option<String>,
    /// Last instant; null where it is open.
    pub last: Option<String>,
}

/// The events of one object as a line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Track {
    /// Its id.
    pub object: String,
    /// Events on the line before it was simplified; those without a start are not.
    pub events: u64,
    /// First instant.
    pub start: Option<String>,
    /// Last instant.
    pub end: Option<String>,
    /// The instant of each position, in the order of the coordinates.
    pub times: Vec<String>,
}

/// The cost of a query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Account {
    /// The snapshot that was read.
    pub snapshot: String,
    /// Rows of the snapshot, dead ones included.
    pub rows: u64,
    /// Memory trees and segments.
    pub parts: u64,
    /// The part of these whose bounds ruled them out.
    pub parts_pruned: u64,
    /// Tree nodes visited.
    pub nodes_visited: u64,
    /// Tree nodes left out with all their events.
    pub nodes_pruned: u64,
    /// Tree nodes taken whole.
    pub nodes_whole: u64,
    /// Blocks read.
    pub blocks_read: u64,
    /// Bytes of the events in these blocks, as they are stored on average.
    pub bytes_read: u64,
    /// Blocks at the edge of the query.
    pub edge_blocks: u64,
    /// Events tested one by one.
    pub events_tested: u64,
    /// Events found to match, before any limit.
    pub events_matched: u64,
    /// Milliseconds of planning.
    pub plan_ms: f64,
    /// Milliseconds of scanning.
    pub scan_ms: f64,
}

/// The cost of a query for events.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedItems {
    /// The cost.
    #[serde(flatten)]
    pub account: Account,
    /// Events of the page.
    pub events_returned: u64,
    /// How the query was executed, a sentence for each step.
    pub plan: Vec<String>,
}

/// The cost of an aggregate or a density.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedGroups {
    /// The cost.
    #[serde(flatten)]
    pub account: Account,
    /// Groups of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
}
