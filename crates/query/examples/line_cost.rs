//! The cost of queries about long lines, in nodes, blocks and lines tested: `zstd -dc
//! data/atlantic-storms/storms.csv.zst | cargo run -p meridian-query --example line_cost -- 50`.
//!
//! Reads rows of a CSV file with the columns `storm_id`, `lat` and `lon` from standard input, and makes a line of
//! each id. It repeats all lines the given number of times, slightly shifted, with four edges for each original one.
//! Then it queries the cells of a grid, once by pieces and once by boxes alone. `NOT S_DISJOINT` matches the same
//! lines but cannot use their pieces.
#![allow(clippy::disallowed_methods, reason = "an example measures in real time")]

use geo_types::{Coord, LineString};
use meridian_model::builder::Value;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{BatchBuilder, Field, FieldType, GeometryType, Projection, Schema, TimeRole};
use meridian_query::{CancelFlag, Control, Items, Stats, items};
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{Options, Settings, Store, Write};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Vertices inserted between two of the file.
const BETWEEN: usize = 3;

fn read() -> Result<Vec<Vec<Coord<f64>>>, Box<dyn Error>> {
    let text = std::io::read_to_string(std::io::stdin())?;
    let mut rows = text.lines().map(|line| line.split(',').map(|cell| cell.trim_matches('"')).collect::<Vec<_>>());
    let head = rows.next().ok_or("no rows")?;
    let column = |name: &str| head.iter().position(|c| *c == name).ok_or(format!("no column {name}"));
    let (id, lat, lon) = (column("storm_id")?, column("lat")?, column("lon")?);
    let mut lines: Vec<(String, Vec<Coord<f64>>)> = Vec::new();
    for row in rows {
        let storm = row[id].to_owned();
        let at = Coord { x: row[lon].parse()?, y: row[lat].parse()? };
        match lines.last_mut() {
            Some((last, line)) if *last == storm => line.push(at),
            _ => lines.push((storm, vec![at])),
        }
    }
    Ok(lines.into_iter().map(|(_, line)| line).filter(|line| line.len() > 1).collect())
}

fn denser(line: &[Coord<f64>], shift: Coord<f64>) -> LineString<f64> {
    let between = |pair: &[Coord<f64>]| {
        let (a, b) = (pair[0], pair[1]);
        (0..=BETWEEN).map(move |i| a + (b - a) * (i as f64 / (BETWEEN + 1) as f64)).collect::<Vec<_>>()
    };
    line.windows(2).flat_map(between).chain(line.last().copied()).map(|c| c + shift).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let copies: usize = std::env::args().nth(1).map_or(Ok(50), |text| text.parse())?;
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let options = Options { background: false, memory_bytes: 4 << 30, log_bytes: 4 << 30, ..Options::at("/data") };
    let store = Store::open(options, seams.clone())?;
    let field = Field { name: "t".into(), kind: FieldType::Time, required: true, title: None };
    let (geometry, time) = (Some(GeometryType::Line), TimeRole::Instant(0));
    let schema = Arc::new(Schema { fields: vec![field], geometry, time, ..Schema::default() });
    let collection = store.create("default", "lines", (*schema).clone(), Settings::default())?;
    let lines = read()?;
    let mut vertices = 0;
    for copy in 0..copies {
        let shift = Coord { x: (copy * 37 % 101) as f64 * 0.02, y: (copy * 53 % 103) as f64 * 0.02 };
        let mut events = BatchBuilder::new(schema.clone());
        for (i, line) in lines.iter().enumerate() {
            let line = denser(line, shift);
            vertices += line.0.len();
            events.set_geometry(&line.into())?;
            events.set(0, Value::Time((copy * lines.len() + i) as i64 * 60_000_000))?;
            events.end_event()?;
        }
        collection.write(Write::new(events.finish()?))?;
    }
    collection.flush()?;
    collection.maintain()?;
    let snapshot = collection.snapshot();
    let pieces: usize = snapshot.parts.iter().filter_map(|part| part.pieces()).map(|p| p.len()).sum();
    let bytes: usize = snapshot.parts.iter().filter_map(|part| part.pieces()).map(|p| p.bytes()).sum();
    println!("{} lines, {vertices} vertices, {pieces} pieces of {bytes} bytes", snapshot.rows());
    for side in [16.0, 4.0, 1.0] {
        for by_pieces in [true, false] {
            let (mut stats, mut cells, mut found) = (Stats::default(), 0, 0);
            let started = Instant::now();
            for cell in 0..50 {
                let (west, south) = (-100.0 + f64::from(cell % 10) * 8.0, 10.0 + f64::from(cell / 10) * 8.0);
                let (east, north) = (west + side, south + side);
                let predicate = if by_pieces {
                    Predicate::bbox(west, south, east, north)
                } else {
                    let apart =
                        format!("NOT S_DISJOINT({}, BBOX({west},{south},{east},{north}))", schema.geometry_name);
                    Predicate::bind(&parse_text(&apart)?, &schema)?
                };
                let projection = Projection::none(&snapshot.layout);
                let question = Items { predicate, projection, ..Items::all(&schema) };
                let control = Control::new(seams.clock.clone(), Duration::from_secs(600), CancelFlag::new());
                let mut answer = items(&snapshot, &question, &control)?;
                for hits in answer.by_ref() {
                    found += hits?.seqs.len() as u64;
                }
                stats.merge(&answer.stats());
                cells += 1;
            }
            println!(
                "{side:4}° {}: a cell finds {} tests {} reads {} blocks visits {} nodes takes {:.2} ms",
                if by_pieces { "by pieces" } else { "by boxes " },
                found / cells,
                stats.events_tested / cells,
                stats.blocks_read / cells,
                stats.nodes_visited / cells,
                started.elapsed().as_secs_f64() * 1e3 / cells as f64,
            );
        }
    }
    Ok(())
}
