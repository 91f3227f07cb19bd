//! Binds a filter to a schema: names become fields, and types are checked.

use super::booleans::{BoolTest, Side};
use super::expr::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
use super::literal;
use super::numbers::{Number, NumberSet, compare_literals};
use super::outcomes::Outcomes;
use super::predicate::{Node, Nullable, Predicate};
use super::shape::Shape;
use super::spatial::{SpatialTest, holds_between, holds_of_itself};
use super::temporal::{Edge, Moment, TemporalTest, TimeField};
use super::texts::{List, Pattern, Source, Text, holds_of_lists};
use crate::builder::shorten;
use crate::caseless::fold;
use crate::error::Invalid;
use crate::geometry::validate_position;
use crate::schema::{FieldType, Schema};
use crate::time::parse_instant;
use geo::{CoordsIter, Validation};
use geo_types::{Geometry, MultiPolygon, Rect};

/// An operand with its type.
enum Typed {
    Number(Number),
    Text(Text),
    Bool(Side),
    Time(Moment),
    Geometry(GeometrySide),
    List(List),
}

enum GeometrySide {
    /// The event's geometry.
    Own,
    Literal(Geometry<f64>),
}

impl Typed {
    fn word(&self) -> &'static str {
        match self {
            Typed::Number(_) => "number",
            Typed::Text(_) => "string",
            Typed::Bool(_) => "boolean",
            Typed::Time(Moment::Span(..)) => "interval",
            Typed::Time(_) => "date-time",
            Typed::Geometry(_) => "geometry",
            Typed::List(_) => "list of strings",
        }
    }
}

/// Binds a whole filter.
pub(crate) fn bind(expr: &Expr, schema: &Schema) -> Result<Predicate, Invalid> {
    Binder { schema }.expr(expr)
}

struct Binder<'a> {
    schema: &'a Schema,
}

/// Whom to blame: the property of an operand, or else the filter.
fn blame(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Property(name) => Some(name),
        Operand::Casei(inner) => blame(inner),
        _ => None,
    }
}

fn wrong(operands: &[&Operand], detail: impl Into<String>) -> Invalid {
    let field = operands.iter().find_map(|o| blame(o)).unwrap_or("filter");
    Invalid::field(field, detail)
}

/// An operand for a message.
fn shown(operand: &Operand, typed: &Typed) -> String {
    match operand {
        Operand::Property(name) => format!("the {} {:?}", typed.word(), shorten(name)),
        Operand::Text(text) => format!("the text '{}'", shorten(text)),
        Operand::Int(n) => format!("the number {n}"),
        Operand::Float(x) => format!("the number {x}"),
        Operand::Bool(b) => b.to_string().to_uppercase(),
        _ => format!("a {}", typed.word()),
    }
}

