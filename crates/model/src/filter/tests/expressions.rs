//! Random filters.

use super::events::{Kind, float, geometry, int, position, text, time};
use crate::filter::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
use geo_types::{Geometry, GeometryCollection};
use proptest::prelude::*;
use proptest::sample::select;

fn comparison() -> impl Strategy<Value = Comparison> {
    select(Comparison::ALL)
}

fn property(name: &'static str) -> Operand {
    Operand::Property(name.to_owned())
}

fn number() -> impl Strategy<Value = Operand> {
    prop_oneof![
        2 => Just(property("n")),
        2 => Just(property("x")),
        3 => int().prop_map(Operand::Int),
        3 => float().prop_map(Operand::Float)
    ]
}

fn string() -> impl Strategy<Value = Operand> {
    let plain = prop_oneof![
        4 => Just(property("name")),
        1 => Just(property("id")),
        4 => text().prop_map(Operand::Text)
    ];
    (plain, prop::bool::weighted(0.3)).prop_map(|(text, fold)| if fold { Operand::Casei(Box::new(text)) } else { text })
}

fn literal_string() -> impl Strategy<Value = Operand> {
    (text().prop_map(Operand::Text), prop::bool::weighted(0.3))
        .prop_map(|(text, fold)| if fold { Operand::Casei(Box::new(text)) } else { text })
}

fn date() -> impl Strategy<Value = jiff::civil::Date> {
    (-2i64..4).prop_map(|d| jiff::civil::date(2026, 1, 1) + jiff::Span::new().days(d))
}

fn instant() -> impl Strategy<Value = Operand> {
    prop_oneof![
        select(&["from", "to", "seen"][..]).prop_map(property),
        time().prop_map(Operand::Timestamp),
        date().prop_map(Operand::Date)
    ]
}

fn interval() -> impl Strategy<Value = Operand> {
    let end = || {
        prop_oneof![
            2 => select(&["from", "to", "seen"][..]).prop_map(|n| IntervalEnd::Property(n.to_owned())),
            2 => time().prop_map(IntervalEnd::Timestamp),
            2 => date().prop_map(IntervalEnd::Date),
            1 => Just(IntervalEnd::Open)
        ]
    };
    let literal = |end: &IntervalEnd| !matches!(end, IntervalEnd::Property(_));
    prop_oneof![
        1 => Just(Operand::Interval(IntervalEnd::Property("from".into()), IntervalEnd::Property("to".into()))),
        2 => (end(), end())
            .prop_filter("an interval starts before it ends", move |(a, b)| {
                !(literal(a) && literal(b)) || crate::filter::literal::check_interval(a, b).is_ok()
            })
            .prop_map(|(a, b)| Operand::Interval(a, b))
    ]
}

fn place(kind: Kind) -> BoxedStrategy<Operand> {
    let bbox = (position(), 1i32..6, 1i32..6)
        .prop_map(|(low, w, h)| Operand::Bbox([low.x, low.y, low.x + f64::from(w) * 0.5, low.y + f64::from(h) * 0.5]));
    let literal = prop_oneof![3 => geometry().prop_map(Operand::Geometry), 1 => bbox];
    if kind == Kind::Bare {
        return literal.boxed();
    }
    prop_oneof![3 => Just(property("geometry")), 2 => literal].boxed()
}

fn list() -> impl Strategy<Value = Operand> {
    let literal = prop::collection::vec("[abc]".prop_map(Operand::Text), 0..4).prop_map(Operand::List);
    prop_oneof![Just(property("tags")), literal]
}

fn between(value: Operand, low: Operand, high: Operand) -> Expr {
    Expr::Between { value, low, high }
}

