//! Protects against hostile web pages with one decision per request, before anything else is done for it.
//!
//! A page in the user's browser reaches this server with the user's network access, so being reachable proves nothing.
//! Two headers that a page cannot forge identify its requests:
//! - `Host` is the name that the browser resolved. A page whose own name was pointed at this address (DNS rebinding)
//!   sends that name, which does not belong to this server: 421.
//! - `Sec-Fetch-Site` and `Origin` name the origin of the page. Requests that change state, and every upgrade, are
//!   refused for pages of other origins: 403. Programs send neither header and pass.
//!
//! The decision reads bytes and allocates nothing for a request that passes. The media type of a body is checked
//! against its route (`protocol/media_types.rs`); every page's policy lists the origins that may embed it (`seal.rs`).
//! The origins whose pages may write are also those whose pages may read responses (`cors.rs`).

mod cors;
mod hosts;
mod seal;

pub use hosts::Hosts;

use crate::config::ServerConfig;
use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::web_origin::{self, WebOrigin};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use hosts::HostMatch;
use std::net::SocketAddr;

pub(crate) static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The checks, prepared once from the settings and the address that the server listens on.
pub struct Guard {
    hosts: Hosts,
    /// Origins whose pages may read and write, besides the origins of the request's `Host` and of the public URL.
    origins: Vec<WebOrigin>,
    /// The origin of the public URL.
    public: Option<WebOrigin>,
    /// The directive appended to every page's policy.
    frame_ancestors: String,
    /// The `Strict-Transport-Security` header of responses over TLS, if any.
    hsts: Option<HeaderValue>,
}

impl Guard {
    /// Creates the guard of a server that listens on `listen`.
    pub fn new(config: &ServerConfig, listen: SocketAddr) -> Guard {
        let public = config.public_url.as_deref().and_then(|url| WebOrigin::of_url(url).ok());
        Guard {
            hosts: Hosts::new(config, listen),
            origins: config.origins.clone(),
            public,
            frame_ancestors: seal::directive(&config.frame_ancestors),
            hsts: seal::hsts(config.hsts),
        }
    }

