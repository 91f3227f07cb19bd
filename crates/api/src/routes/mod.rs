//! The route table: every route with the access it requires, its admission class, its handler and its description.
//!
//! The matcher, the metrics, both OpenAPI documents and `docs/routes.md` are derived from it. The handlers that
//! describe the API itself are here: landing page, conformance classes, OpenAPI.

mod conformance;
mod landing;
mod openapi;

use crate::access::{self, audit, sign_in};
use crate::collections::{self, analysis, files, items, live, passages, places, tiles, tilesets};
use crate::operation::{self, backup, cluster, load};
use crate::pages::{base_map, embedded, icon};
use crate::protocol::params::format;
use crate::request::route::{Access, Action, Class, Handler, RequestBody, Resource, Route};
use crate::searches;
use axum::http::Method;

/// Groups of operations.
pub const TAGS: &[(&str, &str)] = &[
    ("Capabilities", "The server's description and capabilities."),
    ("Collections", "Named sets of events with one schema each."),
    ("Events", "Events of a collection: OGC API - Features parts 1 to 4."),
    ("Analysis", "Aggregates and densities, answered from the index where possible."),
    ("Tiles", "Vector tiles: OGC API - Tiles part 1."),
    ("Places", "The places profile, on the collection places."),
    ("Searches", "One question to many sources, answered in packets as results arrive."),
    ("Access", "Tokens, tenants, users and sessions, and who changed them."),
    ("Operation", "For operators of the server."),
    ("Pages", "HTML pages."),
];

/// What a list of events is served as: the last one needs a feature, as in [`format::EVENTS`].
const EVENTS: &[(&str, &str)] = ALL_EVENTS.split_at(format::EVENTS.len() + 1).0;
const ALL_EVENTS: &[(&str, &str)] = &[
    // `track` returns one feature, `explain` returns JSON.
    ("application/geo+json", "Features"),
    ("application/json", "ExplainedItems"),
    ("text/html", "Page"),
    ("text/csv", "Text"),
    ("application/x-ndjson", "Text"),
    ("application/geo+json-seq", "Text"),
    ("application/vnd.apache.arrow.stream", "Binary"),
    ("application/vnd.apache.parquet", "Binary"),
    ("application/flatgeobuf", "Binary"),
    ("application/geopackage+sqlite3", "Binary"),
];
const EVENT: &[(&str, &str)] = &[("application/geo+json", "Feature"), ("text/html", "Page")];
const WRITTEN: &[(&str, &str)] = &[("application/json", "Written")];
const DELETED: &[(&str, &str)] = &[("application/json", "Deleted")];
const TILE: &[&str] = &[
    "density",
    "avg",
    "consistency",
    "scan_type",
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
    "Meridian-After",
    "If-None-Match",
];
const FEATURE_BODY: RequestBody =
    RequestBody::of_events("One event.", &[("application/geo+json", "Feature"), ("application/json", "Feature")]);
/// Max bytes of a schema, and of a change to it.
const SCHEMA_BYTES_MAX: usize = 256 << 10;
const SCHEMA_BODY: RequestBody = RequestBody {
    description: "The schema of the collection: a JSON Schema, or a SimpleFeatureType spec such as `name:String,dtg:Date,*geom:Point:srid=4326`.",
    media_types: &[
        ("application/schema+json", "JsonSchema"),
        ("application/json", "JsonSchema"),
        ("text/plain", "Text"),
    ],
    bytes_max: SCHEMA_BYTES_MAX,
    may_be_compressed: false,
};

const SETTINGS_BODY: RequestBody = RequestBody {
    description: "The changes; everything else stays.",
    media_types: &[("application/merge-patch+json", "Settings"), ("application/json", "Settings")],
    bytes_max: SCHEMA_BYTES_MAX,
    may_be_compressed: false,
};

/// A contract document as JSON.
macro_rules! json {
    ($component:literal) => {
        &[("application/json", $component)]
    };
}

