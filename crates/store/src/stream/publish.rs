//! A publish and what came of it, found out instead of guessed.
//!
//! An answer may be lost, late, or a refusal of the caller's own message, as a client below may have sent it twice. So what stands
//! in the stream is read and compared, byte by byte. A message without an answer is sent again as it was, with the same
//! expectation: whichever of the two arrives first, it is stored once.
//!
//! One message is on its way at a time. If the next one were sent before its answer, it would expect a number
//! that another process's message may have. After a fence in the place of the first, the second one would
//! follow the fence, as if its writer had not been replaced.

use super::{PublishOutcome, Stream};
use crate::seams::Clock;
use bytes::Bytes;
use std::io;
use std::slice;
use std::time::Duration;

/// How often a message is sent that makes no progress.
const TRIES: u32 = 4;
/// Pause before the second try; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);

/// The message after the expected number.
#[derive(Debug)]
pub(super) enum Published {
    /// The caller's messages, durably.
    Ours,
    /// A message of another process.
    Theirs,
    /// Nothing any more: another process has gone on, and released what stood there. That may have been the caller's message.
    Released,
    /// The stream has lost what it had acknowledged: its last number is below the one expected.
    GoneBack,
}

/// Why a publish did not come to an end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Messages are not there, nor will be, except for this many of the first ones.
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
    for (stored, message) in messages.iter().enumerate() {
        // What is expected is the number of the caller's own message before, which is known to be stored.
        match publish_one(stream, clock, expected + stored as u64, message) {
            Ok(Published::Ours) => {}
            Err(Failure::Clean(error, _)) => return Err(Failure::Clean(error, stored)),
            other => return other,
        }
    }
    Ok(Published::Ours)
}

fn publish_one(stream: &dyn Stream, clock: &dyn Clock, expected: u64, message: &Bytes) -> Result<Published, Failure> {
    // Once an attempt may be on its way, a later one that is surely denied proves nothing.
    let mut doubt: Option<io::Error> = None;
    let mut unread: Option<io::Error> = None;
    for turn in 0..TRIES {
        if turn > 0 {
            clock.sleep(PAUSE * (1 << (turn - 1)));
        }
        let mut denied = None;
        match stream.publish(expected, slice::from_ref(message)).pop() {
            Some(PublishOutcome::Stored(number)) if number == expected + 1 => return Ok(Published::Ours),
            Some(PublishOutcome::Stored(_) | PublishOutcome::Refused) | None => {}
            Some(PublishOutcome::Denied(error)) => denied = Some(error),
            Some(PublishOutcome::Lost(error)) => doubt = Some(error),
        }
        // What stands there decides about the others.
        let mut gone_back = false;
        match stream.get(expected + 1) {
            Ok(Some(found)) if found == *message => return Ok(Published::Ours),
            Ok(Some(_)) => return Ok(Published::Theirs),
            Ok(None) => match stream.bounds() {
                Ok(bounds) if bounds.first > expected + 1 => return Ok(Published::Released),
                Ok(bounds) => gone_back = bounds.last < expected,
                Err(error) => unread = Some(error),
            },
            Err(error) => unread = Some(error),
        }
        if let (Some(error), None) = (denied, &doubt) {
            return Err(Failure::Clean(error, 0));
        }
        // Seen twice at least: a leader that was replaced a moment ago may answer from an earlier state.
        if gone_back && turn > 0 {
            return Ok(Published::GoneBack);
        }
    }
    let refused = || io::Error::other("the stream refuses a message whose turn it is, again and again");
    Err(Failure::Unknown(doubt.or(unread).unwrap_or_else(refused)))
}
