//! Combines the pages of saved searches of all gateways that run some into one page.

use serde_json::{Map, Value, json};

/// Merges the first pages of all gateways into one. `next` builds the link to the page after an id.
pub(super) fn joined(pages: impl Iterator<Item = Value>, limit: usize, next: impl Fn(&str) -> Value) -> Value {
    let (mut all, mut damaged, mut upto) = (Vec::new(), Map::new(), None::<String>);
    for mut page in pages {
        let some = page.get_mut("saved_searches").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let goes_on = page.get("links").and_then(Value::as_array).is_some_and(|links| !links.is_empty());
        if let Some(last) = some.last().filter(|_| goes_on).map(id_of) {
            // Beyond this id, others of this gateway are missing.
            upto = Some(upto.map_or(last.clone(), |upto| upto.min(last)));
        }
        all.extend(some);
        if let Some(Value::Object(more)) = page.get_mut("damaged").map(Value::take) {
            damaged.extend(more);
        }
    }
    all.sort_by_key(id_of);
    // A search that moved between two gateways meanwhile is listed by both.
    all.dedup_by_key(|search| id_of(search));
    let found = all.len();
    all.retain(|search| upto.as_ref().is_none_or(|upto| id_of(search) <= *upto));
    all.truncate(limit);
    let more = upto.is_some() || all.len() < found;
    let links: Vec<Value> = all.last().filter(|_| more).map(|last| next(&id_of(last))).into_iter().collect();
    let mut page = json!({ "numberReturned": all.len(), "saved_searches": all, "links": links });
    if !damaged.is_empty() {
        page["damaged"] = Value::Object(damaged);
    }
    page
}

fn id_of(search: &Value) -> String {
    search.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[&str], more: bool) -> Value {
        let searches: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        let links: Vec<Value> = more.then(|| json!({ "rel": "next" })).into_iter().collect();
        json!({ "numberReturned": ids.len(), "saved_searches": searches, "links": links })
    }

    fn joins(pages: &[Value], limit: usize) -> (Vec<String>, Option<String>) {
        let joined = joined(pages.iter().cloned(), limit, |last| json!(last));
        let ids: Vec<String> = joined["saved_searches"].as_array().unwrap().iter().map(id_of).collect();
        assert_eq!(joined["numberReturned"], ids.len());
        (ids, joined["links"][0].as_str().map(str::to_owned))
    }

    #[test]
    fn a_page_of_all_gateways_is_in_order_and_goes_on_where_any_of_them_does() {
        let text = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let all = [page(&["b", "d"], false), page(&["a", "c", "e"], false)];
        assert_eq!(joins(&all, 10), (text(&["a", "b", "c", "d", "e"]), None));
        assert_eq!(joins(&all, 3), (text(&["a", "b", "c"]), Some("c".to_owned())));
        // What the first gateway has after "d" may come before "e".
        let cut = [page(&["b", "d"], true), page(&["a", "c", "e"], false)];
        assert_eq!(joins(&cut, 10), (text(&["a", "b", "c", "d"]), Some("d".to_owned())));
        // It has moved meanwhile.
        assert_eq!(joins(&[page(&["a"], false), page(&["a", "b"], false)], 10), (text(&["a", "b"]), None));
        assert_eq!(joins(&[page(&[], false)], 10), (text(&[]), None));
    }
}
