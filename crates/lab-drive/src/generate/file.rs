//! Generators that read a file: GeoNames places, polygons of GeoJSON.

use super::geo;
use super::value::Value;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

/// A populated place.
#[derive(Debug, Clone)]
pub(super) struct PopulatedPlace {
    pub(super) name: Arc<str>,
    pub(super) lon: f64,
    pub(super) lat: f64,
    pub(super) population: f64,
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("file {}: {e}", path.display()))
}

/// Reads the places of a GeoNames dump: tab-separated, name in column 2, latitude 5, longitude 6, population 15
/// (download.geonames.org/export/dump/readme.txt). Places without population are left out.
pub(super) fn places(path: &Path) -> Result<Vec<PopulatedPlace>, String> {
    let text = read(path)?;
    let mut places = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let columns: Vec<&str> = line.split('\t').collect();
        let number = |column: usize| columns.get(column).and_then(|text| text.parse::<f64>().ok());
        let (Some(lat), Some(lon), Some(population)) = (number(4), number(5), number(14)) else {
            return Err(format!(
                "file {}:{}: expected a GeoNames line: 19 columns by tabs, latitude fifth, longitude sixth, population fifteenth",
                path.display(),
                i + 1
            ));
        };
        if population > 0.0 && population.is_finite() {
            places.push(PopulatedPlace { name: columns[1].into(), lon, lat, population });
        }
    }
    Ok(places)
}

/// Reads the polygons of a GeoJSON file, each with its name.
pub(super) fn polygons(path: &Path, name: &str) -> Result<Vec<Vec<Value>>, String> {
    let shown = path.display();
    let json: Json = serde_json::from_str(&read(path)?).map_err(|e| format!("file {shown}: not JSON: {e}"))?;
    let features = json["features"].as_array();
    let features = features.ok_or_else(|| format!("file {shown}: expected a GeoJSON FeatureCollection"))?;
    let mut rows = Vec::new();
    for (i, feature) in features.iter().enumerate() {
        let geometry = &feature["geometry"];
        let parts: Vec<&Json> = match geometry["type"].as_str() {
            Some("Polygon") => vec![&geometry["coordinates"]],
            Some("MultiPolygon") => geometry["coordinates"].as_array().into_iter().flatten().collect(),
            _ => continue,
        };
        let parts: Option<Vec<Rings>> = parts.into_iter().map(rings).collect();
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| format!("file {shown}: feature {i}: its coordinates are no polygon"))?;
        let title = match &feature["properties"][name] {
            Json::String(text) => text.clone(),
            Json::Null => format!("{i}"),
            other => other.to_string(),
        };
        rows.push(polygon(&title, &parts));
    }
    if rows.is_empty() { Err(format!("file {shown}: it holds no polygon")) } else { Ok(rows) }
}

type Rings = Vec<Vec<(f64, f64)>>;

fn rings(polygon: &Json) -> Option<Rings> {
    let point = |point: &Json| Some((point.get(0)?.as_f64()?, point.get(1)?.as_f64()?));
    let ring = |ring: &Json| ring.as_array()?.iter().map(point).collect::<Option<Vec<_>>>();
    let rings: Rings = polygon.as_array()?.iter().map(ring).collect::<Option<_>>()?;
    rings.first().is_some_and(|outer| outer.len() >= 4).then_some(rings)
}

fn polygon(name: &str, parts: &[Rings]) -> Vec<Value> {
    let lists: Vec<String> = parts
        .iter()
        .map(|rings| format!("({})", geo::ring_list(&rings.iter().map(Vec::as_slice).collect::<Vec<_>>())))
        .collect();
    let wkt = match lists.as_slice() {
        [one] => format!("POLYGON{one}"),
        many => format!("MULTIPOLYGON({})", many.join(",")),
    };
    let mut bounds = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
    for (lon, lat) in parts.iter().flatten().flatten() {
        bounds = [bounds[0].min(*lon), bounds[1].min(*lat), bounds[2].max(*lon), bounds[3].max(*lat)];
    }
    let [west, south, east, north] = bounds;
    let mut row = vec![Value::text(name), Value::text(wkt), geo::bbox(west, south, east, north)];
    row.extend(bounds.map(|edge| Value::Number(edge, 6)));
    row
}
