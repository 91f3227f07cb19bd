//! Joins for normalised responses: results in one list, authors in another, linked by keys.

use super::path::{Path, text};
use super::rule::Rule;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Max items that one result may reference by one name.
const THINGS_MAX: usize = 16;
/// Max bytes that all results of a response may copy from other lists, as a multiple of the response size. Without it,
/// a small response whose results all reference one large item could grow without bound.
const GROWTH_MAX: usize = 4;

/// `[answer.join.NAME]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinFile {
    list: String,
    key: String,
    by: String,
}

/// Another list of the response. Its items are placed under `join.NAME` of the results that refer to them.
#[derive(Debug, Clone)]
pub struct Join {
    name: String,
    list: Path,
    key: Rule,
    by: Path,
}

impl Join {
    /// Parses a join. The error names the key.
    pub fn new(name: &str, file: &JoinFile, fixed: &dyn Fn(&str) -> String) -> Result<Join, String> {
        let named = |key: &str, e: String| format!("answer.join.{name}.{key}: {e}");
        let path = |key: &str, written: &str| match written {
            "" => Err(named(key, "it is empty: expected a path".to_owned())),
            _ => Path::parse(&fixed(written)).map_err(|e| named(key, e)),
        };
        Ok(Join {
            name: name.to_owned(),
            list: path("list", &file.list)?,
            key: Rule::parse(&fixed(&file.key)).map_err(|e| named("key", e))?,
            by: path("by", &file.by)?,
        })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the items of the list by key, each with its size.
    fn index<'a>(&self, answer: &'a Value) -> HashMap<String, (&'a Value, usize)> {
        let things: Vec<&Value> = match &self.list.all(answer)[..] {
            [Value::Array(list)] => list.iter().collect(),
            found => found.to_vec(),
        };
        things.into_iter().filter_map(|thing| Some((self.key.text(thing)?, (thing, size(thing))))).collect()
    }
}

/// Returns the items, each with the items it references under `join`.
pub fn join(joins: &[Join], answer: &Value, answer_bytes: usize, items: &[&Value]) -> Vec<Value> {
    let lists: Vec<_> = joins.iter().map(|join| (join, join.index(answer))).collect();
    let mut left = answer_bytes.saturating_mul(GROWTH_MAX);
    let one = |item: &&Value| {
        let mut joined = Map::new();
        for (join, things) in &lists {
            let keys = join.by.all(item).into_iter().flat_map(|keys| match keys {
                Value::Array(list) => list.iter().collect::<Vec<&Value>>(),
                one => vec![one],
            });
            let found: Vec<Value> = keys
                .filter_map(text)
                // The keys come from the source too, so their number is bounded like everything else in a response.
                .take(THINGS_MAX)
                .filter_map(|key| things.get(&key))
                .filter_map(|(thing, size)| {
                    // The copies of all results share one budget, proportional to the response.
                    left = left.checked_sub(*size)?;
                    Some((*thing).clone())
                })
                .collect();
            joined.insert(join.name.clone(), Value::Array(found));
        }
        let mut item = (*item).clone();
        if let Value::Object(members) = &mut item {
            members.insert("join".to_owned(), Value::Object(joined));
        }
        item
    };
    items.iter().map(one).collect()
}

/// Returns the approximate size of a value, in bytes.
fn size(value: &Value) -> usize {
    32 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn joins() -> Vec<Join> {
        let file = JoinFile { list: "users".to_owned(), key: "user:{id}".to_owned(), by: "by".to_owned() };
        vec![Join::new("users", &file, &str::to_owned).expect("a join")]
    }

    #[test]
    fn results_get_what_they_point_to() {
        let answer = json!({"users": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}],
            "items": [{"by": "user:2"}, {"by": ["user:1", "user:2", "user:3"]}, {"by": null}, {}]});
        let items: Vec<&Value> = answer["items"].as_array().expect("a list").iter().collect();
        let names: Vec<String> =
            join(&joins(), &answer, 1_000, &items).iter().map(|item| item["join"]["users"].to_string()).collect();
        let (ann, bob) = (r#"{"id":1,"name":"Ann"}"#, r#"{"id":2,"name":"Bob"}"#);
        assert_eq!(names, [format!("[{bob}]"), format!("[{ann},{bob}]"), "[]".to_owned(), "[]".to_owned()]);
    }

    #[test]
    fn an_answer_cannot_grow_without_end() {
        let answer =
            json!({"users": [{"id": 1, "name": "x".repeat(10_000)}], "items": vec![json!({"by": "user:1"}); 1_000]});
        let bytes = answer.to_string().len();
        let items: Vec<&Value> = answer["items"].as_array().expect("a list").iter().collect();
        let joined = join(&joins(), &answer, bytes, &items);
        let taken = joined.iter().filter(|item| !item["join"]["users"][0].is_null()).count();
        assert!((1..1_000).contains(&taken) && taken * 10_000 <= GROWTH_MAX * bytes, "{taken}");
        assert_eq!(joined.len(), 1_000);
    }

    proptest! {
        /// Each result has the items that it names and that exist, in its order, up to the limit.
        #[test]
        fn results_get_what_a_plain_search_finds(
            there in prop::collection::btree_set(0_u8..12, 0..8),
            asked in prop::collection::vec(prop::collection::vec(0_u8..12, 0..24), 0..6),
        ) {
            let user = |id: &u8| json!({ "id": id, "name": format!("user {id}") });
            let users: Vec<Value> = there.iter().map(user).collect();
            let by = |ids: &Vec<u8>| json!({ "by": ids.iter().map(|id| format!("user:{id}")).collect::<Vec<_>>() });
            let items: Vec<Value> = asked.iter().map(by).collect();
            let answer = json!({ "users": users, "items": items });
            // With budget for all copies.
            let joined = join(&joins(), &answer, 1 << 20, &items.iter().collect::<Vec<_>>());
            let found = |ids: &Vec<u8>, there: &BTreeSet<u8>| -> Vec<Value> {
                ids.iter().take(THINGS_MAX).filter(|id| there.contains(id)).map(user).collect()
            };
            let expected: Vec<Vec<Value>> = asked.iter().map(|ids| found(ids, &there)).collect();
            let joined: Vec<Value> = joined.iter().map(|item| item["join"]["users"].clone()).collect();
            prop_assert_eq!(joined, expected.into_iter().map(Value::from).collect::<Vec<_>>());
        }
    }
}
