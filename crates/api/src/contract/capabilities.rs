//! What the server is and does, and how it refuses.

use super::Link;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Where every client starts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Landing {
    /// Name of the server.
    pub title: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Everything else.
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

/// That the server is there, or ready.
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

/// A refusal or failure (RFC 9457). Members of their own name what was refused: limits, ids, positions.
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
    /// What is wrong, and what was expected.
    pub detail: String,
    /// The parameter or property to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line to blame, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// All mistakes of a body, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Mistake>,
    /// What else there is to say.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// One mistake of a body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Mistake {
    /// What is wrong.
    pub detail: String,
    /// The property to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line to blame, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}
