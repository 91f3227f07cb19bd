//! Drives servers for the benches, so that they do not measure a Python client.
//!
//! `ask` keeps questions in flight over a server's own protocol. `ingest` sends prepared batches and waits for each
//! acknowledgement. `flood` sends at a rate, whatever the responses. `null` and `raw` are ceilings: a handler that
//! does nothing, and a file that is written and synced. Each prints one JSON object.
#![allow(clippy::disallowed_methods, reason = "the benches measure in real time")]

mod ask;
mod bodies;
mod flood;
mod ingest;
mod null;
mod raw;
mod tally;
mod wire;

use clap::Parser;

/// The client of the benches, and two ceilings.
#[derive(Parser)]
enum Command {
    /// Keeps one question in flight on each connection.
    Ask(ask::Options),
    /// Sends batches of made events, one in flight on each connection.
    Ingest(ingest::Options),
    /// Sends batches at a rate, whether or not earlier ones were answered.
    Flood(flood::Options),
    /// Serves an HTTP handler that reads a body and answers 201.
    Null(null::Options),
    /// Writes the same batches to a file, synced after each.
    Raw(raw::Options),
}

fn main() {
    let done = match Command::parse() {
        Command::Ask(options) => alone(ask::run(options)),
        Command::Ingest(options) => alone(ingest::run(options)),
        Command::Flood(options) => alone(flood::run(options)),
        Command::Null(options) => null::run(&options),
        Command::Raw(options) => raw::run(&options),
    };
    if let Err(e) = done {
        eprintln!("bench-driver: {e}");
        std::process::exit(1)
    }
}

/// Runs a client on one thread: its cost is a single figure, and it never takes more than one core from the server.
fn alone(client: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, client)
}
