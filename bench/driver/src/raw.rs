//! The ceiling of any durable store: the same bytes written to a file, with one sync per batch.

use crate::bodies::{Encoding, Events};
use crate::tally::{Tally, cpu_seconds};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to write.
#[derive(clap::Args)]
pub struct Options {
    /// File to write; it is removed afterwards.
    #[arg(long)]
    file: PathBuf,
    /// How batches are written down.
    #[arg(long, value_enum)]
    encoding: Encoding,
    /// Events in a batch.
    #[arg(long)]
    batch: usize,
    /// Events to write at most.
    #[arg(long)]
    events: usize,
    /// Seconds to write at most.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Write over a file that is already as long, as a recycled log does, instead of growing one.
    #[arg(long)]
    recycled: bool,
    /// Seed of the events.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Writes, and prints the speed.
pub fn run(options: &Options) -> Result<(), String> {
    let mut events = Events::new(options.seed, 0);
    let batches = options.events.div_ceil(options.batch);
    let bodies: Result<Vec<_>, _> = (0..batches).map(|_| events.batch(options.encoding, options.batch)).collect();
    let report = written(options, &bodies?).map_err(|e| format!("{}: {e}", options.file.display()));
    let _ = std::fs::remove_file(&options.file);
    println!("{}", report?);
    Ok(())
}

fn written(options: &Options, bodies: &[Vec<u8>]) -> std::io::Result<serde_json::Value> {
    let mut file = open(&options.file)?;
    if options.recycled {
        for body in bodies {
            file.write_all(&vec![0; body.len()])?;
        }
        file.sync_all()?;
        file.rewind()?;
    }
    let mut tally = Tally::default();
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let end = began + Duration::from_secs_f64(options.seconds);
    for body in bodies {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        file.write_all(body)?;
        file.sync_data()?;
        tally.bytes += body.len() as u64;
        tally.latencies_us.push(sent.elapsed().as_micros() as u32);
    }
    let elapsed = began.elapsed();
    let events = tally.latencies_us.len() * options.batch;
    let mut report = tally.report(elapsed);
    report["events"] = events.into();
    report["events_per_second"] = (events as f64 / elapsed.as_secs_f64()).into();
    report["client_cpu_s"] = (cpu_seconds() - cpu).into();
    Ok(report)
}

fn open(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(true).write(true).open(path)
}
