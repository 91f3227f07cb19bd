//! `meridian search`: asks a running server's sources, and shows results as they arrive.
//!
//! `question.rs` is what is asked, `packets.rs` the stream of answers, over broken connections as well, `show.rs` what a person
//! or a script sees of them.

mod packets;
mod question;
mod show;

use crate::failure::Failure;
use crate::http::Server;
use clap::Args;
use packets::Packets;
use question::QuestionArgs;
use serde_json::Value;
use show::Show;

/// Server that is asked where none is named.
const SERVER: &str = "http://127.0.0.1:7117";

/// Ask many sources at once: this server's collections and those that it is allowed to ask outside
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian search flood --near 4.83,45.76 --radius 20000
  meridian search '\"high tide\" OR flood' --start 2026-01-01 --provider wikipedia --provider meridian
  meridian search --near 121.9,24.7 --radius 200000 --format ndjson > found.ndjson
  meridian search flood --keep floods --keep-hours 48

Words must all be in the text; \"a phrase\", OR, NOT or -word and parentheses work. Results are
printed as they arrive, one a line; what each source gave is said at the end, on standard error.
Ctrl-C ends the search on the server as well.

Exit code 0: all sources that were asked gave all that they have; 1: some did not; 2: the question
is wrong; 3: no server.")]
pub struct SearchArgs {
    #[command(flatten)]
    pub question: QuestionArgs,
    /// text: a line for a person; ndjson: a GeoJSON feature a line, with its provider
    #[arg(long, default_value = "text", value_parser = ["text", "ndjson"])]
    pub format: String,
    /// The server [default: $MERIDIAN_URL, else http://127.0.0.1:7117]
    #[arg(long, visible_alias = "server", value_name = "URL")]
    pub url: Option<String>,
}

/// Runs the command.
pub fn run(args: &SearchArgs) -> Result<(), Failure> {
    let question = args.question.read()?;
    let from_environment = || std::env::var("MERIDIAN_URL").ok().filter(|url| !url.is_empty());
    let url = args.url.clone().or_else(from_environment).unwrap_or_else(|| SERVER.to_owned());
    let server = Server::at(&url)?;
    let begun = server.ask(&["searches"], &question)?;
    let id = begun["search"]
        .as_str()
        .ok_or_else(|| Failure::Refused(format!("{url} answered without the name of a search: {begun}")))?;
    stop_at_interrupt(&server, id)?;
    let mut show = Show::new(&args.format, &begun);
    let outcome = follow(&server, id, &mut show);
    show.end();
    if outcome.is_err() || show.reader_has_gone() {
        // Nobody reads it any more. Where this fails, the server notices by itself.
        let _ = server.delete(&["searches", id]);
    }
    match outcome? {
        _ if show.reader_has_gone() => Ok(()),
        Some(last) => show.summary(&last),
        None => Ok(()),
    }
}

/// Shows packets until the last, which it gives; `None` where nobody reads what is shown.
fn follow(server: &Server, id: &str, show: &mut Show) -> Result<Option<Value>, Failure> {
    let path = ["searches", id, "packets"];
    let mut packets = Packets::open(server, &path)?;
    while !show.reader_has_gone() {
        let packet = packets.next()?;
        match packet["kind"].as_str() {
            Some("results") => show.results(&packet),
            Some("provider") => show.state(&packet),
            Some("complete") => return Ok(Some(packet)),
            _ => show.remark(&packet),
        }
    }
    Ok(None)
}

/// At Ctrl-C ends the search on the server: its last packet then comes, and is shown as any other. A second one ends this
/// program.
fn stop_at_interrupt(server: &Server, id: &str) -> Result<(), Failure> {
    let (server, id) = (server.clone(), id.to_owned());
    let failed = |e: std::io::Error| Failure::Refused(format!("cannot watch for signals: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // Watched from here on: a signal that comes early must not find the default handler.
    let mut interrupt = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map_err(failed)?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupt.recv());
        if server.delete(&["searches", &id]).is_err() {
            std::process::exit(130);
        }
        runtime.block_on(interrupt.recv());
        std::process::exit(130);
    });
    Ok(())
}