    /// Accepts a request, or returns the refusal.
    ///
    /// # Errors
    /// 400 if the request does not name its host exactly once. 421 if the host is not a name of this server. 403 if a
    /// page of another origin tries to change something or to open a WebSocket.
    pub fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let host = self.host(headers)?;
        // An absolute target takes precedence over `Host` (RFC 9112, 3.2.2): both must be names of this server.
        if let Some(authority) = uri.authority() {
            self.named(authority.as_str().as_bytes())?;
        }
        let safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if safe && !fields::has(headers, &header::UPGRADE) {
            return Ok(());
        }
        self.page_origin(host, headers)
    }

    /// Checks that a page of this server sent the request, as stated by the browser. Used for requests that any page
    /// can make a browser send: forms, and upgrades with its cookies. Neither origins in the settings nor programs
    /// pass.
    ///
    /// # Errors
    /// 403
    pub fn of_own_page(&self, headers: &HeaderMap) -> Result<()> {
        self.host(headers)?;
        match self.is_of_own_page(headers) {
            Some(true) => Ok(()),
            Some(false) | None => {
                let detail =
                    "only a page of this server may send this: expected the header Origin or Sec-Fetch-Site of one";
                Err(Problem::new(Kind::CrossOrigin, detail))
            }
        }
    }

    /// Returns whether a page of this server sent the request, whose host was checked; `None` if no header of a browser
    /// states where it comes from.
    pub fn is_of_own_page(&self, headers: &HeaderMap) -> Option<bool> {
        let mut sites = headers.get_all(&SEC_FETCH_SITE).iter().peekable();
        if sites.peek().is_some() {
            return Some(sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")));
        }
        let host = headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
        let ours = |origin: &HeaderValue| {
            self.public.as_ref().is_some_and(|public| public.is(origin.as_bytes()))
                || web_origin::is_of_host(origin.as_bytes(), host)
        };
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        origins.peek()?;
        Some(origins.all(ours))
    }

    /// Returns the value of `Host`, which must be a name of this server.
    fn host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a [u8]> {
        match fields::only(headers, &header::HOST) {
            Some((host, false)) => self.named(host.as_bytes()).map(|()| host.as_bytes()),
            None => Err(Problem::new(Kind::InvalidHost, "the request has no Host header: expected one")),
            Some((_, true)) => {
                Err(Problem::new(Kind::InvalidHost, "the request has more than one Host header: expected one"))
            }
        }
    }

    fn named(&self, authority: &[u8]) -> Result<()> {
        let shown = || String::from_utf8_lossy(authority);
        match self.hosts.match_host(authority) {
            HostMatch::Ours => Ok(()),
            HostMatch::Other => Err(Problem::new(
                Kind::Misdirected,
                format!("{:?} is not a name of this server: the setting server.hosts adds names", shown()),
            )),
            HostMatch::Malformed => Err(Problem::new(
                Kind::InvalidHost,
                format!("{:?} is not a host: expected a name or address, optionally with a port", shown()),
            )),
        }
    }

    /// Checks that the page that sent the request, if any, belongs to this server or to an origin in the settings.
    fn page_origin(&self, host: &[u8], headers: &HeaderMap) -> Result<()> {
        let mut sites = headers.get_all(&SEC_FETCH_SITE).iter().peekable();
        // If the browser states how the two origins relate, it knows better than a server behind a proxy.
        let stated = sites.peek().is_some();
        if stated && sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
            return Ok(());
        }
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if !stated && origins.peek().is_none() {
            return Ok(());
        }
        let listed =
            |origin: &HeaderValue| self.origins.iter().chain(&self.public).any(|ours| ours.is(origin.as_bytes()));
        // Without the browser's statement, `Origin` is compared with the host named by the request, which `admit` has
        // already checked.
        let ours = |origin: &HeaderValue| listed(origin) || !stated && web_origin::is_of_host(origin.as_bytes(), host);
        // Every value has to pass: a proxy may merge or repeat headers, and the first value is no more reliable than
        // the last.
        if origins.peek().is_some() && origins.all(ours) {
            return Ok(());
        }
        let from = headers
            .get(header::ORIGIN)
            .map_or("of another origin".into(), |o| format!("of {}", String::from_utf8_lossy(o.as_bytes())));
        Err(Problem::new(
            Kind::CrossOrigin,
            format!("a page {from} may not do this here: the setting server.origins adds origins whose pages may"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(config: ServerConfig) -> Guard {
        Guard::new(&config, "127.0.0.1:7117".parse().unwrap())
    }

    fn status(guard: &Guard, method: &str, target: &str, headers: &[(&'static str, &'static str)]) -> u16 {
        let mut request = axum::http::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        match guard.admit(request.method(), request.uri(), request.headers()) {
            Ok(()) => 200,
            Err(problem) => problem.status().as_u16(),
        }
    }

    #[test]
    fn a_request_names_its_host_once() {
        let guard = guard(ServerConfig::default());
        let of = |headers: &[(&'static str, &'static str)]| status(&guard, "GET", "/", headers);
        assert_eq!(of(&[]), 400);
        assert_eq!(of(&[("host", "localhost"), ("host", "localhost")]), 400);
        assert_eq!(of(&[("host", "localhost"), ("host", "evil.example")]), 400);
        assert_eq!(of(&[("host", "localhost:7117")]), 200);
        assert_eq!(of(&[("host", "evil.example:7117")]), 421);
    }

    #[test]
    fn an_absolute_target_counts_as_well_as_the_host() {
        let guard = guard(ServerConfig::default());
        let of = |target: &str, host: &'static str| status(&guard, "GET", target, &[("host", host)]);
        assert_eq!(of("http://localhost:7117/metrics", "localhost:7117"), 200);
        assert_eq!(of("http://evil.example/metrics", "localhost"), 421);
        assert_eq!(of("http://localhost/metrics", "evil.example"), 421);
    }

    #[test]
    fn pages_of_other_origins_change_nothing() {
        let config = ServerConfig {
            public_url: Some("https://events.example.org/".to_owned()),
            origins: vec!["http://tools.example.org:8080".parse().unwrap()],
            ..ServerConfig::default()
        };
        let guard = guard(config);
        let of = |method: &str, more: &[(&'static str, &'static str)]| {
            let mut headers = vec![("host", "127.0.0.1:7117")];
            headers.extend(more);
            status(&guard, method, "/searches", &headers)
        };
        for (headers, expected) in [
            (&[][..], 200),
            (&[("origin", "http://127.0.0.1:7117")], 200),
            (&[("origin", "HTTP://127.0.0.1:7117")], 200),
            (&[("origin", "http://127.0.0.1:3000")], 403),
            (&[("origin", "http://127.0.0.1")], 403),
            (&[("origin", "http://evil.example")], 403),
            (&[("origin", "null")], 403),
            (&[("origin", "")], 403),
            // The address that the operator publishes, and the origin that the operator names.
            (&[("origin", "https://events.example.org")], 200),
            (&[("origin", "http://events.example.org")], 403),
            (&[("origin", "http://tools.example.org:8080")], 200),
            (&[("origin", "http://127.0.0.1:7117"), ("origin", "http://evil.example")], 403),
            (&[("sec-fetch-site", "same-origin")], 200),
            (&[("sec-fetch-site", "none")], 200),
            (&[("sec-fetch-site", "same-site")], 403),
            (&[("sec-fetch-site", "cross-site")], 403),
            (&[("sec-fetch-site", "something-new")], 403),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], 403),
            // Behind a proxy that sends a host of its own, the browser still knows.
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://another.example.org")], 200),
            // The same host but another origin, such as http where https is used.
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7117")], 403),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://tools.example.org:8080")], 200),
        ] {
            for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "ANYTHING"] {
                assert_eq!(of(method, headers), expected, "{method} {headers:?}");
            }
            let upgrade: Vec<_> = [("upgrade", "websocket")].iter().chain(headers).copied().collect();
            assert_eq!(of("GET", &upgrade), expected, "an upgrade with {headers:?}");
            for method in ["GET", "HEAD", "OPTIONS"] {
                assert_eq!(of(method, headers), 200, "{method} {headers:?}");
            }
        }
    }

    #[test]
    fn a_form_must_be_of_a_page_of_this_server() {
        let config = ServerConfig {
            public_url: Some("https://events.example.org/".to_owned()),
            origins: vec!["http://tools.example.org:8080".parse().unwrap()],
            ..ServerConfig::default()
        };
        let guard = guard(config);
        for (headers, own) in [
            (&[][..], false),
            (&[("origin", "http://127.0.0.1:7117")], true),
            (&[("origin", "https://events.example.org")], true),
            (&[("origin", "http://tools.example.org:8080")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7117")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
        ] {
            let mut all = HeaderMap::new();
            all.insert(header::HOST, HeaderValue::from_static("127.0.0.1:7117"));
            for (name, value) in headers {
                all.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(guard.of_own_page(&all).is_ok(), own, "{headers:?}");
        }
    }
}
