//! A listener for monitors alone: `/metrics`, `/healthz` and `/readyz`, without a token.
//!
//! It is separate from the clients' listener, so a monitor needs no credential, and finds the metrics while clients use up
//! all connections. Every client that reaches its address can read them.

use crate::guard::Guard;
use crate::operation;
use crate::problem::{Kind, Problem};
use crate::scope::Scope;
use crate::state::AppState;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Duration;

/// Max connected monitors; others wait.
const CONNECTIONS_MAX: usize = 16;
/// Max time for the head of a request; also how long an idle connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Max size of a head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Pause after a connection that could not be accepted.
const RETRY: Duration = Duration::from_millis(20);

/// Serves monitors on `listener`, for as long as it is polled.
pub async fn serve_monitors(listener: TcpListener, state: AppState) -> io::Result<()> {
    // The same host names as the clients' listener: a page whose name was rebound to this address reads nothing.
    let guard = Arc::new(Guard::new(&state.config, listener.local_addr()?));
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Connections end with this function.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // Before `accept`: further monitors wait in the backlog and take no memory here.
        let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                tracing::warn!(error = %e, "could not accept a connection of a monitor");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let (state, guard) = (state.clone(), guard.clone());
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(|request| {
                let (state, guard) = (state.clone(), guard.clone());
                async move { Ok::<_, Infallible>(answer(state, &guard, request).await) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_header_size(HEAD_BYTES_MAX)
                .max_buf_size(HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(e) = serving.await {
                tracing::debug!(error = %e, "connection of a monitor ended early");
            }
        });
    }
}

async fn answer(state: AppState, guard: &Guard, request: hyper::Request<Incoming>) -> Response {
    if let Err(problem) = guard.admit(request.method(), request.uri(), request.headers()) {
        return problem.into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::new(Kind::MethodNotAllowed, "expected GET").into_response();
    }
    // The view of `nobody`: it shows the number of damaged collections, not their names.
    let nobody = state.callers.nobody.clone();
    let scope = Scope::new(state, nobody);
    match request.uri().path() {
        "/metrics" => operation::metrics(scope).await,
        "/healthz" => operation::health().await.into_response(),
        "/readyz" => operation::ready(scope).await.into_response(),
        path => Problem::not_found(format!("there is nothing at {path}: expected /metrics, /healthz or /readyz"))
            .into_response(),
    }
}
