//! One HTTP/2 request and its response.

use super::ConnectionHandler;
use super::send_queue::{QueuedBytes, SendQueue};
use super::stall::Patience;
use super::wire::{FIELDS_MAX, head_too_large};
use crate::protocol::connection_control::{ConnectionControl, ReadTimeout};
use crate::request::dispatch::Connection;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use hyper::body::{Frame, SizeHint};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

/// HTTP/1.1 fields that have no meaning in HTTP/2 and make a response malformed (RFC 9113, 8.2.2).
const CONNECTION_FIELDS: [HeaderName; 4] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("keep-alive")];

/// How an exchange ended.
pub enum ExchangeEnd {
    /// A response was started.
    Answered,
    /// The client cancelled the request before that.
    Cancelled,
    /// Its client was evicted, and takes nothing of its socket: only the end of the connection frees what it holds.
    Stuck,
}

/// Max time for the socket to take what is being written of an evicted response. Others wait
/// [`LEAVE_MAX`](crate::state::readers::LEAVE_MAX) for its memory.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// Handles a request.
pub async fn run(
    handler: ConnectionHandler,
    from: Connection,
    request: Request<RecvStream>,
    mut respond: SendResponse<QueuedBytes>,
    queue: SendQueue,
) -> ExchangeEnd {
    let is_head = *request.method() == Method::HEAD;
    let (asks, mut wanted) = oneshot::channel();
    let answer = async {
        // The library bounds the bytes of a head, but not the number of its fields.
        if request.headers().len() > FIELDS_MAX {
            let mut response = head_too_large().into_response();
            handler.share(request.headers(), &mut response);
            return response;
        }
        handler.answer(from, translated(request, asks)).await
    };
    let mut answer = pin!(answer);
    let mut response = loop {
        tokio::select! {
            response = &mut answer => break response,
            // The sender is dropped if the client does not wait for `100 Continue`.
            Ok(()) = &mut wanted, if !wanted.is_terminated() => {
                let mut go_on = Response::new(());
                *go_on.status_mut() = StatusCode::CONTINUE;
                // If the stream has ended meanwhile, its reset reports it.
                let _ = respond.send_informational(go_on);
            }
            // The request's work ends when its future is dropped.
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return ExchangeEnd::Cancelled,
        }
    };
    let (state, control) = (handler.state(), ConnectionControl::default());
    control.take(response.extensions_mut());
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(state.now()).unwrap_or_default());
    let stall =
        response.extensions_mut().remove::<ReadTimeout>().map_or(state.config.write_stall, |patience| patience.0);
    let patience = Patience::new(stall, state.config.answer_rate_min);
    match send(respond, response, is_head, now, (patience, &queue), &control).await {
        SendOutcome::Done => ExchangeEnd::Answered,
        SendOutcome::Stalled => {
            state.readers.count_slow();
            tracing::info!("a client of HTTP/2 lost its response: it reads too slowly");
            ExchangeEnd::Answered
        }
        SendOutcome::Stuck => ExchangeEnd::Stuck,
    }
}

/// Converts the request to its HTTP/1.1 form: the authority is in `Host` instead of the target. If its client waits for
/// `100 Continue`, the first read of the body requests it through `asks`.
fn translated(request: Request<RecvStream>, asks: oneshot::Sender<()>) -> Request<RequestBody> {
    let (mut parts, stream) = request.into_parts();
    if let Some(authority) = parts.uri.authority().and_then(|one| HeaderValue::from_str(one.as_str()).ok()) {
        // A client may send both, which must then be equal (RFC 9113, 8.3.1). Two different hosts are refused.
        if parts.headers.get(header::HOST) != Some(&authority) {
            parts.headers.append(header::HOST, authority);
        }
    }
    let target = parts.uri.path_and_query().cloned();
    parts.uri = target.map_or_else(|| Uri::from_static("/"), Uri::from);
    join_cookies(&mut parts.headers);
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let waits =
        parts.headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    Request::from_parts(parts, RequestBody { stream, length, asks: waits.then_some(asks) })
}

