//! The ground truth of counts: a file that maps paths to counts, or the points that the target holds, counted by the
//! lab itself.

use crate::scenario::{Check, Request};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;

/// The expected count of a response.
#[derive(Debug)]
pub(super) enum Truth {
    /// Counts by path, as sent.
    Paths(HashMap<String, u64>),
    /// All points that the target holds.
    Points(Points),
}

/// Points by longitude, so that a box is a contiguous range of them.
#[derive(Debug)]
pub(super) struct Points {
    sorted: Vec<Point>,
}

/// Longitude, latitude, and microseconds since 1970.
type Point = (f64, f64, i64);

/// The conditions of a request on the points (OGC API - Features, part 1: a closed box, a closed interval).
#[derive(Debug)]
struct PointQuery {
    bbox: Option<[f64; 4]>,
    time: (i64, i64),
    limit: Option<u64>,
}

/// Parameters that the lab interprets like a server; any other parameter could make its counts wrong.
const KNOWN: [&str; 4] = ["bbox", "datetime", "limit", "f"];

impl Truth {
    /// Reads the truth that a request's checks name; `None` if they name none. Errors name the key.
    pub(super) fn of(request: &Request) -> Result<Option<Truth>, String> {
        let name = &request.name;
        let Check { truth, points, time, .. } = &request.check;
        match (truth, points) {
            (Some(_), Some(_)) => Err(format!("request {name}: check: expected truth or points, not both")),
            (Some(path), None) => {
                let wrong = |e: String| format!("request {name}: check.truth: {}: {e}", path.display());
                let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
                let counts = serde_json::from_str(&text)
                    .map_err(|e| wrong(format!("expected an object of paths and counts: {e}")))?;
                Ok(Some(Truth::Paths(counts)))
            }
            (None, Some(path)) => {
                for key in parts(&request.path).map(|(key, _)| key) {
                    if !KNOWN.contains(&key) {
                        let known = KNOWN.join(", ");
                        return Err(format!(
                            "request {name}: check.points: the lab cannot count by {key}: expected {known}"
                        ));
                    }
                    if key == "datetime" && time.is_none() {
                        return Err(format!(
                            "request {name}: check.points: it asks by datetime: expected check.time with the points' property"
                        ));
                    }
                }
                let wrong = |e: String| format!("request {name}: check.points: {}: {e}", path.display());
                Ok(Some(Truth::Points(Points::read(path, time.as_deref()).map_err(wrong)?)))
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns the expected count for a path. `whole` means that a response's count has no limit. The error states why
    /// there is none.
    pub(super) fn due(&self, path: &str, whole: bool) -> Result<u64, &'static str> {
        match self {
            Truth::Paths(counts) => counts.get(path).copied().ok_or("the truth file does not know this path"),
            Truth::Points(points) => {
                let asked = asked(path).ok_or("the lab cannot read what this path asks for")?;
                let count = points.count(&asked);
                Ok(asked.limit.filter(|_| !whole).map_or(count, |limit| count.min(limit)))
            }
        }
    }
}

impl Points {
    /// Reads GeoJSON: a FeatureCollection, or one feature per line. `time` is the property with their time.
    fn read(path: &Path, time: Option<&str>) -> Result<Points, String> {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let mut sorted = Vec::new();
        match serde_json::from_str::<Json>(&text) {
            Ok(whole) if whole["features"].is_array() => {
                for (n, feature) in whole["features"].as_array().into_iter().flatten().enumerate() {
                    sorted.push(point(feature, time).map_err(|e| format!("feature {}: {e}", n + 1))?);
                }
            }
            _ => {
                for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    let wrong = |e: String| format!("line {}: {e}", n + 1);
                    let feature = serde_json::from_str(line).map_err(|e| wrong(format!("not JSON: {e}")))?;
                    sorted.push(point(&feature, time).map_err(wrong)?);
                }
            }
        }
        sorted.sort_by(|p: &Point, q: &Point| p.0.total_cmp(&q.0));
        Ok(Points { sorted })
    }

    fn count(&self, asked: &PointQuery) -> u64 {
        let Some([west, south, east, north]) = asked.bbox else {
            return self.between(f64::NEG_INFINITY, f64::INFINITY, [f64::NEG_INFINITY, f64::INFINITY], asked.time);
        };
        if west <= east {
            return self.between(west, east, [south, north], asked.time);
        }
        // Across the antimeridian.
        self.between(west, f64::INFINITY, [south, north], asked.time)
            + self.between(f64::NEG_INFINITY, east, [south, north], asked.time)
    }

    fn between(&self, west: f64, east: f64, [south, north]: [f64; 2], (from, to): (i64, i64)) -> u64 {
        let first = self.sorted.partition_point(|point| point.0 < west);
        let stretch = self.sorted[first..].iter().take_while(|point| point.0 <= east);
        stretch.filter(|(_, lat, at)| (south..=north).contains(lat) && (from..=to).contains(at)).count() as u64
    }
}

fn point(feature: &Json, time: Option<&str>) -> Result<Point, String> {
    let geometry = &feature["geometry"];
    let number = |at: usize| geometry["coordinates"].get(at).and_then(Json::as_f64);
    let (Some("Point"), Some(lon), Some(lat)) = (geometry["type"].as_str(), number(0), number(1)) else {
        return Err("expected a GeoJSON feature that is a Point".to_owned());
    };
    let Some(property) = time else { return Ok((lon, lat, 0)) };
    let at = feature["properties"][property].as_str().and_then(instant);
    let at = at.ok_or_else(|| format!("expected a time such as 2015-01-01T00:00:00Z in its property {property:?}"))?;
    Ok((lon, lat, at))
}

fn instant(text: &str) -> Option<i64> {
    Some(text.parse::<Timestamp>().ok()?.as_microsecond())
}

/// Returns the keys and values of a path's query.
fn parts(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or((part, "")))
}

