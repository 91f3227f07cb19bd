//! The responses of the API, as types.
//!
//! The components of both OpenAPI documents are generated from these types, and the pages' TypeScript is generated
//! from the documents (`web/src/contract.d.ts`). Handlers serialise the types. Streamed responses are written piece
//! by piece: their types describe what is written, and tests check the responses against the documents.

mod access;
mod analysis;
mod audit;
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
pub use places::{Place, Places};
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

/// The schemas of all responses, by name.
pub fn components() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
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

fn add_all(generator: &mut SchemaGenerator) {
    add!(generator:
        Landing, Conformance, Health, Version, ProblemDetails,
        CollectionList, Collection, Files,
        Feature, FeatureCollection, Written, Deleted,
        Groups, Density, Tracks, ExplainedItems, ExplainedGroups,
        TileMatrixSetList, TileMatrixSet, TileSetList, TileSet,
        Place, Places,
        SearchAnswer, SavedSearchAnswer, SavedSearchList, ProviderList,
        TokenAnswer, TokenList, TenantInfo, TenantList, UserInfo, UserList, Session, Load, ClusterAnswer<'static>,
        AuditPage,
    );
}

/// Optional members are omitted, never null: removes null from their schemas.
fn present_only(schema: &mut Schema) {
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(name)) {
            without_null(property);
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
    let Some(Value::Array(any)) = property.get_mut("anyOf") else { return };
    any.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
    if let [one] = any.as_slice()
        && let (Some(one), Value::Object(members)) = (one.as_object().cloned(), property)
    {
        members.remove("anyOf");
        members.extend(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_never_null_and_what_is_always_there_is_required() {
        let all = components();
        let link = &all["Link"];
        assert_eq!(link["required"], serde_json::json!(["href", "rel", "type", "title"]));
        assert_eq!(link["properties"]["templated"]["type"], "boolean");
        assert_eq!(all["Feature"]["properties"]["links"]["items"]["$ref"], "#/components/schemas/Link");
        assert!(!Value::Object(all).to_string().contains("$defs"));
    }
}
