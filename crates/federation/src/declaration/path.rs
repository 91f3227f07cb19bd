//! Paths into a response: `data.*.title|name`, over JSON and over converted XML and CSV.

use serde_json::Value;

/// A path: alternatives, each a list of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Vec<Step>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A member of an object, or of each object of a list, since XML repeats what JSON lists.
    Member(String),
    /// An element of a list.
    Element(usize),
    /// Every element or member.
    Each,
    /// The elements with a member of this value; with an empty value, those without the member.
    Where(String, String),
}

impl Path {
    /// Parses a path. Steps are separated by dots: a number is an element, `*` is every element, `[name=value]`
    /// selects elements with such a member, `[name=]` those without. `|` separates alternatives, tried in order. An
    /// empty path is the value itself. The error is a sentence about a path that could never match.
    pub fn parse(text: &str) -> Result<Path, String> {
        if text.is_empty() {
            return Ok(Path(vec![Vec::new()]));
        }
        if text.contains("://") {
            return Err(format!(
                "{text:?} is an address, the same for every result: expected a path or a {{variable}}"
            ));
        }
        if text.contains(['{', '}']) {
            return Err(format!("{text:?}: a path has no braces"));
        }
        let steps = |path: &str| path.trim().split('.').map(step).collect::<Result<Vec<_>, _>>();
        let paths: Result<Vec<_>, String> = text.split('|').map(steps).collect();
        paths.map(Path).map_err(|why| format!("{text:?}: {why}"))
    }

    /// Returns the first two members of each alternative.
    pub fn roots(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().filter_map(|steps| match &steps[..] {
            [Step::Member(first), Step::Member(second), ..] => Some((first.as_str(), Some(second.as_str()))),
            [Step::Member(first), ..] => Some((first.as_str(), None)),
            _ => None,
        })
    }

    /// Returns the values at the path, in order; empty if it leads nowhere or to null.
    pub fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.0.iter().map(|steps| walk(steps, value)).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns the first value at the path.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.all(value).first().copied()
    }

    /// Returns the first text. Alternatives without a text are skipped, and an empty text counts as none.
    pub fn text(&self, value: &Value) -> Option<String> {
        self.0.iter().find_map(|steps| walk(steps, value).into_iter().find_map(text))
    }

    /// Returns the path without its last step.
    pub fn parent(&self) -> Path {
        let above = |steps: &Vec<Step>| steps[..steps.len().saturating_sub(1)].to_vec();
        Path(self.0.iter().map(above).collect())
    }
}

fn step(text: &str) -> Result<Step, String> {
    let inside = text.strip_prefix('[').map(|test| test.strip_suffix(']').and_then(|test| test.split_once('=')));
    match (text, inside, text.parse()) {
        ("", ..) => Err("a step is empty: expected names with single dots between".to_owned()),
        (_, Some(None), _) => Err(format!("{text:?}: expected a test such as [name=value], without dots in it")),
        (_, Some(Some((name, value))), _) => Ok(Step::Where(name.to_owned(), value.to_owned())),
        ("*", ..) => Ok(Step::Each),
        (_, _, Ok(at)) => Ok(Step::Element(at)),
        (name, ..) => Ok(Step::Member(name.to_owned())),
    }
}

/// Returns the values at the end of these steps.
fn walk<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let mut here = vec![value];
    for step in steps {
        here = here.into_iter().flat_map(|value| follow(step, value)).collect();
    }
    here.retain(|value| !value.is_null());
    here
}

fn follow<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
        // A list of one element may appear as the element, and vice versa, so a name goes through lists.
        (Step::Member(_), Value::Array(list)) => list.iter().flat_map(|value| follow(step, value)).collect(),
        (Step::Element(at), Value::Array(list)) => list.get(*at).into_iter().collect(),
        // A single XML element is not converted to a list.
        (Step::Element(0), value) => vec![value],
        (Step::Where(..), Value::Array(list)) => list.iter().flat_map(|value| follow(step, value)).collect(),
        (Step::Where(name, sought), value) if value.get(name).and_then(text).unwrap_or_default() == *sought => {
            vec![value]
        }
        (Step::Each, Value::Array(list)) => list.iter().collect(),
        (Step::Each, Value::Object(members)) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// Returns a value as text: a string, a number or a boolean; for an XML element with attributes, its text.
pub fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Object(members) => members.get("$").and_then(text)?,
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_where_they_say() {
        let value = json!({"a": {"b": [{"c": 1}, {"c": 2}, {"d": ""}]}, "e": null, "f": {"$": "x", "@id": 3}});
        let read = |path: &str| Path::parse(path).expect("a path");
        let text = |path: &str| read(path).text(&value);
        assert_eq!(text("a.b.1.c").as_deref(), Some("2"));
        assert_eq!(read("a.b.*.c").all(&value).len(), 2);
        assert_eq!(read("a.b.c").all(&value).len(), 2);
        assert_eq!(text("e|nowhere|a.b.0.c").as_deref(), Some("1"));
        assert_eq!((text("a.b.2.d"), text("a.b.2.d|f").as_deref()), (None, Some("x")));
        assert_eq!((text("f").as_deref(), text("f.@id").as_deref()), (Some("x"), Some("3")));
        assert_eq!(
            (text("a.b.[c=2].c").as_deref(), text("f.[@id=3].$").as_deref(), text("f.[@id=4].$")),
            (Some("2"), Some("x"), None)
        );
        assert_eq!(read("a.b.[c=]").all(&value), [&value["a"]["b"][2]]);
        assert_eq!(read("").first(&value), Some(&value));
        assert_eq!(read("a.b").parent().first(&value), Some(&value["a"]));
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        for path in ["a..b", ".a", "a|", "a.", "a.[b]", "a.[b=c", "[ext=.jpg]", "a.{b}", "https://example.org/a"] {
            assert!(Path::parse(path).expect_err(path).contains(&format!("{path:?}")), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_path_leads_to_the_value_that_lies_there(steps in proptest::collection::vec(proptest::option::of(0..3usize), 1..6), leaf: u32) {
            // A number selects the list element with that index; it is never a member.
            let (mut value, mut words) = (json!(leaf), Vec::new());
            for step in steps.iter().rev() {
                value = match step {
                    Some(at) => (0..=*at).map(|i| if i == *at { value.clone() } else { json!(null) }).collect(),
                    None => json!({"m": value, "other": [1, 2]}),
                };
                words.insert(0, step.map_or("m".to_owned(), |at| at.to_string()));
            }
            let path = Path::parse(&words.join(".")).unwrap();
            proptest::prop_assert_eq!(path.first(&value), Some(&json!(leaf)));
            let fallback = Path::parse(&format!("nowhere.{}|{}", words.join("."), words.join("."))).unwrap();
            proptest::prop_assert_eq!(fallback.text(&value), Some(leaf.to_string()));
        }
    }
}