/// One condition that binds to the test schema.
pub fn condition(kind: Kind) -> BoxedStrategy<Expr> {
    let compare = |op, left, right| Expr::Compare { op, left, right };
    let nullable: &'static [&'static str] = if kind == Kind::Bare {
        &["name", "n", "x", "flag", "tags", "from"]
    } else {
        &["name", "n", "x", "flag", "tags", "from", "geometry", "id", "seen"]
    };
    prop_oneof![
        1 => any::<bool>().prop_map(Expr::Bool),
        6 => (comparison(), number(), number()).prop_map(move |(op, a, b)| compare(op, a, b)),
        4 => (comparison(), string(), string()).prop_map(move |(op, a, b)| compare(op, a, b)),
        4 => (comparison(), instant(), instant()).prop_map(move |(op, a, b)| compare(op, a, b)),
        2 => (
            comparison(),
            prop_oneof![Just(property("flag")), Just(property("flag2")), any::<bool>().prop_map(Operand::Bool)],
            prop_oneof![Just(property("flag")), Just(property("flag2")), any::<bool>().prop_map(Operand::Bool)]
        )
            .prop_map(move |(op, a, b)| compare(op, a, b)),
        3 => (string(), literal_string()).prop_map(|(value, pattern)| Expr::Like { value, pattern }),
        2 => (number(), number(), number()).prop_map(|(v, l, h)| between(v, l, h)),
        1 => (instant(), instant(), instant()).prop_map(|(v, l, h)| between(v, l, h)),
        2 => (number(), prop::collection::vec(number(), 1..4)).prop_map(|(value, list)| Expr::In { value, list }),
        2 => (string(), prop::collection::vec(string(), 1..4)).prop_map(|(value, list)| Expr::In { value, list }),
        1 => (Just(property("n")), prop::collection::vec(int().prop_map(Operand::Int), 1..4))
            .prop_map(|(value, list)| Expr::In { value, list }),
        1 => (Just(property("x")), prop::collection::vec(prop_oneof![int().prop_map(Operand::Int), float().prop_map(Operand::Float)], 1..4))
            .prop_map(|(value, list)| Expr::In { value, list }),
        2 => (Just(property("id")), prop::collection::vec("[ab]{1,2}".prop_map(Operand::Text), 1..4))
            .prop_map(|(value, list)| Expr::In { value, list }),
        2 => select(nullable).prop_map(|n| Expr::IsNull(property(n))),
        8 => (select(SpatialOp::ALL), place(kind), place(kind))
            .prop_map(|(op, left, right)| Expr::Spatial { op, left, right }),
        6 => (select(TemporalOp::ALL), prop_oneof![instant(), interval()], prop_oneof![instant(), interval()])
            .prop_map(|(op, left, right)| Expr::Temporal { op, left, right }),
        3 => (select(ArrayOp::ALL), list(), list()).prop_map(|(op, left, right)| Expr::Array { op, left, right }),
    ]
    .boxed()
}

fn grow(leaf: BoxedStrategy<Expr>) -> BoxedStrategy<Expr> {
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| Expr::Not(Box::new(e))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
            prop::collection::vec(inner, 2..4).prop_map(Expr::Or),
        ]
    })
    .boxed()
}

/// A filter that binds to the test schema.
pub fn filter(kind: Kind) -> BoxedStrategy<Expr> {
    grow(condition(kind))
}

/// A filter that need not bind to anything: any name, text, number and place.
pub fn any_filter() -> BoxedStrategy<Expr> {
    let name = prop_oneof!["\\PC{1,8}", Just("AND".to_owned()), Just("point".to_owned()), Just("a\"b".to_owned())];
    let finite = any::<f64>().prop_filter("finite", |x| x.is_finite());
    let collection =
        prop::collection::vec(geometry(), 1..3).prop_map(|g| Geometry::GeometryCollection(GeometryCollection(g)));
    let scalar = prop_oneof![
        name.prop_map(Operand::Property),
        any::<String>().prop_map(Operand::Text),
        any::<i64>().prop_map(Operand::Int),
        finite.prop_map(Operand::Float),
        any::<bool>().prop_map(Operand::Bool),
        time().prop_map(Operand::Timestamp),
        date().prop_map(Operand::Date),
        interval(),
        geometry().prop_map(Operand::Geometry),
        collection.prop_map(Operand::Geometry),
        (position(), position()).prop_map(|(a, b)| Operand::Bbox([a.x, a.y, b.x, b.y + a.y])),
        any::<String>().prop_map(|t| Operand::Casei(Box::new(Operand::Casei(Box::new(Operand::Text(t)))))),
    ]
    .boxed();
    let argument = prop_oneof![
        scalar.clone(),
        prop::collection::vec(scalar.clone(), 0..3).prop_map(Operand::List),
        prop::collection::vec(prop::collection::vec(scalar.clone(), 0..2).prop_map(Operand::List), 0..2)
            .prop_map(Operand::List)
    ]
    .boxed();
    let leaf = prop_oneof![
        any::<bool>().prop_map(Expr::Bool),
        (comparison(), scalar.clone(), scalar.clone()).prop_map(|(op, left, right)| Expr::Compare { op, left, right }),
        (scalar.clone(), scalar.clone()).prop_map(|(value, pattern)| Expr::Like { value, pattern }),
        (scalar.clone(), scalar.clone(), scalar.clone()).prop_map(|(v, l, h)| between(v, l, h)),
        (scalar.clone(), prop::collection::vec(scalar.clone(), 1..3))
            .prop_map(|(value, list)| Expr::In { value, list }),
        scalar.prop_map(Expr::IsNull),
        (select(SpatialOp::ALL), argument.clone(), argument.clone()).prop_map(|(op, left, right)| Expr::Spatial {
            op,
            left,
            right
        }),
        (select(TemporalOp::ALL), argument.clone(), argument.clone()).prop_map(|(op, left, right)| Expr::Temporal {
            op,
            left,
            right
        }),
        (select(ArrayOp::ALL), argument.clone(), argument).prop_map(|(op, left, right)| Expr::Array {
            op,
            left,
            right
        }),
    ];
    grow(leaf.boxed())
}
