//! Every operation of the server, as data.

/// What an operation takes.
#[derive(Debug, Clone, Copy)]
pub struct Body {
    /// A sentence.
    pub description: &'static str,
    /// Media types and the component that describes each; empty where a schema says nothing.
    pub takes: &'static [(&'static str, &'static str)],
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Method in upper case.
    pub method: &'static str,
    /// Path template as the router has it.
    pub path: &'static str,
    /// Unique name.
    pub id: &'static str,
    /// One of [`TAGS`].
    pub tag: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Components of query and header parameters.
    pub parameters: &'static [&'static str],
    /// What it takes.
    pub body: Option<Body>,
    /// Status of success.
    pub status: u16,
    /// What success means.
    pub answer: &'static str,
    /// Media types of the answer and the component that describes each.
    pub produces: &'static [(&'static str, &'static str)],
}

/// Groups of operations.
pub const TAGS: &[(&str, &str)] = &[
    ("Capabilities", "What the server is and does."),
    ("Collections", "Named sets of events with one schema each."),
    ("Events", "Events of a collection: OGC API - Features parts 1 to 4."),
    ("Analysis", "Aggregates and densities, answered from the index where it can."),
    ("Tiles", "Vector tiles: OGC API - Tiles part 1."),
    ("Places", "The places profile, on the collection places."),
    ("Searches", "One question to many sources, answered in packets as they come."),
    ("Operation", "For those who run the server."),
    ("Pages", "Pages for people."),
];

const PAGE: &[(&str, &str)] = &[("application/json", "Document"), ("text/html", "Page")];
const PROBLEM_FREE_JSON: &[(&str, &str)] = &[("application/json", "Document")];
const EVENTS: &[(&str, &str)] = &[
    // One feature is the answer to `track`, JSON that to `explain`.
    ("application/geo+json", "Features"),
    ("application/json", "Document"),
    ("text/html", "Page"),
    ("text/csv", "Text"),
    ("application/x-ndjson", "Text"),
    ("application/geo+json-seq", "Text"),
    ("application/vnd.apache.arrow.stream", "Binary"),
    ("application/vnd.apache.parquet", "Binary"),
];
const EVENT: &[(&str, &str)] = &[("application/geo+json", "Feature"), ("text/html", "Page")];
const WRITTEN: &[(&str, &str)] = &[("application/json", "Written")];
const DELETED: &[(&str, &str)] = &[("application/json", "Deleted")];
const TILE: &[&str] = &[
    "density",
    "f-tile",
    "properties",
    "queryable",
    "bbox",
    "bbox-crs",
    "datetime",
    "filter",
    "history",
    "filter-lang",
    "filter-crs",
    "near",
    "radius",
    "timeout",
    "Meridian-Timeout",
];
const FEATURE_BODY: Body =
    Body { description: "One event.", takes: &[("application/geo+json", "Feature"), ("application/json", "Feature")] };
const SCHEMA_BODY: Body = Body {
    description: "What the collection holds: a JSON Schema, or a SimpleFeatureType spec such as `name:String,dtg:Date,*geom:Point:srid=4326`.",
    takes: &[("application/schema+json", "JsonSchema"), ("application/json", "JsonSchema"), ("text/plain", "Text")],
};

macro_rules! op {
    ($method:literal $path:literal $id:literal $tag:literal $summary:literal, $parameters:expr, $body:expr, $status:literal $answer:literal, $produces:expr) => {
        Operation {
            method: $method,
            path: $path,
            id: $id,
            tag: $tag,
            summary: $summary,
            parameters: $parameters,
            body: $body,
            status: $status,
            answer: $answer,
            produces: $produces,
        }
    };
}

