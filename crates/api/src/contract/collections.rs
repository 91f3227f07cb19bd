//! Descriptions of collections.

use super::Link;
use meridian_backend::Durability;
use schemars::JsonSchema;
use serde::Serialize;

/// All collections.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CollectionList {
    /// Each of them.
    pub collections: Vec<Collection>,
    /// Systems of coordinates that all of them are served in.
    pub crs: Vec<&'static str>,
    /// This document in other formats.
    pub links: Vec<Link>,
}

/// A collection.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    /// Its name.
    pub id: String,
    /// Its title; its name where it has none.
    pub title: String,
    /// Its subject, or the reason why it is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `damaged` where it cannot be opened; then only its name and links are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CollectionStatus>,
    /// `feature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_type: Option<&'static str>,
    /// Systems of coordinates that it is served in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crs: Vec<&'static str>,
    /// The system that it is stored in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_crs: Option<&'static str>,
    /// Where and when its events are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extent: Option<Extent>,
    /// Events that the newest snapshot sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_count: Option<u64>,
    /// Bytes on disk and in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The failures that an acknowledged event survives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["ephemeral", "local", "replicated"]))]
    pub durability: Option<Durability>,
    /// `latest` where it shows only the newest event of each object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// Age from which events are dropped (ISO 8601 duration).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
    /// Bytes from which the oldest events are dropped.
    #[serde(rename = "retention_bytes", skip_serializing_if = "Option::is_none")]
    pub retention_bytes: Option<u64>,
    /// Number of partitions, each with a log of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u16>,
    /// Why it accepts no writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses_writes: Option<String>,
    /// Links to its resources.
    pub links: Vec<Link>,
}

/// The state of a collection.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CollectionStatus {
    /// It cannot be opened.
    Damaged,
}

/// Where and when events are. Deleted events that are still on disk count.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Extent {
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spatial: Option<Spatial>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporal: Option<Temporal>,
}

/// Where events are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Spatial {
    /// One box: west, south, east, north.
    pub bbox: [[f64; 4]; 1],
    /// Its system of coordinates.
    pub crs: &'static str,
}

/// When events are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Temporal {
    /// One interval; null for an open end.
    pub interval: [[Option<String>; 2]; 1],
    /// Its calendar.
    pub trs: &'static str,
}

/// The files of a collection at one snapshot.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Files {
    /// The snapshot.
    pub snapshot: String,
    /// Their paths.
    pub files: Vec<String>,
    /// When they may be deleted at the earliest.
    pub kept_until: String,
    /// The folder that the paths are relative to; absent if they are absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<&'static str>,
}
