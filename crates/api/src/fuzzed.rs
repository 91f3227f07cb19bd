//! Parsers of client input, exposed for `fuzz/targets`. Not part of the crate's interface.

use crate::access::sign_in::{cookie, csrf, next};
use crate::collections::live::position;
use crate::config::ServerConfig;
use crate::config::network::Network;
use crate::entry::guard::Guard;
use crate::entry::{Accepted, Conditions, Entry};
use crate::protocol::params::{self, Params, format};
use crate::request::context::class_of;
use crate::request::dispatch::{Client, Connection, Peer, client};
use crate::server::connection;
use crate::state::AppState;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use futures_util::FutureExt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Returns the address of the client behind a peer, as stated by proxies; `None` if the request is refused.
pub fn client_of(peer: IpAddr, proxies: &[Network], headers: &HeaderMap) -> Option<IpAddr> {
    client(Client { address: peer, secure: false }, proxies, headers).ok().map(|client| client.address)
}

/// Parses the command of an Arrow Flight descriptor. Returns the target of its request, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_command(command: &[u8]) -> Result<String, String> {
    crate::flight::target_of(command).map_err(|problem| problem.detail().to_owned())
}

/// Parses the JSON of an Arrow Flight ticket with a valid signature. Returns the rewritten ticket, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_ticket(json: &[u8]) -> Result<Vec<u8>, String> {
    crate::flight::reread_ticket(json).map_err(|problem| problem.detail().to_owned())
}

/// Returns the text of a session in a cookie.
pub fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie::SESSION.read(false, headers)
}

/// Returns the response to a read of a file with these headers, under the conditions of a request: status, headers,
/// content.
pub fn file_under(
    method: &Method,
    asked: &HeaderMap,
    headers: HeaderMap,
    content: &'static [u8],
) -> Option<(StatusCode, HeaderMap, Vec<u8>)> {
    let mut file = Response::new(Body::from(content));
    *file.headers_mut() = headers;
    let response = match Conditions::of(method, asked) {
        // In memory, so it does not wait.
        Some(conditions) => conditions.apply(file, &Accepted::default()).now_or_never()?,
        None => file,
    };
    let (parts, body) = response.into_parts();
    let content = to_bytes(body, usize::MAX).now_or_never()?.ok()?;
    Some((parts.status, parts.headers, content.to_vec()))
}

/// Returns the coding chosen by a request's headers, and whether the plain bytes are refused.
pub fn coding_of(headers: &HeaderMap) -> (Option<&'static str>, bool) {
    let guard = Guard::new(&ServerConfig::default(), SocketAddr::from(([127, 0, 0, 1], 7117)));
    let accepted = Accepted::of(headers, &guard);
    (accepted.coding().map(|coding| coding.name()), accepted.refuses_plain())
}

/// Parses further request headers: the class of its priority, its deadline in milliseconds, and the name of the page
/// format.
pub fn preferences(headers: &HeaderMap) -> (Option<String>, Option<u128>, Option<String>) {
    let priority = headers.get("priority").map(|value| format!("{:?}", class_of(value)));
    let timeout = headers.get("meridian-timeout").and_then(|value| params::timeout("a", value.to_str().ok()?).ok());
    let chosen = format::choose(None, headers, &[format::Format::Json, format::Format::Html]);
    (priority, timeout.map(|timeout| timeout.as_millis()), chosen.ok().map(|format| format.word().to_owned()))
}

/// Returns whether a server at an address accepts a request with this head, and the origin of a foreign page that may
/// read the response.
pub fn admitted(
    config: &ServerConfig,
    listen: SocketAddr,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> (bool, Option<HeaderValue>) {
    let guard = Guard::new(config, listen);
    (guard.admit(method, uri, headers).is_ok(), guard.foreign_page(headers).cloned())
}

/// Parses the parameters of a query string or a form.
///
/// # Errors
/// The refusal.
pub fn query(text: &str) -> Result<Vec<(String, String)>, String> {
    Params::parse(Some(text)).map(Params::rest).map_err(|problem| problem.detail().to_owned())
}

/// Returns where a browser goes after signing in.
pub fn next_path(asked: &str) -> String {
    next::local(Some(asked))
}

/// Returns a session's anti-forgery token, and whether the given one matches it.
pub fn csrf_token(session: &str, shown: &str) -> (String, bool) {
    (csrf::token(session), csrf::check(session, Some(shown)).is_ok())
}

/// Parses the position that a stream follows, as sent by its client, and formats it as streams do.
pub fn stream_position(text: &str) -> Option<String> {
    position("after", text).ok().map(|position| position.to_id())
}

/// A server whose clients are in-memory byte streams.
pub struct Server {
    handler: connection::ConnectionHandler,
    stopping: watch::Receiver<bool>,
    _stop: watch::Sender<bool>,
    _tending: JoinSet<()>,
}

impl Server {
    /// Creates a server with this state. Must be called within a runtime.
    ///
    /// # Errors
    /// If the route table cannot be built.
    pub fn new(state: AppState, listen: SocketAddr) -> io::Result<Server> {
        let mut tending = JoinSet::new();
        for gate in [state.gate.clone(), state.reserved.clone()] {
            tending.spawn(async move { gate.tend().await });
        }
        let (stop, stopping) = watch::channel(false);
        let handler = connection::ConnectionHandler::Http(Arc::new(Entry::new(state, listen)?));
        Ok(Server { handler, stopping, _stop: stop, _tending: tending })
    }

    /// Serves a client at an address until it ends the connection.
    pub async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        address: IpAddr,
        http2: bool,
    ) {
        let from = Connection { peer: Peer::Address(address), secure: http2 };
        connection::serve_bytes(stream, from, &self.handler, self.stopping.clone(), http2).await;
    }
}
