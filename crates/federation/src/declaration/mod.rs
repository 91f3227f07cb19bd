//! A provider declared in a file: the questions it takes, its requests, its response mapping and its limits. TOML;
//! unknown keys are errors.
//!
//! `file.rs` has the keys; `check.rs` validates them and names the error.

mod check;
mod decode;
mod file;
mod join;
mod mapping;
mod mapping_file;
pub(crate) mod path;
mod provider_check;
mod rule;
mod sign;
pub(crate) mod template;
mod time_format;
pub(crate) mod token;

pub use mapping::{MappedResponse, ResponseMapping};
pub use provider_check::{FieldCheck, ProviderCheck};

use crate::health::Limits;
use file::{Extension, File};
use path::Path;
use serde::Deserialize;
use sign::Sign;
use std::time::Duration;
use template::Template;
use token::Token;

/// The keyword syntax that a source supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keywords {
    /// None: the source returns its items unfiltered, and the filter stage matches the keywords.
    #[default]
    None,
    /// Words that must all match; the source does not take questions with OR.
    All,
    /// OR, phrases and "not".
    Boolean,
}

/// The questions that a source can take.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceCapabilities {
    /// Keywords.
    pub keywords: Keywords,
    /// Required parts: keywords, place, author, time.
    pub needs: Vec<String>,
    /// At least one of these parts is required.
    pub needs_one_of: Vec<String>,
    /// Unsupported parts, which could be neither requested nor filtered.
    pub not: Vec<String>,
    /// Max radius, in metres.
    pub radius_max_m: Option<f64>,
}

/// The HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Method {
    /// The question is in the URL.
    #[default]
    #[serde(rename = "GET")]
    Get,
    /// The question is a form in the body.
    #[serde(rename = "POST")]
    Post,
}

/// How further pages are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paging {
    /// There is one page.
    #[default]
    None,
    /// By number: `{page}`.
    Page,
    /// By the number of results before it: `{offset}`.
    Offset,
    /// By a URL in the response.
    Link,
    /// By a cursor in the response: `{cursor}`.
    Cursor,
}

/// A validated declaration.
#[derive(Debug, Clone)]
pub struct SourceDeclaration {
    /// Name in questions and packets.
    pub name: String,
    /// Human-readable name.
    pub title: String,
    /// The questions it takes.
    pub takes: SourceCapabilities,
    /// Environment variables that hold its credentials.
    pub credentials: Vec<String>,
    pub(crate) method: Method,
    pub(crate) url: Template,
    pub(crate) query: Vec<(String, Template)>,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Vec<(String, Template)>,
    pub(crate) sign: Option<Sign>,
    pub(crate) token: Option<Token>,
    pub(crate) paging: Paging,
    pub(crate) first: u64,
    pub(crate) size: usize,
    pub(crate) size_min: usize,
    /// Whether requests state the number of results wanted.
    pub(crate) counts: bool,
    pub(crate) pages_max: u64,
    pub(crate) next: Path,
    /// The response mapping.
    pub mapping: ResponseMapping,
    /// Parts of a question that need no further check, since the source knows more about a result than it sends.
    pub sure_of: Vec<String>,
    /// Max concurrent calls.
    pub at_once: usize,
    pub(crate) limits: Limits,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) answer_bytes: usize,
    pub(crate) cache: Duration,
    pub(crate) allow_private: bool,
}

impl SourceDeclaration {
    /// Parses a declaration. `known` returns the text of the declaration that this one extends. The error is a
    /// sentence that names the line or the key.
    pub fn parse(text: &str, known: &dyn Fn(&str) -> Option<String>) -> Result<SourceDeclaration, String> {
        let shown = |e: toml::de::Error| e.to_string().trim_end().to_owned();
        let table: toml::Table = text.parse().map_err(shown)?;
        let file: File = if table.contains_key("extends") {
            let own: Extension = toml::from_str(text).map_err(shown)?;
            let base =
                known(&own.extends).ok_or_else(|| format!("extends: no provider {:?} is shipped", own.extends))?;
            let mut file: File = toml::from_str(&base).map_err(shown)?;
            if let Some(unknown) = own.set.keys().find(|key| !file.set.contains_key(*key)) {
                let expected: Vec<&str> = file.set.keys().map(String::as_str).collect();
                return Err(format!(
                    "set.{unknown}: {} has no such value: expected {}",
                    own.extends,
                    expected.join(", ")
                ));
            }
            file.set.extend(own.set);
            file.name = own.name;
            file.title = own.title.unwrap_or(file.title);
            file.limits = own.limits.unwrap_or(file.limits);
            file
        } else {
            toml::from_str(text).map_err(shown)?
        };
        file.declared()
    }

