//! Typed operands: names and literals resolved against the schema.

use super::Binder;
use crate::error::Invalid;
use crate::error::shorten;
use crate::filter::booleans::Side;
use crate::filter::expr::{IntervalEnd, Operand};
use crate::filter::literal;
use crate::filter::numbers::Number;
use crate::filter::temporal::{Edge, Moment, TimeField};
use crate::filter::texts::{List, Source, Text};
use crate::geometry::validate_position;
use crate::schema::FieldType;
use crate::time::parse_instant;
use geo::CoordsIter;
use geo_types::{Geometry, MultiLineString, MultiPoint, MultiPolygon, Rect};

/// An operand with its type.
pub(super) enum TypedOperand {
    Number(Number),
    Text(Text),
    Bool(Side),
    Time(Moment),
    Geometry(GeometrySide),
    List(List),
}

pub(super) enum GeometrySide {
    /// The event's geometry.
    Own,
    Literal(Geometry<f64>),
}

impl TypedOperand {
    fn word(&self) -> &'static str {
        match self {
            TypedOperand::Number(_) => "number",
            TypedOperand::Text(_) => "string",
            TypedOperand::Bool(_) => "boolean",
            TypedOperand::Time(Moment::Span(..)) => "interval",
            TypedOperand::Time(_) => "date-time",
            TypedOperand::Geometry(_) => "geometry",
            TypedOperand::List(_) => "list of strings",
        }
    }
}

/// The field that an error blames: the operand's property, or else the filter.
pub(super) fn blame(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Property(name) => Some(name),
        Operand::Casei(inner) => blame(inner),
        _ => None,
    }
}

pub(super) fn wrong(operands: &[&Operand], detail: impl std::fmt::Display) -> Invalid {
    let field = operands.iter().find_map(|o| blame(o)).unwrap_or("filter");
    Invalid::field(field, detail)
}

/// Formats an operand for a message.
pub(super) fn shown(operand: &Operand, typed: &TypedOperand) -> String {
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
    /// Resolves a name.
    fn property(&self, name: &str) -> Result<TypedOperand, Invalid> {
        // A field takes precedence over the fixed names `geometry` and `id`, so that every field is reachable.
        if let Some(field) = self.schema.field_index(name) {
            return Ok(match self.schema.fields[field].kind {
                FieldType::Int | FieldType::Float => TypedOperand::Number(Number::Field(field)),
                FieldType::Text => TypedOperand::Text(Text { source: Source::Field(field), fold: false }),
                FieldType::Bool => TypedOperand::Bool(Side::Field(field)),
                FieldType::Time | FieldType::Date => {
                    TypedOperand::Time(Moment::Property(TimeField::new(field, self.schema.time)))
                }
                FieldType::TextList => TypedOperand::List(List::Field(field)),
            });
        }
        if self.schema.geometry.is_some() && (name == self.schema.geometry_name || name == "geometry") {
            return Ok(TypedOperand::Geometry(GeometrySide::Own));
        }
        if name == "id" || name == self.schema.id_name {
            return Ok(TypedOperand::Text(Text { source: Source::Id, fold: false }));
        }
        const SHOWN_MAX: usize = 20;
        // A schema may have a thousand fields, and the message goes into a response.
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
            format!(
                "this collection has no property of that name: expected one of {}, or a text in single quotes",
                names.join(", ")
            ),
        ))
    }

    pub(super) fn typed(&self, operand: &Operand) -> Result<TypedOperand, Invalid> {
        Ok(match operand {
            Operand::Property(name) => self.property(name)?,
            Operand::Text(text) => TypedOperand::Text(Text { source: Source::Literal(text.clone()), fold: false }),
            Operand::Int(n) => TypedOperand::Number(Number::Int(*n)),
            Operand::Float(x) if x.is_finite() => TypedOperand::Number(Number::Float(*x)),
            Operand::Float(x) => return Err(Invalid::field("filter", format!("the number {x} is not finite"))),
            Operand::Bool(b) => TypedOperand::Bool(Side::Literal(*b)),
            Operand::Date(date) => {
                let (first, last) = literal::day(*date);
                TypedOperand::Time(Moment::Instant(first, last))
            }
            Operand::Timestamp(t) => TypedOperand::Time(Moment::Instant(*t, *t)),
            Operand::Interval(start, end) => {
                literal::check_interval(start, end).map_err(|e| Invalid::field("filter", e))?;
                TypedOperand::Time(Moment::Span(
                    self.edge(start, literal::start_instant)?,
                    self.edge(end, literal::end_instant)?,
                ))
            }
            Operand::Geometry(geometry) => {
                for position in geometry.coords_iter() {
                    validate_position(position.x, position.y)
                        .map_err(|e| Invalid::field("filter", format!("in a geometry, {}", e.detail)))?;
                }
                TypedOperand::Geometry(GeometrySide::Literal(geometry.clone()))
            }
            Operand::Bbox(sides) => TypedOperand::Geometry(GeometrySide::Literal(bbox(*sides)?)),
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
                // Sorted and deduplicated: the list tests use binary search.
                texts.sort_unstable();
                texts.dedup();
                TypedOperand::List(List::Literal(texts))
            }
            Operand::Casei(inner) => match self.typed(inner)? {
                TypedOperand::Text(text) => TypedOperand::Text(Text { fold: true, ..text }),
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
            TypedOperand::Time(Moment::Property(field)) => Ok(Edge::Property(field)),
            other => Err(Invalid::field(name, format!("is a {}, expected a date-time in an INTERVAL", other.word()))),
        }
    }

    /// Parses a literal text as an instant or a day if the other operand is a time.
    pub(super) fn as_time(&self, typed: TypedOperand) -> Result<TypedOperand, Invalid> {
        match typed {
            TypedOperand::Text(Text { source: Source::Literal(text), fold: false }) => {
                if let Ok(date) = literal::date(&text) {
                    let (first, last) = literal::day(date);
                    return Ok(TypedOperand::Time(Moment::Instant(first, last)));
                }
                let instant = parse_instant(&text, None).map_err(|e| Invalid::field("filter", e.detail))?;
                Ok(TypedOperand::Time(Moment::Instant(instant, instant)))
            }
            other => Ok(other),
        }
    }

    pub(super) fn moment(&self, operand: &Operand) -> Result<Moment, Invalid> {
        let typed = self.typed(operand)?;
        match self.as_time(typed)? {
            TypedOperand::Time(moment) => Ok(moment),
            other => Err(wrong(
                &[operand],
                format!(
                    "found {}, expected a time: a DATE, TIMESTAMP or INTERVAL, or a date-time property",
                    shown(operand, &other)
                ),
            )),
        }
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
    // A box without width or height becomes a line or a point. A polygon without area has no interior, and
    // its spatial relations would be undefined.
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
        (Geometry::LineString(a), Geometry::LineString(b)) => Geometry::MultiLineString(MultiLineString(vec![a, b])),
        (Geometry::Point(a), Geometry::Point(b)) => Geometry::MultiPoint(MultiPoint(vec![a, b])),
        (a, b) => Geometry::GeometryCollection(vec![a, b].into()),
    })
}
