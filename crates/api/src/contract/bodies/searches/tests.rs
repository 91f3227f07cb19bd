//! The described members are those that the parsers of `federation` and `saved` take.

use crate::contract::{components, members};
use meridian_federation::{Question, Settings};
use meridian_model::Invalid;
use meridian_saved::{Definition, SavedSettings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// A value of each member of a question.
fn values() -> Value {
    json!({
        "keywords": "flood", "near": [2, 41], "radius": 500, "bbox": [0, 0, 1, 1],
        "polygon": { "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]] },
        "address": "Lyon", "author": "Ann", "providers": ["wikipedia"], "start": "2026-01-01", "end": "2026-02-01",
        "media": "images", "language": "en", "limit": 5, "timeout": 1000, "priority": "quick", "when": ["enter"],
        "keep": { "collection": "kept", "hours": 24 },
    })
}

fn webhook(secret: &str) -> Value {
    json!({ "url": "https://example.org/x", "secret": secret })
}

fn read(saved: &Value) -> Result<Definition, Invalid> {
    Definition::read(saved, &Settings::default(), &SavedSettings::default())
}

/// Reads a saved search whose question has this member, and what the parser wants with it.
fn read_with(name: &str, value: &Value) -> Result<Definition, Invalid> {
    let mut question = json!({ "keywords": "flood" });
    if name == "radius" {
        question["near"] = json!([2, 41]);
    }
    question[name] = value.clone();
    read(&json!({ "question": question }))
}

fn names(names: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn a_question_has_the_members_that_its_parser_takes() {
    // A saved search takes `when` out of its question, which is then read as any other.
    assert_eq!(members("Question"), names(Question::MEMBERS.into_iter().chain(["when"])));
    let values = values();
    assert_eq!(members("Question"), keys(&values));
    for (name, value) in values.as_object().unwrap() {
        read_with(name, value).unwrap_or_else(|mistake| panic!("{name}: {mistake}"));
    }
    let mistake = read_with("colour", &json!("red")).expect_err("an unknown member");
    assert_eq!(mistake.field.as_deref(), Some("colour"));
}

#[test]
fn a_question_has_the_words_and_inner_members_that_its_parser_takes() {
    let (all, values) = (components(), values());
    let properties = &all["Question"]["properties"];
    for name in ["media", "priority"] {
        for word in properties[name]["enum"].as_array().unwrap() {
            read_with(name, word).unwrap_or_else(|mistake| panic!("{name}: {mistake}"));
        }
        assert!(read_with(name, &json!("other")).is_err(), "{name}");
    }
    let transitions = &properties["when"]["items"]["enum"];
    assert_eq!(transitions.as_array().map(Vec::len), Some(3));
    read_with("when", transitions).unwrap_or_else(|mistake| panic!("when: {mistake}"));
    for name in ["polygon", "keep"] {
        assert_eq!(keys(&properties[name]["properties"]), keys(&values[name]), "{name}");
    }
    let mistake = read_with("keep", &json!({ "collection": "kept", "days": 1 })).expect_err("an unknown member");
    assert_eq!(mistake.field.as_deref(), Some("keep"));
}

#[test]
fn a_saved_search_has_the_members_that_its_parser_takes() {
    let whole = json!({
        "name": "floods", "question": { "keywords": "flood" }, "webhook": webhook("longer than eight"), "poll_s": 60,
    });
    assert_eq!(members("SavedSearch"), names(Definition::MEMBERS));
    assert_eq!(members("SavedSearch"), keys(&whole));
    read(&whole).unwrap_or_else(|mistake| panic!("{mistake}"));
    let all = components();
    let hook = &all["SavedSearch"]["properties"]["webhook"]["properties"];
    assert_eq!(keys(hook), keys(&whole["webhook"]));
    let mut more = webhook("longer than eight");
    more["method"] = json!("PUT");
    let mistake = read(&json!({ "keywords": "flood", "webhook": more })).expect_err("an unknown member");
    assert_eq!(mistake.field.as_deref(), Some("webhook"));
}

#[test]
fn results_are_kept_for_the_hours_that_the_parser_takes() {
    let all = components();
    let keep = &all["Question"]["properties"]["keep"];
    let hours = &keep["properties"]["hours"];
    let [min, max] = ["minimum", "maximum"].map(|limit| hours[limit].as_u64().unwrap());
    for (hours, taken) in [(min - 1, false), (min, true), (max, true), (max + 1, false)] {
        let value = json!({ "collection": "kept", "hours": hours });
        assert_eq!(read_with("keep", &value).is_ok(), taken, "{hours}");
    }
    assert_eq!(keep["required"], json!(["collection"]));
    assert!(read_with("keep", &json!({ "hours": 24 })).is_err());
}

#[test]
fn a_radius_and_providers_have_the_limits_that_the_parser_takes() {
    let all = components();
    let properties = &all["Question"]["properties"];
    let [above, max] = ["exclusiveMinimum", "maximum"].map(|limit| properties["radius"][limit].as_f64().unwrap());
    for (radius, taken) in [(above, false), (above + 0.001, true), (max, true), (max + 0.001, false)] {
        assert_eq!(read_with("radius", &json!(radius)).is_ok(), taken, "{radius} m");
    }
    let limits = ["minItems", "maxItems"].map(|limit| properties["providers"][limit].as_u64().unwrap() as usize);
    let [min, max] = limits;
    for (count, taken) in [(min - 1, false), (min, true), (max, true), (max + 1, false)] {
        assert_eq!(read_with("providers", &json!(vec!["wikipedia"; count])).is_ok(), taken, "{count} names");
    }
}

#[test]
fn a_name_and_an_interval_of_polls_have_the_limits_that_the_parser_takes() {
    let all = components();
    let properties = &all["SavedSearch"]["properties"];
    let max = properties["name"]["maxLength"].as_u64().unwrap() as usize;
    for (length, taken) in [(0, true), (max, true), (max + 1, false)] {
        let saved = json!({ "keywords": "flood", "name": "x".repeat(length) });
        assert_eq!(read(&saved).is_ok(), taken, "{length} bytes");
    }
    // The min that an operator can set.
    let settings = SavedSettings { poll_min: Duration::ZERO, ..SavedSettings::default() };
    let [min, max] = ["minimum", "maximum"].map(|limit| properties["poll_s"][limit].as_u64().unwrap());
    for (seconds, taken) in [(min - 1, false), (min, true), (max, true), (max + 1, false)] {
        let saved = json!({ "keywords": "flood", "poll_s": seconds });
        assert_eq!(Definition::read(&saved, &Settings::default(), &settings).is_ok(), taken, "{seconds} s");
    }
}

#[test]
fn the_secret_of_a_webhook_has_the_length_that_its_parser_takes() {
    let all = components();
    let secret = &all["SavedSearch"]["properties"]["webhook"]["properties"]["secret"];
    let [min, max] = ["minLength", "maxLength"].map(|limit| secret[limit].as_u64().unwrap() as usize);
    for (length, taken) in [(min - 1, false), (min, true), (max, true), (max + 1, false)] {
        let saved = json!({ "keywords": "flood", "webhook": webhook(&"x".repeat(length)) });
        assert_eq!(read(&saved).is_ok(), taken, "{length}");
    }
    assert_eq!(all["SavedSearch"]["properties"]["webhook"]["required"], json!(["url", "secret"]));
    assert!(read(&json!({ "keywords": "flood", "webhook": { "url": "https://example.org/x" } })).is_err());
}