/// Every operation.
pub const OPERATIONS: &[Operation] = &[
    op!("GET" "/" "getLandingPage" "Capabilities" "The landing page", &["f"], None, 200 "Links to everything else.", PAGE),
    op!("GET" "/conformance" "getConformance" "Capabilities" "The conformance classes", &["f"], None, 200 "URIs of the classes.", PAGE),
    op!("GET" "/api" "getApi" "Capabilities" "This description, as OpenAPI 3.0", &["f"], None, 200 "The document.", &[("application/vnd.oai.openapi+json;version=3.0", "Document"), ("text/html", "Page")]),
    op!("GET" "/openapi.json" "getOpenApi" "Capabilities" "This description, as OpenAPI 3.1", &[], None, 200 "The document.", &[("application/vnd.oai.openapi+json;version=3.1", "Document")]),
    op!("GET" "/collections" "getCollections" "Collections" "The collections", &["f"], None, 200 "Every collection with its extent and links.", PAGE),
    op!("GET" "/collections/{c}" "getCollection" "Collections" "One collection", &["f"], None, 200 "Its extent, systems of coordinates, settings and links.", PAGE),
    op!("PUT" "/collections/{c}" "createCollection" "Collections" "Make a collection, or change the settings of one that is there", &["durability", "retention", "retention_bytes", "confirm"], Some(SCHEMA_BODY), 201 "The collection is made.", PROBLEM_FREE_JSON),
    op!("PATCH" "/collections/{c}" "updateCollection" "Collections" "Change settings, add optional fields", &["confirm"], Some(Body { description: "What changes; what is not named stays.", takes: &[("application/merge-patch+json", "Settings"), ("application/json", "Settings")] }), 200 "The collection as it now is.", PROBLEM_FREE_JSON),
    op!("DELETE" "/collections/{c}" "deleteCollection" "Collections" "Remove a collection with all its events", &[], None, 204 "It is gone.", &[]),
    op!("GET" "/collections/{c}/schema" "getSchema" "Collections" "What the collection holds, as JSON Schema", &["f"], None, 200 "The schema.", &[("application/schema+json", "JsonSchema"), ("text/html", "Page")]),
    op!("GET" "/collections/{c}/queryables" "getQueryables" "Collections" "What a filter may name, as JSON Schema", &["f"], None, 200 "The queryables.", &[("application/schema+json", "JsonSchema"), ("text/html", "Page")]),
    op!("GET" "/collections/{c}/items" "getFeatures" "Events" "Events that match", &["bbox", "bbox-crs", "crs", "datetime", "limit", "token", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "nearest", "properties", "sortby", "consistency", "track", "simplify", "explain", "timeout", "Meridian-Timeout", "f-events", "queryable"], None, 200 "A page of events; in the bulk formats without `limit`, all of them.", EVENTS),
    op!("POST" "/collections/{c}/items" "createFeatures" "Events" "Write events, all of them or none", &["Idempotency-Key", "Content-Crs", "Prefer"], Some(Body { description: "Events in one of the formats.", takes: &[("application/geo+json", "Features"), ("application/json", "Features"), ("application/geo+json-seq", "Text"), ("application/x-ndjson", "Text"), ("text/csv", "Text"), ("application/vnd.apache.arrow.stream", "Binary")] }), 201 "They are written: how many, and their position in the log. One feature also gives its `Location`.", WRITTEN),
    op!("DELETE" "/collections/{c}/items" "deleteFeatures" "Events" "Delete the events that match a filter", &["filter", "history", "filter-lang", "filter-crs", "bbox", "bbox-crs", "datetime", "near", "radius", "timeout", "Meridian-Timeout", "queryable"], None, 200 "How many were deleted.", DELETED),
    op!("GET" "/collections/{c}/items/{id}" "getFeature" "Events" "One event", &["crs", "timeout", "Meridian-Timeout", "f"], None, 200 "The event.", EVENT),
    op!("PUT" "/collections/{c}/items/{id}" "replaceFeature" "Events" "Replace an event (or create it, where ids are given)", &["Content-Crs", "Prefer"], Some(FEATURE_BODY), 204 "It is replaced.", &[]),
    op!("PATCH" "/collections/{c}/items/{id}" "updateFeature" "Events" "Change some properties of an event", &["Content-Crs", "Prefer"], Some(Body { description: "A JSON Merge Patch of the event.", takes: &[("application/merge-patch+json", "Patch"), ("application/geo+json", "Patch"), ("application/json", "Patch")] }), 204 "It is changed.", &[]),
    op!("DELETE" "/collections/{c}/items/{id}" "deleteFeature" "Events" "Delete an event", &[], None, 204 "It is gone.", &[]),
    op!("POST" "/collections/{c}/files" "listFiles" "Collections" "Bring all events into GeoParquet files, and list these", &["timeout", "Meridian-Timeout"], None, 200 "The files, the snapshot that they show, and until when they stay.", PROBLEM_FREE_JSON),
    op!("GET" "/collections/{c}/aggregate" "getAggregate" "Analysis" "Count, sum, avg, min, max; by window of time, by field", &["f-table", "function", "window", "zone", "empty", "by", "bbox", "bbox-crs", "datetime", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "explain", "timeout", "Meridian-Timeout", "queryable"], None, 200 "One group for each window and value.", &[("application/json", "Aggregate"), ("text/csv", "Text")]),
    op!("GET" "/collections/{c}/density" "getDensity" "Analysis" "Counts on a grid", &["f-json", "bbox", "bbox-crs", "width", "height", "datetime", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "explain", "timeout", "Meridian-Timeout", "queryable"], None, 200 "Counts row by row from the north-west.", &[("application/json", "Density")]),
    op!("GET" "/collections/{c}/tracks" "getTracks" "Analysis" "Which objects passed, and when each was first and last seen", &["f-json", "bbox", "bbox-crs", "datetime", "limit", "after", "filter", "filter-lang", "filter-crs", "near", "radius", "timeout", "Meridian-Timeout", "queryable"], None, 200 "A page of objects in order of their names, each with the number of its events that match.", &[("application/json", "Tracks")]),
    op!("GET" "/collections/{c}/stream" "followEvents" "Events" "Events as they are acknowledged: Server-Sent Events, or a WebSocket where the request asks for an upgrade", &["bbox", "bbox-crs", "crs", "datetime", "near", "radius", "filter", "filter-lang", "filter-crs", "properties", "when", "after", "Last-Event-ID"], None, 200 "Events with their positions, for as long as the stream lasts.", &[("text/event-stream", "Text")]),
    op!("GET" "/collections/{c}/tiles" "meridian.collection.vector.getTileSetsList" "Tiles" "The vector tilesets of a collection", &["f"], None, 200 "Tilesets, with a TileJSON-like description.", PAGE),
    op!("GET" "/collections/{c}/tiles/{tileMatrixSetId}" "meridian.collection.vector.getTileSet" "Tiles" "One vector tileset", &["f"], None, 200 "The tileset.", PAGE),
    op!("GET" "/collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}" "meridian.collection.vector.getTile" "Tiles" "One vector tile (row before column)", TILE, None, 200 "The tile.", &[("application/vnd.mapbox-vector-tile", "Binary")]),
    op!("GET" "/tileMatrixSets" "meridian.getTileMatrixSetsList" "Tiles" "The tile matrix sets", &["f"], None, 200 "Their list.", PAGE),
    op!("GET" "/tileMatrixSets/{tileMatrixSetId}" "meridian.getTileMatrixSet" "Tiles" "One tile matrix set", &["f"], None, 200 "Its definition.", PAGE),
    op!("GET" "/api/v0/places" "listPlaces" "Places" "All places, 25 a page", &["p"], None, 200 "A page of places.", &[("application/json", "Places")]),
    op!("POST" "/api/v0/places" "createPlace" "Places" "Add a place", &[], Some(Body { description: "A place.", takes: &[("application/json", "Place")] }), 303 "It is added; `Location` names it.", &[]),
    op!("GET" "/api/v0/places/{placeId}" "getPlace" "Places" "One place", &[], None, 200 "The place.", &[("application/json", "Place")]),
    op!("DELETE" "/api/v0/places/{placeId}" "deletePlace" "Places" "Delete a place", &[], None, 303 "It is gone; `Location` names the list.", &[]),
    op!("DELETE" "/api/v0/places/deleteAllPlaces" "deletePlaces" "Places" "Delete all places", &[], None, 303 "They are gone; `Location` names the list.", &[]),
    op!("GET" "/api/v0/places/random" "randomPlace" "Places" "Some place", &[], None, 200 "A place.", &[("application/json", "Place")]),
    op!("GET" "/api/v0/places/near/{latitude}/{longitude}" "nearPlaces" "Places" "Places within 0.5 km, nearest first", &["p"], None, 200 "A page of places with their distance in km.", &[("application/json", "Places")]),
    op!("GET" "/api/v0/places/near/{latitude}/{longitude}/{radiusKm}" "nearPlacesWithin" "Places" "Places within a radius of at most 50 km, nearest first", &["p"], None, 200 "A page of places with their distance in km.", &[("application/json", "Places")]),
    op!("POST" "/searches" "startSearch" "Searches" "Ask Meridian's collections and outside sources at once" , &["Meridian-Timeout"], Some(Body { description: "A question: keywords, a place, an author; see docs/searches.md.", takes: &[("application/json", "Question")] }), 202 "It runs: its id, whom it asks, and where its packets come.", PROBLEM_FREE_JSON),
    op!("GET" "/searches/{id}" "getSearch" "Searches" "How a search stands", &[], None, 200 "Its state, and that of each provider.", PROBLEM_FREE_JSON),
    op!("DELETE" "/searches/{id}" "stopSearch" "Searches" "Stop a search", &[], None, 204 "It is stopped.", &[]),
    op!("GET" "/searches/{id}/packets" "getPackets" "Searches" "The packets of a search as they come: Server-Sent Events, or a WebSocket where the request asks for an upgrade", &["after", "Last-Event-ID"], None, 200 "Packets, the last of them `complete`.", &[("text/event-stream", "Text")]),
    op!("POST" "/saved-searches" "saveSearch" "Searches" "Save a search: it stands from now on" , &[], Some(Body { description: "A name, a question, a webhook, seconds between polls of outside sources; see docs/saved-searches.md.", takes: &[("application/json", "SavedSearch")] }), 201 "It stands: its id, and where its packets come.", PROBLEM_FREE_JSON),
    op!("GET" "/saved-searches" "getSavedSearches" "Searches" "The saved searches", &["limit", "after"], None, 200 "A page of them in order of their ids.", PROBLEM_FREE_JSON),
    op!("GET" "/saved-searches/{id}" "getSavedSearch" "Searches" "How a saved search stands", &[], None, 200 "The question, what was sent, how its webhook and its polls go.", PROBLEM_FREE_JSON),
    op!("DELETE" "/saved-searches/{id}" "deleteSavedSearch" "Searches" "Delete a saved search", &[], None, 204 "It is gone.", &[]),
    op!("GET" "/saved-searches/{id}/packets" "getSavedPackets" "Searches" "The packets of a saved search as they come: Server-Sent Events, or a WebSocket where the request asks for an upgrade", &["after", "Last-Event-ID"], None, 200 "Packets, for as long as it stands.", &[("text/event-stream", "Text")]),
    op!("GET" "/providers" "getProviders" "Searches" "Whom a search can ask, and how they have been", &[], None, 200 "Names, breakers, budgets.", PROBLEM_FREE_JSON),
    op!("POST" "/backup" "backup" "Operation" "Everything, as it is at one position of each collection, as a tar for a backup folder", &["timeout", "Meridian-Timeout"], Some(Body { description: "What the folder holds already: `{\"have\": {NAME: CRC32C}}`; without it everything is sent.", takes: &[("application/json", "Backup")] }), 200 "New files, then `BACKUP`, which says what belongs together; without it there is no backup.", &[("application/x-tar", "Binary")]),
    op!("GET" "/metrics" "getMetrics" "Operation" "Counters in the Prometheus text format", &[], None, 200 "The counters.", &[("text/plain", "Text")]),
    op!("GET" "/healthz" "getHealth" "Operation" "Whether the process lives", &[], None, 200 "It does.", PROBLEM_FREE_JSON),
    op!("GET" "/readyz" "getReady" "Operation" "Whether the server takes requests", &[], None, 200 "It does; 503 while it stops or when its store is damaged.", PROBLEM_FREE_JSON),
    op!("GET" "/version" "getVersion" "Operation" "Name and version", &[], None, 200 "Both.", PROBLEM_FREE_JSON),
    op!("GET" "/map" "getMap" "Pages" "The map", &[], None, 200 "The page.", &[("text/html", "Page")]),
    op!("GET" "/search" "getSearchPage" "Pages" "The page for searches", &[], None, 200 "The page.", &[("text/html", "Page")]),
    op!("GET" "/assets/{file}" "getAsset" "Pages" "A file of the pages", &[], None, 200 "The file.", &[("application/octet-stream", "Binary")]),
];
