//! The part of the globe that a question covers.

use geo::{Centroid, Intersects};
use geo_types::{Coord, Geometry, Polygon, Rect};
use meridian_model::filter::{distance_to_geometry_m, farthest_in_box_m};
use meridian_model::{Bounds, geometry, sphere};

/// A part of the globe.
#[derive(Debug, Clone, PartialEq)]
pub enum Area {
    /// Everything within a distance of a position.
    Circle {
        /// Longitude of the centre in degrees.
        lon: f64,
        /// Latitude of the centre in degrees.
        lat: f64,
        /// Radius in metres, on the sphere.
        radius_m: f64,
    },
    /// Edges west, south, east, north in degrees. A box whose west exceeds its east crosses the antimeridian.
    Box([f64; 4]),
    /// A polygon, with edges straight in degrees.
    Polygon(Polygon<f64>),
}

impl Area {
    /// Returns whether any part of a geometry lies in the area.
    pub fn holds(&self, shape: &Geometry<f64>) -> bool {
        match self {
            Area::Circle { lon, lat, radius_m } => distance_to_geometry_m(*lon, *lat, shape) <= *radius_m,
            Area::Box([west, south, east, north]) if west > east => {
                rect(*west, *south, 180.0, *north).intersects(shape)
                    || rect(-180.0, *south, *east, *north).intersects(shape)
            }
            Area::Box([west, south, east, north]) => rect(*west, *south, *east, *north).intersects(shape),
            Area::Polygon(polygon) => polygon.intersects(shape),
        }
    }

    /// Returns its bounding box: west, south, east, north. A circle over the antimeridian or a pole covers all
    /// longitudes.
    pub fn sides(&self) -> [f64; 4] {
        match self {
            Area::Circle { lon, lat, radius_m } => {
                let angle = radius_m / sphere::EARTH_RADIUS_M;
                let (south, north) = (lat - angle.to_degrees(), lat + angle.to_degrees());
                let wide = (angle.sin() / lat.to_radians().cos()).clamp(-1.0, 1.0).asin().to_degrees();
                let (west, east) = (lon - wide, lon + wide);
                if south <= -90.0 || north >= 90.0 || west < -180.0 || east > 180.0 {
                    [-180.0, south.max(-90.0), 180.0, north.min(90.0)]
                } else {
                    [west, south, east, north]
                }
            }
            Area::Box(sides) => *sides,
            Area::Polygon(polygon) => {
                geometry::sides(&Geometry::Polygon(polygon.clone())).unwrap_or([-180.0, -90.0, 180.0, 90.0])
            }
        }
    }

    /// Returns one or two boxes that together cover it, for an index. West never exceeds east.
    pub fn boxes(&self) -> Vec<[f64; 4]> {
        // Margin for rounding errors, in degrees. Far below any precision that a question means.
        const ROOM: f64 = 1e-6;
        let [west, south, east, north] = match self {
            Area::Circle { lon, lat, radius_m } => {
                let angle = radius_m / sphere::EARTH_RADIUS_M;
                let (south, north) = (lat - angle.to_degrees() - ROOM, lat + angle.to_degrees() + ROOM);
                if south <= -90.0 || north >= 90.0 {
                    return vec![[-180.0, south.max(-90.0), 180.0, north.min(90.0)]];
                }
                let wide = (angle.sin() / lat.to_radians().cos()).clamp(-1.0, 1.0).asin().to_degrees() + ROOM;
                [lon - wide, south, lon + wide, north]
            }
            _ => self.sides(),
        };
        if west < -180.0 {
            vec![[west + 360.0, south, 180.0, north], [-180.0, south, east, north]]
        } else if east > 180.0 {
            vec![[west, south, 180.0, north], [-180.0, south, east - 360.0, north]]
        } else if west > east {
            vec![[west, south, 180.0, north], [-180.0, south, east, north]]
        } else {
            vec![[west, south, east, north]]
        }
    }

    /// Returns a circle that covers it: longitude, latitude, metres.
    pub fn circle(&self) -> (f64, f64, f64) {
        if let Area::Circle { lon, lat, radius_m } = self {
            return (*lon, *lat, *radius_m);
        }
        let [west, south, east, north] = self.sides();
        let east = if west > east { east + 360.0 } else { east };
        let middle = rect(west, south, east, north).centroid();
        let (lon, lat) = ((middle.x() + 180.0).rem_euclid(360.0) - 180.0, middle.y());
        let bounds = Bounds { west, south, east, north, ..Bounds::WORLD };
        (lon, lat, farthest_in_box_m(lon, lat, &bounds))
    }
}

fn rect(west: f64, south: f64, east: f64, north: f64) -> Rect<f64> {
    Rect::new(Coord { x: west, y: south }, Coord { x: east, y: north })
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo_types::Point;
    use proptest::prelude::*;

    #[test]
    fn a_box_may_cross_the_antimeridian() {
        let area = Area::Box([170.0, -20.0, -170.0, -10.0]);
        let holds = |lon, lat| area.holds(&Geometry::Point(Point::new(lon, lat)));
        assert!(holds(175.0, -15.0) && holds(-175.0, -15.0) && !holds(0.0, -15.0) && !holds(175.0, 0.0));
    }

    proptest! {
        /// The area sent to a source covers the area of the question.
        #[test]
        fn the_box_and_the_circle_hold_the_area(lon in -179.0..179.0_f64, lat in -80.0..80.0_f64, radius in 1.0..2e6_f64,
            x in -179.0..179.0_f64, y in -89.0..89.0_f64) {
            let point = Geometry::Point(Point::new(x, y));
            let circle = Area::Circle { lon, lat, radius_m: radius };
            if circle.holds(&point) {
                prop_assert!(Area::Box(circle.sides()).holds(&point));
                prop_assert!(circle.boxes().into_iter().any(|sides| Area::Box(sides).holds(&point)));
            }
            let sides = Area::Box([lon.min(x), lat.min(y), lon.max(x), lat.max(y)]);
            let (mid_lon, mid_lat, metres) = sides.circle();
            let around = Area::Circle { lon: mid_lon, lat: mid_lat, radius_m: metres };
            prop_assert!(around.holds(&point), "{sides:?} {around:?}");
        }
    }
}
