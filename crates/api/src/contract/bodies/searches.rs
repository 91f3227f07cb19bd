//! Questions of searches, and saved searches.

use schemars::JsonSchema;
use serde_json::Value;

/// One of `keywords`, a place and `author` is required; see docs/searches.md.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes")]
pub struct Question {
    /// Words that the text must have, with `OR`, `NOT`, quotes and parentheses.
    #[schemars(length(min = 1))]
    keywords: Option<String>,
    /// Longitude and latitude in degrees.
    #[schemars(inner(range(min = -180, max = 180)))]
    near: Option<[f64; 2]>,
    /// Metres.
    #[schemars(range(max = 20_037_508), extend("exclusiveMinimum" = 0))]
    radius: Option<f64>,
    /// West, south, east, north in degrees.
    #[schemars(inner(range(min = -180, max = 180)))]
    bbox: Option<[f64; 4]>,
    /// A polygon as GeoJSON.
    polygon: Option<Polygon>,
    /// Name of a place.
    #[schemars(length(min = 1))]
    address: Option<String>,
    /// Name of the author.
    #[schemars(length(min = 1))]
    author: Option<String>,
    /// Names of the providers to ask; all that are enabled without it.
    #[schemars(length(min = 1, max = 100))]
    providers: Option<Vec<String>>,
    /// RFC 3339, or a date: that whole day in UTC.
    start: Option<String>,
    /// RFC 3339, or a date: that whole day in UTC.
    end: Option<String>,
    /// The media that a result must have.
    media: Option<Media>,
    /// Two letters (ISO 639-1), or `any`.
    language: Option<String>,
    /// Max results of each provider.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Milliseconds.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Whether a client waits for it.
    priority: Option<Priority>,
    /// Of saved searches: the transitions of moving objects to report.
    when: Option<Vec<Transition>>,
    /// Where its results are stored.
    keep: Option<Keep>,
}

/// A polygon as GeoJSON.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
struct Polygon {
    /// `Polygon`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Polygon"]))]
    kind: String,
    /// Its rings.
    coordinates: Vec<Value>,
}

/// Media of a result.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
enum Media {
    Images,
    Videos,
    Any,
}

/// Place in the queues.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
enum Priority {
    Quick,
    Background,
}

/// A transition of a moving object.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
enum Transition {
    Enter,
    Inside,
    Exit,
}

/// Where results are stored, and for how long.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
struct Keep {
    /// Name of the collection.
    collection: String,
    /// Hours until they expire.
    #[schemars(range(min = 1, max = 8784))]
    hours: Option<u64>,
}

/// A question that is asked from now on. Its members may be beside `name` too.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes")]
pub struct SavedSearch {
    /// For people; at most 200 bytes.
    #[schemars(length(max = 200))]
    name: Option<String>,
    /// What is searched for.
    question: Option<Question>,
    /// Where packets are sent.
    webhook: Option<Webhook>,
    /// Seconds between polls of outside providers; the operator may set a higher min.
    #[schemars(range(min = 1, max = 2_678_400))]
    poll_s: Option<u64>,
}

/// Where packets are sent.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
struct Webhook {
    /// Address of the receiver.
    #[schemars(url)]
    url: String,
    /// Key of the signatures.
    #[schemars(length(min = 8, max = 200))]
    secret: String,
}

#[cfg(test)]
mod tests;