fn asked(path: &str) -> Option<PointQuery> {
    let mut asked = PointQuery { bbox: None, time: (i64::MIN, i64::MAX), limit: None };
    for (key, value) in parts(path) {
        let value = percent_decode_str(value).decode_utf8_lossy();
        match key {
            "bbox" => {
                let edges = value.split(',').map(|edge| edge.trim().parse().ok()).collect::<Option<Vec<f64>>>()?;
                asked.bbox = Some(match edges.as_slice() {
                    [west, south, east, north] | [west, south, _, east, north, _] => [*west, *south, *east, *north],
                    _ => return None,
                });
            }
            "datetime" => {
                let (from, to) = value.split_once('/').unwrap_or((&*value, &*value));
                let end = |text: &str, open: i64| if matches!(text, "" | "..") { Some(open) } else { instant(text) };
                asked.time = (end(from, i64::MIN)?, end(to, i64::MAX)?);
            }
            "limit" => asked.limit = Some(value.parse().ok()?),
            _ => {}
        }
    }
    Some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn truth(points: &[(f64, f64, &str)], path: &str, check: &str) -> Result<Option<Truth>, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        for (lon, lat, time) in points {
            let (geometry, properties) = (
                serde_json::json!({ "type": "Point", "coordinates": [lon, lat] }),
                serde_json::json!({ "time": time }),
            );
            let feature = serde_json::json!({ "type": "Feature", "geometry": geometry, "properties": properties });
            writeln!(file, "{feature}").expect("writes");
        }
        let mut request = Request::plain("GET", path);
        request.check = toml::from_str(&format!("points = {:?}\n{check}", file.path())).expect("a check");
        Truth::of(&request)
    }

    proptest! {
        #[test]
        fn points_are_counted_as_a_naive_count_has_them(
            points in prop::collection::vec((-4..=4_i8, -4..=4_i8, 0..4_u8), 0..60),
            [west, south, east, north] in [-4..=4_i8, -4..=4_i8, -4..=4_i8, -4..=4_i8],
            (from, to) in (0..4_u8, 0..4_u8),
            limit in 0..20_u64,
        ) {
            let day = |n: u8| format!("2020-01-0{}T00:00:00Z", n + 1);
            let times: Vec<String> = points.iter().map(|point| day(point.2)).collect();
            let held: Vec<(f64, f64, &str)> =
                points.iter().zip(&times).map(|(p, time)| (f64::from(p.0) * 45.0, f64::from(p.1) * 20.0, time.as_str())).collect();
            let edges = [f64::from(west) * 45.0, f64::from(south) * 20.0, f64::from(east) * 45.0, f64::from(north) * 20.0];
            let bbox = edges.map(|edge| edge.to_string()).join("%2C");
            let truth = truth(&held, "/items?bbox={b}&datetime={w}&limit=9", "time = \"time\"").expect("reads").expect("some");
            let path = format!("/items?bbox={bbox}&datetime={}/{}&limit={limit}&f=json", day(from), day(to));
            let due = points.iter().filter(|(lon, lat, at)| {
                let within = if west <= east { (west..=east).contains(lon) } else { *lon >= west || *lon <= east };
                within && (south..=north).contains(lat) && (from..=to).contains(at)
            }).count() as u64;
            prop_assert_eq!(truth.due(&path, true), Ok(due));
            prop_assert_eq!(truth.due(&path, false), Ok(due.min(limit)));
        }
    }

    #[test]
    fn what_the_lab_cannot_count_is_a_sentence() {
        let one = [(1.0, 2.0, "2020-01-01T00:00:00Z")];
        for (points, path, check, words) in [
            (&one[..], "/items?filter=a>1", "", "cannot count by filter: expected bbox, datetime"),
            (&one, "/items?datetime={w}", "", "expected check.time"),
            (&one, "/items", "truth = \"x\"", "not both"),
            (&[(1.0, 2.0, "noon")], "/items", "time = \"time\"", "line 1: expected a time"),
        ] {
            let error = truth(points, path, check).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
        let all = truth(&one, "/items", "").expect("reads").expect("some");
        assert_eq!(all.due("/items", true), Ok(1));
        assert!(all.due("/items?bbox=1,2,3", true).is_err());
    }
}
