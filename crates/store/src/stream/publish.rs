//! Publishes messages and determines the outcome, instead of guessing it.
//!
//! An answer may be lost, late, or a refusal of the caller's own message, because a client below may have sent it
//! twice. So the content of the stream is read and compared, byte by byte. A message without an answer is resent
//! unchanged, with the same expectation: whichever of the two arrives first, it is stored once.
//!
//! One message is in flight at a time. If the next one were sent before the answer, it would expect a number that
//! another process's message may have. After a fence in place of the first, the second one would follow the fence, as
//! if its writer had not been replaced.

use super::{PublishOutcome, Stream};
use crate::seams::Clock;
use bytes::Bytes;
use std::io;
use std::slice;
use std::time::Duration;

/// Max attempts to send a message without progress.
const TRIES: u32 = 4;
/// Pause before the second attempt; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);

/// The message after the expected number.
#[derive(Debug)]
pub(super) enum NextMessage {
    /// The caller's messages, durably.
    Ours,
    /// A message of another process.
    Theirs,
    /// No longer anything: another process has continued, and released the content there. That may have been the
    /// caller's message.
    Released,
    /// The stream has lost acknowledged messages: its last number is below the expected one.
    GoneBack,
}

/// Why a publish failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Messages are not stored, nor will be, except for this many of the first ones.
    Clean(io::Error, usize),
    /// More may be stored, or may yet be.
    Unknown(io::Error),
}

/// Publishes messages whose bytes are unique to this writer and this attempt.
pub(super) fn publish(
    stream: &dyn Stream,
    clock: &dyn Clock,
    expected: u64,
    messages: &[Bytes],
) -> Result<NextMessage, Failure> {
    for (stored, message) in messages.iter().enumerate() {
        // The expectation is the number of the caller's own previous message, which is known to be stored.
        match publish_one(stream, clock, expected + stored as u64, message) {
            Ok(NextMessage::Ours) => {}
            Err(Failure::Clean(error, _)) => return Err(Failure::Clean(error, stored)),
            other => return other,
        }
    }
    Ok(NextMessage::Ours)
}

fn publish_one(stream: &dyn Stream, clock: &dyn Clock, expected: u64, message: &Bytes) -> Result<NextMessage, Failure> {
    // Once an attempt may be in flight, a later one that is certainly denied proves nothing.
    let mut doubt: Option<io::Error> = None;
    let mut unread: Option<io::Error> = None;
    for turn in 0..TRIES {
        if turn > 0 {
            clock.sleep(PAUSE * (1 << (turn - 1)));
        }
        let mut denied = None;
        match stream.publish(expected, slice::from_ref(message)).pop() {
            Some(PublishOutcome::Stored(number)) if number == expected + 1 => return Ok(NextMessage::Ours),
            Some(PublishOutcome::Stored(_) | PublishOutcome::Refused) | None => {}
            Some(PublishOutcome::Denied(error)) => denied = Some(error),
            Some(PublishOutcome::Lost(error)) => doubt = Some(error),
        }
        // The content of the stream decides all other cases.
        let mut gone_back = false;
        match stream.get(expected + 1) {
            Ok(Some(found)) if found == *message => return Ok(NextMessage::Ours),
            Ok(Some(_)) => return Ok(NextMessage::Theirs),
            Ok(None) => match stream.bounds() {
                Ok(bounds) if bounds.first > expected + 1 => return Ok(NextMessage::Released),
                Ok(bounds) => gone_back = bounds.last < expected,
                Err(error) => unread = Some(error),
            },
            Err(error) => unread = Some(error),
        }
        if let (Some(error), None) = (denied, &doubt) {
            return Err(Failure::Clean(error, 0));
        }
        // Seen at least twice: a leader that was just replaced may answer from an earlier state.
        if gone_back && turn > 0 {
            return Ok(NextMessage::GoneBack);
        }
    }
    let refused = || io::Error::other("the stream refuses a message whose turn it is, again and again");
    Err(Failure::Unknown(doubt.or(unread).unwrap_or_else(refused)))
}
