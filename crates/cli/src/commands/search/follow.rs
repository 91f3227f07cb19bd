//! `meridian search --follow`: prints new results of a query as they arrive, until Ctrl-C.
//!
//! One thread reads packets and reopens broken connections, one waits for signals. Both send events through a short
//! queue to this thread, which prints them.

use super::packets::{Packets, StreamEvent};
use super::saved::SavedSearch;
use super::show::ResultPrinter;
use super::{SearchArgs, server_of};
use crate::failure::Failure;
use crate::http::Server;
use crate::interrupt::at_interrupt;
use crate::output::remark;
use serde_json::{Map, Value};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The next event to handle.
enum FollowEvent {
    Stream(StreamEvent),
    Failed(Failure),
    /// The user interrupted.
    Stop,
}

/// The progress so far.
#[derive(Default)]
struct Progress {
    /// Number of the last packet.
    last: Option<u64>,
    /// Whether results were lost, which is reported once.
    lacks: bool,
    /// Whether the saved search was deleted.
    deleted: bool,
}

/// Runs the command.
pub fn run(args: &SearchArgs) -> Result<(), Failure> {
    let question = match args.question.read()? {
        Value::Object(question) => question,
        _ => Map::new(),
    };
    if question.contains_key("keep") {
        return Err(Failure::Usage(
            "--keep: results of a saved search are not kept: expected --follow or --keep".to_owned(),
        ));
    }
    let (_, server) = server_of(args)?;
    // Short, so that a slow terminal slows down the reader, and so the server, rather than filling memory.
    let (send, events) = sync_channel(1);
    let stop = send.clone();
    // Before anything is saved, so that an interrupt is handled then too. A failed send means that the program is
    // ending.
    at_interrupt(move || drop(stop.send(FollowEvent::Stop)))?;
    let saved = SavedSearch::of(&server, &args.following, question)?;
    let mut show = ResultPrinter::new(&args.format, &Value::Null);
    show.say(&match saved.passing {
        true => format!("follows saved search {}, which is deleted in the end; Ctrl-C ends it", saved.id),
        false => format!("follows saved search {:?} ({}); Ctrl-C ends it", saved.name, saved.id),
    });
    let (reader, id, after) = (server.clone(), saved.id.clone(), args.following.after);
    // A separate thread: reading the stream blocks, and Ctrl-C must still end the command.
    std::thread::spawn(move || read(&reader, &id, after, &send));
    let mut progress = Progress::default();
    let outcome = follow(&events, &mut progress, &mut show);
    show.end();
    let outcome = outcome.and(match progress.lacks {
        true => Err(Failure::Bad("this may not be all: the losses are listed above".to_owned())),
        false => Ok(()),
    });
    remark(&format!("{}: {}", show.count(), farewell(&server, &saved, &progress)));
    outcome
}

/// Forwards the events of the stream, until it fails or the receiver is gone.
fn read(server: &Server, id: &str, after: Option<u64>, send: &SyncSender<FollowEvent>) {
    let path = ["saved-searches", id, "packets"];
    let mut packets = Packets::of_saved(server, &path, after);
    loop {
        let (event, last) = match packets.next() {
            Ok(event) => {
                let last = matches!(&event, StreamEvent::Packet(packet) if packet["kind"] == "complete");
                (FollowEvent::Stream(event), last)
            }
            Err(failure) => (FollowEvent::Failed(failure), true),
        };
        if send.send(event).is_err() || last {
            return;
        }
    }
}

/// Prints packets until the user interrupts, the saved search is deleted, or the output is closed.
fn follow(events: &Receiver<FollowEvent>, progress: &mut Progress, show: &mut ResultPrinter) -> Result<(), Failure> {
    while !show.reader_has_gone() {
        let packet = match events.recv() {
            Ok(FollowEvent::Stream(StreamEvent::Packet(packet))) => packet,
            Ok(FollowEvent::Stream(StreamEvent::Broke(why))) => {
                show.say(&format!("the connection broke ({why}): reconnecting"));
                continue;
            }
            Ok(FollowEvent::Stream(StreamEvent::Mended)) => {
                show.say("connected again");
                continue;
            }
            Ok(FollowEvent::Stream(StreamEvent::Gap { due, first })) => {
                progress.lacks = true;
                show.say(&format!(
                    "packet {due} is no longer kept: it resumes with {first}; packets in between, if any, are lost"
                ));
                continue;
            }
            Ok(FollowEvent::Failed(failure)) => return Err(failure),
            Ok(FollowEvent::Stop) | Err(_) => return Ok(()),
        };
        // Before the packet is shown: the command to continue must not repeat it.
        progress.last = packet["seq"].as_u64();
        match packet["kind"].as_str() {
            Some("results") => show.results(&packet),
            Some("provider") => progress.lacks |= report_state(&packet, show),
            Some("complete") => {
                progress.deleted = true;
                return Ok(());
            }
            _ => show.remark(&packet),
        }
    }
    Ok(())
}

/// Reports a provider whose results are incomplete. Returns whether results are lost. The next poll of an outside
/// provider may still find them, but an event that this server did not process is not sent again.
fn report_state(packet: &Value, show: &ResultPrinter) -> bool {
    let text = |name: &str| packet[name].as_str().unwrap_or_default();
    let (provider, state) = (text("provider"), text("state"));
    if matches!(state, "complete" | "skipped") {
        return false;
    }
    show.say(&format!("{provider}: {state}: {}", text("detail")));
    provider == "meridian"
}

/// Deletes a temporary saved search, or prints how to continue with a permanent one.
fn farewell(server: &Server, saved: &SavedSearch, progress: &Progress) -> String {
    if progress.deleted {
        return "the saved search was deleted on the server".to_owned();
    }
    if !saved.passing {
        let after = progress.last.map(|last| format!(" --after {last}")).unwrap_or_default();
        return format!("continue with: meridian search --follow --name {:?}{after}", saved.handle());
    }
    match server.delete(&["saved-searches", &saved.id]) {
        Ok(true) => "the saved search is deleted".to_owned(),
        Ok(false) => "the saved search is not on the server any more".to_owned(),
        Err(why) => format!("the saved search {} could not be deleted, and may stay: {why}", saved.id),
    }
}
