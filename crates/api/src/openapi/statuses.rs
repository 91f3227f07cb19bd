//! Answers of operations beside the usual one of the route table; refusals are `default`.

/// Media types and the component that describes each.
type Media = &'static [(&'static str, &'static str)];

/// Operation, status, what the answer means, and its media types.
pub const MORE: &[(&str, u16, &str, Media)] = &[
    (
        "createCollection",
        200,
        "The collection was there already, with this very schema; it has the settings that are named.",
        &[("application/json", "Collection")],
    ),
    ("replaceFeature", 201, "The event is created; `Location` names it.", &[]),
    ("meridian.collection.vector.getTile", 204, "The tile has no events.", &[]),
    ("getPackets", 204, "The reader has the last packet already.", &[]),
    ("getPackets", 101, "The packets come over a WebSocket.", &[]),
    ("getSavedPackets", 101, "The packets come over a WebSocket.", &[]),
    ("getAsset", 304, "The file has not changed.", &[]),
    ("getMap", 404, "The pages are not part of this build.", &[("text/html", "Page")]),
    ("getSearchPage", 404, "The pages are not part of this build.", &[("text/html", "Page")]),
];
