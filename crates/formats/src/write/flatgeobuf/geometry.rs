//! Shapes as tables of FlatGeobuf.

use super::message::{Message, Slot};
use crate::write::WriteError;
use geo_types::{Coord, Geometry, MultiLineString, MultiPoint, MultiPolygon, Polygon};
use meridian_model::GeometryType;
use meridian_model::geometry::kind;

/// Returns the number of a type in the format.
pub(super) fn code(kind: GeometryType) -> u8 {
    match kind {
        GeometryType::Any => 0,
        GeometryType::Point => 1,
        GeometryType::Line => 2,
        GeometryType::Polygon => 3,
        GeometryType::MultiPoint => 4,
        GeometryType::MultiLine => 5,
        GeometryType::MultiPolygon => 6,
    }
}

/// Returns a shape in the type of its layer: in layers of multi types, single shapes become multi ones.
pub(super) fn typed(shape: Geometry<f64>, layer: GeometryType) -> Result<Geometry<f64>, WriteError> {
    let shape: Geometry<f64> = match (layer, shape) {
        (GeometryType::MultiPoint, Geometry::Point(one)) => MultiPoint(vec![one]).into(),
        (GeometryType::MultiLine, Geometry::LineString(one)) => MultiLineString(vec![one]).into(),
        (GeometryType::MultiPolygon, Geometry::Polygon(one)) => MultiPolygon(vec![one]).into(),
        (_, shape) => shape,
    };
    match layer == GeometryType::Any || kind(&shape) == Some(layer) {
        true => Ok(shape),
        false => Err(WriteError(format!("a shape of another type in a layer of the type {}", layer.word()))),
    }
}

/// Appends a shape, to which the offset at `from` leads. In a layer of any type it has its own.
pub(super) fn write(
    message: &mut Message<'_>,
    from: usize,
    shape: &Geometry<f64>,
    layer: GeometryType,
) -> Result<(), WriteError> {
    let own = match layer {
        GeometryType::Any => kind(shape).map_or(Slot::Absent, |kind| Slot::Byte(code(kind))),
        _ => Slot::Absent,
    };
    match shape {
        Geometry::Point(point) => simple(message, from, own, &[std::slice::from_ref(&point.0)], false),
        Geometry::LineString(line) => simple(message, from, own, &[line.0.as_slice()], false),
        Geometry::Polygon(polygon) => simple_polygon(message, from, own, polygon),
        Geometry::MultiPoint(points) => {
            let points: Vec<&[Coord<f64>]> = points.0.iter().map(|point| std::slice::from_ref(&point.0)).collect();
            simple(message, from, own, &points, false);
        }
        Geometry::MultiLineString(lines) => {
            let lines: Vec<&[Coord<f64>]> = lines.0.iter().map(|line| line.0.as_slice()).collect();
            // Also the end of an only part: GDAL does not read a multi-line without it.
            simple(message, from, own, &lines, true);
        }
        Geometry::MultiPolygon(polygons) => {
            let [.., parts] = message.table(from, fields(Slot::Absent, Slot::Absent, own, Slot::Offset));
            let parts = message.offsets(parts, polygons.0.len());
            parts.zip(&polygons.0).for_each(|(at, part)| simple_polygon(message, at, Slot::Absent, part));
        }
        _ => return Err(WriteError("a shape of a type that collections do not have".to_owned())),
    }
    Ok(())
}

/// The fields of a geometry: the ends of its parts, its positions, its type, and parts with geometries of their own.
fn fields(ends: Slot, positions: Slot, own: Slot, parts: Slot) -> [Slot; 8] {
    let none = Slot::Absent;
    [ends, positions, none, none, none, none, own, parts]
}

fn simple_polygon(message: &mut Message<'_>, from: usize, own: Slot, polygon: &Polygon<f64>) {
    let rings: Vec<&[Coord<f64>]> =
        std::iter::once(polygon.exterior()).chain(polygon.interiors()).map(|ring| ring.0.as_slice()).collect();
    simple(message, from, own, &rings, rings.len() > 1);
}

/// Appends a geometry of positions, in parts.
fn simple(message: &mut Message<'_>, from: usize, own: Slot, parts: &[&[Coord<f64>]], has_ends: bool) {
    let ends_slot = if has_ends { Slot::Offset } else { Slot::Absent };
    let [ends, positions] = match own {
        // Without the fields after the positions: most shapes are points, where these bytes count.
        Slot::Absent => message.table(from, [ends_slot, Slot::Offset]),
        own => {
            let [ends, positions, ..] = message.table(from, fields(ends_slot, Slot::Offset, own, Slot::Absent));
            [ends, positions]
        }
    };
    if has_ends {
        let mut end = 0;
        let all: Vec<u32> = parts
            .iter()
            .map(|part| {
                end += part.len() as u32;
                end
            })
            .collect();
        message.counts(ends, &all);
    }
    message.floats(positions, parts.iter().flat_map(|part| part.iter()).flat_map(|at| [at.x, at.y]));
}
