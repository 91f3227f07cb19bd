//! Shapes on the globe: checks, boxes and well-known binary.

use crate::error::Invalid;
use crate::ring::{self, RingFault};
use crate::schema::GeometryType;
use geo::CoordsIter;
use geo::algorithm::bounding_rect::BoundingRect;
use geo::coordinate_position::CoordPos;
use geo::dimensions::Dimensions;
use geo::relate::IntersectionMatrix;
use geo::{Intersects, PreparedGeometry, Relate};
use geo_types::{Geometry, Polygon};

/// Max vertices of one geometry.
pub const VERTICES_MAX: usize = 1_000_000;

/// The type of a geometry; mixed collections have none.
pub fn kind(geometry: &Geometry<f64>) -> Option<GeometryType> {
    Some(match geometry {
        Geometry::Point(_) => GeometryType::Point,
        Geometry::Line(_) | Geometry::LineString(_) => GeometryType::Line,
        Geometry::Polygon(_) | Geometry::Rect(_) | Geometry::Triangle(_) => GeometryType::Polygon,
        Geometry::MultiPoint(_) => GeometryType::MultiPoint,
        Geometry::MultiLineString(_) => GeometryType::MultiLine,
        Geometry::MultiPolygon(_) => GeometryType::MultiPolygon,
        Geometry::GeometryCollection(_) => return None,
    })
}

/// The lines through the points, each with its time in microseconds, cut at the antimeridian (RFC 7946, 3.1.9).
///
/// A point on the antimeridian has the side of its line, and both sides if the line is cut at it. Any other cut adds a
/// point to both pieces. A line has at least two points, unless there is only one in all.
pub fn cut_at_antimeridian(points: impl IntoIterator<Item = (f64, f64, i64)>) -> Vec<Vec<(f64, f64, i64)>> {
    let mut lines = Vec::new();
    let mut line: Vec<(f64, f64, i64)> = Vec::new();
    for (mut to_lon, to_lat, to_time) in points {
        if let Some(&(lon, lat, time)) = line.last()
            && (to_lon - lon).abs() > 180.0
        {
            let edge = 180f64.copysign(lon);
            if to_lon == -edge {
                to_lon = edge;
            } else if line.iter().all(|point| point.0 == edge) {
                // A line that has not left the antimeridian has no side yet. It takes that of its next point.
                line.iter_mut().for_each(|point| point.0 = -edge);
            } else {
                // The short way round: continue beyond the edge, find the latitude and the time there, and start a new
                // line on the other side.
                let beyond = to_lon + 2.0 * edge;
                let share = (edge - lon) / (beyond - lon);
                let crossing = lat + share * (to_lat - lat);
                // A float does not hold every microsecond far from 1970, so only the difference of the times is one.
                let (from, to) = (i128::from(time), i128::from(to_time));
                let crossed = from + (share * (to - from) as f64).round() as i128;
                let crossed = crossed.clamp(from.min(to), from.max(to)) as i64;
                if lon != edge {
                    line.push((edge, crossing, crossed));
                }
                lines.push(std::mem::take(&mut line));
                line.push((-edge, crossing, crossed));
            }
        }
        line.push((to_lon, to_lat, to_time));
    }
    lines.push(line);
    lines
}

/// Checks one longitude and latitude in degrees.
#[inline]
pub fn validate_position(lon: f64, lat: f64) -> Result<(), Invalid> {
    if (-180.0..=180.0).contains(&lon) && (-90.0..=90.0).contains(&lat) {
        return Ok(());
    }
    Err(explain_position(lon, lat))
}

#[cold]
fn explain_position(lon: f64, lat: f64) -> Invalid {
    let detail = if !lon.is_finite() || !lat.is_finite() {
        format!("the position [{lon}, {lat}] is not a pair of finite numbers")
    } else if (-90.0..=90.0).contains(&lon) && (-180.0..=180.0).contains(&lat) {
        format!("latitude {lat} is outside -90..90; are longitude and latitude swapped? expected [longitude, latitude]")
    } else if !(-180.0..=180.0).contains(&lon) {
        format!(
            "longitude {lon} is outside -180..180; a shape that crosses the antimeridian is written in two parts (RFC 7946, 3.1.9)"
        )
    } else {
        format!("latitude {lat} is outside -90..90")
    };
    Invalid::field("geometry", detail)
}

