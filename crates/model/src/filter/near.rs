//! `near`: events within a distance of a place.

use super::globe::{between_meridians, distance_to_box_m, distance_to_geometry_m, farthest_in_box_m};
use super::outcomes::Outcomes;
use super::place::Places;
use super::region::Region;
use super::truth::Truth;
use crate::batch::Batch;
use crate::bounds::Bounds;
use crate::sphere::{EARTH_RADIUS_M, distance_m};
use arrow_buffer::BooleanBuffer;
use std::f64::consts::PI;

/// Slack in degrees of latitude, about a centimetre: more than the error of a distance to a shape.
const SIDE_MARGIN: f64 = 1e-7;

/// A spherical cap, with precomputed values that make point tests cheap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Near {
    lon: f64,
    lat: f64,
    radius_m: f64,
    cos_lat: f64,
    /// Degrees of latitude and of longitude beyond which no point of the cap lies.
    lat_reach: f64,
    lon_reach: f64,
    /// A box that holds the cap, west, south, east, north: all longitudes if it reaches the antimeridian.
    sides: [f64; 4],
    /// Haversines certainly within and certainly beyond the radius; between the two, rounding decides: see
    /// [`distance_m`].
    within: f64,
    beyond: f64,
}

impl Near {
    pub(crate) fn new(lon: f64, lat: f64, radius_m: f64) -> Near {
        // A NaN position or radius matches nothing, like a negative radius.
        let radius_m = if lon.is_finite() && lat.is_finite() && !radius_m.is_nan() { radius_m } else { -1.0 };
        let angle = (radius_m / EARTH_RADIUS_M).clamp(0.0, PI);
        let cos_lat = lat.to_radians().cos();
        let lat_reach = angle.to_degrees() + 1e-9;
        let lon_reach = if lat.abs() + lat_reach >= 90.0 {
            180.0
        } else {
            // The meridians tangent to the cap.
            (angle.sin() / cos_lat).min(1.0).asin().to_degrees() + 1e-9
        };
        let haversine = (0.5 * angle).sin().powi(2);
        let (lat_side, lon_side) = (lat_reach + SIDE_MARGIN, lon_reach + SIDE_MARGIN / cos_lat.max(1e-6));
        let (west, east) = (lon - lon_side, lon + lon_side);
        let (west, east) = if west < -180.0 || east > 180.0 { (-180.0, 180.0) } else { (west, east) };
        Near {
            lon,
            lat,
            radius_m,
            cos_lat,
            lat_reach,
            lon_reach,
            sides: [west, lat - lat_side, east, lat + lat_side],
            within: haversine * (1.0 - 1e-9) - 1e-18,
            beyond: haversine * (1.0 + 1e-9) + 1e-18,
        }
    }

    /// A box that holds the cap: all longitudes if it reaches the antimeridian.
    pub(crate) fn sides(&self) -> [f64; 4] {
        self.sides
    }

    #[inline]
    fn holds(&self, lon: f64, lat: f64) -> bool {
        // Two subtractions rule out most places before any sine is computed.
        let d_lat = (lat - self.lat).abs();
        let d_lon = between_meridians(lon, self.lon);
        if d_lat > self.lat_reach || d_lon > self.lon_reach {
            return false;
        }
        let (half_phi, half_lambda) = ((0.5 * d_lat).to_radians().sin(), (0.5 * d_lon).to_radians().sin());
        let haversine = half_phi * half_phi + self.cos_lat * lat.to_radians().cos() * half_lambda * half_lambda;
        if haversine <= self.within {
            return true;
        }
        haversine < self.beyond && distance_m(self.lon, self.lat, lon, lat) <= self.radius_m
    }

    pub(crate) fn evaluate(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        let rows = batch.rows();
        if self.radius_m < 0.0 {
            return Places::of(batch).constant(false, rows);
        }
        match Places::of(batch) {
            Places::None => Truth::unknown(rows),
            Places::Points { lon, lat, nulls } => {
                // Most rows lie outside the cap's box, which is cheap to test.
                let boxed = in_box(&self.sides, lon, lat);
                let open = open.map_or_else(|| boxed.clone(), |open| open & &boxed);
                Truth::test_open(rows, Some(&open), nulls.as_ref(), |i| self.holds(lon[i], lat[i]))
            }
            Places::Shapes { sides, nulls } => Truth::test_open(rows, open, nulls.as_ref(), |i| {
                let [west, south, east, north] = sides.row(i);
                let bounds = Bounds { west, south, east, north, start: 0, end: 0 };
                if distance_to_box_m(self.lon, self.lat, &bounds) > self.radius_m {
                    return false;
                }
                if farthest_in_box_m(self.lon, self.lat, &bounds) <= self.radius_m {
                    return true;
                }
                batch
                    .geometry(i)
                    .is_some_and(|shape| distance_to_geometry_m(self.lon, self.lat, &shape) <= self.radius_m)
            }),
        }
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        let bounds = region.bounds();
        if bounds.is_nowhere() {
            return Outcomes::UNKNOWN;
        }
        // Most regions are outside the cap's box, and regions that exceed it are not within the cap: no trigonometry
        // needed.
        let [west, south, east, north] = self.sides;
        if bounds.east < west || bounds.west > east || bounds.north < south || bounds.south > north {
            return Outcomes::FALSE.with_unknown(region.some_nowhere());
        }
        let reaches_over = bounds.west < west || bounds.east > east || bounds.south < south || bounds.north > north;
        let nearest = distance_to_box_m(self.lon, self.lat, &bounds);
        let some_beyond = reaches_over || farthest_in_box_m(self.lon, self.lat, &bounds) > self.radius_m;
        Outcomes::of(nearest <= self.radius_m, some_beyond).with_unknown(region.some_nowhere())
    }
}

/// A box (west, south, east, north, in degrees) that contains all places within a distance of a place, by
/// [`distance_m`]. It spans all longitudes if it reaches the antimeridian.
pub fn box_around(lon: f64, lat: f64, radius_m: f64) -> [f64; 4] {
    Near::new(lon, lat, radius_m).sides
}

/// Which of the given points lie in a box, ends included.
fn in_box(sides: &[f64; 4], lon: &[f64], lat: &[f64]) -> BooleanBuffer {
    let [west, south, east, north] = *sides;
    // Branchless, so that it vectorizes.
    BooleanBuffer::collect_bool(lon.len().min(lat.len()), |i| {
        (west <= lon[i]) & (lon[i] <= east) & (south <= lat[i]) & (lat[i] <= north)
    })
}

/// Distances in metres from a place in degrees to each row. Great-circle for points, to the nearest point for shapes
/// ([`distance_to_geometry_m`]). Infinite for rows without geometry. Reads the whole geometry.
pub fn distances_m(batch: &Batch, lon: f64, lat: f64) -> Vec<f64> {
    let rows = 0..batch.rows();
    match Places::of(batch) {
        Places::None => vec![f64::INFINITY; batch.rows()],
        Places::Points { lon: lons, lat: lats, nulls } => rows
            .map(|i| match &nulls {
                Some(nulls) if nulls.is_null(i) => f64::INFINITY,
                _ => distance_m(lon, lat, lons[i], lats[i]),
            })
            .collect(),
        Places::Shapes { .. } => rows
            .map(|i| batch.geometry(i).map_or(f64::INFINITY, |shape| distance_to_geometry_m(lon, lat, &shape)))
            .collect(),
    }
}