    /// Location of the next page, as given in a response.
    pub fn next(&self, answer: &serde_json::Value) -> Option<String> {
        if matches!(self.paging, Paging::Link | Paging::Cursor) { self.next.text(answer) } else { None }
    }

    /// Returns the first missing credential, if any.
    pub fn missing_credential(&self) -> Option<&str> {
        self.credentials.iter().find(|name| std::env::var_os(name).is_none_or(|v| v.is_empty())).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "name = \"a\"\n[set]\nbase = \"https://example.org\"\n[request]\nurl = \"{set.base}/s\"\n\
        [request.query]\nq = \"{words}\"\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\n";

    fn parse(text: &str) -> Result<SourceDeclaration, String> {
        SourceDeclaration::parse(text, &|name| (name == "a").then(|| SMALL.to_owned()))
    }

    #[test]
    fn a_file_is_read_and_another_may_extend_it() {
        assert_eq!(parse(SMALL).expect("a provider").size, 100);
        let other = parse(
            "name = \"b\"\nextends = \"a\"\n[set]\nbase = \"http://127.0.0.1:1\"\n[limits]\nallow_private = true",
        )
        .expect("one");
        assert_eq!((other.name.as_str(), other.allow_private), ("b", true));
        assert_eq!(other.url.fill(&|_, _| None).as_deref(), Some("http://127.0.0.1:1/s"));
    }

    #[test]
    fn mistakes_name_the_key() {
        for (from, to, part) in [
            ("name = \"a\"", "name = \"A b\"", "name = \"A b\": expected small letters"),
            ("[set]", "speed = 3\n[set]", "speed"),
            ("{words}", "{wrods}", "request.query.q: \"{wrods}\": there is no variable \"wrods\""),
            ("{words}", "{env.KEY}", "env.KEY"),
            ("https://example.org", "", "set.base: it has no value"),
            ("https://", "file://", "http:// or https://"),
            ("\"json\"", "\"pdf\"", "pdf"),
            ("[answer]", "[takes]\nneeds = [\"luck\"]\n[answer]", "takes.needs: \"luck\""),
            ("[answer]", "[limits]\nanswer_bytes = 1\n[answer]", "limits.answer_bytes = 1: expected"),
            ("[answer]", "[paging]\nkind = \"link\"\n[answer]", "paging.path"),
            ("id = \"id\"", "id = \"id\"\ntime = \"t\"\ntime_format = \"%!\"", "answer.map.time_format = \"%!\""),
            ("id = \"id\"", "id = \"id\"\ntime_format = \"unix\"", "answer.map.time_format: there is no time"),
            ("id = \"id\"", "author = \"who\"", "answer.map: expected at least one of id, link, title and text"),
            ("id = \"id\"", "id = \"\"", "answer.map.id: it is empty"),
            ("id = \"id\"", "id = \"a..b\"", "answer.map.id: \"a..b\""),
            ("id = \"id\"", "id = \"a.[b]\"", "answer.map.id: \"a.[b]\""),
            ("id = \"id\"", "id = \"x{a..b}\"", "answer.map.id: \"a..b\""),
            ("id = \"id\"", "id = \"{set.bass}/x\"", "answer.map.id: \"{set.bass}/x\": there is no value set.bass"),
            ("id = \"id\"", "id = \"https://a/b\"", "answer.map.id: \"https://a/b\""),
            ("id = \"id\"", "id = \"join.users.name\"", "there is no [answer.join.users]"),
            (
                "[answer.map]",
                "[answer.join.users]\nlist = \"u\"\nkey = \"id\"\nby = \"who\"\n[answer.map]",
                "answer.join.users: nothing",
            ),
            (
                "[answer]",
                "[paging]\nkind = \"page\"\n[answer]",
                "paging.kind = \"page\": nothing in the request names {page}",
            ),
            ("[answer]", "[paging]\nsize_min = 200\n[answer]", "paging.size_min = 200: expected 1 to 100"),
            (
                "[answer]",
                "[token]\nurl = \"https://a/t\"\nuser = \"{words}\"\npassword = \"b\"\n[answer]",
                "token.user: \"{words}\"",
            ),
            ("[answer]", "[token]\nurl = \"a\"\nuser = \"b\"\npassword = \"b\"\n[answer]", "token.url"),
            ("{words}", "{token}", "there is no variable \"token\""),
            ("id = \"id\"", "ident = \"id\"", "ident"),
        ] {
            let mistake = parse(&SMALL.replace(from, to)).expect_err(to);
            assert!(mistake.contains(part), "{to}: {mistake}");
        }
        assert!(parse("name = \"b\"\nextends = \"c\"").expect_err("unknown").contains("\"c\" is shipped"));
        assert!(parse("name = \"b\"\nextends = \"a\"\n[set]\nfeed = \"x\"").expect_err("unknown").contains("set.feed"));
    }
}
