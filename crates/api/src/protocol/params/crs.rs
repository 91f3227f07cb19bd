//! Coordinate reference systems in parameters and headers (OGC API Features, parts 2 and 4).

use crate::protocol::problem::{Problem, Result};
use axum::http::{HeaderMap, HeaderName};

/// The coordinate reference system of a response.
pub static CONTENT_CRS: HeaderName = HeaderName::from_static("content-crs");
pub use meridian_model::Crs;

/// Parses the reference system in the parameter or header `name`.
pub fn parse(name: &str, text: &str) -> Result<Crs> {
    Crs::from_name(text).ok_or_else(|| {
        let expected = Crs::ALL.map(Crs::uri).join(", ");
        Problem::parameter(name, format!("{text:?} is not served: expected one of {expected}"))
    })
}

/// Returns the reference system of a request's body: that of `Content-Crs`, a URI in angle brackets, or else CRS84.
pub fn of_body(headers: &HeaderMap) -> Result<Crs> {
    let mut values = headers.get_all(&CONTENT_CRS).iter();
    let Some(value) = values.next() else { return Ok(Crs::Crs84) };
    if values.next().is_some() {
        return Err(Problem::parameter("Content-Crs", "given more than once: a body has one reference system"));
    }
    let text = value.to_str().unwrap_or_default().trim();
    let bare = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')).unwrap_or(text);
    parse("Content-Crs", bare)
}

/// Parses `bbox` (four numbers, or six with heights, which are ignored) in `crs` into west, south, east and north in
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
        // Clients round the edge of the Mercator square, so a value slightly beyond it counts as the edge.
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
    fn a_box_of_five_numbers_or_upside_down_is_refused() {
        for bad in ["1,2,3,4,5", "1,2,3", "", "a,2,3,4", "1,4,3,2", "NaN,2,3,4", "-181,0,0,1", "0,0,0,91"] {
            assert!(parse_bbox(bad, Crs::Crs84).is_err(), "{bad}");
        }
        assert!(parse_bbox("170,0,-170,1", Crs::Crs84).is_ok());
    }

    #[test]
    fn the_system_of_a_body_is_named_once_and_known() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(&CONTENT_CRS, value.parse().unwrap());
            }
            of_body(&headers)
        };
        assert_eq!(of(&[]).unwrap(), Crs::Crs84);
        assert_eq!(of(&["<http://www.opengis.net/def/crs/EPSG/0/4326>"]).unwrap(), Crs::Epsg4326);
        assert_eq!(of(&["http://www.opengis.net/def/crs/EPSG/0/3857"]).unwrap(), Crs::Epsg3857);
        let unknown = of(&["<http://www.opengis.net/def/crs/EPSG/0/9999>"]).unwrap_err();
        assert!(unknown.detail().contains("EPSG/0/9999"), "{}", unknown.detail());
        assert!(of(&["<EPSG:4326>", "<EPSG:3857>"]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_box_is_its_four_numbers(west in -180.0..180.0f64, south in -90.0..90.0f64, east in -180.0..180.0f64, height in 0.0..180.0f64) {
            let north = (south + height).min(90.0);
            let plain = parse_bbox(&format!("{west},{south},{east},{north}"), Crs::Crs84).unwrap();
            proptest::prop_assert_eq!(plain, [west, south, east, north]);
            let swapped = parse_bbox(&format!("{south},{west},{north},{east}"), Crs::Epsg4326).unwrap();
            proptest::prop_assert_eq!(swapped, plain);
            let high = parse_bbox(&format!("{west},{south},-5,{east},{north},99"), Crs::Crs84).unwrap();
            proptest::prop_assert_eq!(high, plain);
        }
    }
}
