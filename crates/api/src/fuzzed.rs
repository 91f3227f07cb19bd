//! Parsers of what clients send, for `fuzz/targets`. Not part of the crate's interface.

use crate::config::ServerConfig;
use crate::connection;
use crate::dispatch::{Client, Connection, Peer, client};
use crate::entry::{Accepted, Conditions, Entry};
use crate::guard::Guard;
use crate::live::position;
use crate::network::Network;
use crate::params::{self, Params, format};
use crate::request::class_of;
use crate::sign_in::{cookie, csrf, next};
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

/// The address of the client behind a peer, as proxies state it; `None` if the request is refused.
pub fn client_of(peer: IpAddr, proxies: &[Network], headers: &HeaderMap) -> Option<IpAddr> {
    client(Client { address: peer, secure: false }, proxies, headers).ok().map(|client| client.address)
}

/// Reads the command of a descriptor of Arrow Flight; gives the target of its request, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_command(command: &[u8]) -> Result<String, String> {
    crate::flight::target_of(command).map_err(|problem| problem.detail().to_owned())
}

/// Reads the JSON of a ticket of Arrow Flight, whose signature is right; gives it as it is written again, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_ticket(json: &[u8]) -> Result<Vec<u8>, String> {
    crate::flight::reread_ticket(json).map_err(|problem| problem.detail().to_owned())
}

/// The text of a session that a cookie holds.
pub fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie::SESSION.read(false, headers)
}

/// The response to a read of a file, with these headers, under the conditions of a request: status, headers, content.
pub fn file_under(
    method: &Method,
    asked: &HeaderMap,
    headers: HeaderMap,
    content: &'static [u8],
) -> Option<(StatusCode, HeaderMap, Vec<u8>)> {
    let mut file = Response::new(Body::from(content));
    *file.headers_mut() = headers;
    let response = match Conditions::of(method, asked) {
        // In memory: nothing is waited for.
        Some(conditions) => conditions.apply(file).now_or_never()?,
        None => file,
    };
    let (parts, body) = response.into_parts();
    let content = to_bytes(body, usize::MAX).now_or_never()?.ok()?;
    Some((parts.status, parts.headers, content.to_vec()))
}

/// The coding that a request's headers choose, and whether the plain bytes are refused.
pub fn coding_of(headers: &HeaderMap) -> (Option<&'static str>, bool) {
    let accepted = Accepted::of(headers);
    (accepted.coding().map(|coding| coding.name()), accepted.refuses_plain())
}

/// What other headers of a request say: the class of its priority, its deadline in milliseconds, and the word of the format of a page.
pub fn preferences(headers: &HeaderMap) -> (Option<String>, Option<u128>, Option<String>) {
    let priority = headers.get("priority").map(|value| format!("{:?}", class_of(value)));
    let timeout = headers.get("meridian-timeout").and_then(|value| params::timeout("a", value.to_str().ok()?).ok());
    let chosen = format::choose(None, headers, &[format::Format::Json, format::Format::Html]);
    (priority, timeout.map(|timeout| timeout.as_millis()), chosen.ok().map(|format| format.word().to_owned()))
}

/// Whether a server at an address takes a request with this head, and the page of another origin that may read the answer.
pub fn admitted(
    config: &ServerConfig,
    listen: SocketAddr,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> (bool, Option<HeaderValue>) {
    let guard = Guard::new(config, listen);
    (guard.admit(method, uri, headers).is_ok(), guard.foreign_page(headers).cloned())
}

/// The parameters of a query string, or of a form.
///
/// # Errors
/// The refusal.
pub fn query(text: &str) -> Result<Vec<(String, String)>, String> {
    Params::parse(Some(text)).map(Params::rest).map_err(|problem| problem.detail().to_owned())
}

/// Where a browser goes after signing in.
pub fn next_path(asked: &str) -> String {
    next::local(Some(asked))
}

/// The token against forgery of a session, and whether this one passes for it.
pub fn csrf_token(session: &str, shown: &str) -> (String, bool) {
    (csrf::token(session), csrf::check(session, Some(shown)).is_ok())
}

/// The position that a stream follows, as its client gives it; written as streams do.
pub fn stream_position(text: &str) -> Option<String> {
    position("after", text).ok().map(|position| position.to_id())
}

/// A server whose clients are streams of bytes in memory.
pub struct Server {
    door: connection::Door,
    stopping: watch::Receiver<bool>,
    _stop: watch::Sender<bool>,
    _tending: JoinSet<()>,
}

impl Server {
    /// Over this state. The runtime must be entered.
    ///
    /// # Errors
    /// The route table does not build.
    pub fn new(state: AppState, listen: SocketAddr) -> io::Result<Server> {
        let mut tending = JoinSet::new();
        for gate in [state.gate.clone(), state.reserved.clone()] {
            tending.spawn(async move { gate.tend().await });
        }
        let (stop, stopping) = watch::channel(false);
        let door = connection::Door::Http(Arc::new(Entry::new(state, listen)?));
        Ok(Server { door, stopping, _stop: stop, _tending: tending })
    }

    /// Serves a client at an address until it ends the connection.
    pub async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        address: IpAddr,
        http2: bool,
    ) {
        let from = Connection { peer: Peer::Address(address), secure: http2 };
        connection::serve_bytes(stream, from, &self.door, self.stopping.clone(), http2).await;
    }
}
