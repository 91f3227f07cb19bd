//! HTTP/1.1 over one connection.

use super::repoll::repolled;
use super::wire::{Exchanges, HEAD_BYTES_MAX, Wire};
use crate::entry::Entry;
use crate::protocol::connection_control::ConnectionControl;
use crate::request::dispatch::Connection;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Serves a connection until its client or `stopping` ends it.
pub async fn serve<S>(stream: S, from: Connection, entry: &Arc<Entry>, stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    repolled(pin!(converse(stream, from, entry, stopping))).await;
}

async fn converse<S>(stream: S, from: Connection, entry: &Arc<Entry>, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = &entry.state().config;
    let sharing = (!config.origins.is_empty()).then(|| entry.clone());
    let (exchanges, control) = (Exchanges::default(), ConnectionControl::default());
    let service = service_fn(|request| {
        let (exchange, control) = (exchanges.begin(), &control);
        async move {
            let mut response = entry.answer(from, request).await;
            control.take(response.extensions_mut());
            Ok::<_, Infallible>(exchange.of(response))
        }
    });
    let serving = http1::Builder::new()
        // `Wire` bounds the wait for a head instead.
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Wire::new(stream, exchanges.clone(), config.head_timeout, sharing)), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let mut closing = false;
    let ended = loop {
        tokio::select! {
            // The order matters: a response's instructions are known only once it has begun.
            biased;
            ended = serving.as_mut() => break ended,
            () = poll_fn(|cx| control.poll_hang_up(cx)) => {
                return tracing::debug!("hung up on a client that does not read");
            }
            _ = stopping.wait_for(|stop| *stop), if !closing => {
                // Ends the connection after the response in progress. The server's grace period bounds the wait.
                serving.as_mut().graceful_shutdown();
                closing = true;
            }
        }
    };
    if let Err(e) = ended {
        return tracing::debug!(error = %e, "connection ended early");
    }
    if let Some(work) = control.after_switch() {
        work.await;
    }
}