impl Binder<'_> {
    fn expr(&self, expr: &Expr) -> Result<Predicate, Invalid> {
        let all = |parts: &[Expr]| parts.iter().map(|p| self.expr(p)).collect::<Result<Vec<_>, _>>();
        match expr {
            Expr::Bool(value) => Ok(Predicate::constant(*value)),
            Expr::And(parts) => Ok(Predicate::and(all(parts)?)),
            Expr::Or(parts) => Ok(Predicate::or(all(parts)?)),
            Expr::Not(inner) => Ok(self.expr(inner)?.not()),
            Expr::Compare { op, left, right } => self.compare(*op, left, right),
            Expr::Like { value, pattern } => self.like(value, pattern),
            Expr::Between { value, low, high } => Ok(Predicate::and(vec![
                self.compare(Comparison::Ge, value, low)?,
                self.compare(Comparison::Le, value, high)?,
            ])),
            Expr::In { value, list } => self.is_in(value, list),
            Expr::IsNull(value) => self.is_null(value),
            Expr::Spatial { op, left, right } => self.spatial(*op, left, right),
            Expr::Temporal { op, left, right } => {
                let moments = (self.moment(left)?, self.moment(right)?);
                Ok(temporal(*op, moments.0, moments.1))
            }
            Expr::Array { op, left, right } => self.lists(*op, left, right),
        }
    }

    /// What a name refers to.
    fn property(&self, name: &str) -> Result<Typed, Invalid> {
        // A field takes precedence over the fixed names `geometry` and `id`, so that no field is unreachable.
        if let Some(field) = self.schema.field_index(name) {
            return Ok(match self.schema.fields[field].kind {
                FieldType::Int | FieldType::Float => Typed::Number(Number::Field(field)),
                FieldType::Text => Typed::Text(Text { source: Source::Field(field), fold: false }),
                FieldType::Bool => Typed::Bool(Side::Field(field)),
                FieldType::Time | FieldType::Date => {
                    Typed::Time(Moment::Property(TimeField::new(field, self.schema.time)))
                }
                FieldType::TextList => Typed::List(List::Field(field)),
            });
        }
        if self.schema.geometry.is_some() && (name == self.schema.geometry_name || name == "geometry") {
            return Ok(Typed::Geometry(GeometrySide::Own));
        }
        if name == "id" || name == self.schema.id_name {
            return Ok(Typed::Text(Text { source: Source::Id, fold: false }));
        }
        const SHOWN_MAX: usize = 20;
        let mut names: Vec<&str> = self.schema.fields.iter().map(|f| f.name.as_str()).take(SHOWN_MAX).collect();
        if self.schema.geometry.is_some() {
            names.push(&self.schema.geometry_name);
        }
        names.push(&self.schema.id_name);
        if self.schema.fields.len() > SHOWN_MAX {
            names.push("…");
        }
        Err(Invalid::field(
            shorten(name),
            format!("this collection has no property of that name: expected one of {}", names.join(", ")),
        ))
    }

    fn typed(&self, operand: &Operand) -> Result<Typed, Invalid> {
        Ok(match operand {
            Operand::Property(name) => self.property(name)?,
            Operand::Text(text) => Typed::Text(Text { source: Source::Literal(text.clone()), fold: false }),
            Operand::Int(n) => Typed::Number(Number::Int(*n)),
            Operand::Float(x) if x.is_finite() => Typed::Number(Number::Float(*x)),
            Operand::Float(x) => return Err(Invalid::field("filter", format!("the number {x} is not finite"))),
            Operand::Bool(b) => Typed::Bool(Side::Literal(*b)),
            Operand::Date(date) => {
                let (first, last) = literal::day(*date);
                Typed::Time(Moment::Instant(first, last))
            }
            Operand::Timestamp(t) => Typed::Time(Moment::Instant(*t, *t)),
            Operand::Interval(start, end) => {
                literal::check_interval(start, end).map_err(|e| Invalid::field("filter", e))?;
                Typed::Time(Moment::Span(
                    self.edge(start, literal::start_instant)?,
                    self.edge(end, literal::end_instant)?,
                ))
            }
            Operand::Geometry(geometry) => {
                for position in geometry.coords_iter() {
                    validate_position(position.x, position.y)
                        .map_err(|e| Invalid::field("filter", format!("in a geometry, {}", e.detail)))?;
                }
                Typed::Geometry(GeometrySide::Literal(geometry.clone()))
            }
            Operand::Bbox(sides) => Typed::Geometry(GeometrySide::Literal(bbox(*sides)?)),
            Operand::List(items) => {
                let mut texts = Vec::with_capacity(items.len());
                for item in items {
                    let Operand::Text(text) = item else {
                        return Err(wrong(
                            &[item],
                            "found a list that does not hold texts only, expected one such as ('a', 'b')",
                        ));
                    };
                    texts.push(text.clone());
                }
                texts.sort_unstable();
                texts.dedup();
                Typed::List(List::Literal(texts))
            }
            Operand::Casei(inner) => match self.typed(inner)? {
                Typed::Text(text) => Typed::Text(Text { fold: true, ..text }),
                other => {
                    return Err(wrong(&[inner], format!("CASEI takes a string, found {}", shown(inner, &other))));
                }
            },
        })
    }

    fn edge(&self, end: &IntervalEnd, instant: fn(&IntervalEnd) -> Option<i64>) -> Result<Edge, Invalid> {
        let IntervalEnd::Property(name) = end else {
            return Ok(Edge::At(instant(end).unwrap_or(0))); // only a property has no instant
        };
        match self.property(name)? {
            Typed::Time(Moment::Property(field)) => Ok(Edge::Property(field)),
            other => Err(Invalid::field(name, format!("is a {}, expected a date-time in an INTERVAL", other.word()))),
        }
    }

    fn compare(&self, op: Comparison, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let mut a = self.typed(left)?;
        let mut b = self.typed(right)?;
        if let Typed::Time(_) = b {
            a = self.as_time(a)?;
        }
        if let Typed::Time(_) = a {
            b = self.as_time(b)?;
        }
        Ok(match (a, b) {
            (Typed::Number(a), Typed::Number(b)) => match compare_literals(a, b) {
                Some(order) => Predicate::constant(op.holds(order)),
                // The field on the left, where comparing is fastest.
                None if !matches!(a, Number::Field(_)) => {
                    Predicate::new(Node::Number { op: op.flipped(), left: b, right: a })
                }
                None => Predicate::new(Node::Number { op, left: a, right: b }),
            },
            (Typed::Text(a), Typed::Text(b)) => match (a.literal(), b.literal()) {
                (Some(a), Some(b)) => Predicate::constant(op.holds(a.cmp(&b))),
                (Some(_), None) => Predicate::new(Node::Text { op: op.flipped(), left: b, right: a }),
                _ => Predicate::new(Node::Text { op, left: a, right: b }),
            },
            (Typed::Bool(left), Typed::Bool(right)) => {
                let test = BoolTest { op, left, right };
                test.constant().map_or_else(|| Predicate::new(Node::Bool(test)), Predicate::constant)
            }
            (
                Typed::Time(a @ (Moment::Property(_) | Moment::Instant(..))),
                Typed::Time(b @ (Moment::Property(_) | Moment::Instant(..))),
            ) => match op {
                Comparison::Eq => temporal(TemporalOp::Intersects, a, b),
                Comparison::Ne => temporal(TemporalOp::Disjoint, a, b),
                Comparison::Lt => temporal(TemporalOp::Before, a, b),
                // Not "before or equal": a day is a span of instants, and `<=` includes any that overlaps it.
                Comparison::Le => temporal(TemporalOp::After, a, b).not(),
                Comparison::Gt => temporal(TemporalOp::After, a, b),
                Comparison::Ge => temporal(TemporalOp::Before, a, b).not(),
            },
            (a @ Typed::Time(_), b @ Typed::Time(_)) => {
                return Err(wrong(
                    &[left, right],
                    format!(
                        "{} cannot be compared with {} by {}: expected a function such as T_INTERSECTS",
                        shown(left, &a),
                        shown(right, &b),
                        op.text()
                    ),
                ));
            }
            (a, b) => {
                return Err(wrong(
                    &[left, right],
                    format!("{} cannot be compared with {}", shown(left, &a), shown(right, &b)),
                ));
            }
        })
    }

    /// A literal text as an instant or a day, if the other operand is a time.
    fn as_time(&self, typed: Typed) -> Result<Typed, Invalid> {
        match typed {
            Typed::Text(Text { source: Source::Literal(text), fold: false }) => {
                if let Ok(date) = literal::date(&text) {
                    let (first, last) = literal::day(date);
                    return Ok(Typed::Time(Moment::Instant(first, last)));
                }
                let instant = parse_instant(&text, None).map_err(|e| Invalid::field("filter", e.detail))?;
                Ok(Typed::Time(Moment::Instant(instant, instant)))
            }
            other => Ok(other),
        }
    }

    fn moment(&self, operand: &Operand) -> Result<Moment, Invalid> {
        let typed = self.typed(operand)?;
        match self.as_time(typed)? {
            Typed::Time(moment) => Ok(moment),
            other => Err(wrong(
                &[operand],
                format!(
                    "found {}, expected a time: a DATE, TIMESTAMP or INTERVAL, or a date-time property",
                    shown(operand, &other)
                ),
            )),
        }
    }

    fn like(&self, value: &Operand, pattern: &Operand) -> Result<Predicate, Invalid> {
        let text = match self.typed(value)? {
            Typed::Text(text) => text,
            other => return Err(wrong(&[value], format!("LIKE takes a string, found {}", shown(value, &other)))),
        };
        let pattern = match self.typed(pattern)? {
            Typed::Text(Text { source: Source::Literal(pattern), fold }) => Pattern::new(&pattern, fold),
            other => {
                return Err(wrong(
                    &[pattern],
                    format!("LIKE takes a pattern in quotes, found {}", shown(pattern, &other)),
                ));
            }
        };
        Ok(match text.literal() {
            Some(literal) => Predicate::constant(pattern.matches(&literal)),
            None => Predicate::new(Node::Like { value: text, pattern }),
        })
    }

    fn is_in(&self, value: &Operand, list: &[Operand]) -> Result<Predicate, Invalid> {
        let literals_only = list.iter().all(|item| blame(item).is_none());
        match self.typed(value)? {
            Typed::Number(Number::Field(field)) if literals_only => {
                let mut numbers = Vec::with_capacity(list.len());
                for item in list {
                    match self.typed(item)? {
                        Typed::Number(number) => numbers.push(number),
                        _ => {
                            self.compare(Comparison::Eq, value, item)?;
                        }
                    }
                }
                let of_ints = self.schema.fields[field].kind == FieldType::Int;
                Ok(Predicate::new(Node::NumberIn { field, set: NumberSet::new(of_ints, &numbers) }))
            }
            Typed::Text(text) if text.literal().is_none() && literals_only => {
                let mut set = std::collections::HashSet::with_capacity(list.len());
                for item in list {
                    match self.typed(item)? {
                        Typed::Text(Text { source: Source::Literal(text), fold: folded }) => {
                            set.insert(if folded { fold(&text).into_owned() } else { text });
                        }
                        _ => {
                            self.compare(Comparison::Eq, value, item)?;
                        }
                    }
                }
                Ok(Predicate::new(Node::TextIn { value: text, set }))
            }
            _ => {
                let parts: Result<Vec<_>, _> =
                    list.iter().map(|item| self.compare(Comparison::Eq, value, item)).collect();
                Ok(Predicate::or(parts?))
            }
        }
    }

    fn is_null(&self, value: &Operand) -> Result<Predicate, Invalid> {
        let nullable = match (value, self.typed(value)?) {
            (
                _,
                Typed::Number(Number::Field(field)) | Typed::Bool(Side::Field(field)) | Typed::List(List::Field(field)),
            ) => Nullable::Field(field),
            (_, Typed::Text(Text { source: Source::Field(field), .. })) => Nullable::Field(field),
            (_, Typed::Time(Moment::Property(time))) => Nullable::Field(time.field),
            (_, Typed::Geometry(GeometrySide::Own)) => Nullable::Geometry,
            (_, Typed::Time(Moment::Span(start, end))) => return Ok(no_ends(start, end)),
            // An id, a literal.
            _ => return Ok(Predicate::none()),
        };
        Ok(Predicate::new(Node::IsNull(nullable)))
    }

    fn spatial(&self, op: SpatialOp, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let place = |operand: &Operand| match self.typed(operand)? {
            Typed::Geometry(GeometrySide::Own) => Ok(GeometrySide::Own),
            Typed::Geometry(GeometrySide::Literal(geometry)) => {
                if !matches!(op, SpatialOp::Intersects | SpatialOp::Disjoint) {
                    // For these two the even-odd rule gives any ring a meaning; the others need a sound polygon.
                    validate_for_relations(op, &geometry)?;
                }
                Ok(GeometrySide::Literal(geometry))
            }
            other => {
                Err(wrong(&[operand], format!("{} takes geometries, found {}", op.text(), shown(operand, &other))))
            }
        };
        let empty = || Invalid::field("filter", "an empty geometry has no place");
        let test = |op: SpatialOp, geometry: Geometry<f64>| {
            let shape = Shape::new(geometry).ok_or_else(empty)?;
            Ok(Predicate::new(Node::Spatial(Box::new(SpatialTest { op, shape }))))
        };
        match (place(left)?, place(right)?) {
            (GeometrySide::Own, GeometrySide::Own) => Ok(Predicate::new(Node::Located(holds_of_itself(op)))),
            (GeometrySide::Own, GeometrySide::Literal(geometry)) => test(op, geometry),
            (GeometrySide::Literal(geometry), GeometrySide::Own) => test(op.flipped(), geometry),
            (GeometrySide::Literal(a), GeometrySide::Literal(b)) => {
                holds_between(op, &a, b).map(Predicate::constant).ok_or_else(empty)
            }
        }
    }

    fn lists(&self, op: ArrayOp, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let list = |operand: &Operand| match self.typed(operand)? {
            Typed::List(list) => Ok(list),
            other => Err(wrong(&[operand], format!("{} takes lists, found {}", op.text(), shown(operand, &other)))),
        };
        Ok(match (list(left)?, list(right)?) {
            (List::Literal(a), List::Literal(b)) => Predicate::constant(holds_of_lists(op, &a, &b)),
            (left, right) => Predicate::new(Node::Lists { op, left, right }),
        })
    }
}

