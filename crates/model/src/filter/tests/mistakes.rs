//! Error messages for invalid filters.

use super::events::{Kind, schema};
use crate::filter::{DEPTH_MAX, Predicate, parse_json, parse_text};
use serde_json::json;

#[test]
fn text_says_where_what_and_what_instead() {
    let cases = [
        ("", 1, "empty", "condition"),
        ("  ", 1, "empty", "condition"),
        ("name", 5, "the end", "comparison"),
        ("name =", 7, "the end", "value"),
        ("name = 'x", 8, "does not end", "closing '"),
        ("\"name = 1", 1, "does not end", "closing \""),
        ("name = 'x' AND", 15, "the end", "condition"),
        ("name == 'x'", 7, "\"=\"", "value"),
        ("n = 1 n = 2", 7, "n", "AND, OR"),
        ("(n = 1", 7, "the end", "closing bracket"),
        ("n = 1)", 6, "\")\"", "no bracket is open"),
        ("n BETWEEN 1 OR 2", 13, "OR", "AND and the upper bound"),
        ("n IN 1, 2", 6, "the number 1", "list in brackets"),
        ("n IN (1 2)", 9, "the number 2", "comma or a closing"),
        ("n IN ()", 7, "\")\"", "a value"),
        ("n IS 5", 6, "the number 5", "NULL or NOT NULL"),
        ("n NOT 5", 7, "the number 5", "LIKE, BETWEEN or IN"),
        ("n + 1 > 2", 3, "\"+\"", "arithmetic"),
        ("n > 2 * 3", 7, "\"*\"", "arithmetic"),
        ("avg(n) > 3", 1, "avg", "CASEI"),
        ("name = ACCENTI('x')", 8, "ACCENTI", "not supported"),
        ("AND n = 1", 1, "AND", "condition"),
        ("n = 1 AND OR n = 2", 11, "OR", "condition"),
        ("S_INTERSECTS(geometry)", 22, "\")\"", "comma and a second"),
        ("S_INTERSECTS(geometry, POINT(1))", 31, "\")\"", "number"),
        ("S_INTERSECTS(geometry, POINT EMPTY)", 30, "EMPTY", "empty geometry"),
        ("S_INTERSECTS(geometry, POLYGON((0 0, 1 1, 0 0)))", 24, "", "four positions"),
        ("S_INTERSECTS(geometry, POLYGON((0 0, 1 0, 1 1, 0 1)))", 24, "", "end where it begins"),
        ("S_INTERSECTS(geometry, LINESTRING(0 0))", 24, "", "two positions"),
        ("S_INTERSECTS(geometry, BBOX(1, 2, 3))", 24, "3 numbers", "4"),
        ("T_AFTER(seen, DATE('2026-02-30'))", 20, "2026-02-30", "date"),
        ("T_AFTER(seen, DATE('20260201'))", 20, "20260201", "date"),
        ("seen > TIMESTAMP('2026-01-01T00:00:00')", 18, "no time zone", "Z"),
        ("T_AFTER(seen, INTERVAL('2026-02-01', '2026-01-01'))", 15, "", "ends before it starts"),
        ("n = 1e999", 5, "1e999", "too large"),
        ("n = 5 ; DROP", 7, "';'", "no place"),
        ("é = 'ü' ? 1", 9, "'?'", "no place"),
        ("日本 = '日本' 5", 11, "the number 5", "AND, OR"),
        ("n = S_INTERSECTS(geometry, geometry)", 5, "condition", "value"),
        ("A_EQUALS(tags, ('a' 'b'))", 21, "the text 'b'", "comma"),
    ];
    for (text, at, found, expected) in cases {
        let error = parse_text(text).expect_err(text);
        assert_eq!(error.field.as_deref(), Some("filter"), "{text}");
        assert!(error.detail.starts_with(&format!("at character {at}: ")), "{text}: {error}");
        assert!(error.detail.contains(found) && error.detail.contains(expected), "{text}: {error}");
    }
}

#[test]
fn json_names_the_path() {
    let cases = [
        (json!("x"), "$", "a condition"),
        (json!({"op": "nope", "args": []}), "$.op", "nope"),
        (json!({"op": 5, "args": []}), "$.op", "name of an operator"),
        (json!({"op": "="}), "$", "no \"args\""),
        (json!({"op": "=", "args": 1}), "$.args", "array"),
        (json!({"op": "=", "args": [1]}), "$", "1 arguments, expected 2"),
        (json!({"op": "and", "args": []}), "$", "at least one"),
        (json!({"op": "and", "args": [true, {"op": "not", "args": [1]}]}), "$.args[1].args[0]", "condition"),
        (json!({"op": "=", "args": [{"property": 5}, 1]}), "$.args[0].property", "name of a property"),
        (json!({"op": "=", "args": [{"property": "a"}, null]}), "$.args[1]", "null"),
        (json!({"op": "=", "args": [{"date": "x"}, 1]}), "$.args[0].date", "not a date"),
        (json!({"op": "in", "args": [{"property": "a"}, 1]}), "$.args[1]", "array"),
        (json!({"op": "in", "args": [{"property": "a"}, []]}), "$.args[1]", "at least one"),
        (json!({"op": "t_after", "args": [{"property": "a"}, {"interval": ["..", 5]}]}), "$.args[1].interval[1]", "5"),
        (
            json!({"op": "s_intersects", "args": [{"property": "g"}, {"type": "Point", "coordinates": [1, "2"]}]}),
            "$.args[1].coordinates[1]",
            "number",
        ),
        (
            json!({"op": "s_intersects", "args": [{"property": "g"}, {"type": "Circle", "coordinates": [1, 2]}]}),
            "$.args[1].coordinates",
            "Circle",
        ),
        (json!({"op": "=", "args": [{"op": "+", "args": [1, 2]}, 3]}), "$.args[0].op", "arithmetic"),
    ];
    for (value, path, expected) in cases {
        let error = parse_json(&value).expect_err(&value.to_string());
        assert!(error.detail.starts_with(&format!("at {path}: ")), "{value}: {error}");
        assert!(error.detail.contains(expected), "{value}: {error}");
    }
}

