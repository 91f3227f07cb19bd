//! `GET /searches/{id}/packets`: the packets of a search, as Server-Sent Events or over a WebSocket.
//!
//! Either way a packet is a JSON text with its number in it. A client whose connection broke says the last number that it has
//! (`Last-Event-ID`, or `after`) and gets what follows. Packets are handed on one at a time as the connection takes them, so a
//! slow client is waited for; a client that takes nothing for [`crate::ServerConfig::write_stall`] is cut off.

use super::{find, gone};
use crate::params::Params;
use crate::problem::{Problem, Result};
use crate::request::{Context, Path};
use crate::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::Frame;
use meridian_federation::Reader;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as Polling, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Proxies cut connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The packets, from the first or from where the client was.
pub async fn get(
    State(state): State<AppState>,
    Path(id): Path<String>,
    socket: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    context: Context,
) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let after = params.take("after");
    params.finish()?;
    let wrong = |name: &str, text: &str| Problem::parameter(name, format!("{text:?}: expected the number of a packet"));
    let from = match (context.headers.get(&LAST_EVENT_ID), after) {
        (Some(header), _) => {
            let text = header.to_str().unwrap_or_default();
            text.parse::<u64>().map_err(|_| wrong("Last-Event-ID", text))?.saturating_add(1)
        }
        (None, Some(text)) => text.parse::<u64>().map_err(|_| wrong("after", &text))?.saturating_add(1),
        (None, None) => 0,
    };
    let reader = match find(&state, &id)?.outbox.read(from) {
        Ok(reader) => reader,
        Err(kept) => return Ok(gone(kept.first)),
    };
    match socket {
        Ok(upgrade) => Ok(upgrade.on_upgrade(move |socket| over_socket(socket, reader))),
        Err(_) => Ok(as_events(reader)),
    }
}

async fn over_socket(mut socket: WebSocket, mut reader: Reader) {
    loop {
        tokio::select! {
            packet = reader.next() => match packet {
                Some((_, packet)) => {
                    if socket.send(Message::text(&*packet)).await.is_err() {
                        return;
                    }
                }
                None => break,
            },
            // What a client says is of no interest; that it has gone is.
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            () = tokio::time::sleep(KEEP_ALIVE) => {
                if socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    return;
                }
            }
        }
    }
    let _ = socket.send(Message::Close(None)).await;
}

fn as_events(mut reader: Reader) -> Response {
    let (send, receive) = mpsc::channel::<Bytes>(1);
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                packet = reader.next() => match packet {
                    Some((seq, packet)) => Bytes::from(format!("id: {seq}\ndata: {packet}\n\n")),
                    None => return,
                },
                () = send.closed() => return,
                () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b":\n\n"),
            };
            if send.send(event).await.is_err() {
                return;
            }
        }
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::new(Events(receive))).into_response()
}

/// The body of a stream of events.
struct Events(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Polling<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
