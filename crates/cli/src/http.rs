//! The HTTP client of the command line: requests, refusals and retries.

use crate::control::SocketConnector;
use crate::failure::Failure;
use crate::response::{accept, read, refused};
use crate::trust::{self, Address};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::{HeaderValue, Request, Response};
use ureq::middleware::MiddlewareNext;
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body, RequestBuilder, SendBody};

/// Max tries of a write while the server is too busy; its key makes them safe.
const ATTEMPTS: u32 = 8;
/// Max length of a request's address, in bytes, for this program and for servers.
const ADDRESS_BYTES_MAX: usize = 65_534;
/// Min size of a body that is announced before it is sent.
const EXPECT_BYTES: usize = 1 << 20;
/// Max wait for requested work; the server's own deadline is shorter.
const WORK_MAX: Duration = Duration::from_secs(86_400);
/// Max wait for long-running work; the server's own deadline is shorter.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',').remove(b':');
/// Characters that need no encoding in a query value: as many as allowed, so that a long filter stays within a server's
/// limit.
const PLAIN_VALUE: &AsciiSet = &PLAIN
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'/')
    .remove(b';')
    .remove(b'=')
    .remove(b'?')
    .remove(b'@');

/// A running server.
#[derive(Clone)]
pub struct Server {
    base: String,
    agent: Agent,
    /// The tenant that changes apply to, if an operator names one.
    tenant: Option<HeaderValue>,
}

