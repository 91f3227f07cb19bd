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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    #[test]
    fn rules_that_never_match_are_refused() {
        for (rule, part) in
            [("", "empty"), ("{{x}}", "same for every"), ("{set.key}", "[set]"), ("https://a.example/", "address")]
        {
            let wrong = Rule::parse(rule).expect_err(rule);
            assert!(wrong.contains(part), "{rule}: {wrong}");
        }
    }

    proptest! {
        /// A template gives its text with the values in place of the names; without one of them it gives nothing.
        #[test]
        fn a_template_is_its_text_with_the_values(
            parts in prop::collection::vec(("[a-z/:. {}]{0,6}", select(vec!["a", "b", "c"])), 1..5),
            values in prop::collection::vec("[^\\s\\x00]{1,8}", 3),
            is_missing in any::<bool>(),
        ) {
            let rule: String = parts
                .iter()
                .map(|(text, name)| format!("{}{{{name}}}", text.replace('{', "{{").replace('}', "}}")))
                .collect();
            let rule = Rule::parse(&rule).expect("a rule");
            let mut item = json!({ "a": values[0], "b": values[1], "c": values[2] });
            let value = |name: &str| &values[usize::from(name.as_bytes()[0] - b'a')];
            let expected: String = parts.iter().map(|(text, name)| format!("{text}{}", value(name))).collect();
            prop_assert_eq!(rule.text(&item), Some(expected.clone()));
            prop_assert_eq!(rule.texts(&item), vec![expected.clone()]);
            prop_assert_eq!(rule.value(&item), Some(json!(expected)));
            if is_missing {
                item.as_object_mut().expect("an object").remove(parts[0].1);
                prop_assert_eq!(rule.text(&item), None);
            }
        }

        /// A path gives the member that it names, at any depth.
        #[test]
        fn a_path_gives_the_member_it_names(names in prop::collection::vec("[a-z]{1,4}", 1..4), value in any::<i64>()) {
            let item = names.iter().rev().fold(json!(value), |inside, name| json!({ name.as_str(): inside }));
            let rule = Rule::parse(&names.join(".")).expect("a rule");
            prop_assert_eq!(rule.value(&item), Some(json!(value)));
            prop_assert_eq!(rule.text(&item), Some(value.to_string()));
            prop_assert_eq!(rule.paths().len(), 1);
        }
    }
}
