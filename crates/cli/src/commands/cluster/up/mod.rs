//! `meridian cluster up`: runs a whole cluster on this machine, for trial and tests, until it is stopped.
//!
//! `plan.rs` decides where each process runs and writes its settings, `ports.rs` chooses their ports, and
//! `running.rs` waits for those of the last start. `process.rs` starts and stops one process, `supervise.rs`
//! all of them. `server.rs` finds the NATS server, `authority.rs` makes certificates.

mod authority;
mod plan;
mod ports;
mod process;
mod running;
mod server;
mod supervise;

use super::FOLDER;
use crate::failure::Failure;
use crate::output::say;
use clap::{Args, value_parser};
use plan::Plan;
use std::path::PathBuf;
use supervise::Outcome;
use tokio::runtime::Builder;

/// Max starts when another program takes one of the ports.
const STARTS: u32 = 3;

/// Start a cluster for trial on this machine, and keep it running until Ctrl-C
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster up --nodes 2
  meridian cluster up --nodes 3 --log nats --dir /srv/trial
  meridian cluster up --nodes 2 --tls

Each node is an owner, a gateway and a scan server: processes of this program, on free ports of 127.0.0.1. One owner
writes, the others take its place when it ends. Everything is in the folder: the bucket, the logs, and cluster.json with
addresses and process ids. The next start there has the same ports and the same data.

A process that ends is reported and started again. Ctrl-C or SIGTERM stops all of them cleanly; a second one kills them.")]
pub(super) struct UpArgs {
    /// Number of nodes, from 1 to 9
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// Log of the cluster: bucket or nats [default: as at the last start in the folder, at first bucket]
    #[arg(long, value_name = "LOG", value_parser = ["bucket", "nats"])]
    log: Option<String>,
    /// Folder of the cluster; created if missing [default: ./meridian-cluster]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Settings of all its processes, in TOML, as of `meridian serve --config`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// TLS between its processes, and to NATS, with certificates that are made for this start
    #[arg(long)]
    tls: bool,
    /// NATS server for --log nats, 2.15 or newer [default: from PATH, or as scripts/nats.sh builds it]
    #[arg(long, value_name = "FILE")]
    nats_server: Option<PathBuf>,
}

impl UpArgs {
    fn folder(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(|| PathBuf::from(FOLDER))
    }
}

/// Runs the command; returns when all processes have ended.
pub(super) fn run(args: &UpArgs) -> Result<(), Failure> {
    // A single thread: a child is bound to the thread that started it.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::Refused(format!("cannot start a thread: {e}")))?;
    let mut starts = 1..=STARTS;
    loop {
        // The next plan keeps the free ports, reports the one taken, and chooses another.
        match (runtime.block_on(supervise::run(Plan::make(args)?))?, starts.next()) {
            (Outcome::Stopped, _) => return Ok(()),
            (Outcome::PortTaken(failure), None) => return Err(failure),
            (Outcome::PortTaken(failure), Some(_)) => say(&format!("{failure}\nstarting again on another port")),
        }
    }
}
