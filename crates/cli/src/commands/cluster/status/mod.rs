//! `meridian cluster status`: the state of a cluster from its bucket, and whether its processes respond. Nothing is
//! written.
//!
//! `document.rs` has the result and its JSON; `survey.rs` collects it; `show.rs` prints it for people.

mod document;
mod show;
mod survey;

use super::named::NamedCluster;
use crate::failure::Failure;
use crate::output::{remark, unwritable, with_stdout};
use clap::Args;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;
use survey::StatusSurvey;

/// Poll interval of `--watch`.
const WATCH: Duration = Duration::from_secs(2);
/// Clears a terminal.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Show the owner, the collections, the servers and the readers of a cluster, from its bucket
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster status                                of the cluster in ./meridian-cluster
  meridian cluster status --dir /srv/trial --watch
  meridian cluster status --bucket file:///srv/bucket
  meridian cluster status --bucket file:///srv/bucket --json
  meridian cluster status --bucket s3://events/production --config /etc/meridian/cluster.toml

Exits with 0, with 1 if something in the bucket or in the log does not read, and with 2 if nothing of a cluster is in the bucket. Ages are by
the clocks of this machine and of the bucket.
With --config, or with --dir, it also shows how far a log in NATS is ahead. docs/cluster.md describes the JSON.")]
pub(super) struct StatusArgs {
    /// Bucket of the cluster: file://DIR or s3://BUCKET/PREFIX
    #[arg(long, value_name = "ADDRESS", conflicts_with = "dir")]
    bucket: Option<String>,
    /// Folder of `meridian cluster up`: its bucket, and its processes [default: ./meridian-cluster, without --bucket]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Settings of a process of the cluster, in TOML: they name the servers of a log in NATS, and the store of --bucket
    /// s3://…
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a JSON object; with --watch one a line
    #[arg(long)]
    json: bool,
    /// Look again every 2 seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

/// Runs the command.
pub(super) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let survey =
        StatusSurvey::open(NamedCluster::open(args.bucket.as_deref(), args.dir.as_deref(), args.config.as_deref())?)?;
    with_stdout(|out| {
        loop {
            let found = match survey.run() {
                // A bucket that does not respond may do so again.
                Err(failure) if args.watch => {
                    remark(&format!("meridian: {failure}"));
                    std::thread::sleep(WATCH);
                    continue;
                }
                found => found?,
            };
            if args.watch && !args.json && std::io::stdout().is_terminal() {
                write!(out, "{CLEAR}").map_err(|e| unwritable(&e))?;
            }
            let printed = match (args.json, args.watch) {
                (true, true) => writeln!(out, "{}", found.json()?),
                (true, false) => writeln!(out, "{:#}", found.json()?),
                (false, _) => show::print(&found, &mut *out),
            };
            printed.and_then(|()| out.flush()).map_err(|e| unwritable(&e))?;
            match args.watch {
                true => std::thread::sleep(WATCH),
                false => return found.verdict(),
            }
        }
    })
}
