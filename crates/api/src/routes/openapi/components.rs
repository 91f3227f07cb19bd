//! Parameters, schemas and responses that operations refer to.

use crate::contract;
use crate::protocol::params::crs;
use crate::protocol::params::format::{EVENTS, Format, GROUPS, LINES, PAGES};
use meridian_query::BY_FIELDS_MAX;
use serde_json::{Map, Value, json};

/// Returns the `components` object.
pub fn components() -> Value {
    json!({
        "parameters": parameters(),
        "schemas": schemas(),
        "headers": headers(),
        "responses": {
            "Problem": {
                "description": "A refusal or failure, as RFC 9457 problem details; as a page for a browser that opens one.",
                "content": {
                    "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                    "text/html": { "schema": { "$ref": "#/components/schemas/Page" } }
                }
            }
        }
    })
}

fn parameters() -> Value {
    let mut all = Map::new();
    let text = || json!({ "type": "string" });
    for (name, description, schema) in [
        ("c", "Name of the collection.", text()),
        ("t", "Name of the tenant.", text()),
        ("issuer", "Name of an issuer, as the operator gave it.", text()),
        ("name", "Name of the user, in the tenant of the caller or of the header Meridian-Tenant.", text()),
        ("id", "Id of the event, search or saved search.", text()),
        ("placeId", "Id of the place.", text()),
        ("latitude", "Latitude in degrees.", json!({ "type": "number", "minimum": -90, "maximum": 90 })),
        ("longitude", "Longitude in degrees.", json!({ "type": "number", "minimum": -180, "maximum": 180 })),
        ("radiusKm", "Radius in kilometres; 0 is 0.5, above 50 is 50.", json!({ "type": "number", "minimum": 0 })),
        ("tileMatrixSetId", "Name of the tile matrix set.", json!({ "type": "string", "enum": ["WebMercatorQuad"] })),
        ("tileMatrix", "Zoom level.", json!({ "type": "integer", "minimum": 0, "maximum": 24 })),
        ("tileRow", "Row, from the north.", json!({ "type": "integer", "minimum": 0 })),
        ("tileCol", "Column, from the west.", json!({ "type": "integer", "minimum": 0 })),
        ("file", "Path of the file.", text()),
    ] {
        all.insert(name.into(), parameter(name, "path", description, schema));
    }
    let uris = crs::Crs::ALL.map(|c| c.uri());
    let system = || json!({ "type": "string", "format": "uri", "enum": uris, "default": uris[0] });
    for (name, description, schema) in [
        (
            "f",
            "Format of the response; takes precedence over `Accept`.",
            json!({ "type": "string", "enum": words(PAGES) }),
        ),
        (
            "bbox",
            "Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian.",
            json!({ "type": "array", "minItems": 4, "maxItems": 6, "oneOf": [{ "minItems": 4, "maxItems": 4 }, { "minItems": 6, "maxItems": 6 }], "items": { "type": "number" } }),
        ),
        ("bbox-crs", "Coordinate reference system of `bbox`.", system()),
        (
            "crs",
            "Coordinate reference system of the response. CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only.",
            system(),
        ),
        ("filter-crs", "Coordinate reference system of `filter`.", system()),
        ("datetime", "Instant, or interval with `..` for an open end (RFC 3339).", text()),
        (
            "limit",
            "Max events of a page; more than 10000 is taken as 10000.",
            json!({ "type": "integer", "minimum": 1, "maximum": 10000, "default": 10 }),
        ),
        (
            "density",
            "Counts per cell in this tile, even where its events are few.",
            json!({ "type": "boolean", "default": false }),
        ),
        (
            "avg",
            "A numeric property: each cell of a tile of counts also has the number of its `values`, and their average as `avg`.",
            text(),
        ),
        ("token", "Start of the page, from a `next` link.", text()),
        ("filter", "A CQL2 expression.", text()),
        (
            "filter-lang",
            "Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1).",
            json!({ "type": "string", "enum": ["cql2-text", "cql2-json", "cql-text"], "default": "cql2-text" }),
        ),
        (
            "near",
            "Position (longitude,latitude): events are ordered by distance, nearest first.",
            json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "number" } }),
        ),
        ("radius", "Max distance from `near` in metres (great circle).", json!({ "type": "number", "minimum": 0 })),
        ("nearest", "Only the k events nearest to `near`.", json!({ "type": "integer", "minimum": 1 })),
        (
            "properties",
            "Names of the properties to return, separated by commas.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        (
            "sortby",
            "Properties to sort by, each with `+` (the default) or `-` before it; needs a `limit` in the bulk formats.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        (
            "consistency",
            "`immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only.",
            json!({ "type": "string", "enum": ["immediate", "eventual"], "default": "immediate" }),
        ),
        (
            "scan_type",
            "With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile.",
            json!({ "type": "string", "minLength": 1, "maxLength": 64 }),
        ),
        ("track", "An object's id: its events as one line.", text()),
        (
            "after",
            "For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains.",
            text(),
        ),
        (
            "when",
            "Transitions of moving objects to report: some of `enter`, `inside` and `exit`, separated by commas.",
            json!({ "type": "array", "items": { "type": "string", "enum": ["enter", "inside", "exit"] } }),
        ),
        (
            "simplify",
            "Max deviation of the simplified `track` line, in metres.",
            json!({ "type": "number", "minimum": 0 }),
        ),
        (
            "explain",
            "Return the visited and pruned parts of the index instead of the result.",
            json!({ "type": "boolean", "default": false }),
        ),
        (
            "refresh",
            "Whether the page asks for itself again every two seconds.",
            json!({ "type": "string", "enum": ["on", "off"], "default": "on" }),
        ),
        ("timeout", "Deadline in milliseconds.", json!({ "type": "integer", "minimum": 1 })),
        (
            "function",
            "`count`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`, `median(f)`, `percentile(f,95)`, `distinct(f)`, `top(f,5)`, with commas between.",
            json!({ "type": "array", "items": { "type": "string" }, "default": ["count"] }),
        ),
        ("window", "Length of the windows of time (ISO 8601 duration).", text()),
        ("zone", "Time zone whose midnight windows are aligned to.", json!({ "type": "string", "default": "UTC" })),
        ("empty", "Include empty windows.", json!({ "type": "boolean", "default": false })),
        (
            "by",
            "Properties to group by.",
            json!({ "type": "array", "minItems": 1, "maxItems": BY_FIELDS_MAX, "items": { "type": "string" } }),
        ),
        ("width", "Columns of the grid.", json!({ "type": "integer", "minimum": 1, "maximum": 4096 })),
        ("height", "Rows of the grid.", json!({ "type": "integer", "minimum": 1, "maximum": 4096 })),
        (
            "durability",
            "The failures that an acknowledged event survives.",
            json!({ "type": "string", "enum": ["ephemeral", "local", "replicated"], "default": "local" }),
        ),
        ("retention", "Age, by event time, from which events are dropped (ISO 8601 duration).", text()),
        (
            "retention_bytes",
            "Bytes of events from which the oldest are dropped.",
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (
            "partitions",
            "Number of partitions of a new collection, each with a log of its own; by default that of the server's settings.",
            json!({ "type": "integer", "minimum": 1, "maximum": 256 }),
        ),
        (
            "confirm",
            "Max events that the new retention may remove; without it, a retention that removes any gets 409 with their number.",
            json!({ "type": "integer", "minimum": 0, "default": 0 }),
        ),
        (
            "history",
            "In a collection of mode `latest`: all events, not only the newest of each object.",
            json!({ "type": "boolean", "default": false }),
        ),
        ("next", "Path on this server to go to after signing in.", text()),
        ("p", "Page, from 0.", json!({ "type": "integer", "default": 0 })),
    ] {
        all.insert(name.into(), parameter(name, "query", description, schema));
    }
    for (name, words) in [
        ("f-events", words(EVENTS)),
        ("f-table", words(GROUPS)),
        ("f-lines", words(LINES)),
        ("f-tile", vec!["mvt"]),
        ("f-json", vec!["json"]),
    ] {
        let schema = json!({ "type": "string", "enum": words });
        all.insert(
            name.into(),
            parameter("f", "query", "Format of the response; takes precedence over `Accept`.", schema),
        );
    }
    for (key, name, description, schema) in [
        (
            "acts-after",
            "after",
            "Only lines after this number; a `next` link has it.",
            json!({ "type": "integer", "minimum": 0, "default": 0 }),
        ),
        (
            "acts-limit",
            "limit",
            "Max lines of a page; more than 1000 is taken as 1000.",
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        ),
    ] {
        all.insert(key.into(), parameter(name, "query", description, schema));
    }
    all.insert(
        "queryable".into(),
        json!({
            "name": "queryable", "in": "query", "required": false, "style": "form", "explode": true,
            "description": "Any queryable as a parameter of the same name: events whose property has this value.",
            "schema": { "type": "object", "additionalProperties": { "type": "string" } }
        }),
    );
    for (name, description) in [
        (
            "Idempotency-Key",
            "A key for this write. Sent again with the same events, it changes nothing; with others, it is refused (422).",
        ),
        ("Content-Crs", "Coordinate reference system of a GeoJSON body: a URI in angle brackets; CRS84 without it."),
        ("Prefer", "`handling=lenient` accepts a body, drops heights and ids that cannot be stored, and counts them."),
        ("Meridian-Timeout", "Deadline in milliseconds."),
        (
            "Meridian-After",
            "Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. \
             A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. \
             Another server has every write, and answers 503 at once.",
        ),
        (
            "If-Match",
            "Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to.",
        ),
        (
            "If-None-Match",
            "Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412.",
        ),
        ("Range", "One range of bytes, such as `bytes=0-1023`. Several get the whole file."),
        ("If-Range", "A tag or date: the range counts only if the file is still the same."),
        (
            "Last-Event-ID",
            "The last packet, or the position of the last event, that the client has. The response starts after it.",
        ),
    ] {
        all.insert(name.into(), parameter(name, "header", description, text()));
    }
    Value::Object(all)
}