/// Checks a geometry: positions in range, enough vertices, rings closed by the parser and not self-crossing.
pub fn validate(geometry: &Geometry<f64>) -> Result<(), Invalid> {
    if kind(geometry).is_none() {
        return Err(Invalid::field(
            "geometry",
            "a GeometryCollection is not supported: send its members as separate events",
        ));
    }
    let mut vertices = 0usize;
    for position in geometry.coords_iter() {
        validate_position(position.x, position.y)?;
        vertices += 1;
    }
    if vertices == 0 {
        return Err(Invalid::field("geometry", "the geometry has no positions"));
    }
    if vertices > VERTICES_MAX {
        return Err(Invalid::field("geometry", format!("{vertices} vertices are too many: at most {VERTICES_MAX}")));
    }
    match geometry {
        Geometry::LineString(line) if line.0.len() < 2 => {
            Err(Invalid::field("geometry", "a LineString needs at least two positions"))
        }
        Geometry::MultiLineString(lines) if lines.iter().any(|l| l.0.len() < 2) => {
            Err(Invalid::field("geometry", "each line of a MultiLineString needs at least two positions"))
        }
        Geometry::Polygon(polygon) => validate_polygon(polygon),
        Geometry::MultiPolygon(polygons) => polygons.iter().try_for_each(validate_polygon),
        _ => Ok(()),
    }
}

fn validate_polygon(polygon: &Polygon<f64>) -> Result<(), Invalid> {
    let wrong = |what: String| Invalid::field("geometry", format!("the polygon is not valid: {what}"));
    for (i, ring) in std::iter::once(polygon.exterior()).chain(polygon.interiors()).enumerate() {
        let name = || if i == 0 { "the exterior ring".to_owned() } else { format!("the interior ring {i}") };
        ring::check(&ring.0).map_err(|fault| {
            wrong(match fault {
                RingFault::TooFew => format!("{} must have at least 3 distinct points", name()),
                RingFault::Crosses => format!("{} has a self-intersection", name()),
                RingFault::TooIntricate => format!("{} is too intricate to be checked: simplify it", name()),
            })
        })?;
    }
    if polygon.interiors().is_empty() { Ok(()) } else { validate_holes(polygon).map_err(wrong) }
}

/// Max work of checking holes, counted in vertices visited by ring tests and in pairs of boxes: about a second.
const HOLES_WORK_MAX: usize = 100_000_000;

/// Checks that holes lie in the outer ring and are disjoint; they may touch at points. A check that would exceed
/// [`HOLES_WORK_MAX`] is rejected.
fn validate_holes(polygon: &Polygon<f64>) -> Result<(), String> {
    let outer = Polygon::new(polygon.exterior().clone(), vec![]);
    let outer = PreparedGeometry::from(&outer);
    let on_a_line =
        |m: &IntersectionMatrix| m.get(CoordPos::OnBoundary, CoordPos::OnBoundary) == Dimensions::OneDimensional;
    let holes: Vec<_> = polygon.interiors().iter().map(|ring| Polygon::new(ring.clone(), vec![])).collect();
    let boxes: Vec<_> = holes.iter().map(|hole| hole.bounding_rect()).collect();
    let outline = polygon.exterior().0.len();
    let mut work = 0;
    let mut within = |more: usize| {
        work += more;
        if work > HOLES_WORK_MAX {
            Err("its rings are too intricate to be checked: simplify them".to_owned())
        } else {
            Ok(())
        }
    };
    for (i, hole) in holes.iter().enumerate() {
        within(outline + hole.exterior().0.len() + holes.len() - i)?;
        let prepared = PreparedGeometry::from(hole);
        let matrix = outer.relate(&prepared);
        if !matrix.is_contains() {
            return Err(format!("the interior ring {} is not contained in the exterior ring", i + 1));
        }
        if on_a_line(&matrix) {
            return Err(format!("the interior ring {} and the exterior ring meet on a line", i + 1));
        }
        for (j, other) in holes.iter().enumerate().skip(i + 1) {
            // Disjoint boxes decide most pairs; thousands of islands would take far too long otherwise.
            if let (Some(a), Some(b)) = (boxes[i], boxes[j])
                && !a.intersects(&b)
            {
                continue;
            }
            within(hole.exterior().0.len() + other.exterior().0.len())?;
            let matrix = prepared.relate(other);
            let overlap = matrix.get(CoordPos::Inside, CoordPos::Inside) == Dimensions::TwoDimensional;
            if overlap || on_a_line(&matrix) {
                return Err(format!("the interior rings {} and {} overlap", i + 1, j + 1));
            }
        }
    }
    Ok(())
}

/// West, south, east and north of a geometry; `None` if it has no positions.
pub fn sides(geometry: &Geometry<f64>) -> Option<[f64; 4]> {
    let rect = geometry.bounding_rect()?;
    Some([rect.min().x, rect.min().y, rect.max().x, rect.max().y])
}

