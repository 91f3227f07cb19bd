//! A mapping rule for a field of a result: a path, or a template over paths if it contains a brace.

use super::path::{Path, text};
use super::template::Template;
use serde_json::Value;

/// One entry of `[answer.map]`: `user.name`, or `https://example.org/{id}`.
#[derive(Debug, Clone)]
pub enum Rule {
    /// A path to the value.
    Path(Path),
    /// A template, and the path of each variable.
    Made(Template, Vec<(String, Path)>),
}

impl Rule {
    /// Parses a rule. The error is a sentence about a rule that could never match.
    pub fn parse(written: &str) -> Result<Rule, String> {
        if written.is_empty() {
            return Err("it is empty: expected a path, or leave it out".to_owned());
        }
        if !written.contains(['{', '}']) {
            return Path::parse(written).map(Rule::Path);
        }
        let template = Template::parse(written, |name| !name.is_empty())?;
        if let Some(unknown) = template.variables().find(|name| name.starts_with("set.")) {
            return Err(format!("{written:?}: there is no value {unknown} in [set]"));
        }
        let paths = template.variables().map(|name| Ok((name.to_owned(), Path::parse(name)?)));
        let paths = paths.collect::<Result<Vec<_>, String>>()?;
        if paths.is_empty() {
            return Err(format!("{written:?} is the same for every result: expected a {{variable}}"));
        }
        Ok(Rule::Made(template, paths))
    }

    /// Returns the paths that it reads.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Rule::Path(path) => vec![path],
            Rule::Made(_, paths) => paths.iter().map(|(_, path)| path).collect(),
        }
    }

    /// Returns its value in an item, as text; the first of several.
    pub fn text(&self, item: &Value) -> Option<String> {
        match self {
            Rule::Path(path) => path.text(item),
            Rule::Made(template, paths) => template.fill(&|name, _| {
                let (_, path) = paths.iter().find(|(known, _)| known == name)?;
                path.text(item)
            }),
        }
    }

    /// Returns all its values in an item, as texts.
    pub fn texts(&self, item: &Value) -> Vec<String> {
        match self {
            Rule::Path(path) => path.all(item).into_iter().filter_map(text).collect(),
            Rule::Made(..) => self.text(item).into_iter().collect(),
        }
    }

    /// Returns its value in an item, unconverted.
    pub fn value(&self, item: &Value) -> Option<Value> {
        match self {
            Rule::Path(path) => path.first(item).cloned(),
            Rule::Made(..) => self.text(item).map(Value::from),
        }
    }
}
