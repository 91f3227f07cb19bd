//! Closed-loop questions.
//!
//! Each of `--connections` connections sends its next question as soon as the answer to the last one
//! is in, so that rates of different servers are compared with one client's cost on top of each. The
//! questions come from a file, a line each, and are filled into `--template` (`{1}`, `{2}`, … are the
//! line's words, tabs between them). `--dump N` instead asks the first N questions once and prints each
//! raw answer as a line of hexadecimal, for a judge to compare the answers of different servers.

use crate::tally::{Tally, cpu_seconds};
use crate::wire::{self, Connection, Protocol};
use std::time::{Duration, Instant};

/// What to ask, where and for how long.
#[derive(clap::Args, Clone)]
pub struct Options {
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
    /// File of questions: words separated by tabs, one question a line.
    #[arg(long)]
    questions: std::path::PathBuf,
    /// Request target (http), command (resp, split at spaces) or SQL (pg; words are bound as text parameters, answers are binary).
    #[arg(long)]
    template: String,
    /// Database (pg only).
    #[arg(long, default_value = "postgres")]
    database: String,
    /// Ask the first N questions once and print the raw answers.
    #[arg(long)]
    dump: Option<usize>,
}

/// Asks, and prints what came of it.
pub async fn run(options: Options) -> Result<(), String> {
    let text =
        std::fs::read_to_string(&options.questions).map_err(|e| format!("{}: {e}", options.questions.display()))?;
    let ask = |line: &str| {
        wire::request(options.protocol, &options.template, &line.split('\t').collect::<Vec<_>>(), &options.address)
    };
    let questions: Vec<Vec<u8>> = text.lines().filter(|line| !line.is_empty()).map(ask).collect();
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
    let cpu = cpu_seconds();
    let handles: Vec<_> = (0..options.connections)
        .map(|i| i * questions.len() / options.connections)
        .map(|from| tokio::task::spawn_local(drive(options.clone(), questions, from, warm_until, end)))
        .collect();
    let mut all = Tally::default();
    for handle in handles {
        all.add(handle.await.map_err(|e| e.to_string())??);
    }
    // Answers that began in time are waited for: the rate counts the time that they took.
    let mut report = all.report(warm_until.elapsed());
    report["client_cpu_s"] = (cpu_seconds() - cpu).into();
    println!("{report}");
    Ok(())
}

async fn connect(options: &Options) -> Result<Connection, String> {
    Connection::open(options.protocol, &options.address, &options.database, &options.template).await
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
                tally.fail(e);
                connection = connect(&options).await?;
            }
        }
    }
    Ok(tally)
}
