//! Geometry and time of generators: buffers, cells, windows.

use super::value::Value;
use jiff::Timestamp;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::f64::consts::{FRAC_PI_4, PI};
use std::fmt::Write;

/// Kilometres of a degree of latitude on a sphere of 6371.0088 km.
pub(super) const KM_PER_DEGREE: f64 = 111.195;

/// Radius of the Web Mercator sphere, metres (EPSG:3857).
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;

pub(super) const BUFFER: &[&str] = &["name", "lon", "lat", "radius_m", "west", "south", "east", "north", "bbox", "wkt"];
pub(super) const POLYGON: &[&str] = &["name", "wkt", "bbox", "west", "south", "east", "north"];
pub(super) const CELL: &[&str] = &["bbox", "z", "col", "row", "west", "south", "east", "north"];
pub(super) const WINDOW: &[&str] = &["interval", "start", "end", "days", "position"];

/// Draws a point evenly over longitude and latitude; a box whose west is above its east crosses the antimeridian.
pub(super) fn point_in([west, south, east, north]: [f64; 4], random: &mut Pcg64) -> (f64, f64) {
    let width = if west <= east { east - west } else { east - west + 360.0 };
    let lon = west + width * random.random::<f64>();
    let lon = if lon > 180.0 { lon - 360.0 } else { lon };
    (lon, south + (north - south) * random.random::<f64>())
}

/// Returns each city with each radius. The radius is in Web Mercator metres, as in the GeoWave/GeoMesa study, so the
/// ground it covers shrinks towards the poles.
pub(super) fn buffers(cities: &[(String, f64, f64)], sizes_km: &[f64]) -> Result<Vec<Vec<Value>>, String> {
    let mut rows = Vec::new();
    for (name, lon, lat) in cities {
        if !(-180.0..=180.0).contains(lon) || !(-85.0..=85.0).contains(lat) {
            return Err(format!("cities: {name} at {lon}, {lat}: expected lon, lat within Web Mercator"));
        }
        for size in sizes_km {
            if !(*size > 0.0 && *size <= 5_000.0) {
                return Err(format!("sizes_km: {size}: expected kilometres above 0 and at most 5000"));
            }
            rows.push(buffer(name, *lon, *lat, size * 1_000.0));
        }
    }
    Ok(rows)
}

fn buffer(name: &str, lon: f64, lat: f64, radius_m: f64) -> Vec<Value> {
    const CORNERS: u32 = 32;
    let (x, y) =
        (lon.to_radians() * MERCATOR_RADIUS_M, (FRAC_PI_4 + lat.to_radians() / 2.0).tan().ln() * MERCATOR_RADIUS_M);
    let back = |x: f64, y: f64| {
        let lat = 2.0 * (y / MERCATOR_RADIUS_M).exp().atan() - PI / 2.0;
        ((x / MERCATOR_RADIUS_M).to_degrees().clamp(-180.0, 180.0), lat.to_degrees())
    };
    let corner = |k: u32| {
        let angle = f64::from(k % CORNERS) * 2.0 * PI / f64::from(CORNERS);
        back(x + radius_m * angle.cos(), y + radius_m * angle.sin())
    };
    let ring: Vec<(f64, f64)> = (0..=CORNERS).map(corner).collect();
    let (west, south) = back(x - radius_m, y - radius_m);
    let (east, north) = back(x + radius_m, y + radius_m);
    let mut row = vec![Value::text(name), Value::Number(lon, 6), Value::Number(lat, 6), Value::Number(radius_m, 0)];
    row.extend([west, south, east, north].map(|edge| Value::Number(edge, 6)));
    row.extend([bbox(west, south, east, north), Value::text(wkt(&[&ring]))]);
    row
}

/// Returns a polygon of rings as WKT.
pub(super) fn wkt(rings: &[&[(f64, f64)]]) -> String {
    format!("POLYGON({})", ring_list(rings))
}

pub(super) fn ring_list(rings: &[&[(f64, f64)]]) -> String {
    let mut text = String::new();
    for (i, ring) in rings.iter().enumerate() {
        text.push_str(if i == 0 { "(" } else { ",(" });
        for (k, (lon, lat)) in ring.iter().enumerate() {
            // Writing into a string cannot fail.
            let _ = write!(text, "{}{lon:.6} {lat:.6}", if k == 0 { "" } else { "," });
        }
        text.push(')');
    }
    text
}

pub(super) fn bbox(west: f64, south: f64, east: f64, north: f64) -> Value {
    Value::text(format!("{west:.6},{south:.6},{east:.6},{north:.6}"))
}

/// Appends the fields of a cell: column 0 is westmost, row 0 southmost.
#[expect(clippy::cast_precision_loss, reason = "at most 2^24 columns")]
pub(super) fn cell([west, south, east, north]: [f64; 4], z: u8, col: u64, row: u64, out: &mut Vec<Value>) {
    let width = if west <= east { east - west } else { east - west + 360.0 };
    let (dx, dy) = (width / f64::from(z).exp2(), (north - south) / f64::from(z - 1).exp2());
    let turn = |lon: f64| if lon > 180.0 { lon - 360.0 } else { lon };
    let (w, s) = (turn(west + dx * col as f64), south + dy * row as f64);
    let (e, n) = (turn(west + dx * (col + 1) as f64), south + dy * (row + 1) as f64);
    out.extend([bbox(w, s, e, n), Value::Whole(u64::from(z)), Value::Whole(col), Value::Whole(row)]);
    out.extend([w, s, e, n].map(|edge| Value::Number(edge, 6)));
}

/// Returns the windows of each length, consecutive from the start.
pub(super) fn windows(start: &str, lengths: &[(f64, u32)]) -> Result<Vec<Vec<Vec<Value>>>, String> {
    let start = instant("start", start)?;
    let mut windows = Vec::new();
    for (days, positions) in lengths {
        if !(*days > 0.0 && *days <= 40_000.0 && (1..=100_000).contains(positions)) {
            return Err(format!("lengths: [{days}, {positions}]: expected days above 0 and 1 to 100000 positions"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 40000 days")]
        let length = (days * 86_400e6) as i64;
        let mut rows = Vec::new();
        for position in 0..*positions {
            let from = start.saturating_add(length.saturating_mul(i64::from(position)));
            let (Ok(from), Ok(to)) =
                (Timestamp::from_microsecond(from), Timestamp::from_microsecond(from.saturating_add(length)))
            else {
                return Err(format!("lengths: [{days}, {positions}]: a window ends outside the years -9999 to 9999"));
            };
            rows.push(vec![
                Value::text(format!("{from}/{to}")),
                Value::text(from.to_string()),
                Value::text(to.to_string()),
                Value::Number(*days, 0),
                Value::Whole(u64::from(position)),
            ]);
        }
        windows.push(rows);
    }
    Ok(windows)
}

/// Returns microseconds since 1970 for an RFC 3339 time.
pub(super) fn instant(key: &str, text: &str) -> Result<i64, String> {
    let time: Timestamp =
        text.parse().map_err(|_| format!("{key} = {text:?}: expected a time such as 2015-01-01T00:00:00Z"))?;
    Ok(time.as_microsecond())
}
