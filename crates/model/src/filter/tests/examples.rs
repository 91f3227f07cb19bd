//! Filters from the CQL2 standard (OGC 21-065r2) and from the guides of other servers.

use crate::filter::{parse_json, parse_text, to_json, to_text};
use serde_json::{Value, json};

/// The same filter in text and in JSON.
fn pairs() -> Vec<(&'static str, Value)> {
    let property = |name: &str| json!({"property": name});
    vec![
        ("city = 'Toronto'", json!({"op": "=", "args": [property("city"), "Toronto"]})),
        (
            "floors > 5 AND material = 'brick'",
            json!({"op": "and", "args": [
            {"op": ">", "args": [property("floors"), 5]},
            {"op": "=", "args": [property("material"), "brick"]}]}),
        ),
        (
            "\"eo:cloud_cover\" BETWEEN 0.1 AND 0.2",
            json!({"op": "between", "args": [property("eo:cloud_cover"), 0.1, 0.2]}),
        ),
        ("eo:cloud_cover >= -0.5e1", json!({"op": ">=", "args": [property("eo:cloud_cover"), -5.0]})),
        ("mission_id LIKE 'sentinel%'", json!({"op": "like", "args": [property("mission_id"), "sentinel%"]})),
        (
            "NOT geophys:SURVEY_NAME LIKE '%calcareous%'",
            json!({"op": "not", "args": [{"op": "like", "args": [property("geophys:SURVEY_NAME"), "%calcareous%"]}]}),
        ),
        (
            "geophys:SURVEY_NAME NOT LIKE '%calcareous%'",
            json!({"op": "not", "args": [{"op": "like", "args": [property("geophys:SURVEY_NAME"), "%calcareous%"]}]}),
        ),
        (
            "cityName IN ('Toronto', 'Frankfurt', 'Tokyo', 'New York')",
            json!({"op": "in", "args": [property("cityName"), ["Toronto", "Frankfurt", "Tokyo", "New York"]]}),
        ),
        (
            "category NOT IN (1, 2, 3, 4)",
            json!({"op": "not", "args": [{"op": "in", "args": [property("category"), [1, 2, 3, 4]]}]}),
        ),
        (
            "geophys:SURVEY_NAME IS NOT NULL",
            json!({"op": "not", "args": [{"op": "isNull", "args": [property("geophys:SURVEY_NAME")]}]}),
        ),
        (
            "CASEI(provider) = CASEI('coolsat')",
            json!({"op": "=", "args": [
            {"op": "casei", "args": [property("provider")]}, {"op": "casei", "args": ["coolsat"]}]}),
        ),
        (
            "CASEI(geophys:SURVEY_NAME) LIKE CASEI('%Calcareous%')",
            json!({"op": "like", "args": [
            {"op": "casei", "args": [property("geophys:SURVEY_NAME")]}, {"op": "casei", "args": ["%Calcareous%"]}]}),
        ),
        ("updated >= DATE('1970-01-01')", json!({"op": ">=", "args": [property("updated"), {"date": "1970-01-01"}]})),
        (
            "built < TIMESTAMP('2015-01-01T00:00:00Z')",
            json!({"op": "<", "args": [property("built"), {"timestamp": "2015-01-01T00:00:00Z"}]}),
        ),
        (
            "swimming_pool = TRUE OR floors > 5",
            json!({"op": "or", "args": [
            {"op": "=", "args": [property("swimming_pool"), true]}, {"op": ">", "args": [property("floors"), 5]}]}),
        ),
        (
            "S_INTERSECTS(geometry, POINT(36.319836 32.288087))",
            json!({"op": "s_intersects", "args": [
            property("geometry"), {"type": "Point", "coordinates": [36.319836, 32.288087]}]}),
        ),
        (
            "S_WITHIN(location, BBOX(-118, 33.8, -117.9, 34))",
            json!({"op": "s_within", "args": [
            property("location"), {"bbox": [-118, 33.8, -117.9, 34]}]}),
        ),
        (
            "S_INTERSECTS(geometry, BBOX(-128.098193, -1.1, 0.2, -99999.0, 180.0, 90.0))",
            json!({"op": "s_intersects", "args": [
            property("geometry"), {"bbox": [-128.098193, -1.1, 0.2, -99999.0, 180.0, 90.0]}]}),
        ),
        (
            "S_CROSSES(road, LINESTRING(43.72992 -79.2998, 43.73005 -79.2991))",
            json!({"op": "s_crosses", "args": [
            property("road"), {"type": "LineString", "coordinates": [[43.72992, -79.2998], [43.73005, -79.2991]]}]}),
        ),
        (
            "S_DISJOINT(geometry, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5))))",
            json!({"op": "s_disjoint", "args": [property("geometry"), {"type": "MultiPolygon", "coordinates":
                [[[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[5, 5], [6, 5], [6, 6], [5, 5]]]]}]}),
        ),
        (
            "S_INTERSECTS(geometry, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1)))",
            json!({"op": "s_intersects", "args": [property("geometry"), {"type": "GeometryCollection", "geometries": [
                {"type": "Point", "coordinates": [1, 2]}, {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}]}]}),
        ),
        (
            "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 4 4, 0 0), (1 0.5, 2 0.5, 2 1, 1 0.5)))",
            json!({"op": "s_intersects", "args": [property("geometry"), {"type": "Polygon", "coordinates":
                [[[0, 0], [4, 0], [4, 4], [0, 0]], [[1, 0.5], [2, 0.5], [2, 1], [1, 0.5]]]}]}),
        ),
        (
            "T_INTERSECTS(event_time, INTERVAL('1969-07-16T05:32:00Z', '1969-07-24T16:50:35Z'))",
            json!({"op": "t_intersects", "args": [
                property("event_time"), {"interval": ["1969-07-16T05:32:00Z", "1969-07-24T16:50:35Z"]}]}),
        ),
        (
            "T_DURING(INTERVAL(touchdown, liftOff), INTERVAL('1969-07-16T13:32:00Z', '1969-07-24T16:50:35Z'))",
            json!({"op": "t_during", "args": [
                {"interval": [property("touchdown"), property("liftOff")]},
                {"interval": ["1969-07-16T13:32:00Z", "1969-07-24T16:50:35Z"]}]}),
        ),
        (
            "T_FINISHEDBY(INTERVAL(a, b), INTERVAL('2005-01-10', '..'))",
            json!({"op": "t_finishedBy", "args": [
            {"interval": [property("a"), property("b")]}, {"interval": ["2005-01-10", ".."]}]}),
        ),
        (
            "A_CONTAINS(layer:ids, ('layers-ca', 'layers-us'))",
            json!({"op": "a_contains", "args": [property("layer:ids"), ["layers-ca", "layers-us"]]}),
        ),
        ("name = 'it''s 日本'", json!({"op": "=", "args": [property("name"), "it's 日本"]})),
        ("\"say \"\"hi\"\"\" IS NULL", json!({"op": "isNull", "args": [property("say \"hi\"")]})),
        (
            "tür = 'offen' AND (a = 1 OR b = 2) AND NOT (c = 3)",
            json!({"op": "and", "args": [
            {"op": "=", "args": [property("tür"), "offen"]},
            {"op": "or", "args": [{"op": "=", "args": [property("a"), 1]}, {"op": "=", "args": [property("b"), 2]}]},
            {"op": "not", "args": [{"op": "=", "args": [property("c"), 3]}]}]}),
        ),
    ]
}

