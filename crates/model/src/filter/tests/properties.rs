//! Properties of all filters and events.

use super::events::{Event, Kind, batch, event, schema};
use super::expressions::{any_filter, condition, filter};
use super::oracle;
use crate::filter::{
    Expr, FieldRange, Operand, Predicate, Region, Relation, SpatialOp, parse_json, parse_text, to_json, to_text,
};
use crate::{Batch, Bounds, FieldColumn, Interval, Layout, Projection};
use arrow_array::Array;
use geo_types::{Geometry, GeometryCollection, MultiPolygon};
use proptest::prelude::*;

/// The tightest region of some rows.
struct Rows<'a>(&'a Batch);

impl Region for Rows<'_> {
    fn bounds(&self) -> Bounds {
        (0..self.0.rows()).fold(Bounds::EMPTY, |all, row| all.union(&self.0.bounds(row)))
    }

    fn field_range(&self, field: usize) -> Option<FieldRange> {
        match self.0.field(field)? {
            FieldColumn::Int(column) => {
                let values: Vec<i64> = column.iter().flatten().collect();
                Some(match (values.iter().min(), values.iter().max()) {
                    (Some(min), Some(max)) => FieldRange::of_ints(*min, *max, column.null_count() > 0),
                    _ => FieldRange::EMPTY,
                })
            }
            FieldColumn::Float(column) => {
                let values = column.iter().flatten();
                Some(values.fold(FieldRange { nulls: column.null_count() > 0, ..FieldRange::EMPTY }, |range, x| {
                    FieldRange { min: range.min.min(x), max: range.max.max(x), ..range }
                }))
            }
            _ => None,
        }
    }

    fn some_nowhere(&self) -> bool {
        (0..self.0.rows()).any(|row| self.0.bounds(row).is_nowhere())
    }
}

/// A region without any field ranges.
struct BoxOnly<'a>(Rows<'a>);

impl Region for BoxOnly<'_> {
    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    fn field_range(&self, _: usize) -> Option<FieldRange> {
        None
    }

    fn some_nowhere(&self) -> bool {
        self.0.some_nowhere()
    }
}

fn check_relation(predicate: &Predicate, rows: &Batch) -> Result<(), TestCaseError> {
    let matches = predicate.evaluate(rows);
    for (known, relation) in
        [("all", predicate.relation(&Rows(rows))), ("boxes", predicate.relation(&BoxOnly(Rows(rows))))]
    {
        match relation {
            Relation::None => prop_assert_eq!(matches.count_set_bits(), 0, "promised none, knowing {}", known),
            Relation::All => prop_assert_eq!(matches.count_set_bits(), rows.rows(), "promised all, knowing {}", known),
            Relation::Some => {}
        }
    }
    Ok(())
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![2 => Just(Kind::Points), 3 => Just(Kind::Shapes), 1 => Just(Kind::Bare)]
}

fn events_and_filter() -> impl Strategy<Value = (Kind, Vec<Event>, Expr)> {
    kinds().prop_flat_map(|kind| (Just(kind), prop::collection::vec(event(kind), 1..12), filter(kind)))
}

/// `bbox`, `datetime`, `near` and combinations of them.
fn plain_predicate() -> impl Strategy<Value = Predicate> {
    let degree = || (-2i32..14).prop_map(|h| f64::from(h) * 0.5);
    let time = || super::events::time();
    let leaf = prop_oneof![
        (degree(), degree(), degree(), degree()).prop_map(|(w, s, e, n)| Predicate::bbox(w, s.min(n), e, s.max(n))),
        (time(), time()).prop_map(|(a, b)| Predicate::interval(Interval { start: a.min(b), end: a.max(b) })),
        time().prop_map(|t| Predicate::interval(Interval { start: t, end: i64::MAX })),
        (degree(), degree(), 0.0f64..600_000.0).prop_map(|(lon, lat, radius)| Predicate::near(lon, lat, radius)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Predicate::not),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::and),
            prop::collection::vec(inner, 0..3).prop_map(Predicate::or),
        ]
    })
}

