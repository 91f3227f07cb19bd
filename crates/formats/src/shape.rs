//! Geometry in GeoJSON.

use crate::json::Json;
use crate::survey::Survey;
use geo_types::{Coord, Geometry, LineString, MultiLineString, MultiPoint, MultiPolygon, Point};
use meridian_model::geometry::VERTICES_MAX;
use meridian_model::{BatchBuilder, Invalid, mend};

/// A geometry as read; points are separate so that they need no allocation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Point(Coord<f64>),
    Other(Geometry<f64>),
}

impl Shape {
    /// Sets the shape of the current event, repaired if that is requested and needed.
    pub(crate) fn set(&self, builder: &mut BatchBuilder, survey: &mut Survey) -> Result<(), Invalid> {
        match self {
            Shape::Point(at) if builder.schema().geometry == Some(meridian_model::GeometryType::Point) => {
                builder.set_point(at.x, at.y)
            }
            Shape::Point(at) => builder.set_geometry(&Geometry::Point(Point(*at))),
            Shape::Other(shape) => match builder.set_geometry(shape) {
                // Only refused shapes are repaired: a sound shape keeps every position as written.
                Err(mistake) if survey.mends() => {
                    let mended = mend::untangle(shape).ok_or_else(|| mistake.clone())?;
                    builder.set_geometry(&mended).map_err(|_| mistake)?;
                    survey.untangled();
                    Ok(())
                }
                done => done,
            },
        }
    }

    /// Returns the type of the geometry; `None` for a mixed collection.
    pub(crate) fn kind(&self) -> Option<meridian_model::GeometryType> {
        match self {
            Shape::Point(_) => Some(meridian_model::GeometryType::Point),
            Shape::Other(shape) => meridian_model::geometry::kind(shape),
        }
    }

    /// Returns its type after the repair, if shapes are `mended` and this one needs it.
    pub(crate) fn kind_when_mended(&self, mended: bool) -> Option<meridian_model::GeometryType> {
        match self {
            Shape::Other(shape) if mended && meridian_model::geometry::validate(shape).is_err() => {
                mend::untangle(shape).as_ref().and_then(meridian_model::geometry::kind).or_else(|| self.kind())
            }
            _ => self.kind(),
        }
    }
}

/// Reads a GeoJSON geometry; `None` for null.
pub(crate) fn read(json: &mut Json<'_>, survey: &mut Survey) -> Result<Option<Shape>, Invalid> {
    if json.null()? {
        return Ok(None);
    }
    json.open_object()?;
    let mut kind = None;
    let mut shape = None;
    // Coordinates before the type are skipped, and read at the end.
    let mut coordinates: Option<Json<'_>> = None;
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key.as_ref() {
            "type" => {
                if kind.is_some() {
                    return Err(Invalid::new("the geometry has two members named type"));
                }
                kind = Some(json.string()?);
            }
            "coordinates" => {
                if coordinates.is_some() {
                    return Err(Invalid::new("the geometry has two members named coordinates"));
                }
                // A copy of the parser marks the place: members come in any order, and the type decides how to read
                // these.
                coordinates = Some(*json);
                match &kind {
                    Some(kind) => shape = Some(read_coordinates(kind, json, survey)?),
                    None => json.skip()?,
                }
            }
            _ => json.skip()?,
        }
    }
    let kind = kind.ok_or_else(|| Invalid::new("the geometry has no type"))?;
    if let Some(shape) = shape {
        return Ok(Some(shape));
    }
    match coordinates {
        Some(mut at) => read_coordinates(&kind, &mut at, survey).map(Some),
        None if kind == "GeometryCollection" => {
            Err(Invalid::new("a GeometryCollection is not supported: send its members as separate events"))
        }
        None => Err(Invalid::new("the geometry has no coordinates")),
    }
}

fn read_coordinates(kind: &str, json: &mut Json<'_>, survey: &mut Survey) -> Result<Shape, Invalid> {
    let mut count = 0;
    Ok(Shape::Other(match kind {
        "Point" => return Ok(Shape::Point(position(json, survey)?)),
        "LineString" => LineString::new(positions(json, &mut count, survey)?).into(),
        "MultiPoint" => MultiPoint::from(positions(json, &mut count, survey)?).into(),
        "Polygon" => {
            let rings = lines(json, &mut count, survey)?;
            survey.polygon(rings)?.into()
        }
        "MultiLineString" => {
            MultiLineString::new(lines(json, &mut count, survey)?.into_iter().map(LineString::new).collect()).into()
        }
        "MultiPolygon" => {
            let mut polygons = Vec::new();
            json.open_array()?;
            let mut first = true;
            while json.element(&mut first)? {
                let rings = lines(json, &mut count, survey)?;
                polygons.extend(survey.part(rings)?);
            }
            MultiPolygon::new(polygons).into()
        }
        other => {
            return Err(Invalid::new(format!(
                "{:?} is not a type of geometry: expected Point, LineString, Polygon, MultiPoint, MultiLineString or MultiPolygon",
                meridian_model::error::shorten(other)
            )));
        }
    }))
}

#[inline]
fn position(json: &mut Json<'_>, survey: &mut Survey) -> Result<Coord<f64>, Invalid> {
    json.open_array()?;
    let mut first = true;
    let mut values = [0.0; 2];
    let mut count = 0;
    while json.element(&mut first)? {
        let value = json.number()?.float();
        // Further numbers are read, so that errors in them are found, and then dropped.
        if let Some(slot) = values.get_mut(count) {
            *slot = value;
        }
        count += 1;
    }
    if !(2..=4).contains(&count) {
        return Err(Invalid::new(format!("a position of {count} numbers: expected [longitude, latitude]")));
    }
    if count > 2 {
        survey.height()?;
    }
    survey.position(values[0], values[1])
}

fn positions(json: &mut Json<'_>, count: &mut usize, survey: &mut Survey) -> Result<Vec<Coord<f64>>, Invalid> {
    let mut out = Vec::new();
    json.open_array()?;
    let mut first = true;
    while json.element(&mut first)? {
        out.push(position(json, survey)?);
        *count += 1;
        if *count > VERTICES_MAX {
            return Err(Invalid::new(format!("more than {VERTICES_MAX} vertices are too many")));
        }
    }
    Ok(out)
}

fn lines(json: &mut Json<'_>, count: &mut usize, survey: &mut Survey) -> Result<Vec<Vec<Coord<f64>>>, Invalid> {
    let mut out = Vec::new();
    json.open_array()?;
    let mut first = true;
    while json.element(&mut first)? {
        out.push(positions(json, count, survey)?);
    }
    Ok(out)
}
