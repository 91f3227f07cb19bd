//! One call to a remote source: bounded in time and bytes, to public addresses only.

mod guard;
#[cfg(test)]
mod tests;

pub use guard::may_call;

use bytes::{Bytes, BytesMut};
use guard::PublicOnly;
use meridian_admission::{ByteBudget, ByteShare};
use meridian_observe::{self as observe, Kind, Span, TRACEPARENT, TRACESTATE, Trace};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url};
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use tokio::time::{Duration, Instant};

/// Max redirects.
const REDIRECTS_MAX: usize = 5;
/// Many sources require a user agent.
const USER_AGENT: &str = concat!("Meridian/", env!("CARGO_PKG_VERSION"), " (search server)");
/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// A complete response.
#[derive(Debug, Clone)]
pub struct RawResponse {
    /// Its media type, in lower case.
    pub content_type: String,
    /// Its body.
    pub bytes: Bytes,
    /// Its reservation in the byte budget of responses, until it is mapped.
    pub(crate) held: Option<Arc<ByteShare>>,
}

impl RawResponse {
    /// Creates a response outside the byte budget.
    pub fn apart(content_type: String, bytes: Bytes) -> RawResponse {
        RawResponse { content_type, bytes, held: None }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Reason, as a sentence.
    pub why: String,
    /// Whether the source is at fault. Errors of the request do not open its circuit breaker.
    pub source_is_broken: bool,
    /// Time after which to retry, if at all.
    pub again: Option<Duration>,
    /// Whether the source reports too many requests.
    pub refused: bool,
    /// Whether the call timed out.
    pub late: bool,
}

/// The HTTP clients shared by all declared providers, with their connections and the byte budget of responses.
#[derive(Debug)]
pub struct Http {
    pub(crate) budget: ByteBudget,
    /// By whether private addresses may be called, and by [`Redirects`].
    clients: [[OnceLock<Result<Client, String>>; 2]; 2],
    passing: bool,
}

/// The redirects that a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// To any address that may be called: the request holds nothing but its address.
    Anywhere,
    /// Within the scheme, host and port, or from HTTP to HTTPS of the same host. The next address gets the headers and
    /// the body of the request, keys among them.
    SameAddress,
}

impl Http {
    /// Clients whose responses hold at most `answer_bytes_total` bytes together.
    pub fn new(answer_bytes_total: usize) -> Http {
        Http { budget: ByteBudget::new(answer_bytes_total), clients: Default::default(), passing: false }
    }

    /// Clients that keep no idle connections, for the open-ended set of hosts that results link to.
    pub(crate) fn passing(answer_bytes_total: usize) -> Http {
        Http { passing: true, ..Http::new(answer_bytes_total) }
    }

    /// Returns a client. The one that may call private addresses is only for declarations that allow it.
    pub(crate) fn client(&self, allow_private: bool, redirects: Redirects) -> Result<&Client, String> {
        let cell = &self.clients[usize::from(allow_private)][redirects as usize];
        // Created at first use: most servers need only one or two of them.
        cell.get_or_init(|| build(allow_private, redirects, self.passing)).as_ref().map_err(Clone::clone)
    }
}

fn build(allow_private: bool, redirects: Redirects, passing: bool) -> Result<Client, String> {
    let builder = builder(allow_private, redirects);
    let builder = if passing { builder.pool_max_idle_per_host(0) } else { builder };
    builder.build().map_err(|e| format!("no HTTP client: {}", chain(&e)))
}

/// Returns a client for webhooks, which follows no redirects.
pub fn client_of_webhooks(allow_private: bool) -> Result<Client, String> {
    let client = builder(allow_private, Redirects::SameAddress).redirect(Policy::none()).build();
    client.map_err(|e| format!("no HTTP client: {}", chain(&e)))
}

/// Fetches a document from an operator-configured address, which may be private. Follows no redirects.
///
/// # Errors
///
/// The reason of the failure, as a sentence.
pub fn document(url: &str, time: Duration, bytes_max: usize) -> Fetching<'_, String> {
    Box::pin(async move {
        let request = http::Request::get(url).body(Vec::new()).map_err(|e| e.to_string())?;
        exchange(request, time, bytes_max).await.map_err(|failure| failure.why)
    })
}

/// A document on its way. Boxed, so that the client is compiled in this crate (decision 082).
pub type Fetching<'a, E> = Pin<Box<dyn Future<Output = Result<Bytes, E>> + Send + 'a>>;

/// Sends a request to an operator-configured address, as [`document`] does.
///
/// # Errors
///
/// The reason why there is no successful response.
pub fn exchange(request: http::Request<Vec<u8>>, time: Duration, bytes_max: usize) -> Fetching<'static, Failure> {
    Box::pin(async move {
        let client = client_of_webhooks(true).map_err(broken)?;
        let request = request.try_into().map_err(|e: reqwest::Error| broken(chain(&e)))?;
        let request = RequestBuilder::from_parts(client, request);
        call(request, time, bytes_max, &ByteBudget::new(bytes_max)).await.map(|raw| raw.bytes)
    })
}

/// Returns true if a redirect stays at its address, or changes to HTTPS of the same host.
fn is_same_address(from: &Url, to: &Url) -> bool {
    let upgrades = from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none();
    from.origin() == to.origin() || (upgrades && from.host() == to.host())
}

