//! Schemas of request bodies other than events: queries, saved searches, schemas, settings, backups.

use meridian_model::policy::quota::Quota;
use serde_json::{Map, Value, json};

/// Returns the components by name.
pub fn schemas() -> Map<String, Value> {
    [
        ("Question", question()),
        ("SavedSearch", saved_search()),
        ("JsonSchema", json_schema()),
        ("Settings", settings()),
        ("Patch", patch()),
        ("Backup", backup()),
        ("NewToken", new_token()),
        ("NewTenant", new_tenant()),
        ("NewUser", new_user()),
        ("UserChange", user_change()),
        ("SignIn", sign_in()),
        ("SignOut", sign_out()),
        ("PasswordChange", password_change()),
    ]
    .map(|(name, schema)| (name.to_owned(), schema))
    .into_iter()
    .collect()
}

fn pattern() -> Value {
    json!({ "type": "string", "description": "Names of collections, separated by commas; a name may end in `*`." })
}

fn new_token() -> Value {
    json!({
        "type": "object",
        "required": ["role"],
        "additionalProperties": false,
        "properties": {
            "role": role(),
            "tenant": { "type": "string", "description": "Operators only; the caller's own where it is absent." },
            "collections": pattern(),
            "expires": { "type": "string", "description": "An RFC 3339 instant, or an ISO 8601 duration from now." },
        },
    })
}

fn role() -> Value {
    json!({ "type": "string", "enum": ["reader", "writer", "admin", "operator"] })
}

fn password() -> Value {
    json!({ "type": "string", "format": "password", "minLength": 12, "maxLength": 1024 })
}

fn new_user() -> Value {
    json!({
        "type": "object",
        "required": ["name", "role", "password"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "maxLength": 100, "description": "Small letters, digits, `-`, `_`, `.`, `+`, `@`; unique in the tenant." },
            "role": role(),
            "tenant": { "type": "string", "description": "Operators only; the caller's own where it is absent." },
            "collections": pattern(),
            "password": password(),
        },
    })
}

fn user_change() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "role": role(),
            "collections": pattern(),
            "password": password(),
            "disabled": { "type": "boolean", "description": "Whether the user may not sign in." },
        },
    })
}

fn sign_in() -> Value {
    json!({
        "type": "object",
        "required": ["name", "password"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "description": "The user's login: the name, with `TENANT/` before it in another tenant than the default one." },
            "password": { "type": "string", "format": "password" },
            "next": { "type": "string", "description": "Path on this server to go to; forms only." },
        },
    })
}

fn password_change() -> Value {
    json!({
        "type": "object",
        "required": ["password", "new"],
        "properties": {
            "password": { "type": "string", "format": "password", "description": "That of now." },
            "new": password(),
            "csrf_token": { "type": "string", "description": "In forms, which cannot send the header `X-CSRF-Token`." },
        },
    })
}

fn sign_out() -> Value {
    json!({
        "type": "object",
        "properties": { "csrf_token": { "type": "string", "description": "Instead of the header `X-CSRF-Token`, which a form cannot send." } },
    })
}

fn new_tenant() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string" },
            "weight": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "Share of the server beside other tenants; 1 by default." },
            "suspended": { "type": "boolean" },
            "anonymous": { "type": "string", "description": "Names of collections that callers without a token may read, separated by commas; a name may end in `*`. Null in a change takes the right away." },
            "quotas": quotas(),
        },
    })
}

fn quotas() -> Value {
    let limit = |quota: Quota| {
        let lowest = u64::from(quota.is_rate());
        (quota.name().to_owned(), json!({ "type": ["integer", "null"], "minimum": lowest }))
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": "Limits on the tenant's use; null in a change removes one. Unnamed ones stay.",
        "properties": Quota::ALL.map(limit).into_iter().collect::<Map<_, _>>(),
    })
}

fn longitude() -> Value {
    json!({ "type": "number", "minimum": -180, "maximum": 180 })
}

