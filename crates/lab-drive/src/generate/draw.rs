//! Draws from a generator.

use super::value::Value;
use super::{file, geo};
use crate::scenario::Generator;
use jiff::Timestamp;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Normal, Zipf, weighted::WeightedIndex};
use rand_pcg::Pcg64;
use std::path::Path;
use std::sync::Arc;

/// A generator ready to draw: files read, weights summed.
#[derive(Debug, Clone)]
pub struct Source {
    fields: &'static [&'static str],
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Box([f64; 4]),
    /// Places with a scatter in kilometres.
    Places {
        rows: Arc<[file::PopulatedPlace]>,
        weights: WeightedIndex<f64>,
        scatter: Option<Normal<f64>>,
    },
    /// Rows of values, equally likely.
    Rows(Arc<[Vec<Value>]>),
    /// Rows of values in groups; all groups are equally likely, whatever their number of rows.
    Grouped(Arc<[Vec<Vec<Value>>]>),
    Cells {
        bounds: [f64; 4],
        from: u8,
        levels: WeightedIndex<f64>,
    },
    Id {
        from: u64,
        to: u64,
        prefix: String,
        next: Option<u64>,
    },
    Zipf {
        zipf: Zipf<f64>,
        prefix: String,
    },
    Choice {
        values: Vec<Value>,
        weights: WeightedIndex<f64>,
    },
    Number {
        from: f64,
        to: f64,
        decimals: u8,
    },
    Event {
        bounds: [f64; 4],
        start: i64,
        end: i64,
        objects: u64,
        batch: u32,
        time: String,
        next: u64,
    },
}

const POINT: &[&str] = &["lon", "lat"];
const PLACE: &[&str] = &["name", "lon", "lat"];
const VALUE: &[&str] = &["value"];
const EVENT: &[&str] = &["feature", "collection", "ndjson"];

impl Source {
    /// Prepares a generator. Errors name the file or key and what was expected.
    pub fn new(generator: &Generator) -> Result<Source, String> {
        let (fields, kind) = match generator {
            Generator::Box { bounds } => (POINT, Kind::Box(sound_box(*bounds)?)),
            Generator::Populated { file, spread_km } => places(file, *spread_km)?,
            Generator::Cities { sizes_km, cities } => (geo::BUFFER, rows(geo::buffers(cities, sizes_km)?, "cities")?),
            Generator::Polygons { file, name } => (geo::POLYGON, rows(file::polygons(file, name)?, "polygons")?),
            Generator::Cells { bounds, from, to } => {
                if *from == 0 || from > to || *to > 24 {
                    return Err(format!("from = {from}, to = {to}: expected levels of 1 to 24, from not above to"));
                }
                // The cells of each level, so that every cell is equally likely.
                let counts = (*from..=*to).map(|z| f64::from(z).exp2() * f64::from(z - 1).exp2());
                let levels = WeightedIndex::new(counts).map_err(|e| e.to_string())?;
                (geo::CELL, Kind::Cells { bounds: sound_box(*bounds)?, from: *from, levels })
            }
            Generator::Window { start, lengths } => {
                // In groups by length: a length with many positions must not be drawn more often.
                let windows = geo::windows(start, lengths)?;
                if windows.is_empty() {
                    return Err("lengths is empty: expected at least one".to_owned());
                }
                (geo::WINDOW, Kind::Grouped(windows.into()))
            }
            Generator::Id { from, to, prefix, sequence } => {
                if from > to {
                    return Err(format!("from = {from} is above to = {to}"));
                }
                (VALUE, Kind::Id { from: *from, to: *to, prefix: prefix.clone(), next: sequence.then_some(*from) })
            }
            Generator::Zipf { keys, exponent, prefix } => {
                #[expect(clippy::cast_precision_loss, reason = "a count of keys")]
                let zipf = Zipf::new(*keys as f64, *exponent);
                let zipf = zipf.map_err(|_| "expected at least one key and an exponent of 0 or more".to_owned())?;
                (VALUE, Kind::Zipf { zipf, prefix: prefix.clone() })
            }
            Generator::Choice { values, weights } => {
                let even = vec![1.0; values.len()];
                let weights = if weights.is_empty() { &even } else { weights };
                if weights.len() != values.len() {
                    return Err(format!("there are {} values and {} weights", values.len(), weights.len()));
                }
                let weights = WeightedIndex::new(weights)
                    .map_err(|_| "expected values with weights of 0 or more, one of them above 0".to_owned())?;
                let values = values.iter().map(|value| Value::text(value.as_str())).collect();
                (VALUE, Kind::Choice { values, weights })
            }
            Generator::Number { from, to, decimals } => {
                if !(from <= to && from.is_finite() && to.is_finite()) || *decimals > 17 {
                    return Err(format!(
                        "from = {from}, to = {to}, decimals = {decimals}: expected from not above to and at most 17 decimals"
                    ));
                }
                (VALUE, Kind::Number { from: *from, to: *to, decimals: *decimals })
            }
            Generator::Event { bounds, start, end, objects, batch, time } => {
                let (start, end) = (geo::instant("start", start)?, geo::instant("end", end)?);
                if start >= end || *objects == 0 || !(1..=100_000).contains(batch) {
                    return Err("expected start before end, at least one object and a batch of 1 to 100000".to_owned());
                }
                let bounds = sound_box(*bounds)?;
                (
                    EVENT,
                    Kind::Event { bounds, start, end, objects: *objects, batch: *batch, time: time.clone(), next: 0 },
                )
            }
        };
        Ok(Source { fields, kind })
    }