/// Joins cookies, which may be sent as separate fields for better compression (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let parts: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if parts.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// The body of a request.
struct RequestBody {
    stream: RecvStream,
    length: Option<u64>,
    /// Notified when the client may send.
    asks: Option<oneshot::Sender<()>>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if let Some(asks) = self.asks.take() {
            // The receiver is gone once the response is ready.
            let _ = asks.send(());
        }
        let data = match ready!(self.stream.poll_data(cx)) {
            Some(Ok(data)) => data,
            Some(Err(e)) => return Poll::Ready(Some(Err(e))),
            None => return Poll::Ready(None),
        };
        // The reader has accounted for this data, so the client may send the same amount again.
        let released = self.stream.flow_control().release_capacity(data.len());
        Poll::Ready(Some(released.map(|()| Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum SendOutcome {
    /// All of it was sent, or as much as the client or the body allowed.
    Done,
    /// The client read too slowly.
    Stalled,
    /// It was evicted, and the socket takes nothing.
    Stuck,
}

async fn send(
    mut respond: SendResponse<QueuedBytes>,
    response: Response,
    is_head: bool,
    now: SystemTime,
    (patience, queue): (Patience, &SendQueue),
    control: &ConnectionControl,
) -> SendOutcome {
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_2;
    for name in &CONNECTION_FIELDS {
        parts.headers.remove(name);
    }
    // The HTTP/1.1 library adds this field; the HTTP/2 library does not.
    if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(now)) {
        parts.headers.insert(header::DATE, date);
    }
    let bodiless = is_head || parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED;
    if let Some(length) = body.size_hint().exact().filter(|_| !bodiless) {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    let ends = body.is_end_stream();
    let Ok(mut stream) = respond.send_response(Response::from_parts(parts, ()), ends) else { return SendOutcome::Done };
    if ends {
        return SendOutcome::Done;
    }
    // A response whose client can be evicted ends when the socket has all of it: until then the library holds a part.
    let (watched, mut queued) = control.may_hang_up().then(|| queue.watched()).unzip();
    let sending = async {
        let sent = send_body(&mut stream, body, patience, watched.as_ref().unwrap_or(queue)).await;
        drop(watched);
        if let (SendOutcome::Done, Some(queued)) = (&sent, &mut queued) {
            queued.gone().await;
        }
        sent
    };
    tokio::select! {
        sent = sending => return sent,
        () = poll_fn(|cx| control.poll_hang_up(cx)) => {}
    }
    // The library drops the buffered part of the response, but for a frame that is being written.
    stream.send_reset(Reason::CANCEL);
    match queued {
        Some(mut queued) => match tokio::time::timeout(STUCK_AFTER, queued.gone()).await {
            Ok(()) => SendOutcome::Done,
            Err(_) => SendOutcome::Stuck,
        },
        None => SendOutcome::Done,
    }
}

async fn send_body(
    stream: &mut SendStream<QueuedBytes>,
    mut body: Body,
    mut patience: Patience,
    queue: &SendQueue,
) -> SendOutcome {
    loop {
        // Also checked while the body has nothing to send: a reset must end the query at once.
        let frame = tokio::select! {
            frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)) => frame,
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return SendOutcome::Done,
        };
        match frame {
            Some(Ok(frame)) => {
                let data = match frame.into_data() {
                    Ok(data) => data,
                    // The last frame: gRPC responses end with their status.
                    Err(frame) => match frame.into_trailers() {
                        Ok(trailers) => {
                            let _ = stream.send_trailers(trailers);
                            return SendOutcome::Done;
                        }
                        Err(_) => continue,
                    },
                };
                match push(stream, data, body.is_end_stream(), (&mut patience, queue)).await {
                    Ok(true) => return SendOutcome::Done,
                    Ok(false) => {}
                    Err(sent) => return sent,
                }
            }
            Some(Err(_)) => {
                // A reset, so that no client mistakes a partial response for a complete one.
                stream.send_reset(Reason::INTERNAL_ERROR);
                return SendOutcome::Done;
            }
            None => {
                let _ = stream.send_data(QueuedBytes::default(), true);
                return SendOutcome::Done;
            }
        }
    }
}

/// Sends data as the client's window allows; returns true if it was the last. The library would buffer any amount, so
/// it is given only what fits.
async fn push(
    stream: &mut SendStream<QueuedBytes>,
    mut data: Bytes,
    last: bool,
    (patience, queue): (&mut Patience, &SendQueue),
) -> Result<bool, SendOutcome> {
    let mut since = Instant::now();
    while !data.is_empty() {
        let until = since + patience.wait_max();
        stream.reserve_capacity(data.len());
        let room = match stream.capacity() {
            0 => match tokio::time::timeout_at(until, poll_fn(|cx| stream.poll_capacity(cx))).await {
                // A client can shrink its window, which is not progress.
                Ok(Some(Ok(0))) => continue,
                Ok(Some(Ok(room))) => room,
                Ok(_) => return Err(SendOutcome::Done),
                Err(_) => return Err(stalled(stream)),
            },
            room => room,
        };
        // A reset must end the query at once, also while other streams fill the queue.
        let place = tokio::select! {
            place = tokio::time::timeout_at(until, queue.place(room.min(data.len()))) => place,
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return Err(SendOutcome::Done),
        };
        let Ok(place) = place else { return Err(stalled(stream)) };
        let before = data.len();
        let part = place.put(&mut data);
        // Only waits count: the time between two pieces of the body is not the client's.
        patience.took(before - data.len(), since.elapsed());
        since = Instant::now();
        let ends = last && data.is_empty();
        stream.send_data(part, ends).map_err(|_| SendOutcome::Done)?;
        if ends {
            return Ok(true);
        }
    }
    Ok(false)
}

fn stalled(stream: &mut SendStream<QueuedBytes>) -> SendOutcome {
    stream.send_reset(Reason::CANCEL);
    SendOutcome::Stalled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::connection_control::HangUp;
    use axum::http::Extensions;
    use std::sync::Arc;
    use tokio::task::JoinHandle;
    use tokio::time::sleep;

    const SECOND: Duration = Duration::from_secs(1);

    /// The bytes of a response, with the number of their owners.
    struct Content(Arc<Vec<u8>>);

    impl AsRef<[u8]> for Content {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    /// Sends 8 KiB to a client that can be evicted.
    fn begin(respond: SendResponse<QueuedBytes>, queue: &SendQueue) -> (Arc<Vec<u8>>, HangUp, JoinHandle<SendOutcome>) {
        let (content, hang_up, queue) = (Arc::new(vec![7; 8 << 10]), HangUp::default(), queue.clone());
        let (control, mut extensions) = (ConnectionControl::default(), Extensions::new());
        extensions.insert(hang_up.clone());
        control.take(&mut extensions);
        let response = Response::new(Body::from(Bytes::from_owner(Content(content.clone()))));
        let sending = tokio::spawn(async move {
            let patience = Patience::new(60 * SECOND, 0);
            send(respond, response, false, SystemTime::UNIX_EPOCH, (patience, &queue), &control).await
        });
        (content, hang_up, sending)
    }

    #[tokio::test(start_paused = true)]
    async fn an_evicted_client_that_does_not_read_its_socket_frees_what_the_library_holds() {
        // The socket takes a kilobyte.
        let (client, server) = tokio::io::duplex(1 << 10);
        let (accepted, both) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let mut connection = h2::server::Builder::new().handshake::<_, QueuedBytes>(server).await.unwrap();
            let (_, first) = connection.accept().await.unwrap().unwrap();
            let (_, second) = connection.accept().await.unwrap().unwrap();
            assert!(accepted.send([first, second]).is_ok());
            // This also writes.
            let _ = connection.accept().await;
        });
        let (requests, connection) = h2::client::handshake(client).await.unwrap();
        let (mut requests, mut connection) = (requests.ready().await.unwrap(), Box::pin(connection));
        let mut ask = || requests.send_request(Request::get("https://localhost/").body(()).unwrap(), true).unwrap();
        let _asked = [ask(), ask()];
        let [first, second] = tokio::select! {
            both = both => both.unwrap(),
            ended = &mut connection => panic!("{ended:?}"),
        };
        // From here on the client reads nothing. Its windows have room for both responses.
        let queue = SendQueue::new();
        let (written, hang_up_written, first) = begin(first, &queue);
        sleep(SECOND).await;
        let (waiting, hang_up_waiting, second) = begin(second, &queue);
        sleep(SECOND).await;
        assert!(!first.is_finished() && !second.is_finished(), "the library holds both");
        hang_up_waiting.call();
        assert_eq!(second.await.unwrap(), SendOutcome::Done);
        assert_eq!(Arc::strong_count(&waiting), 1);
        // A part of this one is at the socket.
        hang_up_written.call();
        assert_eq!(first.await.unwrap(), SendOutcome::Stuck);
        assert_eq!(Arc::strong_count(&written), 2);
        serving.abort();
        let _ = serving.await;
        assert_eq!(Arc::strong_count(&written), 1);
    }
}
