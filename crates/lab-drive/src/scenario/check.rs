//! The definition of a sound response.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Checks of a response. A failed check makes it unsound, and an unsound response never counts as fast.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Check {
    /// The status; by default any of 200 to 299.
    pub status: Option<u16>,
    /// JSON pointers (RFC 6901) that must exist in the body, which must be JSON. A segment `*` is every element of a
    /// list; `/features/*/geometry=object` also names the type: null, boolean, number, string, array or object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Min results.
    pub results_at_least: Option<u64>,
    /// Max results.
    pub results_at_most: Option<u64>,
    /// JSON pointer of a number that counts instead of the results seen: for the two above, `truth` and `points`, and
    /// in records.
    pub count: Option<String>,
    /// A JSON file that maps paths (as sent) to counts: the ground truth. A path that is not in it is unsound.
    pub truth: Option<PathBuf>,
    /// A JSON file that maps paths (as sent) to the SHA-256 of their bodies in hexadecimal digits. HTTP only.
    pub digests: Option<PathBuf>,
    /// A GeoJSON file (a FeatureCollection, or one feature per line) of all points that the target holds. The lab
    /// itself counts the points in the request's `bbox` and `datetime`, edges included. Without `count`, the request's
    /// `limit` bounds the expected count.
    pub points: Option<PathBuf>,
    /// The property of `points` to which `datetime` applies.
    pub time: Option<String>,
    /// Another target that must return the same count (or, without `count` and with `result = "body"`, the same body).
    /// It is queried after the response, one request at a time; its time is not counted and delays no open arrival.
    pub same_as: Option<String>,
    /// Interval between responses that are compared with `same_as`; 0 counts as 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub same_every: u32,
    /// A text that ends a whole response; without it the response counts as partial.
    pub ends_with: Option<String>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Check {
    /// Returns whether the body must be kept for it.
    pub fn needs_body(&self) -> bool {
        !self.fields.is_empty() || self.count.is_some() || self.same_as.is_some() || self.ends_with.is_some()
    }
}