fn moment() -> Value {
    json!({ "type": "string", "description": "RFC 3339, or a date: that whole day in UTC." })
}

fn question() -> Value {
    json!({
        "type": "object",
        "description": "One of `keywords`, a place and `author` is required; see docs/searches.md.",
        "properties": {
            "keywords": { "type": "string", "minLength": 1 },
            "near": { "type": "array", "minItems": 2, "maxItems": 2, "items": longitude() },
            "radius": { "type": "number", "minimum": 0, "description": "Metres." },
            "bbox": { "type": "array", "minItems": 4, "maxItems": 4, "items": longitude() },
            "polygon": {
                "type": "object",
                "required": ["type", "coordinates"],
                "properties": { "type": { "type": "string", "enum": ["Polygon"] }, "coordinates": { "type": "array", "items": {} } },
            },
            "address": { "type": "string", "minLength": 1 },
            "author": { "type": "string", "minLength": 1 },
            "providers": { "type": "array", "items": { "type": "string" } },
            "start": moment(),
            "end": moment(),
            "media": { "type": "string", "enum": ["images", "videos"] },
            "language": { "type": "string", "description": "Two letters (ISO 639-1), or `any`." },
            "limit": { "type": "integer", "minimum": 1 },
            "timeout": { "type": "integer", "minimum": 1, "description": "Milliseconds." },
            "priority": { "type": "string", "enum": ["quick", "background"] },
            "when": { "type": "array", "items": { "type": "string", "enum": ["enter", "inside", "exit"] } },
            "keep": {
                "type": "object",
                "properties": { "collection": { "type": "string" }, "hours": { "type": "number", "minimum": 0 } },
            },
        },
    })
}

fn saved_search() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "question": { "$ref": "#/components/schemas/Question" },
            "webhook": {
                "type": "object",
                "required": ["url"],
                "properties": {
                    "url": { "type": "string", "format": "uri" },
                    "secret": { "type": "string", "minLength": 8, "maxLength": 200 },
                },
            },
            "poll_s": { "type": "integer", "minimum": 1, "description": "Seconds between polls of outside providers." },
        },
    })
}

fn json_schema() -> Value {
    json!({
        "type": "object",
        "description": "A JSON Schema with x-ogc-role and x-meridian-… members.",
        "required": ["properties"],
        "properties": {
            "type": { "type": "string", "enum": ["object"] },
            "title": { "type": "string" },
            "description": { "type": "string" },
            "properties": { "type": "object", "additionalProperties": { "type": "object" } },
            "required": { "type": "array", "items": { "type": "string" } },
            "additionalProperties": { "type": "boolean" },
            "x-meridian-mode": { "type": "string", "enum": ["history", "latest"] },
            "x-meridian-time-unit": { "type": "string", "description": "ISO 8601 duration." },
        },
    })
}

fn settings() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "A new name, without other changes." },
            "retention": { "type": ["string", "null"], "description": "ISO 8601 duration; null keeps them for ever." },
            "retention_bytes": { "type": ["integer", "null"], "minimum": 1, "description": "Bytes of events; null for no limit." },
            "properties": {
                "type": "object",
                "additionalProperties": { "type": "object" },
                "description": "New optional fields, as in a JSON Schema.",
            },
        },
    })
}

fn patch() -> Value {
    json!({
        "type": "object",
        "description": "A JSON Merge Patch (RFC 7396) of the event as GeoJSON.",
        "properties": { "geometry": { "type": ["object", "null"] }, "properties": { "type": "object" } },
    })
}

fn backup() -> Value {
    json!({
        "type": "object",
        "properties": {
            "have": {
                "type": "object",
                "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u64 },
                "description": "Files in the folder, with their checksums (CRC32C).",
            },
            "tenant": { "type": "string", "description": "The only tenant that is saved; without it all are." },
            "key": {
                "type": "string",
                "description": "32 bytes in base64 or hexadecimal, which seal secrets; without it they are left out.",
            },
        },
    })
}
