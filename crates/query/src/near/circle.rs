//! A circle on the globe, compared with boxes and positions by haversines: a comparison costs no square root.

use meridian_model::Bounds;
use meridian_model::filter::{distance_to_box_m, farthest_in_box_m};
use meridian_model::sphere::EARTH_RADIUS_M;
use std::f64::consts::FRAC_PI_2;

/// A circle on the globe.
#[derive(Debug, Clone, Copy)]
pub struct Circle {
    lon: f64,
    lat: f64,
    /// Haversine of the radius. All distances here are compared as haversines.
    pub(super) reach: f64,
    sin_lat: f64,
    cos_lat: f64,
    /// Whether all angles in the circle's box are below [`SMALL`], so that short series can replace sines and
    /// cosines.
    small: bool,
    /// Boxes that cover the circle, two if it crosses the antimeridian: west, south, east, north.
    pub(super) boxes: [Option<[f64; 4]>; 2],
}

/// Max angle in radians for which [`sin_small`] and [`haversine_small`] are exact to the last digits of a double.
const SMALL: f64 = 0.06;

/// Sine of a small angle: the first omitted term is below 3e-17. Multiplies by reciprocals, as a division costs as
/// much as the rest.
#[inline(always)]
fn sin_small(x: f64) -> f64 {
    let x2 = x * x;
    x * (1.0 - x2 * (1.0 / 6.0) * (1.0 - x2 * (1.0 / 20.0) * (1.0 - x2 * (1.0 / 42.0))))
}

/// Haversine (square of the sine of the half) of a small angle, given its square: the first omitted term is below
/// 1e-16 of it.
#[inline(always)]
fn haversine_small(x2: f64) -> f64 {
    x2 * 0.25 * (1.0 - x2 * (1.0 / 12.0) * (1.0 - x2 * (1.0 / 30.0) * (1.0 - x2 * (1.0 / 56.0))))
}

/// Haversine of a distance in metres, monotonic up to half the globe.
fn haversine_of(distance_m: f64) -> f64 {
    let half = (distance_m / EARTH_RADIUS_M / 2.0).clamp(0.0, FRAC_PI_2).sin();
    half * half
}

impl Circle {
    /// A circle around a position in degrees; the radius is in metres.
    pub fn new(lon: f64, lat: f64, radius_m: f64) -> Circle {
        let angle = radius_m / EARTH_RADIUS_M;
        // Slightly wider than exact: the boxes only save work, the haversine decides.
        let slack = 1e-9;
        let (south, north) = (lat - angle.to_degrees() - slack, lat + angle.to_degrees() + slack);
        let (sin_lat, cos_lat) = lat.to_radians().sin_cos();
        let mut small = false;
        let boxes = if south <= -90.0 || north >= 90.0 {
            [Some([-180.0, south, 180.0, north]), None]
        } else {
            // The meridians tangent to the circle, which touch it beyond its easternmost point on its own parallel.
            let wide = (angle.sin() / cos_lat).clamp(-1.0, 1.0).asin().to_degrees() + slack;
            let (west, east) = (lon - wide, lon + wide);
            if west < -180.0 {
                [Some([-180.0, south, east, north]), Some([west + 360.0, south, 180.0, north])]
            } else if east > 180.0 {
                [Some([west, south, 180.0, north]), Some([-180.0, south, east - 360.0, north])]
            } else {
                small = angle < SMALL && wide.to_radians() < SMALL;
                [Some([west, south, east, north]), None]
            }
        };
        Circle { lon, lat, reach: haversine_of(radius_m), sin_lat, cos_lat, small, boxes }
    }

    /// A box that holds the circle.
    pub fn bounds(&self) -> Bounds {
        self.boxes.iter().flatten().fold(Bounds::EMPTY, |all, &[west, south, east, north]| {
            all.union(&Bounds { west, south, east, north, ..Bounds::WORLD })
        })
    }

    /// Haversine of the distance to a position in degrees, which must be in the circle's box if `small`.
    #[inline]
    fn haversine(&self, lon: f64, lat: f64) -> f64 {
        if self.small {
            return self.haversine_small(lon, lat);
        }
        let (phi, lambda) = ((lat - self.lat).to_radians(), (lon - self.lon).to_radians());
        let (half_phi, half_lambda) = ((phi * 0.5).sin(), (lambda * 0.5).sin());
        half_phi * half_phi + self.cos_lat * lat.to_radians().cos() * half_lambda * half_lambda
    }

    /// The same by short series, branchless: a loop over many positions vectorizes.
    #[inline(always)]
    fn haversine_small(&self, lon: f64, lat: f64) -> f64 {
        const RADIANS: f64 = std::f64::consts::PI / 180.0;
        let (phi, lambda) = ((lat - self.lat) * RADIANS, (lon - self.lon) * RADIANS);
        let haversine_phi = haversine_small(phi * phi);
        // The cosine of the sum of the latitude and a small angle, whose cosine is 1 - 2 haversines.
        let cos_lat = self.cos_lat * (1.0 - 2.0 * haversine_phi) - self.sin_lat * sin_small(phi);
        haversine_phi + self.cos_lat * cos_lat * haversine_small(lambda * lambda)
    }