/// The headers of every response that was read from a snapshot.
pub const READ_HEADERS: [&str; 3] = ["Meridian-Snapshot", "Age", "Meridian-Consistency"];

fn headers() -> Value {
    let [snapshot, age, consistency] = READ_HEADERS;
    json!({
        snapshot: { "description": "The snapshot that was read.", "schema": { "type": "string" } },
        age: {
            "description": "Age of the snapshot in seconds: it shows every write that was acknowledged before that.",
            "schema": { "type": "integer", "minimum": 0 }
        },
        consistency: {
            "description": "`immediate`: the response shows every acknowledged write; `eventual`: what is flushed, or what was asked for.",
            "schema": { "type": "string", "enum": ["immediate", "eventual"] }
        }
    })
}

fn parameter(name: &str, place: &str, description: &str, schema: Value) -> Value {
    let mut parameter =
        json!({ "name": name, "in": place, "required": place == "path", "description": description, "schema": schema });
    if place == "query" {
        parameter["style"] = json!("form");
        parameter["explode"] = json!(false);
    }
    parameter
}

fn words(formats: &[Format]) -> Vec<&'static str> {
    formats.iter().map(|f| f.word()).collect()
}

/// Returns a response that is one of several documents.
fn one_of(names: [&str; 2]) -> Value {
    json!({ "anyOf": names.map(|name| json!({ "$ref": format!("#/components/schemas/{name}") })) })
}

fn schemas() -> Value {
    let mut schemas = contract::components();
    // Schemas without a Rust type: texts, bytes, and documents that another standard defines.
    schemas.extend(
        [
            ("Text", json!({ "type": "string" })),
            ("Page", json!({ "type": "string" })),
            ("Binary", json!({ "type": "string", "format": "binary" })),
            ("Document", json!({ "type": "object" })),
            ("Features", one_of(["Feature", "FeatureCollection"])),
            ("AggregateAnswer", one_of(["Aggregate", "ExplainedGroups"])),
            ("DensityAnswer", one_of(["Density", "ExplainedGroups"])),
        ]
        .map(|(name, schema)| (name.to_owned(), schema)),
    );
    Value::Object(schemas)
}
