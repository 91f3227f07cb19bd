//! The file format of a declaration: its keys and their defaults.

use super::mapping_file::AnswerFile;
use super::sign::SignFile;
use super::token::TokenFile;
use super::{Method, Paging, SourceCapabilities};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A whole declaration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) credentials: Vec<String>,
    pub(super) token: Option<TokenFile>,
    #[serde(default)]
    pub(super) takes: SourceCapabilities,
    pub(super) request: RequestFile,
    #[serde(default)]
    pub(super) paging: PagingFile,
    pub(super) answer: AnswerFile,
    #[serde(default)]
    pub(super) limits: LimitsFile,
}

/// The keys allowed in a file that extends another declaration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) extends: String,
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    pub(super) limits: Option<LimitsFile>,
}

/// `[request]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestFile {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: Method,
    #[serde(default)]
    pub(super) query: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) body: BTreeMap<String, String>,
    pub(super) sign: Option<SignFile>,
}

/// `[paging]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PagingFile {
    pub(super) kind: Paging,
    pub(super) first: u64,
    pub(super) size: usize,
    #[serde(alias = "least")]
    pub(super) size_min: usize,
    pub(super) pages_max: u64,
    pub(super) path: String,
}

impl Default for PagingFile {
    fn default() -> Self {
        PagingFile { kind: Paging::None, first: 1, size: 100, size_min: 1, pages_max: 10, path: String::new() }
    }
}

/// `[limits]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsFile {
    pub(super) at_once: usize,
    pub(super) rate: f64,
    pub(super) cost: f64,
    pub(super) budget: f64,
    pub(super) timeout_ms: u64,
    pub(super) retries: u32,
    pub(super) failures: u32,
    pub(super) open_ms: u64,
    pub(super) answer_bytes: usize,
    pub(super) cache_s: u64,
    pub(super) allow_private: bool,
}

impl Default for LimitsFile {
    fn default() -> Self {
        LimitsFile {
            at_once: 64,
            rate: 0.0,
            cost: 0.0,
            budget: 0.0,
            timeout_ms: 15_000,
            retries: 1,
            failures: 5,
            open_ms: 10_000,
            answer_bytes: 4 << 20,
            cache_s: 0,
            allow_private: false,
        }
    }
}
