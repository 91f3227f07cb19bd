//! A provider as a file: what it takes, how it is asked, how its answer is read, and its limits. TOML; unknown keys are refused.

use super::decode::Format;
use super::health::Limits;
use super::mapping::{Mapping, MappingFile};
use super::path::Path;
use super::template::Template;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    credentials: Vec<String>,
    #[serde(default)]
    takes: Takes,
    request: RequestFile,
    #[serde(default)]
    paging: PagingFile,
    answer: AnswerFile,
    #[serde(default)]
    limits: LimitsFile,
}

/// What a file that extends another may say: the rest stands there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    name: String,
    title: Option<String>,
    extends: String,
    #[serde(default)]
    set: BTreeMap<String, String>,
    limits: Option<LimitsFile>,
}

/// Which keywords a source understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keywords {
    /// It gives what it has; our filter looks for the words.
    #[default]
    None,
    /// Words that must all be there; a question with OR is not for it.
    All,
    /// OR, phrases and "not" as well.
    Boolean,
}

/// Which questions a source can take.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Takes {
    /// Keywords.
    pub keywords: Keywords,
    /// A question without one of these parts is not for it: keywords, place, author, time.
    pub needs: Vec<String>,
    /// A question with none of these parts is not for it.
    pub needs_one_of: Vec<String>,
    /// A question with one of these parts is not for it: it could neither be told nor filtered.
    pub not: Vec<String>,
    /// Greatest radius that it takes, in metres.
    pub radius_max_m: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    url: String,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    query: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: BTreeMap<String, String>,
}

/// How a source is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Method {
    /// With the question in the address.
    #[default]
    #[serde(rename = "GET")]
    Get,
    /// With the question as a form in the body.
    #[serde(rename = "POST")]
    Post,
}

/// How further pages are asked for.
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
    /// By an address in the answer.
    Link,
    /// By a text in the answer: `{cursor}`.
    Cursor,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PagingFile {
    kind: Paging,
    first: u64,
    size: usize,
    pages_max: u64,
    path: String,
}

