//! The cost of aggregates in nodes, blocks and rows: `cargo run -p meridian-query --example aggregate_cost --
//! 2000000`.
//!
//! Points of three years around a few hundred towns, and the same without places, each in an in-memory store. The
//! numbers of nodes, blocks and events depend only on the seed; the times depend on the machine.
#![allow(clippy::disallowed_methods, reason = "an example measures in real time")]

use meridian_model::builder::Value;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{BatchBuilder, Field, FieldType, GeometryType, Schema, TimeRole};
use meridian_query::{Aggregate, CancelFlag, Control, Function, Windows, aggregate};
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{Collection, Options, Settings, Store, Write};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

const START: i64 = 1_577_836_800_000_000;
const YEARS: i64 = 3 * 365 * 86_400_000_000;
const BATCH: u64 = 100_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn schema(places: bool) -> Arc<Schema> {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let required = Field { required: true, ..field("t", FieldType::Time) };
    let fields = vec![required, field("price", FieldType::Float), field("kind", FieldType::Int)];
    let geometry = places.then_some(GeometryType::Point);
    Arc::new(Schema { fields, geometry, time: TimeRole::Instant(0), ..Schema::default() })
}

fn load(collection: &Collection, places: bool, rows: u64, late: bool) -> Result<(), Box<dyn Error>> {
    let mut random = Random(if late { 99 } else { 7 });
    let schema = schema(places);
    for first in (0..rows).step_by(BATCH as usize) {
        let mut events = BatchBuilder::new(schema.clone());
        for i in first..rows.min(first + BATCH) {
            let town = random.next() % 400;
            if places {
                let (lon, lat) =
                    ((town * 7919 % 3400) as f64 / 10.0 - 170.0, (town * 104_729 % 1200) as f64 / 10.0 - 60.0);
                events.set_point(lon + random.part() * 2.0, lat + random.part() * 2.0)?;
            }
            let share = if late { random.part() } else { (i as f64 + random.part()) / rows as f64 };
            events.set(0, Value::Time(START + (share * YEARS as f64) as i64))?;
            events.set(1, Value::Float(random.part() * 100.0))?;
            events.set(2, Value::Int((random.next() % 1000) as i64))?;
            events.end_event()?;
        }
        collection.write(Write::new(events.finish()?))?;
    }
    Ok(())
}

fn ask(collection: &Collection, seams: &Seams, what: &str) -> Result<(), Box<dyn Error>> {
    let snapshot = collection.snapshot();
    let filter = |text: &str| Ok::<_, Box<dyn Error>>(Predicate::bind(&parse_text(text)?, &snapshot.schema)?);
    let mut filters = vec![("all", Predicate::all()), ("kind < 10", filter("kind < 10")?)];
    if snapshot.schema.geometry.is_some() {
        filters.push(("box", Predicate::bbox(-20.0, 20.0, 40.0, 60.0)));
    }
    println!("\n{what}: {} parts, {} rows", snapshot.parts.len(), snapshot.rows());
    for (name, predicate) in &filters {
        for window in ["", "PT1H", "P1D", "P1M"] {
            let windows = (!window.is_empty()).then(|| Windows::parse(window, "Europe/Berlin")).transpose()?;
            let functions = vec![Function::Count, Function::Avg(1)];
            let question = Aggregate { predicate: predicate.clone(), functions, windows, by: Vec::new(), empty: false };
            let mut answer = None;
            let mut best = Duration::MAX;
            for _ in 0..3 {
                let control = Control::new(seams.clock.clone(), Duration::from_secs(600), CancelFlag::new());
                let started = Instant::now();
                answer = Some(aggregate(&snapshot, &question, &control)?);
                best = best.min(started.elapsed());
            }
            let Some(answer) = answer else { continue };
            let s = answer.stats;
            println!(
                "{name:10} {window:5} groups {:6} nodes {:8} whole {:7} blocks {:7} tested {:9} matched {:9} {:8.2} ms",
                answer.groups.len(),
                s.nodes_visited,
                s.nodes_whole,
                s.blocks_read,
                s.events_tested,
                s.events_matched,
                best.as_secs_f64() * 1e3,
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(2_000_000), |text| text.parse())?;
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let options = Options { background: false, memory_bytes: 4 << 30, log_bytes: 4 << 30, ..Options::at("/data") };
    let store = Store::open(options, seams.clone())?;
    for places in [true, false] {
        let name = if places { "points" } else { "series" };
        let schema = schema(places);
        let collection = store.create("default", name, (*schema).clone(), Settings::default())?;
        load(&collection, places, rows, false)?;
        ask(&collection, &seams, &format!("{name} in memory"))?;
        collection.flush()?;
        collection.maintain()?;
        ask(&collection, &seams, &format!("{name} in segments"))?;
        let ids: Vec<String> = collection.snapshot().parts[0]
            .seqs(0..2000)?
            .iter()
            .step_by(2)
            .map(|s| meridian_model::Seq(*s).to_id())
            .collect();
        collection.delete(&ids)?;
        load(&collection, places, rows / 50, true)?;
        ask(&collection, &seams, &format!("{name} after deletes and late events"))?;
    }
    Ok(())
}
