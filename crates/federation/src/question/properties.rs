//! Random questions.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// Any JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        "\\PC{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A value that some member takes, or any JSON.
fn value() -> impl Strategy<Value = Value> {
    let polygon = |ring: Value| json!({"type": "Polygon", "coordinates": [ring]});
    let taken = vec![
        json!("flood"),
        json!("a OR -b"),
        json!([1, 2]),
        json!([0, 0, 1, 1]),
        json!([170, -20, -170, -10]),
        polygon(json!([[0, 0], [1, 0], [1, 1], [0, 0]])),
        polygon(json!([[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]])),
        polygon(json!([])),
        json!(5),
        json!(0.5),
        json!("2026-01-01"),
        json!("2025-06-01T00:00:00Z"),
        json!("images"),
        json!("en"),
        json!("background"),
        json!(["a", "b"]),
        json!({"collection": "kept", "hours": 3}),
    ];
    prop_oneof![3 => prop::sample::select(taken), 1 => any_json()]
}

/// An object, mostly with members of a question.
fn members() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        30 => prop::sample::select(Question::MEMBERS.to_vec()).prop_map(|name| name.to_owned()),
        1 => "[a-z]{1,8}",
    ];
    prop::collection::btree_map(name, value(), 0..5).prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    /// A question is read within its limits, or the error names a member that was given. Only an empty question has
    /// no such member.
    #[test]
    fn every_question_is_read_or_its_error_names_a_member(asked in prop_oneof![9 => members(), 1 => any_json()]) {
        let settings = Settings::default();
        match Question::read(&asked, &settings) {
            Ok(question) => {
                prop_assert!(question.keywords.is_some() || question.place.is_some() || question.author.is_some());
                prop_assert!((1..=settings.limit_max).contains(&question.limit));
                prop_assert!(!question.deadline.is_zero() && question.deadline <= settings.deadline_max);
                prop_assert!(question.interval.start <= question.interval.end);
                prop_assert!(question.detect_language || question.keep.is_none() && question.language.is_none());
            }
            Err(mistake) if asked.is_object() => {
                let field = mistake.field.clone().unwrap_or_default();
                let is_given = asked.get(field.as_str()).is_some();
                let is_empty = field == "keywords" && mistake.detail.contains("the question is empty");
                prop_assert!(is_given || is_empty, "{}: {}", asked, mistake);
            }
            Err(mistake) => prop_assert_eq!(mistake.field, None),
        }
    }

    /// Members are read as given, whichever others are present. Null is the same as absent.
    #[test]
    fn members_are_read_as_given(
        near in prop::option::of((-180.0..180.0_f64, -90.0..90.0_f64)),
        radius in prop::option::of(1.0..2e7_f64),
        author in prop::option::of("[a-z]{1,9}"),
        language in prop::option::of("[a-z]{2}"),
        providers in prop::option::of(prop::collection::vec("[a-c]", 1..6)),
        limit in prop::option::of(1..=1_000_usize),
        timeout in prop::option::of(1..=120_000_u64),
    ) {
        let radius = radius.filter(|_| near.is_some());
        let asked = json!({
            "keywords": "flood", "near": near, "radius": radius, "author": author, "language": language,
            "providers": providers, "limit": limit, "timeout": timeout,
        });
        let settings = Settings::default();
        let question = Question::read(&asked, &settings).expect("a question");
        let radius_m = radius.unwrap_or(RADIUS_DEFAULT_M);
        let area = near.map(|(lon, lat)| Area::Circle { lon, lat, radius_m });
        prop_assert_eq!(question.area(), area.as_ref());
        prop_assert_eq!((question.detect_language, question.language), (language.is_some(), language));
        prop_assert_eq!(question.author, author);
        let distinct: Option<BTreeSet<String>> = providers.map(|names| names.into_iter().collect());
        let sorted: Option<Vec<String>> = distinct.map(|names| names.into_iter().collect());
        prop_assert_eq!(question.providers, sorted);
        prop_assert_eq!(question.limit, limit.unwrap_or(settings.limit));
        prop_assert_eq!(question.deadline, timeout.map_or(settings.deadline, Duration::from_millis));
    }
}