/// JSON with the value at the given path replaced.
fn damaged(mut json: serde_json::Value, steps: &[prop::sample::Index], put: serde_json::Value) -> serde_json::Value {
    let mut value = &mut json;
    for step in steps {
        let len = match &*value {
            serde_json::Value::Array(items) => items.len(),
            serde_json::Value::Object(members) => members.len(),
            _ => 0,
        };
        if len == 0 {
            break;
        }
        value = match value {
            serde_json::Value::Array(items) => &mut items[step.index(len)],
            serde_json::Value::Object(members) => members.values_mut().nth(step.index(len)).unwrap(),
            _ => unreachable!(),
        };
    }
    *value = put;
    json
}

/// The geometries, with all their polygons merged into one multi-polygon.
fn overlapping(geometries: &[Geometry<f64>]) -> Vec<Geometry<f64>> {
    let polygons: Vec<_> = geometries
        .iter()
        .flat_map(|g| match g {
            Geometry::Polygon(polygon) => vec![polygon.clone()],
            Geometry::MultiPolygon(polygons) => polygons.0.clone(),
            _ => vec![],
        })
        .collect();
    let together = (!polygons.is_empty()).then_some(Geometry::MultiPolygon(MultiPolygon(polygons)));
    geometries.iter().cloned().chain(together).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_reads_back(expr in any_filter()) {
        let text = to_text(&expr);
        prop_assert_eq!(parse_text(&text).map_err(|e| TestCaseError::fail(format!("{e} in {text}")))?, expr);
    }

    #[test]
    fn json_reads_back(expr in any_filter()) {
        let json = to_json(&expr);
        // Through text, as it comes over the wire; and directly, to the last digit.
        let text = serde_json::to_string(&json).unwrap();
        let again: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert!(parse_json(&again).is_ok(), "{}", text);
        prop_assert_eq!(parse_json(&json).map_err(|e| TestCaseError::fail(format!("{e} in {text}")))?, expr);
    }

    #[test]
    fn many_alternatives_are_found_by_where_they_are(
        (kind, events, exprs, outer) in kinds().prop_flat_map(|kind| {
            let pair = prop::collection::vec(condition(kind), 1..3).prop_map(Expr::And);
            let outer = prop::option::of(condition(kind));
            (Just(kind), prop::collection::vec(event(kind), 1..12), prop::collection::vec(pair, 8..30), outer)
        }),
    ) {
        let rows = batch(kind, &events);
        let any = Expr::Or(exprs);
        let expr = match outer {
            Some(outer) => Expr::And(vec![outer, any]),
            None => any,
        };
        let predicate = Predicate::bind(&expr, &schema(kind)).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let contrary = predicate.clone().not();
        let twice = Predicate::or(vec![predicate.clone(), predicate.clone()]);
        for (i, event) in events.iter().enumerate() {
            let expected = oracle::evaluate(&expr, event, kind);
            prop_assert_eq!(predicate.evaluate(&rows).value(i), expected == Some(true), "{}", to_text(&expr));
            prop_assert_eq!(twice.evaluate(&rows).value(i), expected == Some(true), "{}", to_text(&expr));
            prop_assert_eq!(contrary.evaluate(&rows).value(i), expected == Some(false), "{}", to_text(&expr));
        }
        for rows in [rows.clone(), rows.slice(0, 1)] {
            for predicate in [&predicate, &contrary, &twice] {
                check_relation(predicate, &rows)?;
            }
        }
    }

    #[test]
    fn a_predicate_says_what_the_oracle_says((kind, events, expr) in events_and_filter()) {
        let rows = batch(kind, &events);
        let predicate = Predicate::bind(&expr, &schema(kind))
            .map_err(|e| TestCaseError::fail(format!("{e} in {}", to_text(&expr))))?;
        let matches = predicate.evaluate(&rows);
        for (i, event) in events.iter().enumerate() {
            let expected = oracle::evaluate(&expr, event, kind) == Some(true);
            prop_assert_eq!(matches.value(i), expected, "row {} of {}: {:?}", i, to_text(&expr), event);
        }
        let refused = predicate.clone().not().evaluate(&rows);
        for (i, event) in events.iter().enumerate() {
            let expected = oracle::evaluate(&expr, event, kind) == Some(false);
            prop_assert_eq!(refused.value(i), expected, "NOT of row {} of {}: {:?}", i, to_text(&expr), event);
        }
    }

    #[test]
    fn a_predicate_comes_back_from_json(
        (kind, events, expr) in events_and_filter(),
        plain in prop::collection::vec(plain_predicate(), 0..3),
        (or, not) in any::<(bool, bool)>(),
    ) {
        let schema = schema(kind);
        let mut parts = plain;
        parts.push(Predicate::bind(&expr, &schema).unwrap());
        let together = if or { Predicate::or(parts) } else { Predicate::and(parts) };
        let predicate = if not { together.not() } else { together };
        let json = predicate.to_json().unwrap();
        // Through text, as it comes over the wire.
        let again: serde_json::Value = serde_json::from_str(&json.to_string()).unwrap();
        let read = Predicate::from_json(&again, &schema).unwrap();
        let rows = batch(kind, &events);
        prop_assert_eq!(read.evaluate(&rows), predicate.evaluate(&rows), "{}", &json);
        prop_assert_eq!((read.ids(), read.as_interval()), (predicate.ids(), predicate.as_interval()));
        prop_assert_eq!(read.to_json(), Some(json));
    }

    #[test]
    fn a_predicate_of_anything_is_read_or_refused(
        plain in plain_predicate(), steps in prop::collection::vec(any::<prop::sample::Index>(), 1..6), put in 0usize..8
    ) {
        let put = [
            serde_json::json!(null), serde_json::json!([]), serde_json::json!({}), serde_json::json!(-1.5),
            serde_json::json!({"cql2": true}), serde_json::json!({"not": {"located": true}}),
            serde_json::json!({"cql2-text": "name = 'a'"}), serde_json::json!({"time": [1, "b"]}),
        ][put].clone();
        let _ = Predicate::from_json(&damaged(plain.to_json().unwrap(), &steps, put), &schema(Kind::Shapes));
    }

    #[test]
    fn a_relation_keeps_its_promise((kind, events, expr) in events_and_filter()) {
        let rows = batch(kind, &events);
        let predicate = Predicate::bind(&expr, &schema(kind)).unwrap();
        check_relation(&predicate, &rows)?;
        check_relation(&predicate.clone().not(), &rows)?;
        for row in 0..rows.rows() {
            check_relation(&predicate, &rows.slice(row, 1))?;
        }
    }

    #[test]
    fn a_relation_of_boxes_times_and_distances_keeps_its_promise(
        (events, predicate) in kinds().prop_flat_map(|kind| {
            (prop::collection::vec(event(kind), 1..8).prop_map(move |e| batch(kind, &e)), plain_predicate())
        })
    ) {
        check_relation(&predicate, &events)?;
        for row in 0..events.rows() {
            check_relation(&predicate, &events.slice(row, 1))?;
        }
    }

    #[test]
    fn evaluation_reads_only_the_columns_it_names((kind, events, expr) in events_and_filter()) {
        let rows = batch(kind, &events);
        let schema = schema(kind);
        let predicate = Predicate::bind(&expr, &schema).unwrap();
        let layout = Layout::of(&schema);
        let mut columns = Projection::none(&layout);
        predicate.add_columns(&layout, &schema, &mut columns);
        // A missing column fails a debug assertion.
        prop_assert_eq!(predicate.evaluate(&rows.project(&columns)), predicate.evaluate(&rows));
    }

    #[test]
    fn ids_miss_no_event((kind, events, expr) in events_and_filter()) {
        let rows = batch(kind, &events);
        let predicate = Predicate::bind(&expr, &schema(kind)).unwrap();
        if let Some(ids) = predicate.ids() {
            let matches = predicate.evaluate(&rows);
            for row in matches.set_indices() {
                prop_assert!(ids.contains(&events[row].id), "{:?} is not among {ids:?}", events[row].id);
            }
        }
    }

    /// Stored multi-polygons may overlap themselves, and so may collections in a filter; boxes decide nothing here.
    #[test]
    fn overlapping_parts_make_nothing_panic(
        parts in prop::collection::vec(super::events::geometry(), 1..4),
        stored in prop::collection::vec(super::events::geometry(), 1..4),
        op in prop::sample::select(SpatialOp::ALL)
    ) {
        let stored: Vec<Event> = overlapping(&stored)
            .into_iter()
            .map(|g| Event { geometry: Some(g), ..super::events::plain("a") })
            .collect();
        let literal = match op {
            SpatialOp::Intersects | SpatialOp::Disjoint => Geometry::GeometryCollection(GeometryCollection(parts)),
            _ => parts[0].clone(),
        };
        let expr = Expr::Spatial {
            op, left: Operand::Property("geometry".into()), right: Operand::Geometry(literal),
        };
        let rows = batch(Kind::Shapes, &stored);
        check_relation(&Predicate::bind(&expr, &schema(Kind::Shapes)).unwrap(), &rows)?;
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse_text(&text);
    }

    #[test]
    fn no_likely_text_makes_the_parser_panic(
        words in prop::collection::vec(prop::sample::select(&[
            "AND", "OR", "NOT", "(", ")", "[", "]", ",", "a", "\"b\"", "'c'", "1", "-", "2.5", "..", "'..'", "=", "<>",
            "LIKE", "BETWEEN", "IN", "IS", "NULL", "TRUE", "CASEI(", "DATE(", "'2026-01-01'", "INTERVAL(", "S_INTERSECTS(",
            "T_AFTER(", "A_EQUALS(", "POINT(", "POLYGON((", "GEOMETRYCOLLECTION(", "MULTIPOINT(", "EMPTY", "Z", "BBOX(", "é", "\u{0}",
        ][..]), 0..24)
    ) {
        let text = words.join(" ");
        if let Ok(expr) = parse_text(&text) {
            // Whatever parses can be written, and binds or is rejected.
            prop_assert_eq!(parse_text(&to_text(&expr)).ok(), Some(expr.clone()));
            let _ = Predicate::bind(&expr, &schema(Kind::Shapes));
        }
    }

    #[test]
    fn a_damaged_filter_is_read_or_refused(
        expr in any_filter(), at in any::<prop::sample::Index>(), cut in 0usize..4, put in "[\\PC]{0,3}"
    ) {
        let mut chars: Vec<char> = to_text(&expr).chars().collect();
        let from = at.index(chars.len());
        let to = (from + cut).min(chars.len());
        chars.splice(from..to, put.chars());
        let text: String = chars.iter().collect();
        match parse_text(&text) {
            Ok(expr) => { let _ = Predicate::bind(&expr, &schema(Kind::Shapes)); }
            Err(e) => prop_assert!(e.detail.contains("at character") || e.detail.contains("too long"), "{e}"),
        }
    }

    #[test]
    fn damaged_json_is_read_or_refused(
        expr in any_filter(), steps in prop::collection::vec(any::<prop::sample::Index>(), 1..8), put in 0usize..6
    ) {
        let put = [
            serde_json::json!(null), serde_json::json!([]), serde_json::json!({}), serde_json::json!("and"),
            serde_json::json!({"op": "not", "args": [true]}), serde_json::json!([[1, 2], "x"]),
        ][put].clone();
        let json = damaged(to_json(&expr), &steps, put);
        match parse_json(&json) {
            Ok(expr) => { let _ = Predicate::bind(&expr, &schema(Kind::Shapes)); }
            Err(e) => prop_assert!(e.detail.starts_with("at $"), "{e}"),
        }
    }
}

#[test]
fn a_deep_filter_comes_back_as_text() {
    let schema = schema(Kind::Points);
    let mut expr = parse_text("n > 1").unwrap();
    for _ in 0..30 {
        expr = Expr::Not(Box::new(Expr::Or(vec![expr, Expr::IsNull(Operand::Property("x".to_owned()))])));
    }
    let json = Predicate::bind(&expr, &schema).unwrap().to_json().unwrap();
    assert!(json.get("cql2-text").is_some());
    let again: serde_json::Value = serde_json::from_str(&json.to_string()).unwrap();
    assert_eq!(Predicate::from_json(&again, &schema).map(|p| p.to_json()), Ok(Some(json)));
    let deep = (0..200).fold(serde_json::json!({"located": true}), |inner, _| serde_json::json!({"not": inner}));
    assert!(Predicate::from_json(&deep, &schema).is_err());
}
