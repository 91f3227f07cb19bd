//! HTTP/1.1 over one connection.

use super::wire::{Exchanges, HEAD_BYTES_MAX, Wire};
use crate::entry::{Connection, Entry};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Serves a connection until its client or `stopping` ends it.
pub async fn serve<S>(stream: S, from: Connection, entry: &Entry, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = &entry.state().config;
    let exchanges = Exchanges::default();
    let service = service_fn(|request| {
        let exchange = exchanges.begin();
        async move { Ok::<_, Infallible>(exchange.of(entry.answer(from, request).await)) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Wire::new(stream, exchanges.clone())), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let stop = async { stopping.wait_for(|stop| *stop).await.is_ok() };
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        _ = stop => {
            // Ends the connection after the response in progress. The server's grace period bounds that.
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = ended {
        tracing::debug!(error = %e, "connection ended early");
    }
}
