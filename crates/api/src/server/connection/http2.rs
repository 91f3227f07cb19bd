//! HTTP/2 over one connection (RFC 9113).
//!
//! The library handles frames and flow control. Time limits are enforced here, as for HTTP/1.1. They apply to the head
//! of a request, to a client that reads nothing of a response, and to an idle connection. Each stream is a task of its
//! connection, and ends with it.
//!
//! The following limits bound attacks with cheap frames. The client gets `ENHANCE_YOUR_CALM` and the connection ends:
//! - streams that are reset as soon as they are opened (CVE-2023-44487): [`RESETS_PENDING_MAX`], [`CANCELLED_MAX`];
//! - heads in endless `CONTINUATION` frames (CVE-2024-27316), and heads that decompress to more than
//!   [`HEAD_BYTES_MAX`];
//! - invalid frames: [`ERRORS_MAX`];
//! - frames that carry no request: `frames.rs`.

use super::ConnectionHandler;
use super::exchange::{self, ExchangeEnd};
use super::frames::FrameMeter;
use super::send_queue::{QUEUE_BYTES, QueuedBytes, SendQueue};
use super::wire::HEAD_BYTES_MAX;
use crate::request::dispatch::Connection;
use axum::http::Request;
use h2::server::Builder;
use h2::{Ping, PingPong, Reason, RecvStream};
use meridian_admission::ByteBudget;
use std::future::poll_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep_until};

/// Max number of open streams per client; further ones are refused.
const STREAMS_MAX: u32 = 100;
/// Memory of a stream besides its head and the bytes of its response.
const STREAM_BYTES: usize = 4 << 10;
/// Memory for streams within what is reserved for their connection. More is taken from what all connections share.
const OWN_STREAM_BYTES: usize = 92 << 10;
/// Bytes that a client may send ahead of what is read, per stream and in total. They take memory of the connection,
/// outside the budget for bodies.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 128 << 10;
/// Max streams that were reset before they were accepted. The library keeps each of them until then.
const RESETS_PENDING_MAX: usize = 20;
/// Max invalid frames of one connection.
const ERRORS_MAX: usize = 100;
/// Max requests that a client may cancel before their response, in excess of the number of responses. Moving a map
/// cancels many.
const CANCELLED_MAX: u64 = 1000;
/// How often the client is pinged while streams are open.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Serves a connection until its client or `stopping` ends it.
pub async fn serve<S>(stream: S, from: Connection, handler: &ConnectionHandler, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let head_timeout = handler.state().config.head_timeout;
    let (stream, flood) = FrameMeter::new(stream);
    let mut connection = match tokio::time::timeout(head_timeout, builder().handshake::<_, QueuedBytes>(stream)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(e)) => return tracing::debug!(error = %e, "no preface of HTTP/2"),
        Err(_) => return tracing::debug!("no preface of HTTP/2 in time"),
    };
    let mut pings = KeepAlivePings::new(connection.ping_pong());
    let mut streams: JoinSet<ExchangeEnd> = JoinSet::new();
    let queue = SendQueue::new();
    let own = ByteBudget::new(OWN_STREAM_BYTES);
    let (mut answered, mut cancelled) = (0u64, 0u64);
    let (mut closing, mut flooded) = (false, false);
    // When the connection has been idle long enough, it is asked to close; if it does not, it is dropped.
    let mut idle_until = Instant::now() + head_timeout;
    loop {
        tokio::select! {
            // This also reads and writes all frames of the connection.
            accepted = connection.accept() => match accepted {
                Some(Ok((request, mut respond))) => {
                    let bytes = STREAM_BYTES + head_bytes(&request);
                    let memory = own.try_take(bytes).or_else(|| handler.state().http2.try_take(bytes));
                    let Some(memory) = memory else {
                        // The client learns that nothing was done, and may ask again (RFC 9113, 8.7). A response with
                        // a reason would itself wait in memory.
                        respond.send_reset(Reason::REFUSED_STREAM);
                        continue;
                    };
                    let queue = queue.holding(memory);
                    streams.spawn(exchange::run(handler.clone(), from, request, respond, queue));
                }
                Some(Err(e)) => return tracing::debug!(error = %e, "connection ended early"),
                None => return,
            },
            Some(ended) = streams.join_next(), if !streams.is_empty() => {
                match ended {
                    Ok(ExchangeEnd::Cancelled) => cancelled += 1,
                    Ok(ExchangeEnd::Stuck) => {
                        return tracing::debug!("hung up on an evicted client that does not read its socket");
                    }
                    Ok(ExchangeEnd::Answered) | Err(_) => answered += 1,
                }
                // The allowance grows with the responses: a map in use for hours cancels many requests in total.
                if cancelled > CANCELLED_MAX + answered {
                    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                }
                idle_until = Instant::now() + head_timeout;
            }
            () = sleep_until(idle_until), if streams.is_empty() => {
                if closing {
                    return;
                }
                connection.graceful_shutdown();
                closing = true;
                idle_until = Instant::now() + head_timeout;
            }
            () = flood.raised(), if !flooded => {
                // The `GOAWAY` is sent as the connection is polled further; then the connection ends.
                flooded = true;
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            () = pings.lost(), if !streams.is_empty() => return tracing::debug!("the client answers no ping"),
            // Open streams are completed; new ones are refused.
            _ = stopping.wait_for(|stop| *stop), if !closing => {
                connection.graceful_shutdown();
                closing = true;
            }
        }
    }
}

/// Returns the bytes of a head, as HTTP/2 counts them (RFC 9113, 6.5.2).
fn head_bytes(request: &Request<RecvStream>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
    target + fields.sum::<usize>()
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(QUEUE_BYTES)
        .max_pending_accept_reset_streams(RESETS_PENDING_MAX)
        .max_local_error_reset_streams(Some(ERRORS_MAX));
    builder
}

/// Pings the client at intervals: a stream of events may have nothing to send for a long time.
struct KeepAlivePings {
    pings: Option<PingPong>,
    waiting: bool,
    ticks: tokio::time::Interval,
}

impl KeepAlivePings {
    fn new(pings: Option<PingPong>) -> KeepAlivePings {
        let mut ticks = interval(PING_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        KeepAlivePings { pings, waiting: false, ticks }
    }

    /// Completes when a ping was not answered within an interval.
    async fn lost(&mut self) {
        let Some(pings) = &mut self.pings else { return std::future::pending().await };
        loop {
            tokio::select! {
                // A pong that has arrived counts even if this task runs late.
                biased;
                pong = poll_fn(|cx| pings.poll_pong(cx)), if self.waiting => {
                    self.waiting = false;
                    if pong.is_err() {
                        // The connection has ended, which `accept` reports.
                        return std::future::pending().await;
                    }
                }
                _ = self.ticks.tick() => {
                    if self.waiting {
                        return;
                    }
                    self.waiting = pings.send_ping(Ping::opaque()).is_ok();
                }
            }
        }
    }
}
