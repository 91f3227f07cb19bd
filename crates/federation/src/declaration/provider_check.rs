//! Tests a declaration on one response: what each field found, and what is suspicious.

use super::SourceDeclaration;
use super::path::Path;
use crate::search_result::SearchResult;
use serde_json::Value;

/// Max length of an example, in characters.
const EXAMPLE_MAX: usize = 60;

/// The result of applying a declaration to a response.
#[derive(Debug)]
pub struct ProviderCheck {
    /// Items in the response.
    pub items: usize,
    /// The results mapped from them.
    pub found: Vec<SearchResult>,
    /// The outcome of each mapped field, in the order of the file's keys.
    pub fields: Vec<FieldCheck>,
    /// Sentences about probable mistakes.
    pub warnings: Vec<String>,
}

/// The outcome of one mapped field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCheck {
    /// Its key in the file.
    pub key: String,
    /// Items in which it found a value.
    pub items: usize,
    /// The first value found.
    pub example: Option<String>,
}

impl SourceDeclaration {
    /// Maps a response and counts the fields found. The error is the sentence that a search would report.
    pub fn check_response(&self, content_type: &str, bytes: &[u8]) -> Result<ProviderCheck, String> {
        let mut check = self.mapping.inspect(content_type, bytes, |items| self.check(items))?;
        if check.items > 0 && check.found.is_empty() {
            // Reports the same errors as a search.
            self.mapping.read(content_type, bytes)?;
        }
        let unreadable = check.items - check.found.len();
        if unreadable > 0 {
            check.warnings.push(format!("{unreadable} of {} items have no id, link, title or text", check.items));
        }
        Ok(check)
    }

    fn check(&self, items: &[&Value]) -> ProviderCheck {
        let found: Vec<SearchResult> = items.iter().filter_map(|item| self.mapping.one(item)).collect();
        let mut fields = Vec::new();
        let (mut warnings, mut placed, mut timed) = (Vec::new(), 0, 0);
        for (key, paths) in self.mapping.fields() {
            let with: Vec<&&Value> = items.iter().filter(|item| paths.iter().all(|path| finds(path, item))).collect();
            match key.as_str() {
                "answer.map.time" => timed = with.len(),
                "answer.map.lon" | "answer.map.point" | "answer.map.geometry" => placed = placed.max(with.len()),
                _ => {}
            }
            if with.is_empty() && !items.is_empty() {
                warnings.push(format!("{key} finds nothing in any of {} items", items.len()));
            }
            let example = with.first().and_then(|item| paths.first()?.first(item)).map(shown);
            fields.push(FieldCheck { key, items: with.len(), example });
        }
        let read = |what: &dyn Fn(&SearchResult) -> bool| found.iter().filter(|found| what(found)).count();
        let (times, places) = (read(&|f| f.time.is_some()), read(&|f| f.place.is_some()));
        if times < timed.min(found.len()) {
            warnings.push(format!("answer.map.time: {times} of {timed} are instants as time_format says"));
        }
        if places < placed.min(found.len()) {
            warnings.push(format!("answer.map: {places} of {placed} places are positions on the globe"));
        }
        ProviderCheck { items: items.len(), found, fields, warnings }
    }
}

/// Returns whether a path finds a value. An empty text or list counts as none.
fn finds(path: &Path, item: &Value) -> bool {
    path.all(item).into_iter().any(|value| match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    })
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXAMPLE_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(map: &str) -> SourceDeclaration {
        let text = format!(
            "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"json\"\nitems = \"list\"\n[answer.map]\n{map}"
        );
        SourceDeclaration::parse(&text, &|_| None).expect("a declaration")
    }

    #[test]
    fn what_each_field_finds_is_counted_and_what_finds_nothing_is_named() {
        let declared = declared(
            "id = \"id\"\ntitle = \"name\"\nauthor = \"who\"\nlink = \"https://x/{id}/{kind}\"\ntime = \"t\"\ntime_format = \"unix\"\nlon = \"x\"\nlat = \"y\"",
        );
        let answer = json!({"list": [
            {"id": 1, "name": "a", "kind": "b", "t": 5, "x": 1, "y": 2},
            {"id": 2, "name": "", "t": "noon", "x": 500, "y": 2},
            {"t": 6}]});
        let check = declared.check_response("", answer.to_string().as_bytes()).expect("an answer");
        let of = |key: &str| check.fields.iter().find(|f| f.key == key).expect(key);
        assert_eq!((check.items, check.found.len()), (3, 2));
        assert_eq!(
            of("answer.map.title"),
            &FieldCheck { key: "answer.map.title".to_owned(), items: 1, example: Some("a".to_owned()) }
        );
        assert_eq!((of("answer.map.link").items, of("answer.map.author").items), (1, 0));
        let warnings = check.warnings.join("\n");
        for part in [
            "answer.map.author finds nothing in any of 3 items",
            "answer.map.time: 1 of 3",
            "1 of 2 places",
            "1 of 3 items have no id",
        ] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        assert_eq!(check.warnings.len(), 4, "{warnings}");
        let broken = declared.check_response("", br#"{"list":[{"key":1}]}"#).expect_err("broken");
        assert!(broken.contains("none of 1 results"), "{broken}");
        assert_eq!(declared.check_response("", br#"{"list":[]}"#).expect("none").warnings.len(), 0);
    }
}