fn builder(allow_private: bool, redirects: Redirects) -> ClientBuilder {
    let redirects = Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS_MAX {
            return attempt.error(format!("it redirects more than {REDIRECTS_MAX} times"));
        }
        let stays = attempt.previous().last().is_some_and(|from| is_same_address(from, attempt.url()));
        if redirects == Redirects::SameAddress && !stays {
            let to = attempt.url().host_str().unwrap_or_default().to_owned();
            return attempt.error(format!(
                "it redirects to {to}, which would get what its declaration sends: declare the address that it redirects to"
            ));
        }
        // Each redirect is checked again, since a public address may redirect to a private one.
        match may_call(attempt.url()) {
            Err(why) if !allow_private => {
                attempt.error(format!("it redirects to an address that is not called: {why}"))
            }
            _ => attempt.follow(),
        }
    });
    // The client uses the process's cryptography provider. A second call changes nothing, so its error is ignored.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // No proxy: it would resolve names itself, past the check for private addresses.
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirects)
        // An address may hold a key and the words of a question, which are not for the next host.
        .referer(false)
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        // `object_store` enables HTTP/2 in `reqwest` for all clients. Limits here assume one request per connection.
        .http1_only()
        .no_proxy();
    if allow_private { builder } else { builder.dns_resolver(Arc::new(PublicOnly)) }
}

/// Returns a request of the current work with its trace context, and the span of the call.
pub fn traced(request: RequestBuilder, name: &str) -> (RequestBuilder, Span) {
    let Some(trace) = observe::current().trace else { return (request, Span::none()) };
    let span = trace.child(name.to_owned(), Kind::Client);
    let request = pass_on(request, &span.current().trace.unwrap_or(trace));
    (request, span)
}

/// Returns the request with the headers of W3C Trace Context.
pub fn pass_on(request: RequestBuilder, trace: &Trace) -> RequestBuilder {
    let parent = trace.to_pass_on();
    let request = request.header(TRACEPARENT, parent.traceparent());
    match parent.state {
        Some(state) => request.header(TRACESTATE, &*state),
        None => request,
    }
}

/// Makes a call and reads its response, within the byte budget.
pub async fn call(
    request: RequestBuilder,
    time: Duration,
    bytes_max: usize,
    budget: &ByteBudget,
) -> Result<RawResponse, Failure> {
    let until = Instant::now() + time;
    match tokio::time::timeout_at(until, answer(request, until, bytes_max, budget)).await {
        Ok(result) => result,
        Err(_) => Err(Failure { late: true, ..broken(format!("no complete response within {} ms", time.as_millis())) }),
    }
}

async fn answer(
    request: RequestBuilder,
    until: Instant,
    bytes_max: usize,
    budget: &ByteBudget,
) -> Result<RawResponse, Failure> {
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        let after = retry_after(&response);
        let why = format!("it answered {status}");
        return Err(match status.as_u16() {
            429 => Failure {
                refused: true,
                again: after.or(Some(Duration::from_secs(1))),
                ..broken(format!("{why}: too many requests"))
            },
            401 | 403 => Failure {
                source_is_broken: false,
                again: None,
                ..broken(format!("{why}: it does not take our credentials"))
            },
            408 | 500..=599 => Failure { again: after.or(Some(Duration::from_millis(200))), ..broken(why) },
            // Other statuses concern this one request, and must not open the breaker for all others.
            _ => Failure { source_is_broken: false, again: None, ..broken(why) },
        });
    }
    let too_long = || Failure { again: None, ..broken(format!("its answer is longer than {bytes_max} bytes")) };
    let length = response.content_length().unwrap_or_default();
    // Refused by its header, before any memory is reserved or data transferred.
    if length > bytes_max as u64 {
        return Err(too_long());
    }
    // Not the source's fault, and worth a retry, since budget is released continuously.
    let no_room = |bytes: usize| {
        let (held, limit) = (budget.held(), budget.limit());
        let why = format!(
            "no space for {bytes} bytes of its response: responses in progress hold {held} of the {limit} bytes of search.answer_bytes_total"
        );
        Failure { source_is_broken: false, refused: true, ..broken(why) }
    };
    // A response of known length waits for its whole budget while it holds none. A response of unknown length is
    // refused without budget: two that wait while holding a share would deadlock.
    let known = length as usize;
    let mut share = budget.take(known, until).await.ok_or_else(|| no_room(known))?;
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let mut bytes = BytesMut::with_capacity(length as usize);
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        // The header is only the source's claim, so the received bytes are counted too.
        if bytes.len() + chunk.len() > bytes_max {
            return Err(too_long());
        }
        let grown = bytes.len() + chunk.len();
        if !share.try_grow(grown) {
            return Err(no_room(grown));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(RawResponse { content_type, bytes: bytes.freeze(), held: Some(Arc::new(share)) })
}

fn broken(why: String) -> Failure {
    Failure { why, source_is_broken: true, again: Some(Duration::from_millis(100)), refused: false, late: false }
}

fn unreachable(error: reqwest::Error) -> Failure {
    let again = (!error.is_redirect() && !error.is_builder()).then_some(Duration::from_millis(100));
    // The URL may contain a credential.
    let why = chain(&error.without_url());
    Failure { again, ..broken(why) }
}

/// Formats an error with its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        out.push_str(": ");
        out.push_str(&error.to_string());
        cause = error.source();
    }
    out
}

/// Parsed in seconds. Dates are ignored, since clocks may differ.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