/// A contract document as JSON or as an HTML page.
macro_rules! json_or_page {
    ($component:literal) => {
        &[("application/json", $component), ("text/html", "Page")]
    };
}

/// The access that a route requires, in the table's shorthand.
macro_rules! access {
    (open) => {
        Access::Open
    };
    (read $resource:ident) => {
        Access::Needs(Action::Read, Resource::$resource)
    };
    (write $resource:ident) => {
        Access::Needs(Action::Write, Resource::$resource)
    };
    (manage $resource:ident) => {
        Access::Needs(Action::Manage, Resource::$resource)
    };
}

/// A row: method, path, access, class and handler; then, for the description, its name, group and summary, its
/// parameters and body, and its response. A row that lacks one of these does not compile.
macro_rules! route {
    ($method:ident $path:literal, $action:ident $($resource:ident)?, $class:ident, $handler:expr;
     $id:literal $tag:literal $summary:literal, $parameters:expr, $body:expr, $status:literal $answer:literal, $produces:expr) => {
        Route {
            method: Method::$method,
            path: $path,
            access: access!($action $($resource)?),
            class: Class::$class,
            handler: || $handler,
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

/// Every route.
pub const ROUTES: &[Route] = &[
    route!(GET "/", open, Interactive, Handler::of(landing::get);
        "getLandingPage" "Capabilities" "The landing page", &["f"], None, 200 "Links to everything else.", json_or_page!("Landing")),
    route!(GET "/conformance", open, Interactive, Handler::of(conformance::get);
        "getConformance" "Capabilities" "The conformance classes", &["f"], None, 200 "URIs of the classes.", json_or_page!("Conformance")),
    route!(GET "/api", open, Interactive, Handler::of(openapi::get_30);
        "getApi" "Capabilities" "This description, as OpenAPI 3.0", &["f"], None, 200 "The document.", &[("application/vnd.oai.openapi+json;version=3.0", "Document"), ("text/html", "Page")]),
    route!(GET "/openapi.json", open, Interactive, Handler::of(openapi::get_31);
        "getOpenApi" "Capabilities" "This description, as OpenAPI 3.1", &[], None, 200 "The document.", &[("application/vnd.oai.openapi+json;version=3.1", "Document")]),
    route!(GET "/collections", read Collections, Interactive, Handler::of(collections::list);
        "getCollections" "Collections" "The collections", &["f", "If-None-Match"], None, 200 "Every collection with its extent and links.", json_or_page!("CollectionList")),
    route!(GET "/collections/{c}", read Collection, Interactive, Handler::of(collections::get);
        "getCollection" "Collections" "One collection", &["f", "If-None-Match"], None, 200 "Its extent, coordinate reference systems, settings and links.", json_or_page!("Collection")),
    route!(PUT "/collections/{c}", manage Collection, Write, Handler::of(collections::put);
        "createCollection" "Collections" "Create a collection, or change the settings of an existing one", &["durability", "retention", "retention_bytes", "partitions", "confirm", "If-None-Match"], Some(SCHEMA_BODY), 201 "The collection is created.", json!("Collection")),
    route!(PATCH "/collections/{c}", manage Collection, Write, Handler::of(collections::patch);
        "updateCollection" "Collections" "Change settings, add optional fields, or rename it", &["confirm", "If-Match"], Some(SETTINGS_BODY), 200 "The changed collection. If it was renamed, `Location` has its new URL.", json!("Collection")),
    route!(DELETE "/collections/{c}", manage Collection, Write, Handler::of(collections::delete);
        "deleteCollection" "Collections" "Remove a collection with all its events", &["If-Match"], None, 204 "It is deleted.", &[]),
    route!(GET "/collections/{c}/schema", read Collection, Interactive, Handler::of(collections::schema);
        "getSchema" "Collections" "The schema of the collection, as JSON Schema", &["f", "If-None-Match"], None, 200 "The schema.", &[("application/schema+json", "JsonSchema"), ("text/html", "Page")]),
    route!(GET "/collections/{c}/queryables", read Collection, Interactive, Handler::of(collections::queryables);
        "getQueryables" "Collections" "The properties that a filter may use, as JSON Schema", &["f", "If-None-Match"], None, 200 "The queryables.", &[("application/schema+json", "JsonSchema"), ("text/html", "Page")]),
    route!(GET "/collections/{c}/items", read Collection, Interactive, Handler::of(items::get);
        "getFeatures" "Events" "Events that match", &["bbox", "bbox-crs", "crs", "datetime", "limit", "token", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "nearest", "properties", "sortby", "consistency", "scan_type", "track", "simplify", "explain", "timeout", "Meridian-Timeout", "Meridian-After", "f-events", "queryable", "If-None-Match"], None, 200 "A page of events; in the bulk formats without `limit`, all of them.", EVENTS),
    route!(POST "/collections/{c}/items", write Collection, Write, Handler::of(items::write::post);
        "createFeatures" "Events" "Write events, all of them or none (in each partition)", &["Idempotency-Key", "Content-Crs", "Prefer"], Some(RequestBody::of_events("Events in one of the formats.", &[("application/geo+json", "Features"), ("application/json", "Features"), ("application/geo+json-seq", "Text"), ("application/x-ndjson", "Text"), ("text/csv", "Text"), ("application/vnd.apache.arrow.stream", "Binary")])), 201 "The number of written events, and their position in the log. For one feature, `Location` has its URL.", WRITTEN),
    route!(DELETE "/collections/{c}/items", write Collection, Write, Handler::of(items::write::delete);
        "deleteFeatures" "Events" "Delete the events that match a filter", &["filter", "history", "filter-lang", "filter-crs", "bbox", "bbox-crs", "datetime", "near", "radius", "timeout", "Meridian-Timeout", "queryable"], None, 200 "The number of deleted events.", DELETED),
    route!(GET "/collections/{c}/items/{id}", read Collection, Interactive, Handler::of(items::feature::get);
        "getFeature" "Events" "One event", &["crs", "timeout", "Meridian-Timeout", "Meridian-After", "f", "If-None-Match"], None, 200 "The event.", EVENT),
    route!(PUT "/collections/{c}/items/{id}", write Collection, Write, Handler::of(items::feature::put);
        "replaceFeature" "Events" "Replace an event, or create it if ids are given", &["Content-Crs", "Prefer", "If-Match", "If-None-Match"], Some(FEATURE_BODY), 204 "It is replaced.", &[]),
    route!(PATCH "/collections/{c}/items/{id}", write Collection, Write, Handler::of(items::feature::patch);
        "updateFeature" "Events" "Change some properties of an event", &["Content-Crs", "Prefer", "If-Match", "If-None-Match"], Some(RequestBody::of_events("A JSON Merge Patch of the event.", &[("application/merge-patch+json", "Patch"), ("application/geo+json", "Patch"), ("application/json", "Patch")]).plain()), 204 "It is changed.", &[]),
    route!(DELETE "/collections/{c}/items/{id}", write Collection, Write, Handler::of(items::feature::delete);
        "deleteFeature" "Events" "Delete an event", &["If-Match", "If-None-Match"], None, 204 "It is deleted.", &[]),
    route!(POST "/collections/{c}/files", read Collection, Write, Handler::of(files::post);
        "listFiles" "Collections" "Write all events to GeoParquet files, and list the files", &["timeout", "Meridian-Timeout"], None, 200 "The files, the snapshot that they show, and how long they are kept.", json!("Files")),
    route!(GET "/collections/{c}/aggregate", read Collection, Interactive, Handler::of(analysis::aggregate);
        "getAggregate" "Analysis" "Counts, sums, averages, extremes, percentiles, different and most frequent values; by window of time, by fields", &["f-table", "function", "window", "zone", "empty", "by", "bbox", "bbox-crs", "datetime", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "explain", "consistency", "scan_type", "timeout", "Meridian-Timeout", "Meridian-After", "queryable", "If-None-Match"], None, 200 "One group for each window and value.", &[("application/json", "AggregateAnswer"), ("text/csv", "Text"), ("application/vnd.apache.arrow.stream", "Binary")]),
    route!(GET "/collections/{c}/density", read Collection, Interactive, Handler::of(analysis::density);
        "getDensity" "Analysis" "Counts on a grid", &["f-json", "bbox", "bbox-crs", "width", "height", "datetime", "filter", "history", "filter-lang", "filter-crs", "near", "radius", "explain", "consistency", "scan_type", "timeout", "Meridian-Timeout", "Meridian-After", "queryable", "If-None-Match"], None, 200 "Counts row by row from the north-west.", &[("application/json", "DensityAnswer")]),
    route!(GET "/collections/{c}/tracks", read Collection, Interactive, Handler::of(passages::get);
        "getTracks" "Analysis" "The objects that passed, with the first and last time of each", &["f-json", "bbox", "bbox-crs", "datetime", "limit", "after", "filter", "filter-lang", "filter-crs", "near", "radius", "consistency", "scan_type", "timeout", "Meridian-Timeout", "Meridian-After", "queryable", "If-None-Match"], None, 200 "A page of objects in order of their names, each with the number of its events that match.", &[("application/json", "Tracks")]),
    route!(GET "/collections/{c}/stream", read Collection, Stream, Handler::of(live::get);
        "followEvents" "Events" "Events as they are acknowledged, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade", &["bbox", "bbox-crs", "crs", "datetime", "near", "radius", "filter", "filter-lang", "filter-crs", "properties", "when", "after", "Last-Event-ID"], None, 200 "Events with their positions, for as long as the stream lasts. The last one, named `end`, says why the stream ended.", &[("text/event-stream", "Text")]),
    route!(GET "/collections/{c}/tiles", read Collection, Interactive, Handler::of(tiles::list);
        "meridian.collection.vector.getTileSetsList" "Tiles" "The vector tilesets of a collection", &["f"], None, 200 "Tilesets, with a TileJSON-like description.", json_or_page!("TileSetList")),
    route!(GET "/collections/{c}/tiles/{tileMatrixSetId}", read Collection, Interactive, Handler::of(tiles::tileset);
        "meridian.collection.vector.getTileSet" "Tiles" "One vector tileset", &["f"], None, 200 "The tileset.", json_or_page!("TileSet")),
    route!(GET "/collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}", read Collection, Interactive, Handler::of(tiles::tile);
        "meridian.collection.vector.getTile" "Tiles" "One vector tile (row before column)", TILE, None, 200 "The tile.", &[("application/vnd.mapbox-vector-tile", "Binary")]),
    route!(GET "/tileMatrixSets", open, Interactive, Handler::of(tilesets::list);
        "meridian.getTileMatrixSetsList" "Tiles" "The tile matrix sets", &["f"], None, 200 "Their list.", json_or_page!("TileMatrixSetList")),
    route!(GET "/tileMatrixSets/{tileMatrixSetId}", open, Interactive, Handler::of(tilesets::definition);
        "meridian.getTileMatrixSet" "Tiles" "One tile matrix set", &["f"], None, 200 "Its definition.", json_or_page!("TileMatrixSet")),
    route!(GET "/api/v0/places", read Places, Interactive, Handler::of(places::list);
        "listPlaces" "Places" "All places, 25 a page", &["p"], None, 200 "A page of places.", &[("application/json", "Places")]),
    route!(POST "/api/v0/places", write Places, Write, Handler::of(places::create);
        "createPlace" "Places" "Add a place", &[], Some(RequestBody::small("A place.", &[("application/json", "PlaceRecord")])), 303 "It is added; `Location` names it.", &[]),
    route!(GET "/api/v0/places/{placeId}", read Places, Interactive, Handler::of(places::get);
        "getPlace" "Places" "One place", &[], None, 200 "The place.", &[("application/json", "PlaceRecord")]),
    route!(DELETE "/api/v0/places/{placeId}", write Places, Write, Handler::of(places::delete);
        "deletePlace" "Places" "Delete a place", &[], None, 303 "It is deleted; `Location` names the list.", &[]),
    route!(DELETE "/api/v0/places/deleteAllPlaces", write Places, Write, Handler::of(places::delete_all);
        "deletePlaces" "Places" "Delete all places", &[], None, 303 "They are deleted; `Location` names the list.", &[]),
    route!(GET "/api/v0/places/random", read Places, Interactive, Handler::of(places::random);
        "randomPlace" "Places" "A random place", &[], None, 200 "A place.", &[("application/json", "PlaceRecord")]),
    route!(GET "/api/v0/places/near/{latitude}/{longitude}", read Places, Interactive, Handler::Near;
        "nearPlaces" "Places" "Places within 0.5 km, nearest first", &["p"], None, 200 "A page of places with their distance in km.", &[("application/json", "Places")]),
    route!(GET "/api/v0/places/near/{latitude}/{longitude}/{radiusKm}", read Places, Interactive, Handler::Near;
        "nearPlacesWithin" "Places" "Places within a radius of at most 50 km, nearest first", &["p"], None, 200 "A page of places with their distance in km.", &[("application/json", "Places")]),
    route!(POST "/searches", read Search, Write, Handler::of(searches::post);
        "startSearch" "Searches" "Ask Meridian's collections and outside sources at once" , &["Meridian-Timeout"], Some(RequestBody::small("A question: keywords, a place, an author; see docs/searches.md.", &[("application/json", "Question")])), 202 "The search is running: its id, its providers, and the URL of its packets.", json!("SearchAnswer")),
    route!(GET "/searches/{id}", read Search, Interactive, Handler::of(searches::get);
        "getSearch" "Searches" "The status of a search", &[], None, 200 "The status of the search and of each provider.", json!("SearchAnswer")),
    route!(DELETE "/searches/{id}", read Search, Interactive, Handler::of(searches::delete);
        "stopSearch" "Searches" "Stop a search", &[], None, 204 "It is stopped.", &[]),
    route!(GET "/searches/{id}/packets", read Search, Stream, Handler::of(searches::packets::get);
        "getPackets" "Searches" "The packets of a search as they are produced, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade", &["after", "Last-Event-ID"], None, 200 "Packets, the last of them `complete`. If access ends before, the last event is `end`, with the reason.", &[("text/event-stream", "Text")]),
    route!(POST "/saved-searches", write SavedSearch, Write, Handler::of(searches::saved::post);
        "saveSearch" "Searches" "Save a search: it runs from now on" , &[], Some(RequestBody::small("A name, a question, a webhook, seconds between polls of outside sources; see docs/saved-searches.md.", &[("application/json", "SavedSearch")])), 201 "The search is saved: its id, and the URL of its packets.", json!("SavedSearchAnswer")),
    route!(GET "/saved-searches", read SavedSearch, Interactive, Handler::of(searches::saved::list);
        "getSavedSearches" "Searches" "The saved searches", &["limit", "after"], None, 200 "A page of them in order of their ids.", json!("SavedSearchList")),
    route!(GET "/saved-searches/{id}", read SavedSearch, Interactive, Handler::of(searches::saved::get);
        "getSavedSearch" "Searches" "The status of a saved search", &[], None, 200 "The question, the counts of packets, and the state of its webhook and its polls.", json!("SavedSearchAnswer")),
    route!(DELETE "/saved-searches/{id}", write SavedSearch, Interactive, Handler::of(searches::saved::delete);
        "deleteSavedSearch" "Searches" "Delete a saved search", &[], None, 204 "It is deleted.", &[]),
    route!(GET "/saved-searches/{id}/packets", read SavedSearch, Stream, Handler::of(searches::saved::stream);
        "getSavedPackets" "Searches" "The packets of a saved search as they are produced, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade", &["after", "Last-Event-ID"], None, 200 "Packets, for as long as the saved search exists. If access ends before, the last event is `end`, with the reason.", &[("text/event-stream", "Text")]),
    route!(GET "/providers", read Search, Interactive, Handler::of(searches::providers);
        "getProviders" "Searches" "The providers that a search can ask, and their state", &[], None, 200 "Names, breakers, budgets.", json!("ProviderList")),
    route!(POST "/tokens", manage Tokens, Registry, Handler::of(access::tokens::post);
        "createToken" "Access" "Create a token", &[], Some(RequestBody::small("Its role, its tenant (operators only), the collections that it covers, when it expires.", &[("application/json", "NewToken")])), 201 "The token, with its text, which is not shown again.", json!("TokenAnswer")),
    route!(GET "/tokens", read Tokens, Reserved, Handler::of(access::tokens::list);
        "getTokens" "Access" "The tokens of the tenant; for operators, of all tenants", &[], None, 200 "Their ids and rights.", json!("TokenList")),
    route!(DELETE "/tokens/{id}", manage Tokens, Registry, Handler::of(access::tokens::delete);
        "revokeToken" "Access" "Revoke a token", &[], None, 204 "It is revoked.", &[]),
    route!(POST "/tenants", manage Server, Registry, Handler::of(access::tenants::post);
        "createTenant" "Access" "Create a tenant", &[], Some(RequestBody::small("Its name and settings.", &[("application/json", "NewTenant")])), 201 "The tenant.", json!("TenantInfo")),
    route!(GET "/tenants", read Server, Reserved, Handler::of(access::tenants::list);
        "getTenants" "Access" "The tenants of the server", &[], None, 200 "Their settings and sizes.", json!("TenantList")),
    route!(PATCH "/tenants/{t}", manage Server, Registry, Handler::of(access::tenants::patch);
        "updateTenant" "Access" "Change a tenant: weight, suspension, quotas, collections that are readable without a credential", &[], Some(RequestBody::small("The changes; everything else stays.", &[("application/merge-patch+json", "NewTenant"), ("application/json", "NewTenant")])), 200 "The changed tenant.", json!("TenantInfo")),
    route!(DELETE "/tenants/{t}", manage Server, Registry, Handler::of(access::tenants::delete);
        "deleteTenant" "Access" "Remove a suspended tenant with its tokens, its users and all its data", &[], None, 204 "It is removed.", &[]),
    route!(POST "/users", manage Tokens, Registry, Handler::of(access::users::post);
        "createUser" "Access" "Create a user that signs in with a name and a password", &[], Some(RequestBody::small("Its name and password, its role, its tenant (operators only), the collections that it covers.", &[("application/json", "NewUser")])), 201 "The user.", json!("UserInfo")),
    route!(GET "/users", read Tokens, Reserved, Handler::of(access::users::list);
        "getUsers" "Access" "The users of the tenant; for operators, of all tenants", &[], None, 200 "Their names and rights.", json!("UserList")),
    route!(PATCH "/users/{name}", manage Tokens, Registry, Handler::of(access::users::patch);
        "updateUser" "Access" "Change a user: password, role, collections, whether it may sign in; its sessions end", &[], Some(RequestBody::small("The changes; everything else stays.", &[("application/merge-patch+json", "UserChange"), ("application/json", "UserChange")])), 200 "The changed user.", json!("UserInfo")),
    route!(DELETE "/users/{name}", manage Tokens, Registry, Handler::of(access::users::delete);
        "deleteUser" "Access" "Remove a user; its sessions end", &[], None, 204 "It is removed.", &[]),
    route!(GET "/login", open, Interactive, Handler::of(sign_in::page);
        "getLoginPage" "Access" "The page to sign in", &["next"], None, 200 "The page.", &[("text/html", "Page")]),
    route!(POST "/login", open, Registry, Handler::of(sign_in::post);
        "signIn" "Access" "Sign in: the response sets the cookie of a new session", &[], Some(RequestBody::small("Name and password, as JSON or as a form of this server's own page.", &[("application/json", "SignIn"), ("application/x-www-form-urlencoded", "SignIn")])), 200 "The signed-in user, and the session's CSRF token.", json!("Session")),
    route!(GET "/login/{issuer}", open, Interactive, Handler::of(sign_in::openid::begin);
        "beginSignIn" "Access" "Sign in at an issuer of OpenID Connect: leads the browser there", &["next"], None, 303 "The issuer's page.", &[("text/html", "Page")]),
    route!(GET "/login/{issuer}/callback", open, Stream, Handler::of(sign_in::openid::callback);
        "endSignIn" "Access" "The browser comes back from the issuer: the response sets the cookie of a new session", &[], None, 303 "The page that was asked for.", &[("text/html", "Page")]),
    route!(POST "/logout", open, Registry, Handler::of(sign_in::logout);
        "signOut" "Access" "Sign out: the session ends", &[], Some(RequestBody::small("Nothing, or a form with the CSRF token.", &[("application/x-www-form-urlencoded", "SignOut")])), 204 "It has ended.", &[]),
    route!(POST "/password", open, Registry, Handler::of(sign_in::change);
        "changePassword" "Access" "Change the password of the signed-in user; its other sessions end", &[], Some(RequestBody::small("The current password, and the new one.", &[("application/json", "PasswordChange"), ("application/x-www-form-urlencoded", "PasswordChange")])), 200 "It is changed, and the session is a new one.", json!("Session")),
    route!(GET "/session", open, Interactive, Handler::of(sign_in::session);
        "getSession" "Access" "The signed-in user", &[], None, 200 "The user, and the session's CSRF token.", json!("Session")),
    route!(GET "/audit", read Audit, Interactive, Handler::of(audit::list::get);
        "getAudit" "Access" "The record of administrative acts in the tenant; for operators, in all tenants" , &["acts-after", "acts-limit", "datetime", "f-lines"], None, 200 "A page of it, oldest first.", &[("application/json", "AuditPage"), ("application/x-ndjson", "Text")]),
    route!(POST "/backup", manage Server, Reserved, Handler::of(backup::post);
        "backup" "Operation" "Everything or one tenant, at one position of each collection, as a tar for a backup folder", &["timeout", "Meridian-Timeout"], Some(RequestBody::of_events("The files that the folder has already, the only tenant to save, and the key that seals secrets. Without them all files of all tenants are sent, and no secret.", &[("application/json", "Backup")]).plain()), 200 "New files, then `BACKUP`, the list of files that belong together; a transfer without it is no backup.", &[("application/x-tar", "Binary")]),
    route!(GET "/metrics", read Server, Reserved, Handler::of(operation::metrics);
        "getMetrics" "Operation" "Counters in the Prometheus text format", &[], None, 200 "The counters.", &[("text/plain", "Text")]),
    route!(GET "/admin/load", read Server, Reserved, Handler::of(load::get);
        "getLoad" "Operation" "Running, waiting and refused requests, with the reasons", &["f", "refresh"], None, 200 "The current load, and the slow requests of the last minutes.", json_or_page!("Load")),
    route!(GET "/admin/cluster", read Server, Reserved, Handler::of(cluster::get);
        "getCluster" "Operation" "The owner, the collections and the servers of the cluster", &["f", "refresh"], None, 200 "The cluster as its bucket shows it; of one process, that it is one.", json_or_page!("ClusterAnswer")),
    route!(GET "/healthz", open, Reserved, Handler::of(operation::health);
        "getHealth" "Operation" "Whether the process is alive", &[], None, 200 "It is.", json!("Health")),
    route!(GET "/readyz", open, Reserved, Handler::of(operation::ready);
        "getReady" "Operation" "Whether the server accepts requests", &[], None, 200 "It accepts requests; 503 while it shuts down or if its store is damaged.", json!("Health")),
    route!(GET "/version", open, Reserved, Handler::of(operation::version);
        "getVersion" "Operation" "Name and version", &[], None, 200 "Both.", json!("Version")),
    route!(GET "/map", open, Interactive, Handler::of(embedded::map);
        "getMap" "Pages" "The map", &[], None, 200 "The page.", &[("text/html", "Page")]),
    route!(GET "/search", open, Interactive, Handler::of(embedded::search);
        "getSearchPage" "Pages" "The page for searches", &[], None, 200 "The page.", &[("text/html", "Page")]),
    route!(GET "/base-map.pmtiles", open, Interactive, Handler::of(base_map::get);
        "getBaseMap" "Pages" "A part of the file of tiles that is the operator's base map", &["Range", "If-Range"], None, 206 "The part that `Range` names.", &[("application/vnd.pmtiles", "Binary")]),
    route!(GET "/assets/{file}", open, Interactive, Handler::of(embedded::asset);
        "getAsset" "Pages" "A file of the pages", &["If-None-Match", "Range", "If-Range"], None, 200 "The file.", &[("application/octet-stream", "Binary")]),
    route!(GET "/favicon.svg", open, Interactive, Handler::of(icon::get);
        "getIcon" "Pages" "The icon of the pages", &[], None, 200 "The file.", &[("image/svg+xml", "Binary")]),
    route!(GET "/favicon.ico", open, Interactive, Handler::of(icon::get);
        "getDefaultIcon" "Pages" "The same icon, where browsers look for one beside JSON", &[], None, 200 "The file.", &[("image/svg+xml", "Binary")]),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the test compares or writes a file of the repository")]
    use super::*;
    use std::fmt::Write;
    use std::path::Path;

    /// Formats the list of routes that `docs/routes.md` contains.
    fn listed() -> String {
        let mut text = String::from(
            "# Routes\n\nFrom the route table; `MERIDIAN_WRITE_DOCS=1 cargo test --workspace --lib routes` regenerates it.\n\n\
             *Needs* is the access that a caller must have; `open` routes need none, and ignore an invalid credential. *Class* says when a request takes its permit to run:\n\
             `interactive` first, `write` once its body has arrived, `stream` only while it sends. `reserved` has separate permits, so that an\n\
             overloaded server can still be monitored; callers of a tenant have those of `interactive`, except on open routes. `registry` takes a place in the bounded queues of password checks and of changes to\n\
             tokens, tenants, users and sessions. At most two tenants are removed at a time.\n",
        );
        for (tag, about) in TAGS {
            let _ = write!(text, "\n## {tag}\n\n{about}\n\n| Route | Needs | Class | |\n|---|---|---|---|\n");
            for route in ROUTES.iter().filter(|route| route.tag == *tag) {
                let needs = match route.access {
                    Access::Open => "open".to_owned(),
                    Access::Needs(action, resource) => format!("{action:?} {resource:?}").to_lowercase(),
                };
                let class = format!("{:?}", route.class).to_lowercase();
                let _ = writeln!(text, "| `{} {}` | {needs} | {class} | {} |", route.method, route.path, route.summary);
            }
        }
        text
    }

    #[test]
    fn the_list_in_the_docs_is_that_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/routes.md");
        if std::env::var_os("MERIDIAN_WRITE_DOCS").is_some() {
            std::fs::write(&path, listed()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == listed(), "docs/routes.md differs from the table: MERIDIAN_WRITE_DOCS=1 regenerates it");
    }

    #[test]
    fn what_waits_for_its_turn_to_change_the_registry_holds_no_permit() {
        for route in ROUTES.iter().filter(|route| route.tag == "Access" && route.method != Method::GET) {
            assert_eq!(route.class, Class::Registry, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn what_changes_data_is_never_open() {
        for route in ROUTES {
            let safe = route.method == Method::GET;
            // A user signing in has no access yet, one signing out may have lost it, and a password belongs to its
            // user.
            let signs = ["/login", "/logout", "/password"].contains(&route.path);
            assert!(safe || signs || route.access != Access::Open, "{} {}", route.method, route.path);
            assert!(
                route.body.is_none() || !safe && route.class != Class::Interactive,
                "{} {}",
                route.method,
                route.path
            );
            assert!(TAGS.iter().any(|(tag, _)| *tag == route.tag), "{}", route.tag);
        }
    }
}
