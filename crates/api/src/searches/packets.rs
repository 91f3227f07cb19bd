//! `GET /searches/{id}/packets`: the packets of a search, or of a saved search, as Server-Sent Events or over a WebSocket.
//!
//! Either way a packet is a JSON text that contains its number. A client whose connection broke sends the last number
//! that it has (`Last-Event-ID`, or `after`) and gets what follows. Packets are passed on one at a time as the
//! connection takes them, so a slow client delays only itself. A client that takes nothing for
//! [`crate::ServerConfig::write_stall`] is disconnected. One that closes its WebSocket is noticed at once, even while
//! it takes nothing.

use super::{find, gone};
use crate::entry::Path;
use crate::params::Params;
use crate::problem::{Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use crate::socket::{MayUpgrade, ToClient, Upgrade};
use axum::body::Body;
use axum::extract::ws::Message;
use axum::http::HeaderName;
use axum::response::Response;
use bytes::Bytes;
use futures_util::SinkExt;
use hyper::body::Frame;
use meridian_federation::{Outbox, Reader};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polling, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Interval of keep-alive messages: proxies close connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Browsers wait some seconds before they reconnect unless the server sets the delay. By then, a search without
/// readers would have ended.
const RETRY: &str = "retry: 200\n\n";

/// `GET /searches/{id}/packets`: from the first packet, or from the client's position.
pub async fn get(
    state: Scope,
    Path(id): Path<String>,
    MayUpgrade(socket): MayUpgrade,
    context: Context,
) -> Result<Response> {
    let from = position(&context)?.unwrap_or(0);
    let search = find(&state, &context, &id)?;
    // An `EventSource` reconnects until it gets a 204.
    if socket.is_none() && search.outbox.is_over_before(from) {
        return Ok(respond::no_content());
    }
    Ok(stream(&search.outbox, Some(from), socket, Some(RETRY)))
}

/// The number of the first packet that a client asks for, if any.
pub(super) fn position(context: &Context) -> Result<Option<u64>> {
    let mut params = Params::parse(context.query.as_deref())?;
    let after = params.take("after");
    params.finish()?;
    let wrong = |name: &str, text: &str| Problem::parameter(name, format!("{text:?}: expected the number of a packet"));
    let last = match (context.headers.get(&LAST_EVENT_ID), after) {
        // First: a browser that reconnects repeats the URL with its old `after`.
        (Some(header), _) => {
            let text = header.to_str().unwrap_or_default();
            Some(text.parse::<u64>().map_err(|_| wrong("Last-Event-ID", text))?)
        }
        (None, Some(text)) => Some(text.parse::<u64>().map_err(|_| wrong("after", &text))?),
        (None, None) => None,
    };
    Ok(last.map(|last| last.saturating_add(1)))
}

/// The packets from a number on, or from the first that is kept; 410 if that number is no longer kept. `head` is sent
/// before the events.
pub(super) fn stream(
    outbox: &Arc<Outbox>,
    from: Option<u64>,
    socket: Option<Upgrade>,
    head: Option<&'static str>,
) -> Response {
    let reader = match from {
        Some(from) => outbox.read(from),
        None => Ok(outbox.read_kept()),
    };
    match (reader, socket) {
        (Err(kept), _) => gone(kept.first),
        (Ok(reader), Some(upgrade)) => upgrade.carry(move |to| send(to, reader)),
        (Ok(reader), None) => as_events(reader, head),
    }
}

async fn send(mut to: ToClient, mut reader: Reader) {
    loop {
        let message = tokio::select! {
            packet = reader.next() => match packet {
                Some((_, packet)) => Message::text(&*packet),
                None => break,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => Message::Ping(Bytes::new()),
        };
        if to.send(message).await.is_err() {
            return;
        }
    }
    let _ = to.send(Message::Close(None)).await;
}

fn as_events(mut reader: Reader, head: Option<&'static str>) -> Response {
    // One packet at most is taken ahead of the client: the outbox counts a taken packet as read.
    let (send, receive) = mpsc::channel::<Bytes>(1);
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                packet = reader.next() => match packet {
                    Some((seq, packet)) => Bytes::from(format!("id: {seq}\ndata: {packet}\n\n")),
                    None => return,
                },
                // A client that leaves while no packet comes must not keep its search alive.
                () = send.closed() => return,
                () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b":\n\n"),
            };
            if send.send(event).await.is_err() {
                return;
            }
        }
    });
    respond::events(Body::new(Events { head, events: receive }))
}

/// The body of a stream of events.
struct Events {
    head: Option<&'static str>,
    events: mpsc::Receiver<Bytes>,
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Polling<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(head.as_bytes())))));
        }
        self.events.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