/// Encodes as OGC well-known binary (little-endian, two dimensions).
pub fn to_wkb(geometry: &Geometry<f64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to a Vec cannot fail, and every `geo_types` geometry has a WKB form.
    let _ = wkb::writer::write_geometry(&mut bytes, geometry, &wkb::writer::WriteOptions::default());
    bytes
}

/// Decodes well-known binary.
pub fn from_wkb(bytes: &[u8]) -> Result<Geometry<f64>, Invalid> {
    use geo_traits::to_geo::ToGeoGeometry;
    let wrong = |what: String| Invalid::field("geometry", format!("not well-known binary: {what}"));
    // The reader trusts the headers of a multipoint's points, and panics if they announce more than is present (wkb
    // 0.9.3). No state survives the panic, so the bytes are rejected like any other invalid ones.
    let read = std::panic::catch_unwind(|| {
        let read = wkb::reader::read_wkb(bytes).map_err(|e| wrong(e.to_string()))?;
        read.try_to_geometry().ok_or_else(|| wrong("an empty point".to_owned()))
    });
    read.unwrap_or_else(|_| Err(wrong("a part of it announces more than is there".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::tests::events::geometry;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shapes_come_back_from_binary(shape in geometry()) {
            prop_assert_eq!(from_wkb(&to_wkb(&shape)), Ok(shape.clone()));
            let [west, south, east, north] = sides(&shape).unwrap();
            for at in shape.coords_iter() {
                prop_assert!(west <= at.x && at.x <= east && south <= at.y && at.y <= north);
            }
        }

        #[test]
        fn damaged_binary_is_read_or_refused(
            shape in geometry(),
            cut in any::<prop::sample::Index>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = to_wkb(&shape);
            prop_assert!(from_wkb(&bytes[..cut.index(bytes.len())]).is_err());
            for (at, put) in changes {
                let at = at.index(bytes.len());
                bytes[at] = put;
            }
            if let Ok(shape) = from_wkb(&bytes) {
                let _ = (validate(&shape), kind(&shape), sides(&shape));
            }
        }

        #[test]
        fn points_that_announce_more_than_is_there_are_refused(flags in any::<u8>(), at in 0usize..2) {
            let shape = Geometry::MultiPoint(vec![(0.0, 0.0), (1.0, 1.0)].into());
            let mut bytes = to_wkb(&shape);
            // The last byte of a point's type: it has flags for a coordinate system and for more dimensions.
            bytes[9 + at * 21 + 4] = flags;
            let _ = from_wkb(&bytes);
        }

        /// One after the other, the pieces are the points as given: each once, but for one at a cut, which both pieces
        /// have. Any other cut has a point of its own, with a latitude and a time between those of its neighbours.
        #[test]
        fn a_cut_line_has_its_points_and_one_on_either_side_of_each_cut(
            points in prop::collection::vec(
                (
                    prop_oneof![-180.0..180.0f64, prop::sample::select(vec![-180.0, -179.0, 179.0, 180.0])],
                    prop_oneof![-90.0..90.0f64, Just(1.0)],
                    prop_oneof![0..1i64 << 50, 0..50i64],
                ),
                1..12,
            ),
            year in prop::sample::select(vec![853i64, 1970, 2300, 6684, 9999]),
        ) {
            let mut points = points;
            points.iter_mut().for_each(|point| point.2 += (year - 1970) * 31_556_952_000_000);
            points.sort_by_key(|point| point.2);
            let lines = cut_at_antimeridian(points.iter().copied());
            prop_assert!(points.len() == 1 || lines.iter().all(|line| line.len() > 1), "{lines:?}");
            let is_off = |point: &(f64, f64, i64)| point.0.abs() < 180.0;
            // Both longitudes of the antimeridian are one place.
            let place = |&(lon, lat, time): &(f64, f64, i64)| (if lon == -180.0 { 180.0 } else { lon }, lat, time);
            let mut all = lines[0].clone();
            for pair in lines.windows(2) {
                let (end, begin) = (pair[0][pair[0].len() - 1], pair[1][0]);
                prop_assert_eq!((end.0.abs(), begin.0, begin.1, begin.2), (180.0, -end.0, end.1, end.2));
                let (before, after) = (pair[0][pair[0].len() - 2], pair[1][1]);
                // The cut is needed: the line leaves one side for the other.
                prop_assert!(pair[0].iter().any(is_off) && is_off(&after), "{lines:?}");
                prop_assert!((after.0 - end.0).abs() > 180.0, "{lines:?}");
                if points.get(all.len() - 1).map(place) != Some(place(&end)) {
                    prop_assert!(is_off(&before), "{before:?} {end:?}");
                    prop_assert!((before.2..=after.2).contains(&end.2), "{before:?} {end:?} {after:?}");
                    let (south, north) = (before.1.min(after.1) - 1e-9, before.1.max(after.1) + 1e-9);
                    prop_assert!((south..=north).contains(&end.1), "{before:?} {end:?} {after:?}");
                    // The same share of the way and of the time, but for rounding.
                    let way = (end.0 - before.0) / (after.0 + 2.0 * end.0 - before.0);
                    let time = (after.2 - before.2) as f64;
                    prop_assert!((way * time - (end.2 - before.2) as f64).abs() <= 1.0, "{before:?} {end:?} {after:?}");
                    all.pop();
                }
                all.extend(&pair[1][1..]);
            }
            let places = |points: &[(f64, f64, i64)]| points.iter().map(place).collect::<Vec<_>>();
            prop_assert_eq!(places(&all), places(&points));
            let far = |line: &Vec<(f64, f64, i64)>| line.windows(2).any(|two| (two[0].0 - two[1].0).abs() > 180.0);
            prop_assert!(!lines.iter().any(far), "{lines:?}");
        }

        #[test]
        fn positions_are_those_of_the_globe(lon in -400.0..400.0f64, lat in -400.0..400.0f64) {
            let on_the_globe = lon.abs() <= 180.0 && lat.abs() <= 90.0;
            prop_assert_eq!(validate_position(lon, lat).is_ok(), on_the_globe);
            prop_assert!(validate_position(f64::NAN, lat).is_err() && validate_position(lon, f64::INFINITY).is_err());
        }
    }

    #[test]
    fn a_point_on_the_antimeridian_is_on_the_side_of_its_line() {
        for (points, lines) in [
            (vec![(180.0, 1.0, 0)], vec![vec![(180.0, 1.0, 0)]]),
            (vec![(180.0, 1.0, 0), (-179.0, 2.0, 1)], vec![vec![(-180.0, 1.0, 0), (-179.0, 2.0, 1)]]),
            (vec![(-178.0, 1.0, 0), (180.0, 2.0, 1)], vec![vec![(-178.0, 1.0, 0), (-180.0, 2.0, 1)]]),
            // Along the antimeridian, and away to the other side.
            (
                vec![(180.0, 1.0, 0), (-180.0, 1.0, 1), (180.0, 2.0, 2), (-179.0, 3.0, 3)],
                vec![vec![(-180.0, 1.0, 0), (-180.0, 1.0, 1), (-180.0, 2.0, 2), (-179.0, 3.0, 3)]],
            ),
            // To the antimeridian and back.
            (
                vec![(179.0, 0.0, 0), (-180.0, 1.0, 1), (179.0, 2.0, 2)],
                vec![vec![(179.0, 0.0, 0), (180.0, 1.0, 1), (179.0, 2.0, 2)]],
            ),
            // Over it: the line is cut at the point.
            (
                vec![(179.0, 0.0, 0), (180.0, 1.0, 1), (-179.0, 2.0, 2)],
                vec![vec![(179.0, 0.0, 0), (180.0, 1.0, 1)], vec![(-180.0, 1.0, 1), (-179.0, 2.0, 2)]],
            ),
            // At one place.
            (vec![(-180.0, 1.0, 0), (180.0, 1.0, 1)], vec![vec![(-180.0, 1.0, 0), (-180.0, 1.0, 1)]]),
        ] {
            assert_eq!(cut_at_antimeridian(points.iter().copied()), lines, "{points:?}");
        }
    }

    #[test]
    fn an_outline_with_too_many_holes_to_check_is_refused() {
        let ring = |lon: f64, lat: f64, radius: f64, vertices: usize| -> geo_types::LineString<f64> {
            let at = |n: usize| std::f64::consts::TAU * n as f64 / vertices as f64;
            (0..vertices).map(|n| (lon + radius * at(n).cos(), lat + radius * at(n).sin())).collect()
        };
        let holes = |count: usize, outline: usize| {
            let hole = |n: usize| ring((n % 200) as f64 * 0.3 - 30.0, (n / 200) as f64 * 0.3 - 15.0, 0.1, 4);
            Geometry::Polygon(Polygon::new(ring(0.0, 0.0, 50.0, outline), (0..count).map(hole).collect()))
        };
        assert_eq!(validate(&holes(500, 20_000)), Ok(()));
        let refused = validate(&holes(20_000, 20_000)).unwrap_err();
        assert!(refused.detail.contains("too intricate"), "{refused}");
    }
}
