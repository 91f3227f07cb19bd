//! A publish and what came of it, found out instead of guessed.
//!
//! An answer may be lost, late, or a refusal of the caller's own message, as a client below may have sent it twice. So what stands
//! in the stream is read and compared, byte by byte. A message without an answer is sent again as it was, with the same
//! expectation: whichever of the two arrives first, it is stored once.

use super::{Answer, Stream};
use crate::seams::Clock;
use bytes::Bytes;
use std::io;
use std::time::Duration;

/// How often a message is sent that makes no progress.
const TRIES: u32 = 4;
/// Pause before the second try; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes that wait for their answers at a time, unless one message is larger: far below what a stream's leader queues (128 MiB).
const WINDOW_BYTES: usize = 8 << 20;
/// Messages that wait for their answers at a time.
const WINDOW_MESSAGES: usize = 64;

/// What stands after the expected number.
#[derive(Debug)]
pub(super) enum Published {
    /// The caller's messages, durably.
    Ours,
    /// A message of another process.
    Theirs,
    /// The stream has lost what it had acknowledged: its last number is below the one expected.
    GoneBack,
}

/// Why a publish did not come to an end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Messages are not there, nor will be, but for so many of the first ones.
    Clean(io::Error, usize),
    /// More may be there, or may yet appear.
    Unknown(io::Error),
}

/// Publishes messages whose bytes no other writer, and no other attempt of this one, would publish.
pub(super) fn publish(
    stream: &dyn Stream,
    clock: &dyn Clock,
    expected: u64,
    messages: &[Bytes],
) -> Result<Published, Failure> {
    let (mut stored, mut tries) = (0, 0);
    // The last message of which an attempt may be on its way: once there is one, a later attempt that is surely denied proves nothing.
    let mut doubt: Option<(usize, io::Error)> = None;
    let mut unread: Option<io::Error> = None;
    while stored < messages.len() {
        if tries == TRIES {
            let refused = || io::Error::other("the stream refuses messages whose turn it is, again and again");
            let error = doubt.map(|(_, error)| error).or(unread);
            return Err(Failure::Unknown(error.unwrap_or_else(refused)));
        }
        if tries > 0 {
            clock.sleep(PAUSE * (1 << (tries - 1)));
        }
        let (at, before) = (expected + stored as u64, stored);
        let window = window_of(&messages[stored..]);
        let mut denied = None;
        for (place, answer) in stream.publish(at, &messages[before..before + window]).into_iter().enumerate() {
            match answer {
                Answer::Stored(number) if number == at + place as u64 + 1 && stored == before + place => stored += 1,
                Answer::Stored(_) | Answer::Refused => {}
                Answer::Denied(error) => drop(denied.get_or_insert(error)),
                Answer::Lost(error) => {
                    // An attempt before may have come further than this one.
                    let last = doubt.as_ref().map_or(0, |(last, _)| *last).max(before + place);
                    doubt = Some((last, error));
                }
            }
        }
        // What stands there decides about the others.
        let mut gone_back = false;
        while stored < messages.len() && stored < before + window {
            match stream.get(expected + stored as u64 + 1) {
                Ok(Some(found)) if found == messages[stored] => stored += 1,
                Ok(Some(_)) => return Ok(Published::Theirs),
                Ok(None) => {
                    match stream.bounds() {
                        // Another writer went on from here, and has released what it found: this may have been part of it.
                        Ok(bounds) if bounds.first > expected + stored as u64 + 1 => {
                            let detail = "another process has gone on, and released what stood here";
                            return Err(Failure::Unknown(io::Error::other(detail)));
                        }
                        Ok(bounds) => gone_back = bounds.last < expected + stored as u64,
                        Err(error) => unread = Some(error),
                    }
                    break;
                }
                Err(error) => {
                    unread = Some(error);
                    break;
                }
            }
        }
        // An attempt of a message that is stored meets another number: it has no effect any more.
        doubt = doubt.filter(|(last, _)| *last >= stored);
        if stored == before + window {
            tries = 0;
            continue;
        }
        if let (Some(error), None) = (denied, &doubt) {
            return Err(Failure::Clean(error, stored));
        }
        tries = if stored > before { 1 } else { tries + 1 };
        // Seen twice at least: a leader that was replaced a moment ago may answer from an earlier state.
        if gone_back && tries > 1 {
            return Ok(Published::GoneBack);
        }
    }
    Ok(Published::Ours)
}

/// How many of the first messages may wait for their answers at once.
fn window_of(messages: &[Bytes]) -> usize {
    let mut bytes = 0;
    let fits = |message: &&Bytes| {
        bytes += message.len();
        bytes <= WINDOW_BYTES
    };
    messages.iter().take(WINDOW_MESSAGES).take_while(fits).count().max(1)
}
