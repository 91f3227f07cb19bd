//! Responses about the server itself, and its refusals.

use super::Link;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The landing page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Landing {
    /// Name of the server.
    pub title: &'static str,
    /// Its role.
    pub description: &'static str,
    /// Links to everything else.
    pub links: Vec<Link>,
}

/// Conformance classes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Conformance {
    /// Their URIs.
    #[serde(rename = "conformsTo")]
    pub conforms_to: &'static [&'static str],
    /// This document in other formats.
    pub links: Vec<Link>,
}

/// Whether the server is alive, or ready.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok` or `ready`.
    pub status: &'static str,
}

/// The program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Version {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// A refusal or failure (RFC 9457). Further members name what was refused: limits, ids, positions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemDetails {
    /// URI of the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The error, and the expected value.
    pub detail: String,
    /// The parameter or property at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line at fault, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The event at fault, from 1, where events are counted instead of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<u64>,
    /// All mistakes of a body, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Mistake>,
    /// Further members.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// One mistake of a body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Mistake {
    /// The error.
    pub detail: String,
    /// The property at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line at fault, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The event at fault, from 1, where events are counted instead of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<u64>,
}
