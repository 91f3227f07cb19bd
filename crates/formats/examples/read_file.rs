//! Reads a file of events in any format: shows the schema it is given, then how fast it is read and written.
//!
//!     cargo run -p meridian-formats --example read_file -- earthquakes.csv.zst [zone]
#![allow(clippy::disallowed_methods, reason = "an example reads the file it is given, and times it")]

use meridian_formats::{BatchLimits, Format, OnError, ReadOptions, decompress, infer_prefix, peek, reader, writer};
use meridian_model::{Batch, Seq};
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
    let schema = Arc::new(infer_prefix(format, &first, &options)?.schema);
    println!("{format} {:?} id {:?} {:?} time {:?}", schema.geometry, schema.id, schema.id_name, schema.time);
    for field in &schema.fields {
        println!("    {}: {}{}", field.name, field.kind.word(), if field.required { ", required" } else { "" });
    }
    println!("inferred in {:?}", start.elapsed());
    let start = Instant::now();
    let mut events = reader(format, input, schema.clone(), &options)?;
    let mut batches = Vec::new();
    while let Some(batch) = events.next_batch(&BatchLimits::default())? {
        batches.push(batch);
    }
    let rows: usize = batches.iter().map(Batch::rows).sum();
    let seconds = start.elapsed().as_secs_f64();
    println!("{rows} events read in {seconds:.2} s: {:.0} a second", rows as f64 / seconds);
    for format in [Format::NdJson, Format::Csv, Format::Arrow, Format::GeoParquet] {
        let start = Instant::now();
        let mut writer = writer(format, &schema, None)?;
        let (mut out, mut bytes) = (Vec::new(), 0);
        writer.start(&mut out)?;
        for batch in &batches {
            let seqs: Vec<Seq> = (0..batch.rows()).map(|row| Seq::new(1, row)).collect();
            writer.write(batch, &seqs, &mut out)?;
            bytes += out.len();
            out.clear();
        }
        writer.finish(&mut out)?;
        let seconds = start.elapsed().as_secs_f64();
        let rate = rows as f64 / seconds;
        println!("written as {format} in {seconds:.2} s: {rate:.0} a second, {} bytes", bytes + out.len());
    }
    Ok(())
}
