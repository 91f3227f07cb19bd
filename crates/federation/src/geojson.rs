//! GeoJSON geometries in JSON values, for questions and for the responses of sources.

use geo_types::{Coord, Geometry, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use meridian_model::{Invalid, geometry};
use serde_json::{Value, json};

/// Reads a geometry and checks its positions. Altitudes are dropped.
pub fn read(value: &Value) -> Result<Geometry<f64>, Invalid> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let at = value.get("coordinates").unwrap_or(&Value::Null);
    let shape = match kind {
        "Point" => Geometry::Point(Point(position(at)?)),
        "LineString" => Geometry::LineString(line(at)?),
        "Polygon" => Geometry::Polygon(polygon(at)?),
        "MultiPoint" => Geometry::MultiPoint(MultiPoint(each(at, |at| position(at).map(Point))?)),
        "MultiLineString" => Geometry::MultiLineString(MultiLineString(each(at, line)?)),
        "MultiPolygon" => Geometry::MultiPolygon(MultiPolygon(each(at, polygon)?)),
        _ => return Err(Invalid::new("expected a GeoJSON geometry: a type such as Point or Polygon, and coordinates")),
    };
    geometry::validate(&shape)?;
    Ok(shape)
}

/// Returns a point as GeoJSON.
pub fn point(lon: f64, lat: f64) -> Value {
    json!({ "type": "Point", "coordinates": [lon, lat] })
}

fn each<T>(value: &Value, read: impl Fn(&Value) -> Result<T, Invalid>) -> Result<Vec<T>, Invalid> {
    value.as_array().ok_or_else(|| Invalid::new("coordinates: expected an array"))?.iter().map(read).collect()
}

fn position(value: &Value) -> Result<Coord<f64>, Invalid> {
    let number = |at: usize| value.get(at).and_then(Value::as_f64);
    match (number(0), number(1)) {
        (Some(x), Some(y)) => Ok(Coord { x, y }),
        _ => Err(Invalid::new("coordinates: expected [longitude, latitude]")),
    }
}

fn line(value: &Value) -> Result<LineString<f64>, Invalid> {
    each(value, position).map(LineString)
}

fn polygon(value: &Value) -> Result<Polygon<f64>, Invalid> {
    let mut rings = each(value, line)?.into_iter();
    let outer = rings.next().ok_or_else(|| Invalid::new("a polygon without a ring"))?;
    Ok(Polygon::new(outer, rings.collect()))
}