impl Default for PagingFile {
    fn default() -> Self {
        PagingFile { kind: Paging::None, first: 1, size: 100, pages_max: 10, path: String::new() }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerFile {
    format: Format,
    items: String,
    #[serde(default)]
    empty: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    sure_of: Vec<String>,
    map: MappingFile,
    #[serde(default)]
    more: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsFile {
    at_once: usize,
    rate: f64,
    cost: f64,
    budget: f64,
    timeout_ms: u64,
    retries: u32,
    failures: u32,
    open_ms: u64,
    answer_bytes: usize,
    cache_s: u64,
    allow_private: bool,
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

/// A provider as declared: read, checked and taken apart.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its name in questions and packets.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Which questions it takes.
    pub takes: Takes,
    /// Environment variables that hold its credentials.
    pub credentials: Vec<String>,
    pub(super) method: Method,
    pub(super) url: Template,
    pub(super) query: Vec<(String, Template)>,
    pub(super) headers: Vec<(String, Template)>,
    pub(super) body: Vec<(String, Template)>,
    pub(super) paging: Paging,
    pub(super) first: u64,
    pub(super) size: usize,
    pub(super) pages_max: u64,
    pub(super) next: Path,
    /// How an answer is read.
    pub mapping: Mapping,
    /// Parts of a question that need no second look: the source has seen more of each result than it sends.
    pub sure_of: Vec<String>,
    /// Calls at once.
    pub at_once: usize,
    pub(super) limits: Limits,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) answer_bytes: usize,
    pub(super) cache: Duration,
    pub(super) allow_private: bool,
}

/// Variables of a question that templates may name.
const VARIABLES: [&str; 22] = [
    "words",
    "boolean",
    "boolean_not",
    "first_word",
    "lon",
    "lat",
    "radius_m",
    "radius_km",
    "west",
    "south",
    "east",
    "north",
    "author",
    "start",
    "end",
    "language",
    "limit",
    "page",
    "offset",
    "cursor",
    "after",
    "before",
];
/// Parts of a question that `takes` and `sure_of` may name.
const PARTS: [&str; 6] = ["keywords", "place", "author", "time", "media", "language"];

impl Declared {
    /// Reads a declaration. `known` gives the text of the declaration that this one extends. The error is a sentence that
    /// names the line or the key.
    pub fn parse(text: &str, known: &dyn Fn(&str) -> Option<String>) -> Result<Declared, String> {
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

    /// Where an answer says that the next page is.
    pub fn next(&self, answer: &serde_json::Value) -> Option<String> {
        if matches!(self.paging, Paging::Link | Paging::Cursor) { self.next.text(answer) } else { None }
    }

    /// Whether all that its credentials are made of is there; else the first that is not.
    pub fn missing_credential(&self) -> Option<&str> {
        self.credentials.iter().find(|name| std::env::var_os(name).is_none_or(|v| v.is_empty())).map(String::as_str)
    }
}

impl File {
    fn declared(self) -> Result<Declared, String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err(format!("name = {:?}: expected small letters, digits and -, at most 64", self.name));
        }
        if let Some((key, _)) = self.set.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!(
                "set.{key}: it has no value: expected one, in a file with extends = {:?} and [set]",
                self.name
            ));
        }
        let takes = &self.takes;
        for (key, parts) in [
            ("takes.needs", &takes.needs),
            ("takes.needs_one_of", &takes.needs_one_of),
            ("takes.not", &takes.not),
            ("answer.sure_of", &self.answer.sure_of),
        ] {
            if let Some(part) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
                return Err(format!("{key}: {part:?} is no part of a question: expected {}", PARTS.join(", ")));
            }
        }
        let fixed = |text: &str| {
            self.set.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{set.{key}}}"), value))
        };
        let is_known = |name: &str| {
            VARIABLES.contains(&name)
                || name.strip_prefix("env.").is_some_and(|name| self.credentials.iter().any(|c| c == name))
        };
        let template =
            |key: &str, text: &str| Template::parse(&fixed(text), is_known).map_err(|e| format!("{key}: {e}"));
        let all = |key: &str, texts: &BTreeMap<String, String>| {
            let one = |(name, text): (&String, &String)| Ok((name.clone(), template(&format!("{key}.{name}"), text)?));
            texts.iter().map(one).collect::<Result<Vec<_>, String>>()
        };
        let url = template("request.url", &self.request.url)?;
        if !fixed(&self.request.url).starts_with("http://") && !fixed(&self.request.url).starts_with("https://") {
            return Err(format!(
                "request.url = {:?}: expected an address with http:// or https://",
                fixed(&self.request.url)
            ));
        }
        let next = matches!(self.paging.kind, Paging::Link | Paging::Cursor);
        if next == self.paging.path.is_empty() {
            return Err("paging.path: kinds link and cursor need one, the others have none".to_owned());
        }
        let limits = &self.limits;
        let within = |key: &str, value: f64, least: f64, most: f64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("{key} = {value}: expected {least} to {most}")),
        };
        within("paging.size", self.paging.size as f64, 1.0, 10_000.0)?;
        within("paging.pages_max", self.paging.pages_max as f64, 1.0, 1_000.0)?;
        within("limits.at_once", limits.at_once as f64, 1.0, 10_000.0)?;
        within("limits.rate", limits.rate, 0.0, 1e6)?;
        within("limits.cost", limits.cost, 0.0, 1e9)?;
        within("limits.budget", limits.budget, 0.0, 1e12)?;
        within("limits.timeout_ms", limits.timeout_ms as f64, 1.0, 600_000.0)?;
        within("limits.retries", f64::from(limits.retries), 0.0, 5.0)?;
        within("limits.open_ms", limits.open_ms as f64, 1.0, 3_600_000.0)?;
        within("limits.answer_bytes", limits.answer_bytes as f64, 1_024.0, f64::from(64 << 20))?;
        within("limits.cache_s", limits.cache_s as f64, 0.0, 86_400.0)?;
        let answer = self.answer;
        Ok(Declared {
            method: self.request.method,
            query: all("request.query", &self.request.query)?,
            headers: all("request.headers", &self.request.headers)?,
            body: all("request.body", &self.request.body)?,
            url,
            paging: self.paging.kind,
            first: self.paging.first,
            size: self.paging.size,
            pages_max: self.paging.pages_max,
            next: Path::parse(&self.paging.path),
            mapping: Mapping::new(
                answer.format,
                &answer.items,
                answer.empty.as_deref(),
                answer.error.as_deref(),
                &answer.map,
                &answer.more,
            )?,
            sure_of: answer.sure_of,
            at_once: limits.at_once,
            limits: Limits {
                rate: limits.rate,
                cost: limits.cost,
                budget: limits.budget,
                failures: limits.failures,
                open: Duration::from_millis(limits.open_ms),
            },
            timeout: Duration::from_millis(limits.timeout_ms),
            retries: limits.retries,
            answer_bytes: limits.answer_bytes,
            cache: Duration::from_secs(limits.cache_s),
            allow_private: limits.allow_private,
            title: if self.title.is_empty() { self.name.clone() } else { self.title },
            name: self.name,
            takes: self.takes,
            credentials: self.credentials,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "name = \"a\"\n[set]\nbase = \"https://example.org\"\n[request]\nurl = \"{set.base}/s\"\n\
        [request.query]\nq = \"{words}\"\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\n";

    fn parse(text: &str) -> Result<Declared, String> {
        Declared::parse(text, &|name| (name == "a").then(|| SMALL.to_owned()))
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
            ("id = \"id\"", "id = \"id\"\ntime_format = \"%!\"", "answer.map.time_format"),
            ("id = \"id\"", "ident = \"id\"", "ident"),
        ] {
            let mistake = parse(&SMALL.replace(from, to)).expect_err(to);
            assert!(mistake.contains(part), "{to}: {mistake}");
        }
        assert!(parse("name = \"b\"\nextends = \"c\"").expect_err("unknown").contains("\"c\" is shipped"));
        assert!(parse("name = \"b\"\nextends = \"a\"\n[set]\nfeed = \"x\"").expect_err("unknown").contains("set.feed"));
    }
}
