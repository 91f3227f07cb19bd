//! A straightforward evaluation of filters, event by event, that shares no code with the predicates.

use super::events::{DAY, Event, Kind};
use crate::filter::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
use geo::{Intersects, Relate};
use geo_types::{Geometry, Rect};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A value of an event or a filter.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Null,
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// First and last instant, and whether it is an instant.
    Time(i64, i64, bool),
    Geometry(Geometry<f64>),
    List(Vec<String>),
}

fn instant(t: Option<i64>) -> Plain {
    t.map_or(Plain::Null, |t| Plain::Time(t, t, true))
}

fn property(name: &str, event: &Event, kind: Kind) -> Plain {
    match name {
        "id" => Plain::Text(event.id.clone()),
        "name" => event.name.clone().map_or(Plain::Null, Plain::Text),
        "n" => event.n.map_or(Plain::Null, Plain::Int),
        "x" => event.x.map_or(Plain::Null, Plain::Float),
        "flag" => event.flag.map_or(Plain::Null, Plain::Bool),
        "flag2" => event.flag2.map_or(Plain::Null, Plain::Bool),
        "from" => instant(event.from),
        "to" => instant(event.to),
        "seen" => instant(event.seen),
        "tags" => event.tags.clone().map_or(Plain::Null, Plain::List),
        "geometry" if kind != Kind::Bare => event.geometry.clone().map_or(Plain::Null, Plain::Geometry),
        _ => panic!("no property {name}"),
    }
}

fn day_start(date: jiff::civil::Date) -> i64 {
    date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_microsecond()
}

fn value(operand: &Operand, event: &Event, kind: Kind) -> Plain {
    let end = |end: &IntervalEnd, open: i64, of_day: i64| match end {
        IntervalEnd::Open => open,
        IntervalEnd::Date(date) => day_start(*date) + of_day,
        IntervalEnd::Timestamp(t) => *t,
        IntervalEnd::Property(name) => match property(name, event, kind) {
            Plain::Time(t, ..) => t,
            _ => open,
        },
    };
    match operand {
        Operand::Property(name) => property(name, event, kind),
        Operand::Text(text) => Plain::Text(text.clone()),
        Operand::Int(n) => Plain::Int(*n),
        Operand::Float(x) => Plain::Float(*x),
        Operand::Bool(b) => Plain::Bool(*b),
        Operand::Date(date) => Plain::Time(day_start(*date), day_start(*date) + DAY - 1, true),
        Operand::Timestamp(t) => Plain::Time(*t, *t, true),
        Operand::Interval(a, b) => {
            let (first, last) = (end(a, i64::MIN, 0), end(b, i64::MAX, DAY - 1));
            let of_event = matches!(a, IntervalEnd::Property(_)) || matches!(b, IntervalEnd::Property(_));
            match (first, last) {
                (i64::MIN, i64::MAX) if of_event => Plain::Null,
                _ => Plain::Time(first, last, false),
            }
        }
        Operand::Geometry(geometry) => Plain::Geometry(geometry.clone()),
        Operand::Bbox([w, s, e, n]) => Plain::Geometry(Rect::new((*w, *s), (*e, *n)).to_polygon().into()),
        Operand::List(items) => Plain::List(
            items
                .iter()
                .map(|i| match i {
                    Operand::Text(text) => text.clone(),
                    other => panic!("{other:?}"),
                })
                .collect(),
        ),
        Operand::Casei(inner) => match value(inner, event, kind) {
            Plain::Text(text) => Plain::Text(fold(&text)),
            other => other,
        },
    }
}

/// Covers the letters used by the tests.
fn fold(text: &str) -> String {
    text.replace('ß', "ss").to_lowercase()
}

/// Orders an integer and a float by their exact difference.
fn int_float(n: i64, x: f64) -> Ordering {
    if x.abs() >= 1e19 {
        return if x > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    // Doubled, both are whole numbers: true of every float in the tests.
    (i128::from(n) * 2).cmp(&((x * 2.0) as i128))
}

fn order(a: &Plain, b: &Plain) -> Ordering {
    match (a, b) {
        (Plain::Int(a), Plain::Int(b)) => a.cmp(b),
        (Plain::Float(a), Plain::Float(b)) => a.partial_cmp(b).unwrap(),
        (Plain::Int(a), Plain::Float(b)) => int_float(*a, *b),
        (Plain::Float(a), Plain::Int(b)) => int_float(*b, *a).reverse(),
        (Plain::Text(a), Plain::Text(b)) => a.chars().cmp(b.chars()),
        (Plain::Bool(a), Plain::Bool(b)) => a.cmp(b),
        (Plain::Time(_, a, true), Plain::Time(b, _, true)) if a < b => Ordering::Less,
        (Plain::Time(a, _, true), Plain::Time(_, b, true)) if a > b => Ordering::Greater,
        (Plain::Time(..), Plain::Time(..)) => Ordering::Equal,
        other => panic!("{other:?} cannot be ordered"),
    }
}

fn compare(op: Comparison, a: &Plain, b: &Plain) -> Option<bool> {
    if *a == Plain::Null || *b == Plain::Null {
        return None;
    }
    let order = order(a, b);
    Some(match op {
        Comparison::Eq => order == Ordering::Equal,
        Comparison::Ne => order != Ordering::Equal,
        Comparison::Lt => order == Ordering::Less,
        Comparison::Le => order != Ordering::Greater,
        Comparison::Gt => order == Ordering::Greater,
        Comparison::Ge => order != Ordering::Less,
    })
}

/// LIKE by trying every split.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| like(&text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && like(&text[1..], rest),
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// AND of many: a loop, since an unknown operand must not end it.
fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for value in values {
        result = and(result, value);
    }
    result
}

