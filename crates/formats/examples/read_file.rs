//! Reads a file of events in any format: shows the schema it is given, then how fast it loads.
//!
//!     cargo run -p meridian-formats --example read_file -- earthquakes.csv.zst [zone]

use meridian_formats::{BatchLimits, Format, OnError, ReadOptions, decompress, infer_prefix, peek, reader};
use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("expected the name of a file")?;
    let zone = arguments.next().map(|zone| meridian_model::time::zone(&zone)).transpose()?;
    let options = ReadOptions { on_error: OnError::First, zone, ..ReadOptions::default() };
    let start = Instant::now();
    let (first, input) = peek(decompress(Box::new(File::open(&name)?))?, 4 << 20)?;
    let format = Format::detect(&name, &first).ok_or("cannot tell the format")?;
    let schema = Arc::new(infer_prefix(format, &first, &options)?);
    println!("{format} {:?} id {:?} {:?} time {:?}", schema.geometry, schema.id, schema.id_name, schema.time);
    for field in &schema.fields {
        println!("    {}: {}{}", field.name, field.kind.word(), if field.required { ", required" } else { "" });
    }
    println!("inferred in {:?}", start.elapsed());
    let start = Instant::now();
    let mut events = reader(format, input, schema, &options)?;
    let mut rows = 0;
    while let Some(batch) = events.next_batch(&BatchLimits::default())? {
        rows += batch.rows();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{rows} events in {seconds:.2} s: {:.0} a second", rows as f64 / seconds);
    Ok(())
}