#[test]
fn binding_names_the_property() {
    let cases = [
        ("nope = 1", "nope", "no property of that name: expected one of name, n, x"),
        ("name = 1", "name", "string \"name\" cannot be compared with the number 1"),
        ("1 = name", "name", "cannot be compared"),
        ("n = 'x'", "n", "number \"n\" cannot be compared with the text 'x'"),
        ("n LIKE 'x'", "n", "LIKE takes text: a string and a pattern in quotes, found the number \"n\""),
        ("n LIKE 5", "n", "found the number \"n\" and the number 5"),
        ("name LIKE 5", "name", "found the string \"name\" and the number 5"),
        ("5 LIKE 'x'", "filter", "LIKE takes text"),
        ("name LIKE n", "n", "pattern in quotes"),
        ("n ILIKE 'x'", "n", "ILIKE, which is LIKE with CASEI, takes text: a string and a pattern in quotes"),
        ("n NOT ILIKE 'x'", "n", "found the number \"n\" and the text 'x'"),
        ("name ILIKE 5", "name", "found the string \"name\" and the number 5"),
        ("flag < 1", "flag", "boolean \"flag\" cannot be compared"),
        ("seen = 'yesterday'", "filter", "not a time"),
        ("seen = INTERVAL(from, to)", "seen", "T_INTERSECTS"),
        ("geometry = 1", "geometry", "cannot be compared"),
        ("S_INTERSECTS(name, POINT(0 0))", "name", "takes geometries"),
        ("S_INTERSECTS(geometry, POINT(48 120))", "filter", "latitude 120"),
        ("S_INTERSECTS(geometry, BBOX(0, 5, 1, 4))", "filter", "south 5 above its north 4"),
        ("S_WITHIN(geometry, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))", "filter", "not valid"),
        ("S_WITHIN(geometry, GEOMETRYCOLLECTION(POINT(1 2)))", "filter", "does not take a GEOMETRYCOLLECTION"),
        ("S_TOUCHES(geometry, MULTIPOLYGON(((0 0, 2 0, 2 2, 0 0)), ((1 0, 3 0, 3 2, 1 0))))", "filter", "overlap"),
        ("T_AFTER(n, seen)", "n", "expected a time"),
        ("T_AFTER(seen, INTERVAL(n, '..'))", "n", "date-time in an INTERVAL"),
        ("A_CONTAINS(name, ('a'))", "name", "takes lists"),
        ("A_CONTAINS(tags, (1, 2))", "filter", "texts only"),
        ("CASEI(n) = 'x'", "n", "CASEI takes a string"),
        ("n IN (1, 'x')", "n", "cannot be compared"),
    ];
    for (text, field, expected) in cases {
        let error = Predicate::bind(&parse_text(text).unwrap(), &schema(Kind::Shapes)).expect_err(text);
        assert_eq!(error.field.as_deref(), Some(field), "{text}: {error}");
        assert!(error.detail.contains(expected), "{text}: {error}");
    }
}

#[test]
fn hostile_nesting_and_size_are_refused() {
    let deep = |n: usize| format!("{}n = 1{}", "(".repeat(n), ")".repeat(n));
    assert!(parse_text(&deep(DEPTH_MAX)).is_ok());
    let error = parse_text(&deep(DEPTH_MAX + 1)).unwrap_err();
    assert!(error.detail.contains("nested more than 64 deep"), "{error}");
    for hostile in [
        deep(30_000),
        "NOT ".repeat(16_000),
        format!("n = {}", "CASEI(".repeat(10_000)),
        format!("A_EQUALS(tags, {}", "(".repeat(60_000)),
        format!("S_INTERSECTS(geometry, {}", "GEOMETRYCOLLECTION(".repeat(3_000)),
    ] {
        assert!(parse_text(&hostile).is_err());
    }
    let error = parse_text(&"x".repeat(70_000)).unwrap_err();
    assert!(error.detail.contains("too long"), "{error}");

    let mut json = json!(true);
    for _ in 0..DEPTH_MAX {
        json = json!({"op": "not", "args": [json]});
    }
    assert!(parse_json(&json).is_ok());
    for _ in 0..10 {
        json = json!({"op": "not", "args": [json]});
    }
    assert!(parse_json(&json).unwrap_err().detail.contains("nested more than 64 deep"));
    let many = json!({"op": "in", "args": [{"property": "n"}, vec![1; 30_000]]});
    assert!(parse_json(&many).unwrap_err().detail.contains("more than 20000 values"));
}
