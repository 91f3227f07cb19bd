//! A declaration tried out on one answer: what each of its fields found there, and what is suspicious about that.

use super::declaration::Declared;
use super::path::Path;
use crate::found::Found;
use serde_json::Value;

/// Longest example, in characters.
const EXAMPLE_MAX: usize = 60;

/// What a declaration made of an answer.
#[derive(Debug)]
pub struct Trial {
    /// Items in the answer.
    pub items: usize,
    /// The results that they became.
    pub found: Vec<Found>,
    /// What each field of the mapping found, in the order of the file's keys.
    pub fields: Vec<Finding>,
    /// Sentences about what can hardly be meant so.
    pub doubts: Vec<String>,
}

/// What one field of the mapping found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its key in the file.
    pub key: String,
    /// Items in which it found something.
    pub items: usize,
    /// The first thing that it found.
    pub example: Option<String>,
}

impl Declared {
    /// Reads an answer and counts what was found. The error is the sentence that a search would give.
    pub fn try_on(&self, content_type: &str, bytes: &[u8]) -> Result<Trial, String> {
        let mut trial = self.mapping.look(content_type, bytes, |items| self.trial(items))?;
        if trial.items > 0 && trial.found.is_empty() {
            // The same sentence as a search says.
            self.mapping.read(content_type, bytes)?;
        }
        let unreadable = trial.items - trial.found.len();
        if unreadable > 0 {
            trial.doubts.push(format!("{unreadable} of {} items have no id, link, title or text", trial.items));
        }
        Ok(trial)
    }

    fn trial(&self, items: &[&Value]) -> Trial {
        let found: Vec<Found> = items.iter().filter_map(|item| self.mapping.one(item)).collect();
        let mut fields = Vec::new();
        let (mut doubts, mut placed, mut timed) = (Vec::new(), 0, 0);
        for (key, paths) in self.mapping.fields() {
            let with: Vec<&&Value> = items.iter().filter(|item| paths.iter().all(|path| finds(path, item))).collect();
            match key.as_str() {
                "answer.map.time" => timed = with.len(),
                "answer.map.lon" | "answer.map.point" | "answer.map.geometry" => placed = placed.max(with.len()),
                _ => {}
            }
            if with.is_empty() && !items.is_empty() {
                doubts.push(format!("{key} finds nothing in any of {} items", items.len()));
            }
            let example = with.first().and_then(|item| paths.first()?.first(item)).map(shown);
            fields.push(Finding { key, items: with.len(), example });
        }
        let read = |what: &dyn Fn(&Found) -> bool| found.iter().filter(|found| what(found)).count();
        let (times, places) = (read(&|f| f.time.is_some()), read(&|f| f.place.is_some()));
        if times < timed.min(found.len()) {
            doubts.push(format!("answer.map.time: {times} of {timed} are instants as time_format says"));
        }
        if places < placed.min(found.len()) {
            doubts.push(format!("answer.map: {places} of {placed} places are positions on the globe"));
        }
        Trial { items: items.len(), found, fields, doubts }
    }
}

/// Whether something stands there; an empty text and an empty list are nothing.
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

    fn declared(map: &str) -> Declared {
        let text = format!(
            "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"json\"\nitems = \"list\"\n[answer.map]\n{map}"
        );
        Declared::parse(&text, &|_| None).expect("a declaration")
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
        let trial = declared.try_on("", answer.to_string().as_bytes()).expect("an answer");
        let of = |key: &str| trial.fields.iter().find(|f| f.key == key).expect(key);
        assert_eq!((trial.items, trial.found.len()), (3, 2));
        assert_eq!(
            of("answer.map.title"),
            &Finding { key: "answer.map.title".to_owned(), items: 1, example: Some("a".to_owned()) }
        );
        assert_eq!((of("answer.map.link").items, of("answer.map.author").items), (1, 0));
        let doubts = trial.doubts.join("\n");
        for part in [
            "answer.map.author finds nothing in any of 3 items",
            "answer.map.time: 1 of 3",
            "1 of 2 places",
            "1 of 3 items have no id",
        ] {
            assert!(doubts.contains(part), "{part}: {doubts}");
        }
        assert_eq!(trial.doubts.len(), 4, "{doubts}");
        let broken = declared.try_on("", br#"{"list":[{"key":1}]}"#).expect_err("broken");
        assert!(broken.contains("none of 1 results"), "{broken}");
        assert_eq!(declared.try_on("", br#"{"list":[]}"#).expect("none").doubts.len(), 0);
    }
}
