//! Batches sent to a server, in pieces it accepts.
//!
//! A batch over the server's limit is sent in halves. The first half has the key of the whole, the second its own key.
//! So a resumed load finds, under a batch's key, how much was sent at once. That is all of it, or the part that an
//! earlier limit allowed. Nothing is stored twice, whatever the limits were.

use crate::failure::Failure;
use crate::http::{PostOutcome, Server};
use meridian_formats::Format;
use meridian_model::{Batch, Seq};
use serde_json::Value;
use std::cell::Cell;

/// Outcome of a batch's events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredCounts {
    /// Stored by this call.
    pub written: u64,
    /// Stored before, by a batch with the same key.
    pub before: u64,
}

/// Response of the server to one request.
enum Reply {
    /// The events are stored.
    Stored(StoredCounts),
    /// The body is too large.
    TooLarge(Failure),
    /// This many other events are stored under the key; `None` if the server does not report the number.
    Other(Option<u64>, Failure),
}

/// Outcome of sending a piece.
enum SendOutcome {
    Stored(StoredCounts),
    /// A larger piece, of this many events, is stored under the key of this one.
    Larger(u64),
}

/// Sends batches to a collection's items.
pub struct Upload<'a> {
    server: &'a Server,
    path: [&'a str; 3],
    /// Max bytes of a body that the server is known to accept, or not known to refuse; kept from batch to batch.
    limit: &'a Cell<usize>,
}

impl<'a> Upload<'a> {
    /// Uploads to the items of a collection.
    pub fn new(server: &'a Server, collection: &'a str, limit: &'a Cell<usize>) -> Upload<'a> {
        Upload { server, path: ["collections", collection, "items"], limit }
    }

    /// Sends a batch under its key; a repetition under the same key changes nothing.
    pub fn send(&self, batch: &Batch, key: &str) -> Result<StoredCounts, Failure> {
        match self.piece(batch, key, 1)? {
            SendOutcome::Stored(stored) => Ok(stored),
            SendOutcome::Larger(_) => Err(Failure::Refused(format!(
                "the key {key} of this batch belongs to more events than it has: load with --again to send all as new"
            ))),
        }
    }

    fn piece(&self, batch: &Batch, key: &str, depth: u32) -> Result<SendOutcome, Failure> {
        let rows = batch.rows() as u64;
        let body = encode(batch)?;
        // A body known to be too large is not sent, so whether it was stored before is unknown.
        let reply = match body.len() <= self.limit.get() {
            true => Some(self.post(&body, key, rows)?),
            false => None,
        };
        // Freed before the halves are encoded: the recursion would hold a body at each level.
        drop(body);
        match reply {
            Some(Reply::Stored(stored)) => return Ok(SendOutcome::Stored(stored)),
            // The key was used for a larger piece, so all of that piece is stored. The caller knows its size, and
            // decides.
            Some(Reply::Other(Some(there), _)) if there > rows => return Ok(SendOutcome::Larger(there)),
            Some(Reply::Other(_, why) | Reply::TooLarge(why)) if rows < 2 => return Err(why),
            None if rows < 2 => {
                let limit = self.limit.get();
                return Err(Failure::Bad(format!("an event is larger than the {limit} bytes that the server accepts")));
            }
            _ => {}
        }
        let half = batch.rows() / 2;
        let first = match self.piece(&batch.slice(0, half), key, depth + 1)? {
            // The whole piece was stored before, under a higher limit.
            SendOutcome::Larger(there) if there == rows => {
                return Ok(SendOutcome::Stored(StoredCounts { written: 0, before: rows }));
            }
            SendOutcome::Larger(there) => return Ok(SendOutcome::Larger(there)),
            SendOutcome::Stored(stored) => stored,
        };
        // The depth distinguishes the second half of a first half from the first half of the second.
        let key = format!("{key}/{depth}");
        match self.piece(&batch.slice(half, batch.rows() - half), &key, depth + 1)? {
            SendOutcome::Stored(stored) => {
                let (written, before) = (first.written + stored.written, first.before + stored.before);
                Ok(SendOutcome::Stored(StoredCounts { written, before }))
            }
            larger @ SendOutcome::Larger(_) => Ok(larger),
        }
    }

    fn post(&self, body: &[u8], key: &str, rows: u64) -> Result<Reply, Failure> {
        match self.server.post(&self.path, Format::Arrow.media_type(), key, body)? {
            PostOutcome::Stored(answer) => {
                let count = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
                let stored = StoredCounts { written: count("written"), before: count("duplicates") };
                if stored.written == 0 && stored.before != rows {
                    let why = format!("{} other events are in under the key {key}", stored.before);
                    return Ok(Reply::Other(Some(stored.before), Failure::Refused(why)));
                }
                Ok(Reply::Stored(stored))
            }
            PostOutcome::TooLarge { limit, why } => {
                // A body within the limit can be refused because its events take more once they are parsed.
                let limit = limit.map_or(body.len() - 1, |limit| limit.min(body.len() - 1));
                // Kept for the next batches, so that they are not sent and refused first.
                self.limit.set(self.limit.get().min(limit));
                Ok(Reply::TooLarge(why))
            }
            PostOutcome::OtherBody { events, why } => Ok(Reply::Other(events, why)),
        }
    }
}

/// Encodes a batch as an Arrow stream, the cheapest format for a server to read.
fn encode(batch: &Batch) -> Result<Vec<u8>, Failure> {
    let failed = |e: String| Failure::Bad(format!("a batch could not be encoded: {e}"));
    let mut out = Vec::with_capacity(batch.bytes());
    let mut writer =
        meridian_formats::writer(Format::Arrow, batch.schema(), None).map_err(|e| failed(e.to_string()))?;
    // The server generates the ids: without sequence numbers none are written.
    let seqs: &[Seq] = &[];
    writer.start(&mut out).map_err(|e| failed(e.to_string()))?;
    writer.write(batch, seqs, &mut out).map_err(|e| failed(e.to_string()))?;
    writer.finish(&mut out).map_err(|e| failed(e.to_string()))?;
    Ok(out)
}