fn not(a: Option<bool>) -> Option<bool> {
    a.map(|a| !a)
}

fn temporal(op: TemporalOp, a: (i64, i64), b: (i64, i64), instants: bool) -> bool {
    match op {
        TemporalOp::After => a.0 > b.1,
        TemporalOp::Before => a.1 < b.0,
        TemporalOp::Contains => a.0 < b.0 && a.1 > b.1,
        TemporalOp::Disjoint => a.0 > b.1 || a.1 < b.0,
        TemporalOp::During => a.0 > b.0 && a.1 < b.1,
        TemporalOp::Equals if instants => a.0 <= b.1 && a.1 >= b.0,
        TemporalOp::Equals => a == b,
        TemporalOp::FinishedBy => a.0 < b.0 && a.1 == b.1,
        TemporalOp::Finishes => a.0 > b.0 && a.1 == b.1,
        TemporalOp::Intersects => a.0 <= b.1 && a.1 >= b.0,
        TemporalOp::Meets => a.1 == b.0,
        TemporalOp::MetBy => a.0 == b.1,
        TemporalOp::OverlappedBy => a.0 > b.0 && a.0 < b.1 && a.1 > b.1,
        TemporalOp::Overlaps => a.0 < b.0 && a.1 > b.0 && a.1 < b.1,
        TemporalOp::StartedBy => a.0 == b.0 && a.1 > b.1,
        TemporalOp::Starts => a.0 == b.0 && a.1 < b.1,
    }
}

/// The value of a filter for an event; `None` is unknown.
pub fn evaluate(expr: &Expr, event: &Event, kind: Kind) -> Option<bool> {
    let value = |operand: &Operand| value(operand, event, kind);
    match expr {
        Expr::Bool(b) => Some(*b),
        Expr::And(parts) => all(parts.iter().map(|p| evaluate(p, event, kind))),
        Expr::Or(parts) => not(all(parts.iter().map(|p| not(evaluate(p, event, kind))))),
        Expr::Not(inner) => not(evaluate(inner, event, kind)),
        Expr::Compare { op, left, right } => compare(*op, &value(left), &value(right)),
        Expr::Like { value: text, pattern } => match (value(text), value(pattern)) {
            (Plain::Text(text), Plain::Text(pattern)) => {
                let chars = |text: &str| text.chars().collect::<Vec<_>>();
                Some(like(&chars(&text), &chars(&pattern)))
            }
            _ => None,
        },
        Expr::Between { value: v, low, high } => {
            and(compare(Comparison::Ge, &value(v), &value(low)), compare(Comparison::Le, &value(v), &value(high)))
        }
        Expr::In { value: v, list } => {
            not(all(list.iter().map(|item| not(compare(Comparison::Eq, &value(v), &value(item))))))
        }
        Expr::IsNull(v) => Some(value(v) == Plain::Null),
        Expr::Spatial { op, left, right } => match (value(left), value(right)) {
            (Plain::Geometry(a), Plain::Geometry(b)) => Some(match op {
                SpatialOp::Intersects => a.intersects(&b),
                SpatialOp::Disjoint => !a.intersects(&b),
                SpatialOp::Equals => a.relate(&b).is_equal_topo(),
                SpatialOp::Touches => a.relate(&b).is_touches(),
                SpatialOp::Within => a.relate(&b).is_within(),
                SpatialOp::Overlaps => a.relate(&b).is_overlaps(),
                SpatialOp::Crosses => a.relate(&b).is_crosses(),
                SpatialOp::Contains => a.relate(&b).is_contains(),
            }),
            _ => None,
        },
        Expr::Temporal { op, left, right } => match (value(left), value(right)) {
            (Plain::Time(a, b, x), Plain::Time(c, d, y)) => Some(temporal(*op, (a, b), (c, d), x && y)),
            _ => None,
        },
        Expr::Array { op, left, right } => match (value(left), value(right)) {
            (Plain::List(a), Plain::List(b)) => {
                let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.into_iter().collect(), b.into_iter().collect());
                Some(match op {
                    ArrayOp::Contains => a.is_superset(&b),
                    ArrayOp::ContainedBy => a.is_subset(&b),
                    ArrayOp::Equals => a == b,
                    ArrayOp::Overlaps => !a.is_disjoint(&b),
                })
            }
            _ => None,
        },
    }
}
