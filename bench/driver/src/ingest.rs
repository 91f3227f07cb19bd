//! Batches sent as fast as they are acknowledged.
//!
//! All batches are generated first. Then `ready` is printed and a line is awaited on standard input. So the parent
//! program can read the server's counters right before and right after. A connection sends its next batch once its
//! last one is acknowledged.

use crate::ask::refused;
use crate::bodies::{self, Encoding, Events, INSERT};
use crate::tally::{Tally, cpu_seconds};
use crate::wire::{Connection, Protocol};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What to send, where and how much.
#[derive(clap::Args)]
pub struct Options {
    /// How batches are written down, which says how to speak as well.
    #[arg(long, value_enum)]
    encoding: Encoding,
    /// Address of the server.
    #[arg(long)]
    address: String,
    /// Request target (HTTP only).
    #[arg(long, default_value = "/")]
    target: String,
    /// Events in a batch.
    #[arg(long)]
    batch: usize,
    /// Events to send at most.
    #[arg(long)]
    events: usize,
    /// Seconds to send at most.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Connections, each with one batch in flight.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Seed of the events.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds by which the events begin later than the first of all.
    #[arg(long, default_value_t = 0)]
    later: u32,
    /// Database (PostgreSQL only).
    #[arg(long, default_value = "postgres")]
    database: String,
}

/// Sends, and prints the results.
pub async fn run(options: Options) -> Result<(), String> {
    let mut events = Events::new(options.seed, options.later);
    let mut bodies = Vec::new();
    for _ in 0..options.events.div_ceil(options.batch) {
        let body = events.batch(options.encoding, options.batch)?;
        bodies.push(bodies::request(options.encoding, body, &options.target, &options.address));
    }
    let (protocol, statement) = match options.encoding {
        Encoding::Ndjson | Encoding::Arrow | Encoding::Ilp => (Protocol::Http, ""),
        Encoding::Copy => (Protocol::Pg, ""),
        Encoding::Insert => (Protocol::Pg, INSERT),
    };
    let mut connections = Vec::new();
    for _ in 0..options.connections {
        connections.push(Connection::open(protocol, &options.address, &options.database, statement).await?);
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).map_err(|e| e.to_string())?;

    let bodies: Rc<[Vec<u8>]> = bodies.into();
    let (next, began, cpu) = (Rc::new(Cell::new(0)), Instant::now(), cpu_seconds());
    let end = began + Duration::from_secs_f64(options.seconds);
    let senders: Vec<_> = connections
        .into_iter()
        .map(|connection| tokio::task::spawn_local(send(connection, bodies.clone(), next.clone(), end)))
        .collect();
    let mut all = Tally::default();
    for sender in senders {
        all.add(sender.await.map_err(|e| e.to_string())?);
    }
    let elapsed = began.elapsed();
    let acknowledged = all.latencies_us.len() * options.batch;
    let sent: usize = bodies.iter().take(next.get()).map(Vec::len).sum();
    let mut report = all.report(elapsed);
    report["events"] = acknowledged.into();
    report["events_per_second"] = (acknowledged as f64 / elapsed.as_secs_f64()).into();
    report["bytes_sent"] = sent.into();
    report["client_cpu_s"] = (cpu_seconds() - cpu).into();
    println!("{report}");
    refused(&report)
}

async fn send(mut connection: Connection, bodies: Rc<[Vec<u8>]>, next: Rc<Cell<usize>>, end: Instant) -> Tally {
    let mut tally = Tally::default();
    loop {
        let sent = Instant::now();
        let Some(body) = bodies.get(next.get()).filter(|_| sent < end) else { return tally };
        next.set(next.get() + 1);
        match connection.ask(body).await {
            Ok(answer) => {
                tally.bytes += answer.len() as u64;
                tally.latencies_us.push(sent.elapsed().as_micros() as u32);
            }
            Err(e) => {
                tally.fail(e);
                return tally;
            }
        }
    }
}
