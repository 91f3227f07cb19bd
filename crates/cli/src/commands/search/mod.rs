//! `meridian search`: searches the sources of a running server, and shows results as they arrive.
//!
//! `question.rs` has the question, `packets.rs` the stream of packets with reconnects, `show.rs` the output for people
//! and scripts. `follow.rs` follows a saved search, and `saved.rs` creates or finds it.

mod follow;
mod packets;
mod question;
mod saved;
mod show;

use crate::failure::Failure;
use crate::http::Server;
use crate::interrupt::{INTERRUPTED, at_interrupt};
use crate::trust::Address;
use clap::Args;
use packets::{Packets, StreamEvent};
use question::QuestionArgs;
use saved::FollowArgs;
use serde_json::Value;
use show::ResultPrinter;
use std::path::PathBuf;

/// The default server.
const SERVER: &str = "http://127.0.0.1:7117";

/// Search many sources at once: the server's collections and the outside sources that it may ask
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian search flood --near 4.83,45.76 --radius 20000
  meridian search '\"high tide\" OR flood' --start 2026-01-01 --provider wikipedia --provider meridian
  meridian search --near 121.9,24.7 --radius 200000 --format ndjson > found.ndjson
  meridian search flood --polygon '4,45 5,45 5,46'
  meridian search flood --keep floods --keep-hours 48
  meridian search flood --follow                   new results from now on, as they arrive
  meridian search flood --follow --name floods     the same, and the saved search is kept
    meridian search --follow --name floods           an existing one, by its name or id

Words must all be in the text; \"a phrase\", OR, NOT or -word and parentheses work. Results are
printed as they arrive, one a line; a summary of each source follows at the end, on standard error.
Ctrl-C ends the search on the server as well.

Exit code 0: all sources asked gave complete results; 1: some did not; 2: the question
is wrong; 3: no server.

With --follow the question becomes a saved search of the server, and later results are printed.
A broken connection is reopened without loss or repetition. Ctrl-C ends it: exit code 0, or 1
if something may have been lost, which standard error reports. The saved search is then deleted,
unless it has a --name.")]
pub struct SearchArgs {
    #[command(flatten)]
    pub question: QuestionArgs,
    #[command(flatten)]
    pub following: FollowArgs,
    /// text: a line for a person; ndjson: a GeoJSON feature a line, with its provider
    #[arg(long, default_value = "text", value_parser = ["text", "ndjson"])]
    pub format: String,
    /// The server [default: $MERIDIAN_URL, else http://127.0.0.1:7117]
    #[arg(long, visible_alias = "server", value_name = "URL")]
    pub url: Option<String>,
    /// Trust the authorities in this file (PEM) for https://, instead of the system's
    #[arg(long, value_name = "FILE", env = "MERIDIAN_CA")]
    pub ca_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &SearchArgs) -> Result<(), Failure> {
    if args.following.follow {
        return follow::run(args);
    }
    let question = args.question.read()?;
    let (url, server) = server_of(args)?;
    let begun = server.ask(&["searches"], &question)?;
    let id = begun["search"]
        .as_str()
        .ok_or_else(|| Failure::Refused(format!("{url} answered without the name of a search: {begun}")))?;
    // Before the first packet is read: the search runs already, and Ctrl-C must end it.
    stop_at_interrupt(&server, id)?;
    let mut show = ResultPrinter::new(&args.format, &begun);
    let outcome = show_all(&server, id, &mut show);
    show.end();
    if outcome.is_err() || show.reader_has_gone() {
        // The search has no reader any more. If this fails, the server notices by itself.
        let _ = server.delete(&["searches", id]);
    }
    match outcome? {
        _ if show.reader_has_gone() => Ok(()),
        Some(last) => show.summary(&last),
        None => Ok(()),
    }
}

/// Returns the server to use, and its address.
fn server_of(args: &SearchArgs) -> Result<(String, Server), Failure> {
    let from_environment = || std::env::var("MERIDIAN_URL").ok().filter(|url| !url.is_empty());
    let url = args.url.clone().or_else(from_environment).unwrap_or_else(|| SERVER.to_owned());
    let server = Server::at(&Address { url: url.clone(), ca: args.ca_file.clone() })?;
    Ok((url, server))
}

/// Shows packets until the last, which it returns; `None` if the output is closed.
fn show_all(server: &Server, id: &str, show: &mut ResultPrinter) -> Result<Option<Value>, Failure> {
    let path = ["searches", id, "packets"];
    let mut packets = Packets::of_search(server, &path);
    while !show.reader_has_gone() {
        // A broken connection loses nothing, so there is nothing to report.
        let StreamEvent::Packet(packet) = packets.next()? else { continue };
        match packet["kind"].as_str() {
            Some("results") => show.results(&packet),
            Some("provider") => show.state(&packet),
            Some("complete") => return Ok(Some(packet)),
            _ => show.remark(&packet),
        }
    }
    Ok(None)
}

/// Ends the search on the server at Ctrl-C: its last packet then arrives, and is shown like any other.
fn stop_at_interrupt(server: &Server, id: &str) -> Result<(), Failure> {
    let (server, id) = (server.clone(), id.to_owned());
    at_interrupt(move || {
        // If the server did not end the search, no last packet comes, so the program ends at once.
        if !matches!(server.delete(&["searches", &id]), Ok(true)) {
            std::process::exit(INTERRUPTED);
        }
    })
}