#[test]
fn text_and_json_say_the_same() {
    for (text, json) in pairs() {
        let from_text = parse_text(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let from_json = parse_json(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
        assert_eq!(from_text, from_json, "{text}");
        assert_eq!(parse_text(&to_text(&from_json)).as_ref(), Ok(&from_json), "{text}");
        assert_eq!(parse_json(&to_json(&from_text)).as_ref(), Ok(&from_text), "{text}");
    }
}

#[test]
fn other_spellings_are_taken() {
    let same = [
        ("a = 1 and not b like 'x'", "a = 1 AND NOT b LIKE 'x'"),
        ("a != 1", "a <> 1"),
        ("s_intersects(geometry, point(1 2))", "S_INTERSECTS(geometry, POINT(1.0 2.0))"),
        ("S_INTERSECTS(geometry, POINT Z (1 2 3))", "S_INTERSECTS(geometry, POINT(1 2))"),
        ("S_INTERSECTS(geometry, MULTIPOINT(1 2, 3 4))", "S_INTERSECTS(geometry, MULTIPOINT((1 2), (3 4)))"),
        ("S_INTERSECTS(geometry, ENVELOPE(0,1,2,3))", "S_INTERSECTS(geometry, BBOX(0, 1, 2, 3))"),
        ("A_CONTAINS(t, ['a', 'b'])", "A_CONTAINS(t, ('a', 'b'))"),
        ("a\t=\n1", "a = 1"),
        ("a = +1 AND b = .5 AND c = 5.", "a = 1 AND b = 0.5 AND c = 5.0"),
        ("T_AFTER(a, INTERVAL(DATE('2020-01-01'), '..'))", "T_AFTER(a, INTERVAL('2020-01-01', '..'))"),
        ("date > DATE('2020-01-01')", "\"date\" > DATE('2020-01-01')"),
    ];
    for (a, b) in same {
        assert_eq!(parse_text(a).unwrap_or_else(|e| panic!("{a}: {e}")), parse_text(b).unwrap(), "{a}");
    }
}

#[test]
fn and_binds_closer_than_or() {
    let mixed = parse_text("a = 1 OR b = 2 AND c = 3").unwrap();
    assert_eq!(mixed, parse_text("a = 1 OR (b = 2 AND c = 3)").unwrap());
    assert_ne!(mixed, parse_text("(a = 1 OR b = 2) AND c = 3").unwrap());
}
