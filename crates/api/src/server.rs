//! The accept loop: connections with limits on their number and on how slow they may be.

use crate::places::{self, Near};
use crate::request::{Observation, Peer};
use crate::routes;
use crate::state::AppState;
use axum::Router;
use axum::body::Body;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tower::Service;

/// What a connection over the limit is told.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
Retry-After: 1\r\nConnection: close\r\nContent-Length: 116\r\n\r\n\
{\"type\":\"urn:meridian:problem:overloaded\",\"title\":\"Server overloaded\",\"status\":503,\"detail\":\"too many connections\"}\n";

/// Serves on `listener` until `shutdown` completes, then lets running requests finish for at most
/// [`crate::ServerConfig::shutdown_grace`] and returns. The store stays open: closing it is the caller's part.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let router = routes::router(state.clone());
    state.saved.run()?;
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.as_mut() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => (stream, Peer(address.ip())),
                Err(e) => {
                    // Out of file descriptors, or a client that left while it queued: neither ends the server.
                    tracing::warn!(error = %e, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        if connections.len() >= state.config.connections_max {
            state.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            let _ = stream.try_write(TOO_MANY_CONNECTIONS);
            continue;
        }
        // Without this, the second half of a small answer would wait for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        connections.spawn(connection(stream, peer, router.clone(), state.clone(), stopping.clone()));
    }
    drop(listener);
    state.stopping.store(true, Ordering::Relaxed);
    // Their readers get the last packet, and so their connections come to an end.
    state.searches.stop_all();
    state.saved.close();
    let _ = stop.send(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(state.config.shutdown_grace, finished).await.is_err() {
        tracing::warn!(connections = connections.len(), "requests still running after the grace period are cut off");
        connections.shutdown().await;
    }
    // What was acknowledged last is looked at, and what nobody has read yet is kept.
    let saved = state.saved.clone();
    match tokio::task::spawn_blocking(move || saved.stop()).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::error!(error = %e, "packets of saved searches that wait are not kept"),
        Err(e) => tracing::error!(error = %e, "saved searches did not stop well"),
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    state: AppState,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|request| answer(&state, &router, peer, request));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(state.config.head_timeout)
        .serve_connection(TokioIo::new(Patient::new(stream, state.config.write_stall)), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let stop = async { stopping.wait_for(|stop| *stop).await.is_ok() };
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        _ = stop => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = ended {
        tracing::debug!(error = %e, "connection ended early");
    }
}

/// Answers one request. Near questions are answered right here, because they cost so little that finding their route,
/// taking their path apart and boxing their futures tells (docs/decisions/007). The router has the same routes for them,
/// and gets those that are not plain.
async fn answer(
    state: &AppState,
    router: &Router,
    peer: Peer,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    if request.method() == Method::GET
        && let Some(question) = Near::of(request.uri())
    {
        let observation = Observation::begin(state, request.method(), request.uri(), request.headers());
        let route = question.route();
        let response = places::nearby(state, question).await.unwrap_or_else(IntoResponse::into_response);
        return Ok(observation.end(Some(route), response));
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    router.clone().call(request).await
}

/// A stream whose writes fail when the client takes nothing for too long.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    /// Set while a write waits.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, stall: Duration) -> Patient {
        Patient { stream, stall, patience: None }
    }

    /// Turns a wait that lasts too long into an error.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.patience = None;
            return outcome;
        }
        let stall = self.stall;
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        match patience.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.patience = None;
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client took nothing of its answer")))
            }
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::TOO_MANY_CONNECTIONS;

    #[test]
    fn the_canned_refusal_is_a_whole_answer() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
