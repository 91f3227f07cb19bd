//! Closed-loop load on a server over its own protocol, the same client for every peer.
//!
//! Each of `--connections` connections sends its next question as soon as the answer to the last one
//! is in, so that rates of different servers are compared with one client's cost on top of each. The
//! questions come from a file, a line each, and are filled into `--template` (`{1}`, `{2}`, … are the
//! line's words). Prints one JSON object. `--dump N` instead asks the first N questions once and prints each
//! raw answer as a line of hexadecimal, for a judge to compare the answers of different servers.

mod wire;

use clap::Parser;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use wire::{Connection, Protocol};

#[derive(Parser, Clone)]
struct Options {
    /// How to speak: http, resp (Redis) or pg (PostgreSQL, one prepared statement).
    #[arg(long, value_enum)]
    protocol: Protocol,
    /// Address of the server.
    #[arg(long)]
    address: String,
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Seconds to measure, after a warm-up of a fifth of it.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// File of questions: words separated by spaces, one question a line.
    #[arg(long)]
    questions: std::path::PathBuf,
    /// Request target (http), command (resp, split at spaces) or SQL (pg; words are bound as text parameters).
    #[arg(long)]
    template: String,
    /// Database and user (pg only).
    #[arg(long, default_value = "postgres")]
    database: String,
    /// Ask the first N questions once and print the raw answers.
    #[arg(long)]
    dump: Option<usize>,
}

/// What one connection saw during the measured time.
#[derive(Default)]
struct Tally {
    latencies_us: Vec<u32>,
    bytes: u64,
    errors: u64,
    first_error: Option<String>,
}

fn main() {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => fail(&format!("cannot start: {e}")),
    };
    if let Err(e) = runtime.block_on(run(options)) {
        fail(&e);
    }
}

fn fail(message: &str) -> ! {
    eprintln!("bench-driver: {message}");
    std::process::exit(1)
}

async fn run(options: Options) -> Result<(), String> {
    let text =
        std::fs::read_to_string(&options.questions).map_err(|e| format!("{}: {e}", options.questions.display()))?;
    let questions: Vec<Vec<u8>> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            wire::request(options.protocol, &options.template, &line.split(' ').collect::<Vec<_>>(), &options.address)
        })
        .collect();
    if questions.is_empty() {
        return Err("the file of questions is empty".to_owned());
    }
    if let Some(count) = options.dump {
        let mut connection = connect(&options).await?;
        for question in questions.iter().take(count) {
            let answer = connection.ask(question).await.map_err(|e| e.to_string())?;
            println!("{}", answer.iter().map(|b| format!("{b:02x}")).collect::<String>());
        }
        return Ok(());
    }

    let warm_until = Instant::now() + Duration::from_secs_f64(options.seconds / 5.0);
    let end = warm_until + Duration::from_secs_f64(options.seconds);
    let questions: &'static [Vec<u8>] = Box::leak(questions.into_boxed_slice());
    let tasks: Vec<_> = (0..options.connections)
        .map(|i| {
            let options = options.clone();
            let from = i * questions.len() / options.connections;
            (from, options)
        })
        .collect();
    let local = tokio::task::LocalSet::new();
    let tallies = local
        .run_until(async {
            let handles: Vec<_> = tasks
                .into_iter()
                .map(|(from, o)| tokio::task::spawn_local(drive(o, questions, from, warm_until, end)))
                .collect();
            let mut tallies = Vec::new();
            for handle in handles {
                tallies.push(handle.await.map_err(|e| e.to_string())??);
            }
            Ok::<_, String>(tallies)
        })
        .await?;
    report(&options, tallies);
    Ok(())
}

async fn connect(options: &Options) -> Result<Connection, String> {
    let stream = TcpStream::connect(&options.address).await.map_err(|e| format!("{}: {e}", options.address))?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    Connection::open(options.protocol, stream, &options.database, &options.template)
        .await
        .map_err(|e| format!("{}: {e}", options.address))
}

async fn drive(
    options: Options,
    questions: &'static [Vec<u8>],
    from: usize,
    warm_until: Instant,
    end: Instant,
) -> Result<Tally, String> {
    let mut connection = connect(&options).await?;
    let mut tally = Tally::default();
    for question in questions.iter().cycle().skip(from) {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        let outcome = connection.ask(question).await.map(|answer| answer.len());
        let done = Instant::now();
        if done < warm_until {
            continue;
        }
        match outcome {
            Ok(bytes) => {
                tally.latencies_us.push((done - sent).as_micros() as u32);
                tally.bytes += bytes as u64;
            }
            Err(e) => {
                tally.errors += 1;
                tally.first_error.get_or_insert_with(|| e.to_string());
                connection = connect(&options).await?;
            }
        }
    }
    Ok(tally)
}

fn report(options: &Options, tallies: Vec<Tally>) {
    let mut latencies: Vec<u32> = tallies.iter().flat_map(|t| t.latencies_us.iter().copied()).collect();
    latencies.sort_unstable();
    let at = |q: f64| {
        latencies
            .get(((latencies.len() as f64 * q) as usize).min(latencies.len().saturating_sub(1)))
            .map(|&us| f64::from(us) / 1000.0)
    };
    let answers = latencies.len() as f64;
    println!(
        "{}",
        serde_json::json!({
            "answers": latencies.len(),
            "per_second": answers / options.seconds,
            "errors": tallies.iter().map(|t| t.errors).sum::<u64>(),
            "first_error": tallies.iter().find_map(|t| t.first_error.clone()),
            "bytes_mean": tallies.iter().map(|t| t.bytes).sum::<u64>() as f64 / answers.max(1.0),
            "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0),
        })
    );
}