/// Returns the token in the environment.
pub fn token_of_environment() -> Option<String> {
    std::env::var("MERIDIAN_TOKEN").ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn config(token: Option<HeaderValue>, tls: TlsConfig) -> Config {
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_per_read(Some(Duration::from_secs(120)))
        .timeout_per_write(Some(Duration::from_secs(120)))
        .user_agent(concat!("meridian/", env!("CARGO_PKG_VERSION")));
    let Some(mut token) = token else { return config.build() };
    // Keeps it out of debug output of a request, for example in an error.
    token.set_sensitive(true);
    // As middleware, so that no request can forget it.
    let show = move |mut request: Request<SendBody<'_>>, next: MiddlewareNext<'_>| {
        request.headers_mut().insert("authorization", token.clone());
        next.handle(request)
    };
    config.middleware(show).build()
}

/// A parameter of a request, by name.
pub type Parameter = (&'static str, String);

impl Server {
    /// A server at this address; nothing is sent yet.
    pub fn at(address: &Address) -> Result<Server, Failure> {
        Server::with_token(address, token_of_environment().as_deref())
    }

    /// The server of a data folder, over its control socket.
    pub fn on_socket(folder: &Path) -> Server {
        let agent = Agent::with_parts(
            config(None, TlsConfig::default()),
            SocketConnector(folder.to_owned()),
            DefaultResolver::default(),
        );
        Server { base: "http://localhost".to_owned(), agent, tenant: None }
    }

    /// Makes a client of the server at this address, with this token.
    pub fn with_token(Address { url, ca }: &Address, token: Option<&str>) -> Result<Server, Failure> {
        let base = url.trim_end_matches('/').to_owned();
        let authority = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        if authority.is_none_or(str::is_empty) {
            return Err(Failure::Usage(format!(
                "--url: {url:?}: expected an address such as http://127.0.0.1:7117 or https://events.example.org"
            )));
        }
        let header = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}"))).transpose();
        let header = header.map_err(|_| Failure::Usage("MERIDIAN_TOKEN: expected the text of a token".to_owned()))?;
        if header.is_some() {
            trust::warn_of_plain_token(&base);
        }
        // A named file must be valid, whether or not this address needs it.
        let tls = if base.starts_with("https://") || ca.is_some() {
            trust::tls(ca.as_deref())?
        } else {
            TlsConfig::default()
        };
        Ok(Server { base, agent: config(header, tls).into(), tenant: None })
    }

    /// Returns the same server, with changes applied to this tenant; for operators.
    pub fn within(self, tenant: &str) -> Result<Server, Failure> {
        let named = HeaderValue::from_str(tenant);
        let named = named.map_err(|_| Failure::Usage(format!("--tenant: {tenant:?} is not a name of a tenant")))?;
        Ok(Server { tenant: Some(named), ..self })
    }

    /// Prepares a request that changes or removes something.
    fn of_tenant<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.tenant {
            Some(tenant) => request.header("meridian-tenant", tenant.clone()),
            None => request,
        }
    }

    /// Returns the address of a path with parameters.
    fn address(&self, path: &[&str], parameters: &[Parameter]) -> String {
        let mut url = self.base.clone();
        for step in path {
            url.push('/');
            url.extend(utf8_percent_encode(step, PLAIN));
        }
        for (i, (name, value)) in parameters.iter().enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            // A space becomes a plus: its escape would take three bytes.
            let mut words = value.split(' ');
            url.extend(words.next().into_iter().flat_map(|word| utf8_percent_encode(word, PLAIN_VALUE)));
            for word in words {
                url.push('+');
                url.extend(utf8_percent_encode(word, PLAIN_VALUE));
            }
        }
        url
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        if let Some(fault) = trust::fault(error) {
            return Failure::Refused(format!("{}: {fault}", self.base));
        }
        Failure::Refused(format!(
            "cannot reach {}: {error}; is the server running? `meridian serve` starts one",
            self.base
        ))
    }

    /// Sends a GET; the response is unread, and may be a refusal.
    fn get(&self, path: &[&str], parameters: &[Parameter]) -> Result<Response<Body>, Failure> {
        let address = self.address(path, parameters);
        if address.len() > ADDRESS_BYTES_MAX {
            return Err(Failure::Usage(format!(
                "the request's URL would have {} bytes, of at most {ADDRESS_BYTES_MAX}: shorten --filter, or split it over \
                 several commands",
                address.len()
            )));
        }
        self.agent.get(address).call().map_err(|e| self.unreachable(&e))
    }

    /// Gets a JSON document; `None` if there is no such resource (404).
    pub fn find_json(&self, path: &[&str], parameters: &[Parameter]) -> Result<Option<Value>, Failure> {
        let response = self.get(path, parameters)?;
        if response.status() == 404 {
            return Ok(None);
        }
        let body = read(accept(response)?)?;
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|e| Failure::Refused(format!("{} answered with invalid JSON: {e}", self.base)))
    }

    /// Gets a document as a stream of bytes.
    pub fn stream(&self, path: &[&str], parameters: &[Parameter]) -> Result<impl Read + use<>, Failure> {
        Ok(accept(self.get(path, parameters)?)?.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Puts a document; with `only_creates`, only where there is none yet.
    pub fn put(
        &self,
        path: &[&str],
        parameters: &[Parameter],
        (kind, body): (&str, &[u8]),
        only_creates: bool,
    ) -> Result<(), Failure> {
        let mut request = self.agent.put(self.address(path, parameters)).content_type(kind);
        if only_creates {
            request = request.header("if-none-match", "*");
        }
        accept(request.send(body).map_err(|e| self.unreachable(&e))?).map(drop)
    }

    /// Patches a resource with a JSON document. `Some`: the change was refused because it would remove this many
    /// events.
    pub fn patch(&self, path: &[&str], parameters: &[Parameter], document: &Value) -> Result<Option<u64>, Failure> {
        let request = self.of_tenant(self.agent.patch(self.address(path, parameters)));
        let request = request.content_type("application/merge-patch+json");
        let response = request.send(document.to_string()).map_err(|e| self.unreachable(&e))?;
        if response.status().is_success() {
            return Ok(None);
        }
        let (why, problem) = refused(response);
        problem["removes"].as_u64().map(Some).ok_or(why)
    }

    /// Requests work that may take long; returns its result as a JSON document.
    pub fn work(&self, path: &[&str]) -> Result<Value, Failure> {
        let request = self.agent.post(self.address(path, &[])).config().timeout_per_read(Some(WORK_MAX)).build();
        let response = request.send_empty().map_err(|e| self.unreachable(&e))?;
        let body = read(accept(response)?)?;
        serde_json::from_slice(&body)
            .map_err(|e| Failure::Refused(format!("{} answered with invalid JSON: {e}", self.base)))
    }

    /// Sends a JSON document and returns one. An error that the server finds in it is wrong usage.
    pub fn ask(&self, path: &[&str], document: &Value) -> Result<Value, Failure> {
        let request = self.agent.post(self.address(path, &[])).content_type("application/json");
        let response = request.send(document.to_string()).map_err(|e| self.unreachable(&e))?;
        // An invalid search is the user's mistake, with the exit code of wrong usage. Read before the response is
        // consumed.
        let mistaken = response.status() == 400;
        let body = accept(response).and_then(read).map_err(|failure| match failure {
            Failure::Refused(why) if mistaken => Failure::Usage(why),
            failure => failure,
        })?;
        serde_json::from_slice(&body)
            .map_err(|e| Failure::Refused(format!("{} answered with invalid JSON: {e}", self.base)))
    }

    /// Returns a stream of Server-Sent Events, starting after `last`.
    pub fn events(&self, path: &[&str], last: Option<u64>) -> Result<impl Read + use<>, NoEvents> {
        let mut request = self.agent.get(self.address(path, &[])).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = request.call().map_err(|e| NoEvents::NotNow(self.unreachable(&e)))?;
        if response.status().is_success() {
            return Ok(response.into_body().into_with_config().limit(u64::MAX).reader());
        }
        let status = response.status().as_u16();
        let (why, problem) = refused(response);
        Err(match (status, problem["first"].as_u64()) {
            (410, Some(first)) => NoEvents::Gone { first, why },
            // A proxy in front of a restarting server answers 502 or 504.
            (429 | 502..=504, _) => NoEvents::NotNow(why),
            _ => NoEvents::Refused(why),
        })
    }

    /// Deletes a resource; `false` if there is none (404).
    pub fn delete(&self, path: &[&str]) -> Result<bool, Failure> {
        let response =
            self.of_tenant(self.agent.delete(self.address(path, &[]))).call().map_err(|e| self.unreachable(&e))?;
        Ok(response.status() != 404 && accept(response).map(|_| true)?)
    }

    /// Returns the tag of a resource; `None` if it has none.
    pub fn tag(&self, path: &[&str]) -> Result<Option<String>, Failure> {
        let response = accept(self.get(path, &[])?)?;
        Ok(response.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned))
    }

    /// Deletes a resource that has this tag.
    pub fn delete_tagged(&self, path: &[&str], tag: &str) -> Result<(), Failure> {
        let request = self.of_tenant(self.agent.delete(self.address(path, &[]))).header("if-match", tag);
        accept(request.call().map_err(|e| self.unreachable(&e))?).map(drop)
    }

    /// Deletes what matches, which may take long; returns the outcome as a JSON document.
    pub fn delete_matching(&self, path: &[&str], parameters: &[Parameter]) -> Result<Value, Failure> {
        let request = self.of_tenant(self.agent.delete(self.address(path, parameters)));
        let request = request.config().timeout_per_read(Some(WORK_MAX)).build();
        let body = read(accept(request.call().map_err(|e| self.unreachable(&e))?)?)?;
        serde_json::from_slice(&body)
            .map_err(|e| Failure::Refused(format!("{} answered with invalid JSON: {e}", self.base)))
    }

    /// Posts a JSON document for work that may take long. Returns the answer as a stream of bytes.
    pub fn post_stream(&self, path: &[&str], document: &Value) -> Result<impl Read + use<>, Failure> {
        let request = self.agent.post(self.address(path, &[])).content_type("application/json");
        let request = request.config().timeout_per_read(Some(WORK_MAX)).build();
        let response = request.send(document.to_string()).map_err(|e| self.unreachable(&e))?;
        Ok(accept(response)?.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Posts a batch under a key, and retries while the server is too busy.
    pub fn post(&self, path: &[&str], kind: &str, key: &str, body: &[u8]) -> Result<PostOutcome, Failure> {
        let url = self.address(path, &[]);
        for attempt in 1.. {
            let mut request = self.agent.post(&url).content_type(kind).header("Idempotency-Key", key);
            // With this header, a server that is too busy or refuses responds before the body is sent.
            if body.len() >= EXPECT_BYTES {
                request = request.header("Expect", "100-continue");
            }
            let response = match request.send(body) {
                Ok(response) => response,
                // The certificate will be the same next time.
                Err(error) if trust::fault(&error).is_some() => return Err(self.unreachable(&error)),
                // The server may have accepted it; the key makes a retry safe.
                Err(_) if attempt < ATTEMPTS => {
                    std::thread::sleep(Duration::from_millis(200) * attempt);
                    continue;
                }
                Err(error) => return Err(self.unreachable(&error)),
            };
            let after = response.headers().get("retry-after").and_then(|v| v.to_str().ok()?.parse().ok());
            // Without `Retry-After` waiting does not help, as with a quota of stored bytes.
            let busy = response.status() == 503 || response.status() == 429 && after.is_some();
            if busy && attempt < ATTEMPTS {
                // Bounded: a proxy may say an hour, and no user waits that long at a terminal.
                std::thread::sleep(Duration::from_secs(after.unwrap_or(1u64).clamp(1, 30)));
                continue;
            }
            return self.posted(response);
        }
        Err(Failure::Refused(format!("{} stayed too busy", self.base)))
    }

    fn posted(&self, response: Response<Body>) -> Result<PostOutcome, Failure> {
        let status = response.status();
        if status.is_success() {
            let answer = serde_json::from_slice(&read(response)?);
            return answer
                .map(PostOutcome::Stored)
                .map_err(|e| Failure::Refused(format!("{} answered with invalid JSON: {e}", self.base)));
        }
        let (why, problem) = refused(response);
        Err(match (status.as_u16(), problem["type"].as_str().unwrap_or_default()) {
            (413, _) => {
                let limit = problem["limit_bytes"].as_u64().map(|bytes| bytes as usize);
                return Ok(PostOutcome::TooLarge { limit, why });
            }
            // The key was used for other events, whose number the server reports.
            (422, kind) if kind.ends_with(":key-reused") => {
                return Ok(PostOutcome::OtherBody { events: problem["events"].as_u64(), why });
            }
            // The events are invalid, as when a folder refuses them.
            (400 | 409 | 422, _) => match why {
                Failure::Refused(why) => Failure::Bad(why),
                why => why,
            },
            _ => why,
        })
    }
}

/// The outcome of a posted batch.
#[derive(Debug)]
pub enum PostOutcome {
    /// It is stored; the server's receipt.
    Stored(Value),
    /// It exceeds the server's limit, in bytes of the body, if known.
    TooLarge { limit: Option<usize>, why: Failure },
    /// Another batch was written under its key, with this many events, if known.
    OtherBody { events: Option<u64>, why: Failure },
}

/// The reason why there is no stream of events.
#[derive(Debug)]
pub enum NoEvents {
    /// The requested packet is no longer kept: this is the first available number.
    Gone { first: u64, why: Failure },
    /// It may be available later: the server cannot be reached, or is too busy.
    NotNow(Failure),
    /// The server refused.
    Refused(Failure),
}

#[cfg(test)]
mod tests;