/// Rows where neither end of a span has a value: there is no time.
fn no_ends(start: Edge, end: Edge) -> Predicate {
    let fields = [start, end].into_iter().filter_map(|edge| match edge {
        Edge::Property(time) => Some(Predicate::new(Node::IsNull(Nullable::Field(time.field)))),
        Edge::At(_) => None,
    });
    let fields: Vec<Predicate> = fields.collect();
    let is_open = |edge: Edge| matches!(edge, Edge::Property(_)) || edge.may_be_open();
    if fields.is_empty() || !(is_open(start) && is_open(end)) { Predicate::none() } else { Predicate::and(fields) }
}

/// A temporal test; one of literals only is decided at once.
fn temporal(op: TemporalOp, left: Moment, right: Moment) -> Predicate {
    let test = TemporalTest::new(op, left, right);
    match test.constant() {
        Some(outcome) => Predicate::constant(outcome == Outcomes::TRUE),
        None => Predicate::new(Node::Temporal(test)),
    }
}

/// A box as a geometry: two boxes if it crosses the antimeridian; a line or a point if it has no area.
fn bbox([west, south, east, north]: [f64; 4]) -> Result<Geometry<f64>, Invalid> {
    let wrong = |detail: String| Err(Invalid::field("filter", detail));
    if south > north {
        return wrong(format!("the BBOX has its south {south} above its north {north}"));
    }
    let is_longitude = |lon: f64| (-180.0..=180.0).contains(&lon);
    if west > east && !(is_longitude(west) && is_longitude(east)) {
        return wrong(format!("the BBOX from longitude {west} east to {east} does not exist"));
    }
    // A box without width or height becomes a line or a point: a polygon without area has no interior, and its
    // spatial relations would be undefined.
    let part = |west: f64, east: f64| {
        let (low, high) = ((west, south), (east, north));
        match (west == east, south == north) {
            (true, true) => Geometry::Point(low.into()),
            (true, false) | (false, true) => Geometry::LineString(vec![low, high].into()),
            (false, false) => Geometry::Polygon(Rect::new(low, high).to_polygon()),
        }
    };
    if west <= east {
        return Ok(part(west, east));
    }
    // Geometry is planar, so a box over the antimeridian is its two halves.
    Ok(match (part(west, 180.0), part(-180.0, east)) {
        (Geometry::Polygon(a), Geometry::Polygon(b)) => Geometry::MultiPolygon(MultiPolygon(vec![a, b])),
        (a, b) => Geometry::GeometryCollection(vec![a, b].into()),
    })
}

