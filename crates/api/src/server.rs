//! The accept loop: connections with limits on their number and on how slow they may be.

use crate::body;
use crate::doors::Doors;
use crate::places::{self, Near};
use crate::problem::Problem;
use crate::request::{Observation, Peer};
use crate::routes;
use crate::state::AppState;
use crate::wire::{HEAD_BYTES_MAX, Turns, Wire};
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
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
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
    let doors = Doors::new(&state.config, listener.local_addr()?);
    let house = Arc::new(House { router: routes::router(state.clone()), doors, state: state.clone() });
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
        connections.spawn(connection(stream, peer, house.clone(), stopping.clone()));
    }
    drop(listener);
    state.stopping.store(true, Ordering::Relaxed);
    // Their readers get the last packet, and so their connections come to an end.
    state.searches.stop_all();
    state.saved.close();
    state.live.close();
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

async fn connection(stream: TcpStream, peer: Peer, house: Arc<House>, mut stopping: watch::Receiver<bool>) {
    let turns = Turns::default();
    let service = service_fn(|request| {
        let (turn, house) = (turns.begin(), &house);
        async move { Ok::<_, Infallible>(turn.of(answer(house, peer, request).await)) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(house.state.config.head_timeout)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Wire::new(stream, house.state.config.write_stall, turns.clone())), service)
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

/// What every connection needs.
struct House {
    state: AppState,
    doors: Doors,
    router: Router,
}

/// Answers one request: who may not come in hears so before anything else is done.
///
/// Near questions are answered right here, because they cost so little that finding their route,
/// taking their path apart and boxing their futures tells (docs/decisions/007). The router has the same routes for them,
/// and gets those that are not plain.
async fn answer(house: &House, peer: Peer, request: hyper::Request<Incoming>) -> Response {
    let House { state, doors, router } = house;
    if let Err(problem) = doors.admit(request.method(), request.uri(), request.headers()) {
        return refuse(house, request, problem).await;
    }
    if request.method() == Method::GET
        && let Some(question) = Near::of(request.uri())
    {
        let observation = Observation::begin(state, request.method(), request.uri(), request.headers());
        let route = question.route();
        let response = places::nearby(state, question).await.unwrap_or_else(IntoResponse::into_response);
        let mut response = observation.end(Some(route), response);
        doors.seal(&mut response);
        return response;
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    let mut response = match router.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    doors.seal(&mut response);
    response
}

/// Answers a request that may not come in; its body is thrown away, within limits, so that the client can read why.
async fn refuse(house: &House, request: hyper::Request<Incoming>, problem: Problem) -> Response {
    let observation = Observation::begin(&house.state, request.method(), request.uri(), request.headers());
    let (parts, body) = request.into_parts();
    body::discard(&parts.headers, &mut Body::new(body)).await;
    let mut response = observation.end(None, problem.into_response());
    house.doors.seal(&mut response);
    response
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
