//! Coordinate reference systems: CRS84 inside, EPSG:4326 and EPSG:3857 at the edge (OGC API Features, part 2).

use crate::problem::{Problem, Result};
use geo::MapCoords;
use geo_types::{Coord, Geometry};

/// A system that coordinates may be given or wanted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Crs {
    /// WGS 84, longitude then latitude: how events are kept.
    #[default]
    Crs84,
    /// WGS 84, latitude then longitude.
    Epsg4326,
    /// Spherical Mercator in metres.
    Epsg3857,
}

/// Radius of the sphere of EPSG:3857 in metres.
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;
/// Latitude at which the Mercator square ends, in degrees.
const MERCATOR_LATITUDE_MAX: f64 = 85.051_128_779_806_59;

/// Every system served, the one events are kept in first.
pub const ALL: [Crs; 3] = [Crs::Crs84, Crs::Epsg4326, Crs::Epsg3857];

impl Crs {
    /// The OGC URI.
    pub fn uri(self) -> &'static str {
        match self {
            Crs::Crs84 => "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
            Crs::Epsg4326 => "http://www.opengis.net/def/crs/EPSG/0/4326",
            Crs::Epsg3857 => "http://www.opengis.net/def/crs/EPSG/0/3857",
        }
    }

    /// Reads a URI, `[EPSG:4326]` or `EPSG:4326`.
    pub fn parse(name: &str, text: &str) -> Result<Crs> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        ALL.into_iter()
            .find(|c| c.uri() == bare || c.uri().replace("http:", "https:") == bare || c.curie() == bare)
            .ok_or_else(|| {
                Problem::parameter(
                    name,
                    format!("{text:?} is not served: expected one of {}", ALL.map(|c| c.uri()).join(", ")),
                )
            })
    }

    fn curie(self) -> &'static str {
        match self {
            Crs::Crs84 => "OGC:CRS84",
            Crs::Epsg4326 => "EPSG:4326",
            Crs::Epsg3857 => "EPSG:3857",
        }
    }

    /// From longitude and latitude in degrees to this system's axes in order.
    pub fn of_lon_lat(self, lon: f64, lat: f64) -> (f64, f64) {
        match self {
            Crs::Crs84 => (lon, lat),
            Crs::Epsg4326 => (lat, lon),
            Crs::Epsg3857 => {
                let phi = lat.clamp(-MERCATOR_LATITUDE_MAX, MERCATOR_LATITUDE_MAX).to_radians();
                let y = MERCATOR_RADIUS_M * (std::f64::consts::FRAC_PI_4 + phi / 2.0).tan().ln();
                (MERCATOR_RADIUS_M * lon.to_radians(), y)
            }
        }
    }

    /// From this system's axes to longitude and latitude in degrees.
    pub fn to_lon_lat(self, x: f64, y: f64) -> (f64, f64) {
        match self {
            Crs::Crs84 => (x, y),
            Crs::Epsg4326 => (y, x),
            Crs::Epsg3857 => {
                let lat = 2.0 * (y / MERCATOR_RADIUS_M).exp().atan() - std::f64::consts::FRAC_PI_2;
                ((x / MERCATOR_RADIUS_M).to_degrees(), lat.to_degrees())
            }
        }
    }

    /// A geometry in degrees, in this system.
    pub fn of_geometry(self, geometry: &Geometry<f64>) -> Geometry<f64> {
        geometry.map_coords(|Coord { x, y }| self.of_lon_lat(x, y).into())
    }

    /// A geometry of this system, in degrees.
    pub fn geometry_to_lon_lat(self, geometry: &Geometry<f64>) -> Geometry<f64> {
        geometry.map_coords(|Coord { x, y }| self.to_lon_lat(x, y).into())
    }
}

/// Reads `bbox` (four numbers, or six with heights, which are ignored) in `crs` as west, south, east and north in
/// degrees. West greater than east crosses the antimeridian.
pub fn parse_bbox(text: &str, crs: Crs) -> Result<[f64; 4]> {
    let numbers = super::numbers("bbox", text)?;
    let [x1, y1, x2, y2] = match numbers[..] {
        [x1, y1, x2, y2] => [x1, y1, x2, y2],
        [x1, y1, _, x2, y2, _] => [x1, y1, x2, y2],
        ref other => {
            return Err(Problem::parameter(
                "bbox",
                format!("{} numbers: expected four (west,south,east,north), or six with heights", other.len()),
            ));
        }
    };
    let (west, south) = crs.to_lon_lat(x1, y1);
    let (east, north) = crs.to_lon_lat(x2, y2);
    for (lon, lat) in [(west, south), (east, north)] {
        // Clients send the edge of the Mercator square with rounding; a hair over the edge is the edge.
        let lon = if (lon.abs() - 180.0).abs() < 1e-6 { lon.clamp(-180.0, 180.0) } else { lon };
        meridian_model::geometry::validate_position(lon, lat).map_err(|e| Problem::parameter("bbox", e.detail))?;
    }
    if south > north {
        return Err(Problem::parameter("bbox", format!("south {south} is greater than north {north}")));
    }
    Ok([west.clamp(-180.0, 180.0), south, east.clamp(-180.0, 180.0), north])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_order_follows_the_system() {
        assert_eq!(parse_bbox("1,2,3,4", Crs::Crs84).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(parse_bbox("2,1,4,3", Crs::Epsg4326).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(parse_bbox("1,2,-5,3,4,99", Crs::Crs84).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn mercator_comes_back() {
        let (x, y) = Crs::Epsg3857.of_lon_lat(180.0, MERCATOR_LATITUDE_MAX);
        assert!((x - 20_037_508.342_789_244).abs() < 1e-6 && (y - x).abs() < 1e-6, "{x} {y}");
        let (lon, lat) = Crs::Epsg3857.to_lon_lat(x, y);
        assert!((lon - 180.0).abs() < 1e-9 && (lat - MERCATOR_LATITUDE_MAX).abs() < 1e-9);
    }

    #[test]
    fn a_box_of_five_numbers_or_upside_down_is_refused() {
        for bad in ["1,2,3,4,5", "1,2,3", "", "a,2,3,4", "1,4,3,2", "NaN,2,3,4", "-181,0,0,1", "0,0,0,91"] {
            assert!(parse_bbox(bad, Crs::Crs84).is_err(), "{bad}");
        }
        assert!(parse_bbox("170,0,-170,1", Crs::Crs84).is_ok());
    }

    #[test]
    fn systems_are_known_by_uri_and_short_name() {
        for crs in ALL {
            assert_eq!(Crs::parse("crs", crs.uri()).unwrap(), crs);
            assert_eq!(Crs::parse("crs", &format!("[{}]", crs.curie())).unwrap(), crs);
        }
        assert!(Crs::parse("crs", "EPSG:9999").is_err());
    }
}
