//! Shapes as tables of FlatGeobuf.

use super::tables::{Builder, GEOMETRY_ENDS, GEOMETRY_PARTS, GEOMETRY_POSITIONS, GEOMETRY_TYPE, Table};
use crate::write::WriteError;
use flatbuffers::{TableUnfinishedWIPOffset, WIPOffset};
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
        false => Err(WriteError::of(format!("a shape of another type in a layer of the type {}", layer.word()))),
    }
}

/// Builds a shape. In a layer of any type it has its own.
pub(super) fn write(builder: &mut Builder, shape: &Geometry<f64>, layer: GeometryType) -> Result<Table, WriteError> {
    let own = if layer == GeometryType::Any { kind(shape).map(code) } else { None };
    Ok(match shape {
        Geometry::Point(point) => simple(builder, own, &[std::slice::from_ref(&point.0)], false),
        Geometry::LineString(line) => simple(builder, own, &[line.0.as_slice()], false),
        Geometry::Polygon(polygon) => simple_polygon(builder, own, polygon),
        Geometry::MultiPoint(points) => {
            let points: Vec<&[Coord<f64>]> = points.0.iter().map(|point| std::slice::from_ref(&point.0)).collect();
            simple(builder, own, &points, false)
        }
        Geometry::MultiLineString(lines) => {
            let lines: Vec<&[Coord<f64>]> = lines.0.iter().map(|line| line.0.as_slice()).collect();
            // Also the end of an only part: GDAL does not read a multi-line without it.
            simple(builder, own, &lines, true)
        }
        Geometry::MultiPolygon(polygons) => {
            let parts: Vec<Table> = polygons.0.iter().map(|part| simple_polygon(builder, None, part)).collect();
            let parts = builder.create_vector(&parts);
            let table = builder.start_table();
            builder.push_slot_always(GEOMETRY_PARTS, parts);
            end(builder, table, own)
        }
        _ => return Err(WriteError::of("a shape of a type that collections do not have")),
    })
}

fn simple_polygon(builder: &mut Builder, own: Option<u8>, polygon: &Polygon<f64>) -> Table {
    let rings: Vec<&[Coord<f64>]> =
        std::iter::once(polygon.exterior()).chain(polygon.interiors()).map(|ring| ring.0.as_slice()).collect();
    simple(builder, own, &rings, rings.len() > 1)
}

/// Builds a geometry of positions, in parts.
fn simple(builder: &mut Builder, own: Option<u8>, parts: &[&[Coord<f64>]], has_ends: bool) -> Table {
    let numbers = 2 * parts.iter().map(|part| part.len()).sum::<usize>();
    // The builder goes back to front.
    builder.start_vector::<f64>(numbers);
    for at in parts.iter().rev().flat_map(|part| part.iter().rev()) {
        builder.push(at.y);
        builder.push(at.x);
    }
    let positions = builder.end_vector::<f64>(numbers);
    let ends = has_ends.then(|| {
        let mut end = 0;
        let ends = parts.iter().map(|part| {
            end += part.len() as u32;
            end
        });
        let ends: Vec<u32> = ends.collect();
        builder.create_vector(&ends)
    });
    let table = builder.start_table();
    if let Some(ends) = ends {
        builder.push_slot_always(GEOMETRY_ENDS, ends);
    }
    builder.push_slot_always(GEOMETRY_POSITIONS, positions);
    end(builder, table, own)
}

/// Ends the table of a geometry. Most have no type of their own: shapes are mostly points, where its bytes count.
fn end(builder: &mut Builder, table: WIPOffset<TableUnfinishedWIPOffset>, own: Option<u8>) -> Table {
    if let Some(own) = own {
        builder.push_slot_always(GEOMETRY_TYPE, own);
    }
    builder.end_table(table)
}
