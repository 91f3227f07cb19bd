//! The responses and the request bodies of the API, as types.
//!
//! The components of both OpenAPI documents are generated from these types, and the pages' TypeScript is generated
//! from the documents (`web/src/contract.d.ts`). Handlers serialise the types. Streamed responses are written piece
//! by piece: their types describe what is written, and tests check the responses against the documents. The request
//! bodies are in `bodies/`.

mod access;
mod analysis;
mod audit;
pub mod bodies;
mod capabilities;
mod cluster;
mod collections;
mod events;
pub mod links;
mod load;
mod places;
mod searches;
pub mod text;
mod tiles;

pub use access::{
    DamagedToken, Session, TenantInfo, TenantList, TokenAnswer, TokenInfo, TokenList, UserInfo, UserList,
};
pub use analysis::{Account, Density, ExplainedGroups, ExplainedItems, Groups, Track, TrackSummary, Tracks};
pub use audit::AuditPage;
pub use capabilities::{Conformance, Health, Landing, ProblemDetails, Version};
pub use cluster::{AnsweringServer, ClusterAnswer};
pub use collections::{Collection, CollectionList, CollectionStatus, Extent, Files, Spatial, Temporal};
pub use events::{Deleted, Feature, FeatureCollection, LeftOut, Missing, PageTail, Written};
pub use load::{ClassLoad, Level, Load, MemoryLoad, QuotaLoad, RequestLoad, SlowRequest, TenantLoad};
pub use places::{PlaceRecord, Places};
pub use searches::{ProviderList, SavedSearchAnswer, SavedSearchList, SearchAnswer};
pub use tiles::{
    BoundingBox, Layer, TileMatrix, TileMatrixSet, TileMatrixSetItem, TileMatrixSetList, TileSet, TileSetList,
    VectorLayer,
};

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A link, as every OGC resource carries them (RFC 8288).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Link {
    /// Address.
    pub href: String,
    /// Relation.
    pub rel: Cow<'static, str>,
    /// Media type of what is there.
    #[serde(rename = "type")]
    pub media_type: Cow<'static, str>,
    /// The content behind the link, in words.
    pub title: Cow<'static, str>,
    /// Whether the address has variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templated: Option<bool>,
}

/// The schemas of all responses and request bodies, by name.
pub fn components() -> Map<String, Value> {
    let mut all = schemas(SchemaSettings::draft2020_12().for_serialize(), add_responses);
    let requests = SchemaSettings::draft2020_12().for_deserialize().with_transform(without_defaults);
    all.extend(schemas(requests, add_bodies));
    all
}

fn schemas(mut settings: SchemaSettings, add_all: fn(&mut SchemaGenerator)) -> Map<String, Value> {
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.transforms.push(Box::new(present_only));
    let mut generator = settings.into_generator();
    add_all(&mut generator);
    generator.take_definitions(true)
}

macro_rules! add {
    ($generator:ident: $($component:ty),* $(,)?) => {
        $($generator.subschema_for::<$component>();)*
    };
}

fn add_responses(generator: &mut SchemaGenerator) {
    add!(generator:
        Landing, Conformance, Health, Version, ProblemDetails,
        CollectionList, Collection, Files,
        Feature, FeatureCollection, Written, Deleted,
        Groups, Density, Tracks, ExplainedItems, ExplainedGroups,
        TileMatrixSetList, TileMatrixSet, TileSetList, TileSet,
        PlaceRecord, Places,
        SearchAnswer, SavedSearchAnswer, SavedSearchList, ProviderList,
        TokenAnswer, TokenList, TenantInfo, TenantList, UserInfo, UserList, Session, Load, ClusterAnswer<'static>,
        AuditPage,
    );
}

fn add_bodies(generator: &mut SchemaGenerator) {
    add!(generator:
        bodies::Question, bodies::SavedSearch, bodies::CollectionSchema, bodies::Settings, bodies::EventPatch,
        bodies::Backup, bodies::NewToken, bodies::NewTenant, bodies::NewUser, bodies::UserChange,
        bodies::SignIn, bodies::SignOut, bodies::PasswordForm,
    );
}

/// Removes what serde takes for an absent member: clients would read it as the value that the server chooses.
fn without_defaults(schema: &mut Schema) {
    schema.remove("default");
    schemars::transform::transform_subschemas(&mut without_defaults, schema);
}

/// Optional members are omitted, never null: removes null from their schemas. Members of requests for which null means
/// something are marked with `nullable`.
fn present_only(schema: &mut Schema) {
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(name)) {
            if property.as_object_mut().and_then(|members| members.remove("nullable")).is_none() {
                without_null(property);
            }
        }
    }
    schemars::transform::transform_subschemas(&mut present_only, schema);
}

fn without_null(property: &mut Value) {
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            property["type"] = kind.clone();
        }
    }
    if let Some(Value::Array(words)) = property.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(any)) = property.get_mut("anyOf") else { return };
    any.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
    if let [one] = any.as_slice()
        && let (Some(one), Value::Object(members)) = (one.as_object().cloned(), property)
    {
        members.remove("anyOf");
        members.extend(one);
    }
}

/// Returns the names of the members that a component describes.
#[cfg(test)]
pub fn members(component: &str) -> std::collections::BTreeSet<String> {
    components()[component]["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_is_never_null_and_what_is_always_there_is_required() {
        let all = components();
        let link = &all["Link"];
        assert_eq!(link["required"], json!(["href", "rel", "type", "title"]));
        assert_eq!(link["properties"]["templated"]["type"], "boolean");
        assert_eq!(all["Feature"]["properties"]["links"]["items"]["$ref"], "#/components/schemas/Link");
        assert!(!Value::Object(all).to_string().contains("$defs"));
    }

    #[test]
    fn a_member_of_a_request_is_null_only_where_null_means_something() {
        let all = components();
        let settings = &all["Settings"]["properties"];
        assert_eq!(settings["retention"]["type"], json!(["string", "null"]));
        assert_eq!(settings["id"]["type"], "string");
        let tenant = &all["NewTenant"]["properties"];
        assert_eq!(tenant["quotas"]["properties"]["streams"], json!({ "type": ["integer", "null"], "minimum": 0 }));
        assert_eq!(tenant["anonymous"]["type"], json!(["string", "null"]));
        assert_eq!(all["Question"]["properties"]["media"]["enum"], json!(["images", "videos", "any"]));
        assert!(!Value::Object(all).to_string().contains("\"nullable\""));
    }

    #[test]
    fn what_a_request_must_have_and_may_not_have_is_that_of_its_type() {
        let all = components();
        assert_eq!(all["NewUser"]["required"], json!(["name", "role", "password"]));
        assert_eq!(all["NewUser"]["additionalProperties"], json!(false));
        assert_eq!(all["NewUser"]["properties"]["role"]["enum"], json!(["reader", "writer", "admin", "operator"]));
        assert_eq!(all["UserChange"].get("required"), None);
        assert_eq!(all["Backup"]["properties"]["have"].get("default"), None, "absent is not empty for a client");
        assert_eq!(all["PasswordChange"]["required"], json!(["password", "new"]));
    }

    #[test]
    fn no_name_stands_for_a_response_and_for_a_request() {
        let responses = schemas(SchemaSettings::draft2020_12().for_serialize(), add_responses);
        let bodies = schemas(SchemaSettings::draft2020_12().for_deserialize(), add_bodies);
        let twice: Vec<&String> = bodies.keys().filter(|name| responses.contains_key(*name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
