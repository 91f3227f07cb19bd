//! The tables `[answer]` and `[answer.map]` of a declaration file.

use super::decode::ResponseFormat;
use super::join::JoinFile;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[answer]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerFile {
    pub(super) format: ResponseFormat,
    pub(super) items: String,
    #[serde(default)]
    pub(super) empty: Option<String>,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) sure_of: Vec<String>,
    #[serde(default)]
    pub(super) join: BTreeMap<String, JoinFile>,
    pub(super) map: MappingFile,
    #[serde(default)]
    pub(super) more: BTreeMap<String, String>,
}

/// `[answer.map]`: paths, or templates over paths if they contain a brace: `https://example.org/{id}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappingFile {
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) text: Option<String>,
    pub(super) link: Option<String>,
    pub(super) author: Option<String>,
    pub(super) language: Option<String>,
    pub(super) time: Option<String>,
    pub(super) time_format: Option<String>,
    pub(super) lon: Option<String>,
    pub(super) lat: Option<String>,
    pub(super) point: Option<String>,
    pub(super) geometry: Option<String>,
    pub(super) images: Option<String>,
    pub(super) videos: Option<String>,
}