    /// Returns the fields of `{name.…}`; plain `{name}` means the first.
    pub fn fields(&self) -> &'static [&'static str] {
        self.fields
    }

    /// Draws once; returns the fields in their order.
    pub fn draw(&mut self, random: &mut Pcg64, out: &mut Vec<Value>) {
        out.clear();
        match &mut self.kind {
            Kind::Box(bounds) => {
                let (lon, lat) = geo::point_in(*bounds, random);
                out.extend([Value::Number(lon, 6), Value::Number(lat, 6)]);
            }
            Kind::Places { rows, weights, scatter } => {
                let place = &rows[weights.sample(random)];
                let (mut lon, mut lat) = (place.lon, place.lat);
                if let Some(scatter) = scatter {
                    lat = (lat + scatter.sample(random) / geo::KM_PER_DEGREE).clamp(-90.0, 90.0);
                    // A degree of longitude is shorter away from the equator. The min keeps it finite at the poles.
                    lon += scatter.sample(random) / (geo::KM_PER_DEGREE * lat.to_radians().cos().max(0.01));
                    lon = (lon + 540.0).rem_euclid(360.0) - 180.0;
                }
                out.extend([Value::Text(Arc::clone(&place.name)), Value::Number(lon, 6), Value::Number(lat, 6)]);
            }
            Kind::Rows(rows) => out.extend_from_slice(&rows[random.random_range(0..rows.len())]),
            Kind::Grouped(groups) => {
                let rows = &groups[random.random_range(0..groups.len())];
                out.extend_from_slice(&rows[random.random_range(0..rows.len())]);
            }
            Kind::Cells { bounds, from, levels } => {
                #[expect(clippy::cast_possible_truncation, reason = "at most 24 levels")]
                let z = *from + levels.sample(random) as u8;
                let (col, row) = (random.random_range(0..1_u64 << z), random.random_range(0..1_u64 << (z - 1)));
                geo::cell(*bounds, z, col, row, out);
            }
            Kind::Id { from, to, prefix, next } => {
                let number = match next {
                    Some(at) => {
                        let number = *at;
                        *at = if number == *to { *from } else { number + 1 };
                        number
                    }
                    None => random.random_range(*from..=*to),
                };
                out.push(keyed(prefix, number));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a key is a whole number from 1"
            )]
            Kind::Zipf { zipf, prefix } => out.push(keyed(prefix, zipf.sample(random) as u64)),
            Kind::Choice { values, weights } => out.push(values[weights.sample(random)].clone()),
            Kind::Number { from, to, decimals } => {
                // An empty range would panic.
                let number = if from == to { *from } else { random.random_range(*from..*to) };
                out.push(Value::Number(number, *decimals));
            }
            Kind::Event { bounds, start, end, objects, batch, time, next } => {
                let made: Vec<String> = (0..*batch)
                    .map(|_| {
                        *next += 1;
                        event(*bounds, *start..*end, *objects, time, *next, random)
                    })
                    .collect();
                out.push(Value::text(made.first().map_or("", String::as_str)));
                out.push(Value::text(format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, made.join(","))));
                out.push(Value::text(made.join("\n")));
            }
        }
    }
}

fn places(path: &Path, spread_km: f64) -> Result<(&'static [&'static str], Kind), String> {
    let rows = file::places(path)?;
    let weights = WeightedIndex::new(rows.iter().map(|place| place.population))
        .map_err(|_| format!("{}: no place has a population above 0", path.display()))?;
    if !(0.0..=20_000.0).contains(&spread_km) {
        return Err(format!("spread_km = {spread_km}: expected 0 to 20000"));
    }
    let scatter = if spread_km > 0.0 { Normal::new(0.0, spread_km).ok() } else { None };
    Ok((PLACE, Kind::Places { rows: rows.into(), weights, scatter }))
}

fn rows(rows: Vec<Vec<Value>>, what: &str) -> Result<Kind, String> {
    if rows.is_empty() { Err(format!("{what} is empty: expected at least one")) } else { Ok(Kind::Rows(rows.into())) }
}

fn sound_box(bounds: [f64; 4]) -> Result<[f64; 4], String> {
    let [west, south, east, north] = bounds;
    let lon = |x: f64| (-180.0..=180.0).contains(&x);
    let lat = |y: f64| (-90.0..=90.0).contains(&y);
    if lon(west) && lon(east) && lat(south) && lat(north) && south <= north {
        return Ok(bounds);
    }
    Err(format!("box = {bounds:?}: expected west, south, east, north in degrees"))
}

fn keyed(prefix: &str, number: u64) -> Value {
    if prefix.is_empty() { Value::Whole(number) } else { Value::text(format!("{prefix}{number}")) }
}

fn event(bounds: [f64; 4], time: std::ops::Range<i64>, objects: u64, name: &str, n: u64, random: &mut Pcg64) -> String {
    let (lon, lat) = geo::point_in(bounds, random);
    let at = Timestamp::from_microsecond(random.random_range(time)).unwrap_or_default();
    let (object, value) = (random.random_range(0..objects), random.random_range(0.0..100.0));
    // The number of the draw and 32 random bits: another run is unlikely to produce the same id.
    format!(
        r#"{{"type":"Feature","id":"e{n}-{:08x}","geometry":{{"type":"Point","coordinates":[{lon:.6},{lat:.6}]}},"properties":{{"{name}":"{at:.6}","object":"o{object}","value":{value:.3}}}}}"#,
        random.next_u32()
    )
}