    /// Whether any of some positions in degrees is in the circle's boxes. The loop is branchless.
    #[inline]
    pub(super) fn boxes_hold_any(&self, lons: &[f64], lats: &[f64]) -> bool {
        self.boxes.iter().flatten().any(|&[west, south, east, north]| {
            lons.iter().zip(lats).fold(false, |any, (&lon, &lat)| {
                any | ((south <= lat) & (lat <= north) & (west <= lon) & (lon <= east))
            })
        })
    }

    /// Haversines of the distances to some positions in degrees; infinite for those outside the circle's boxes.
    #[inline]
    pub(super) fn haversines(&self, lons: &[f64], lats: &[f64], out: &mut [f64]) {
        let positions = lons.iter().zip(lats);
        // The usual circle: one box, and series instead of sines. The loop is branchless.
        if let ([Some([west, south, east, north]), None], true) = (self.boxes, self.small) {
            for (out, (&lon, &lat)) in out.iter_mut().zip(positions) {
                let near = (south <= lat) & (lat <= north) & (west <= lon) & (lon <= east);
                let haversine = self.haversine_small(lon, lat);
                *out = if near { haversine } else { f64::INFINITY };
            }
            return;
        }
        for (out, (&lon, &lat)) in out.iter_mut().zip(positions) {
            let mut boxes = self.boxes.iter().flatten();
            let near = boxes.any(|[w, s, e, n]| *s <= lat && lat <= *n && *w <= lon && lon <= *e);
            *out = if near { self.haversine(lon, lat) } else { f64::INFINITY };
        }
    }

    pub(super) fn touches(&self, bounds: &Bounds) -> bool {
        self.boxes.iter().flatten().any(|[west, south, east, north]| {
            bounds.west <= *east && *west <= bounds.east && bounds.south <= *north && *south <= bounds.north
        })
    }

    /// Whether the circle wholly contains a box; false if that is too close to decide.
    pub(super) fn holds(&self, bounds: &Bounds) -> bool {
        let boxed = self.boxes.iter().flatten().any(|[west, south, east, north]| {
            *west <= bounds.west && bounds.east <= *east && *south <= bounds.south && bounds.north <= *north
        });
        boxed && self.farthest(bounds) < self.reach * (1.0 - 1e-9)
    }

    /// Haversine of the distance to the farthest point of a box in the circle's box.
    fn farthest(&self, bounds: &Bounds) -> f64 {
        if !self.small {
            return haversine_of(farthest_in_box_m(self.lon, self.lat, bounds));
        }
        // Along a parallel, distances grow with the angle. Along a meridian they have one minimum and no maximum
        // between the ends. So the farthest point is a corner.
        let lon = if bounds.east - self.lon > self.lon - bounds.west { bounds.east } else { bounds.west };
        self.haversine(lon, bounds.south).max(self.haversine(lon, bounds.north))
    }

    /// A lower bound of the haversine of the distance to anything in a box in the circle's box.
    pub(super) fn nearest(&self, bounds: &Bounds) -> f64 {
        if !self.small {
            return haversine_of(distance_to_box_m(self.lon, self.lat, bounds));
        }
        // The point at the same latitude is not quite the nearest of a meridian. At these angles it is off by less
        // than a part in two thousand (the square of the angle over eight). The haversine is off by twice that.
        let nearest = (self.lon.clamp(bounds.west, bounds.east), self.lat.clamp(bounds.south, bounds.north));
        self.haversine(nearest.0, nearest.1) * 0.998
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::sphere::distance_m;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn series_and_bounds_agree_with_the_sphere(
            lon in -180.0..180.0f64,
            lat in -90.0..90.0f64,
            radius_m in 1.0..60_000.0f64,
            corner in prop::array::uniform4(-1.0..1.0f64),
            within in prop::array::uniform2(0.0..1.0f64),
        ) {
            let circle = Circle::new(lon, lat, radius_m);
            let Some([west, south, east, north]) = circle.boxes[0] else { unreachable!() };
            let at = |share: f64, low: f64, high: f64| low + (share + 1.0) / 2.0 * (high - low);
            let (x, y) = ([at(corner[0], west, east), at(corner[1], west, east)], [at(corner[2], south, north), at(corner[3], south, north)]);
            let bounds = Bounds {
                west: x[0].min(x[1]),
                east: x[0].max(x[1]),
                south: y[0].min(y[1]).max(-90.0),
                north: y[0].max(y[1]).min(90.0),
                ..Bounds::WORLD
            };
            prop_assume!(bounds.south <= bounds.north);
            let (px, py) = (
                bounds.west + within[0] * (bounds.east - bounds.west),
                bounds.south + within[1] * (bounds.north - bounds.south),
            );
            let exact = haversine_of(distance_m(lon, lat, px, py));
            let found = circle.haversine(px, py);
            // Some nanometres: the reference formula subtracts radians.
            let apart = (found.sqrt() - exact.sqrt()).abs();
            prop_assert!(apart <= 1e-15 + 1e-12 * exact.sqrt(), "{found} {exact}");
            prop_assert!(circle.nearest(&bounds) <= found + 1e-24);
            prop_assert!(circle.farthest(&bounds) >= found * (1.0 - 1e-9));
            if circle.holds(&bounds) {
                prop_assert!(found <= circle.reach);
            }
            if found <= circle.reach {
                prop_assert!(circle.touches(&bounds));
            }
        }
    }
}