/// Most polygons of a multi-polygon that are compared pair by pair for overlaps.
const COMPARED_MAX: usize = 100;

/// Max positions of a checked geometry: the check is quadratic in their number, and a filter must not
/// hold up the server. A larger one is taken on trust.
const CHECKED_MAX: usize = 1_000;

/// Checks what the relations of Simple Features are defined for.
fn validate_for_relations(op: SpatialOp, geometry: &Geometry<f64>) -> Result<(), Invalid> {
    let wrong = |e: String| Invalid::field("filter", format!("a geometry of the filter is not valid: {e}"));
    match geometry {
        Geometry::Polygon(_) | Geometry::MultiPolygon(_) if geometry.coords_count() > CHECKED_MAX => Ok(()),
        Geometry::Polygon(polygon) => polygon.check_validation().map_err(|e| wrong(e.to_string())),
        Geometry::MultiPolygon(polygons) if polygons.0.len() <= COMPARED_MAX => {
            polygons.check_validation().map_err(|e| wrong(e.to_string()))
        }
        Geometry::MultiPolygon(polygons) => {
            polygons.iter().try_for_each(|polygon| polygon.check_validation().map_err(|e| wrong(e.to_string())))
        }
        Geometry::GeometryCollection(_) => Err(Invalid::field(
            "filter",
            format!(
                "{} does not take a GEOMETRYCOLLECTION: expected one kind of geometry (S_INTERSECTS and S_DISJOINT take collections)",
                op.text()
            ),
        )),
        _ => Ok(()),
    }
}
