//! The context of a request for its handler: arrival time, id, deadline and base URL.

use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::params::{self, Params};
use crate::protocol::problem::{Problem, Result};
use crate::request::ask::{BatchKey, FlightOperation};
use crate::request::dispatch::{Dispatch, Lease, Peer, is_forwarded};
use crate::state::AppState;
use axum::extract::FromRequestParts;
#[cfg(feature = "geopackage")]
use axum::http::Method;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use meridian_admission::gate::Class;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

static TIMEOUT: HeaderName = HeaderName::from_static("meridian-timeout");

/// A request as passed to its handler.
pub struct Context {
    /// When the request's head had been read.
    pub arrived: Instant,
    /// The peer of its connection.
    pub peer: Peer,
    /// The address of its client; `None` over the control socket.
    pub client: Option<IpAddr>,
    /// Its id, in logs and in the response.
    pub id: Arc<str>,
    /// Its permit to run.
    pub lease: Lease,
    /// The header fields.
    pub headers: HeaderMap,
    /// The query string, undecoded.
    pub query: Option<String>,
    /// The path, undecoded.
    pub path: String,
    /// Whether its client wants the headers alone.
    #[cfg(feature = "geopackage")]
    pub is_head: bool,
    /// The requirements of an Arrow Flight call; `None` over HTTP.
    pub ask: Option<FlightOperation>,
    /// The idempotency key of a record batch over Arrow Flight; `None` over HTTP.
    pub batch_key: Option<BatchKey>,
    /// Scheme and authority under which the client reached the server, without a trailing slash.
    pub base: String,
    timeout_max: Duration,
}

impl FromRequestParts<AppState> for Context {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let dispatch = parts.extensions.get::<Dispatch>();
        let Dispatch { arrival, id, lease, caller, segments, .. } =
            dispatch.ok_or_else(|| Problem::internal("a request that did not pass the entry point"))?;
        let ask = parts.extensions.get::<FlightOperation>().cloned();
        if let Some(ask) = &ask {
            ask.check(&caller.tenant, segments)?;
        }
        Ok(Context {
            arrived: arrival.at,
            peer: arrival.peer,
            client: arrival.client,
            id: id.clone(),
            lease: lease.clone(),
            query: parts.uri.query().map(str::to_owned),
            path: parts.uri.path().to_owned(),
            #[cfg(feature = "geopackage")]
            is_head: parts.method == Method::HEAD,
            ask,
            batch_key: parts.extensions.get::<BatchKey>().cloned(),
            base: match &arrival.relayed {
                Some(relayed) => relayed.base.to_string(),
                None => base_url(state, parts, arrival.secure),
            },
            // Taken, since nothing later reads them from the request.
            headers: std::mem::take(&mut parts.headers),
            timeout_max: state.config.timeout_max,
        })
    }
}

impl Context {
    /// Returns the deadline: the parameter `timeout`, else the header `Meridian-Timeout`, else `default`; never beyond
    /// the operator's max.
    pub fn deadline(&self, parameter: Option<Duration>, default: Duration) -> Result<Instant> {
        let timeout = match parameter {
            Some(timeout) => timeout,
            None => self.timeout()?.unwrap_or(default),
        };
        Ok(self.arrived + timeout.min(self.timeout_max))
    }

    /// Parses the header `Meridian-Timeout`.
    pub fn timeout(&self) -> Result<Option<Duration>> {
        let header = self.headers.get(&TIMEOUT);
        header.map(|value| params::timeout("Meridian-Timeout", value.to_str().unwrap_or_default())).transpose()
    }

    /// Returns the format of a document that is also a page: the parameter `f`, the only one accepted, else `Accept`.
    pub fn page_format(&self) -> Result<Format> {
        let mut params = Params::parse(self.query.as_deref())?;
        let format = format::choose(params.take("f"), &self.headers, PAGES)?;
        params.finish().map(|()| format)
    }

    /// Returns whether a program on this machine sent the request without a proxy.
    pub fn is_local(&self) -> bool {
        match self.peer {
            // The control socket is on this machine.
            Peer::Socket => true,
            Peer::Address(peer) => peer.to_canonical().is_loopback() && !is_forwarded(&self.headers),
            Peer::Monitor(_) => false,
        }
    }

    /// Returns the absolute URL of this request.
    pub fn this_url(&self) -> String {
        match &self.query {
            Some(query) => format!("{}{}?{query}", self.base, self.path),
            None => format!("{}{}", self.base, self.path),
        }
    }

    /// Returns the absolute URL of a path on this server.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Returns the base URL of links. The client controls `Host`, so only the characters of an authority are accepted.
fn base_url(state: &AppState, parts: &Parts, secure: bool) -> String {
    if let Some(url) = &state.config.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = parts
        .headers
        .get(header::HOST)
        .and_then(|h| h.to_str().ok())
        // HTTP/2 has the authority in the target (RFC 9113, section 8.3.1).
        .or_else(|| parts.uri.authority().map(|a| a.as_str()))
        .filter(|h| !h.is_empty() && h.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b)));
    let scheme = if secure { "https" } else { "http" };
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}

/// Returns the timeout requested; `None` if it is invalid, since the handler reports the error.
pub fn requested_timeout(uri: &Uri, headers: &HeaderMap) -> Option<Duration> {
    let parameter = uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout=")));
    let text = parameter.or_else(|| headers.get(&TIMEOUT)?.to_str().ok())?;
    params::timeout("timeout", text).ok()
}

/// Returns the class requested by the header `Priority`: its urgency `u`, 0 to 7, 3 by default (RFC 9218, 4.1).
///
/// Other parameters and invalid urgencies are ignored, as the standard requires.
pub fn class_of(priority: &HeaderValue) -> Class {
    let text = priority.to_str().unwrap_or_default();
    let urgency = text.split(',').find_map(|member| member.trim().strip_prefix("u="));
    let urgency = urgency.and_then(|value| value.split(';').next()).and_then(|value| value.trim().parse().ok());
    urgency.filter(|urgency| *urgency <= 7).map_or(Class::Interactive, Class::of_urgency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_urgency_below_the_usual_lowers_the_class() {
        for (value, class) in [
            ("u=0", Class::Interactive),
            ("i", Class::Interactive),
            ("u=5, i", Class::Interactive),
            ("i, u=6", Class::Batch),
            ("u=7;q=1", Class::Background),
            ("u=8", Class::Interactive),
            ("u=-1", Class::Interactive),
            ("u=7x", Class::Interactive),
            ("", Class::Interactive),
        ] {
            assert_eq!(class_of(&HeaderValue::from_static(value)), class, "{value}");
        }
    }
}
