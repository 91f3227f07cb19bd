//! Validates a declaration file. Every value is checked once, and an error names its key.

use super::file::{File, LimitsFile, PagingFile};
use super::mapping::ResponseMapping;
use super::path::Path;
use super::sign::Sign;
use super::template::Template;
use super::token::Token;
use super::{Paging, SourceDeclaration};
use crate::health::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

/// Variables that templates may use.
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

/// Templates, by the name of the part that each one fills.
type Templates = Vec<(String, Template)>;

impl File {
    /// Validates and converts the file.
    pub(super) fn declared(self) -> Result<SourceDeclaration, String> {
        self.check_names()?;
        self.limits.check()?;
        let fixed = |text: &str| {
            self.set.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{set.{key}}}"), value))
        };
        // Only credentials that the declaration names: a file must not read any variable of the environment.
        let of_ours = |name: &str| {
            name.strip_prefix("env.").is_some_and(|name| self.credentials.iter().any(|known| known == name))
        };
        let asked = |name: &str| VARIABLES.contains(&name) || of_ours(name);
        // A token is allowed in headers only, since URLs are cached and logged.
        let in_head = |name: &str| asked(name) || (name == "token" && self.token.is_some());
        let read = |key: &str, text: &str, known: &dyn Fn(&str) -> bool| {
            Template::parse(&fixed(text), known).map_err(|e| format!("{key}: {e}"))
        };
        let secret = |key: &str, text: &str| read(key, text, &of_ours);
        let all = |key: &str, texts: &BTreeMap<String, String>, known: &dyn Fn(&str) -> bool| {
            let one =
                |(name, text): (&String, &String)| Ok((name.clone(), read(&format!("{key}.{name}"), text, known)?));
            texts.iter().map(one).collect::<Result<Templates, String>>()
        };
        let url = read("request.url", &self.request.url, &asked)?;
        if !fixed(&self.request.url).starts_with("http://") && !fixed(&self.request.url).starts_with("https://") {
            return Err(format!(
                "request.url = {:?}: expected an address with http:// or https://",
                fixed(&self.request.url)
            ));
        }
        let (query, headers, body) = (
            all("request.query", &self.request.query, &asked)?,
            all("request.headers", &self.request.headers, &in_head)?,
            all("request.body", &self.request.body, &asked)?,
        );
        let request = || std::iter::once(&url).chain([&query, &headers, &body].into_iter().flatten().map(|q| &q.1));
        self.paging.check(request())?;
        let counts = request().any(|template| template.variables().any(|name| name == "limit"));
        let mapping = ResponseMapping::new(&self.answer, &fixed)?;
        let sign = self.request.sign.as_ref().map(|sign| Sign::new(sign, &secret)).transpose()?;
        let token = self.token.as_ref().map(|token| Token::new(token, &secret, &fixed)).transpose()?;
        let next = Path::parse(&self.paging.path).map_err(|e| format!("paging.path: {e}"))?;
        let limits = self.limits;
        Ok(SourceDeclaration {
            method: self.request.method,
            url,
            query,
            headers,
            body,
            sign,
            token,
            paging: self.paging.kind,
            first: self.paging.first,
            size: self.paging.size,
            size_min: self.paging.size_min,
            counts,
            pages_max: self.paging.pages_max,
            next,
            mapping,
            sure_of: self.answer.sure_of,
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

    /// Checks the provider's name, the required values, and the parts of a question.
    fn check_names(&self) -> Result<(), String> {
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
        Ok(())
    }
}

impl PagingFile {
    /// Checks that further pages can be requested at all; `request` holds all templates of the request.
    fn check<'a>(&self, mut request: impl Iterator<Item = &'a Template>) -> Result<(), String> {
        let next = matches!(self.kind, Paging::Link | Paging::Cursor);
        if next == self.path.is_empty() {
            return Err("paging.path: kinds link and cursor need one, the others have none".to_owned());
        }
        within("paging.size", self.size as f64, 1.0, 10_000.0)?;
        within("paging.size_min", self.size_min as f64, 1.0, self.size as f64)?;
        within("paging.pages_max", self.pages_max as f64, 1.0, 1_000.0)?;
        let variable = match self.kind {
            Paging::None | Paging::Link => return Ok(()),
            Paging::Page => "page",
            Paging::Offset => "offset",
            Paging::Cursor => "cursor",
        };
        if request.any(|template| template.variables().any(|name| name == variable)) {
            return Ok(());
        }
        Err(format!(
            "paging.kind = {variable:?}: nothing in the request names {{{variable}}}, so every page would be the first"
        ))
    }
}

impl LimitsFile {
    fn check(&self) -> Result<(), String> {
        within("limits.at_once", self.at_once as f64, 1.0, 10_000.0)?;
        within("limits.rate", self.rate, 0.0, 1e6)?;
        within("limits.cost", self.cost, 0.0, 1e9)?;
        within("limits.budget", self.budget, 0.0, 1e12)?;
        within("limits.timeout_ms", self.timeout_ms as f64, 1.0, 600_000.0)?;
        within("limits.retries", f64::from(self.retries), 0.0, 5.0)?;
        within("limits.open_ms", self.open_ms as f64, 1.0, 3_600_000.0)?;
        within("limits.answer_bytes", self.answer_bytes as f64, 1_024.0, f64::from(64 << 20))?;
        within("limits.cache_s", self.cache_s as f64, 0.0, 86_400.0)
    }
}

fn within(key: &str, value: f64, min: f64, max: f64) -> Result<(), String> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(format!("{key} = {value}: expected {min} to {max}")),
    }
}
