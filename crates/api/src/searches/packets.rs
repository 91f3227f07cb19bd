//! `GET /searches/{id}/packets`: the packets of a search or saved search, as Server-Sent Events or over a WebSocket.
//!
//! Either way a packet is a JSON text that contains its number. A client that lost its connection sends the last number
//! that it received (`Last-Event-ID`, or `after`) and gets what follows. Packets are sent one at a time as the system
//! accepts them. So a slow client delays only itself, and holds one packet besides the outbox. A client that reads
//! nothing for [`crate::ServerConfig::write_stall`], or less than [`crate::ServerConfig::answer_rate_min`], is
//! disconnected. One that closes its WebSocket is noticed at once, even while it reads nothing. Each reader has one of
//! the slots for streams until it ends.

use super::{find, gone};
use crate::protocol::params::Params;
use crate::protocol::problem::{Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::quota;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::socket::{CloseCode, OptionalUpgrade, SocketSender, Upgrade};
use crate::response::sse::{self, SseSender};
use crate::state::event_streams::StreamSlot;
use axum::http::HeaderName;
use axum::response::Response;
use futures_util::FutureExt;
use meridian_federation::{Outbox, Reader};
use std::sync::Arc;
use std::time::Duration;

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Interval of keep-alive messages: proxies close connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Unless the server sets the delay, browsers wait some seconds before they reconnect. By then, a search without
/// readers would have ended.
const RETRY: &str = "retry: 200\n\n";

/// `GET /searches/{id}/packets`: from the first packet, or from the client's position.
pub async fn get(
    state: Scope,
    Path(id): Path<String>,
    OptionalUpgrade(socket): OptionalUpgrade,
    context: Context,
) -> Result<Response> {
    let from = position(&context)?.unwrap_or(0);
    let search = find(&state, &context, &id)?;
    // An `EventSource` reconnects until it gets a 204.
    if socket.is_none() && search.outbox.is_over_before(from) {
        return Ok(respond::no_content());
    }
    let slot = quota::stream_slot(&state, state.caller())?;
    Ok(stream(&search.outbox, Some(from), socket, RETRY, slot))
}

/// Returns the number of the first packet that a client requests, if any.
pub(super) fn position(context: &Context) -> Result<Option<u64>> {
    let mut params = Params::parse(context.query.as_deref())?;
    let after = params.take("after");
    params.finish()?;
    let wrong = |name: &str, text: &str| Problem::parameter(name, format!("{text:?}: expected the number of a packet"));
    let last = match (context.headers.get(&LAST_EVENT_ID), after) {
        // The header first: a browser that reconnects repeats the URL with its old `after`.
        (Some(header), _) => {
            let text = header.to_str().unwrap_or_default();
            Some(text.parse::<u64>().map_err(|_| wrong("Last-Event-ID", text))?)
        }
        (None, Some(text)) => Some(text.parse::<u64>().map_err(|_| wrong("after", &text))?),
        (None, None) => None,
    };
    Ok(last.map(|last| last.saturating_add(1)))
}

/// Streams the packets from a number on, or from the first that is kept. `head` is sent before the events.
///
/// # Errors
/// 410 if that number is no longer kept.
pub(super) fn stream(
    outbox: &Arc<Outbox>,
    from: Option<u64>,
    socket: Option<Upgrade>,
    head: &'static str,
    slot: StreamSlot,
) -> Response {
    let reader = match from {
        Some(from) => outbox.read(from),
        None => Ok(outbox.read_kept()),
    };
    match (reader, socket) {
        (Err(kept), _) => gone(kept.first),
        (Ok(reader), Some(upgrade)) => upgrade.carry(move |to| send(to, reader, slot).boxed()),
        (Ok(reader), None) => {
            let (to, response) = sse::stream(head);
            tokio::spawn(send_events(to, reader, slot));
            response
        }
    }
}

async fn send(to: &mut SocketSender, mut reader: Reader, _slot: StreamSlot) {
    loop {
        let sent = tokio::select! {
            packet = reader.next() => match packet {
                Some((_, packet)) => to.send(String::from(&*packet)).await,
                None => break,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => to.ping().await,
        };
        if sent.is_err() {
            return;
        }
    }
    let _ = to.close(CloseCode::Normal, "").await;
}

/// Sends packets, taking at most one ahead of the client, because the outbox counts a taken packet as read.
async fn send_events(mut to: SseSender, mut reader: Reader, _slot: StreamSlot) {
    loop {
        let event = tokio::select! {
            packet = reader.next() => match packet {
                Some((seq, packet)) => format!("id: {seq}\ndata: {packet}\n\n"),
                None => return,
            },
            // A client that leaves while there is no packet must not keep its search alive.
            () = to.gone() => return,
            () = tokio::time::sleep(KEEP_ALIVE) => ":\n\n".to_owned(),
        };
        if !to.send(event).await {
            return;
        }
    }
}
