//! Parsers of server responses for `fuzz/targets`. Not part of the crate's interface.
//!
//! Each function takes a whole response, and parses it in pieces of a size: the result does not depend on how it
//! arrives.

use crate::protocol::scan::Scan;
use crate::protocol::{http, nats, postgres, resp, websocket};
use crate::scenario::ResultUnit;

/// Passes the bytes received so far, piece by piece, to a reader that returns how many it has used, and drops those.
fn pieces(
    bytes: &[u8],
    size: usize,
    mut read: impl FnMut(&[u8]) -> Result<usize, &'static str>,
) -> Result<usize, &'static str> {
    let (mut held, mut used) = (Vec::new(), 0);
    for piece in bytes.chunks(size.max(1)) {
        held.extend_from_slice(piece);
        let taken = read(&held)?;
        held.drain(..taken);
        used += taken;
    }
    Ok(used)
}

/// Parses a reply of a Redis server; returns its bytes, and whether it is complete.
///
/// # Errors
///
/// The bytes are not a reply.
pub fn resp_reply(bytes: &[u8], size: usize) -> Result<(usize, bool), &'static str> {
    let mut reply = resp::Reply::new();
    let used = pieces(bytes, size, |held| reply.feed(held))?;
    Ok((used, reply.is_whole()))
}

/// Parses messages of a NATS server; returns the bytes of the complete ones.
///
/// # Errors
///
/// A message is invalid.
pub fn nats_messages(bytes: &[u8], size: usize) -> Result<usize, &'static str> {
    pieces(bytes, size, |held| {
        let mut used = 0;
        while let Some((message, length)) = nats::next(&held[used..])? {
            if let nats::Message::Delivery { headers, payload, .. } = message {
                let _ = nats::reply(headers, payload, true);
                let _ = nats::reply(headers, payload, false);
            }
            used += length;
        }
        Ok(used)
    })
}

/// Parses messages of a PostgreSQL server; returns the bytes of the complete ones.
///
/// # Errors
///
/// A message is invalid.
pub fn postgres_messages(bytes: &[u8], size: usize) -> Result<usize, &'static str> {
    pieces(bytes, size, |held| {
        let mut used = 0;
        while let Some(message) = postgres::message::next(&held[used..])? {
            let columns = postgres::message::columns(message.body).flatten().map(<[u8]>::len).sum::<usize>();
            assert!(columns <= message.body.len(), "columns beyond their row");
            postgres::message::ServerError::read(message.body).is_refusal();
            used += message.length;
        }
        Ok(used)
    })
}

/// Parses frames of a WebSocket from a server; returns the bytes of the complete ones.
///
/// # Errors
///
/// A frame is invalid.
pub fn websocket_frames(bytes: &[u8], size: usize) -> Result<usize, &'static str> {
    pieces(bytes, size, |held| {
        let mut used = 0;
        while let Some(frame) = websocket::next_frame(&held[used..])? {
            used += frame.payload.end;
        }
        Ok(used)
    })
}

/// Parses a response of HTTP/1.1; returns its body, and whether that is complete. `None` for an incomplete head.
///
/// # Errors
///
/// The bytes are not a response.
pub fn http_answer(bytes: &[u8], size: usize) -> Result<Option<(Vec<u8>, bool)>, String> {
    let head = http::head(bytes, false).map_err(|fault| fault.detail.into_owned())?;
    let Some(head) = head else { return Ok(None) };
    let (mut framing, mut body) = (head.framing, Vec::new());
    for piece in bytes[head.length..].chunks(size.max(1)) {
        if !framing.is_whole() {
            let fed = framing.feed(piece, |part| body.extend_from_slice(part))?;
            assert!(fed.used == piece.len() || fed.whole, "bytes of a body were left");
        }
    }
    Ok(Some((body, framing.is_whole())))
}

/// Returns the counts in a body, for each unit of results: results, packets, bytes, and whether a search has reported
/// its end.
pub fn counts(bytes: &[u8], size: usize) -> Vec<(u64, u32, u64, bool)> {
    let units = [ResultUnit::Body, ResultUnit::Line, ResultUnit::Feature, ResultUnit::Event, ResultUnit::Packet];
    let count = |unit: &ResultUnit| {
        let mut scan = Scan::default();
        scan.reset(unit, true);
        bytes.chunks(size.max(1)).for_each(|piece| scan.take(piece, 1));
        scan.end(2);
        (scan.results, scan.packets, scan.bytes, scan.state.is_some())
    };
    units.iter().map(count).collect()
}
