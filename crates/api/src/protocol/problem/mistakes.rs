//! Problems for mistakes in a body, of which there may be many.

use super::{Kind, Problem};
use meridian_model::Invalid;
use serde_json::{Map, Value};

/// Max mistakes listed in one response.
const LISTED_MAX: usize = 100;

impl Problem {
    /// Creates a problem for one mistake in a body.
    pub fn invalid_body(invalid: Invalid) -> Problem {
        Problem::invalid_bodies(vec![invalid])
    }

    /// Creates a problem for mistakes in a body, counted by its lines. At most 100 are listed; the first is also at the
    /// top level.
    pub fn invalid_bodies(list: Vec<Invalid>) -> Problem {
        counted_by("line", list)
    }

    /// The same for mistakes counted by events. They have their lines too, where these are known.
    pub fn invalid_features(list: Vec<Invalid>) -> Problem {
        counted_by("feature", list)
    }
}

fn counted_by(unit: &str, list: Vec<Invalid>) -> Problem {
    let Some(first) = list.first() else {
        return Problem::new(Kind::InvalidBody, "the body cannot be read");
    };
    let sentence = first.counted(unit);
    let detail = match list.len() {
        1 => sentence,
        n => format!("{n} mistakes, nothing was written; the first: {sentence}"),
    };
    let kind = if list.iter().all(|e| e.not_kept) { Kind::NotKept } else { Kind::InvalidBody };
    let mut problem = Problem::new(kind, detail);
    for (name, value) in members(first, unit) {
        problem = problem.with(&name, value);
    }
    let listed = list.iter().take(LISTED_MAX).map(|mistake| {
        let mut one = members(mistake, unit);
        one.insert("detail".into(), mistake.detail.as_str().into());
        Value::Object(one)
    });
    problem.with("errors", listed.collect::<Vec<_>>())
}

/// Returns the members that name the place of a mistake.
fn members(mistake: &Invalid, unit: &str) -> Map<String, Value> {
    let numbers = [(unit, mistake.line), ("line", mistake.on_line)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), Value::from(number?))));
    let field = mistake.field.as_deref().map(|field| ("field".to_owned(), Value::from(field)));
    numbers.chain(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_mistake_stands_at_the_top_and_all_are_listed() {
        let list = (1..=150).map(|i| Invalid::field("mag", "wrong").at_line(i)).collect();
        let body = Problem::invalid_bodies(list).document();
        assert_eq!((&body["status"], &body["line"], &body["field"]), (&json!(400), &json!(1), &json!("mag")));
        assert_eq!(body["errors"].as_array().unwrap().len(), LISTED_MAX);
        assert_eq!(body["errors"][99], json!({"line": 100, "field": "mag", "detail": "wrong"}));
    }

    #[test]
    fn the_number_of_an_event_is_not_called_its_line() {
        let wrong = || Invalid::field("mag", "wrong").at_line(7);
        let placed = Problem::invalid_features(vec![Invalid { on_line: Some(30), ..wrong() }]).document();
        assert_eq!((&placed["feature"], &placed["line"]), (&json!(7), &json!(30)));
        assert_eq!(placed["detail"], "feature 7: mag: wrong");
        assert_eq!(placed["errors"], json!([{"feature": 7, "line": 30, "field": "mag", "detail": "wrong"}]));
        let unplaced = Problem::invalid_features(vec![wrong()]).document();
        assert_eq!((&unplaced["feature"], unplaced.get("line")), (&json!(7), None));
    }
}
