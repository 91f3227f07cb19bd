//! `meridian health`: whether a server is alive or ready, for an image or a unit without another HTTP client.

use crate::failure::Failure;
use crate::http::Server;
use crate::output::say;
use crate::trust::Address;
use clap::Args;
use std::path::PathBuf;

/// Ask a server whether it is alive, or ready for requests
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian health --url http://127.0.0.1:7117
  meridian health --ready --url http://127.0.0.1:7117

Exit code 0: it is. 3: it is not, or it cannot be reached. Neither needs a token: the same is at /healthz and /readyz, also on
the listener for monitors (metrics.listen).")]
pub struct HealthArgs {
    /// Ask whether it takes requests, not only whether it runs
    #[arg(long)]
    ready: bool,
    /// Address of the server, or of its listener for monitors
    #[arg(long, value_name = "URL", env = "MERIDIAN_URL", default_value = "http://127.0.0.1:7117")]
    url: String,
    /// Trust the authorities in this file (PEM) for https://, instead of the system's
    #[arg(long, value_name = "FILE", env = "MERIDIAN_CA")]
    ca_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &HealthArgs) -> Result<(), Failure> {
    let address = Address { url: args.url.clone(), ca: args.ca_file.clone() };
    let (path, state) = if args.ready { ("readyz", "ready") } else { ("healthz", "alive") };
    Server::with_token(&address, None)?.stream(&[path], &[])?;
    say(state);
    Ok(())
}
