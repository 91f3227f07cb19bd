//! Relays requests to another gateway of a cluster. Requests about a saved search go to the gateway that runs it, and
//! those about a search to the gateway where it was started. A page of all saved searches is assembled from the parts
//! of all gateways (`parts.rs`).
//!
//! A relayed request keeps the credential of its caller, which the other gateway checks like that of any request. It
//! also carries [`HEADER`]: a key of the other process, which gateways read from the bucket, and what this one knows
//! about the client. A request with that key is never relayed again, so there are no loops. The tenant's quotas are
//! charged here, and not again there.

mod parts;

pub use parts::{here, of_others, say_slots};

use crate::cluster::gateways::{Gateway, RelayOrigin, SlotRunner};
use crate::protocol::connection_control::AfterSwitch;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::{Dispatch, void};
use crate::request::route::{Access, Resource, Route};
use crate::request::scope::Scope;
use crate::response::charged::ChargedConnection;
use crate::response::passed;
use crate::response::whole::Refusal;
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use matchit::Params;
use meridian_model::policy::access::Action;
use meridian_saved::Slot;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::timeout_at;

/// The header of a relayed request.
pub static HEADER: HeaderName = HeaderName::from_static("meridian-relay");

/// Bytes of an upgraded connection buffered in each direction.
const SOCKET_BYTES: usize = 16 << 10;

/// Headers not passed on: they belong to one connection (RFC 9110, 7.6.1), are generated again by the client, or repeat
/// the content of [`HEADER`].
static OF_HOP: [&str; 17] = [
    "connection",
    "content-length",
    "date",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "meridian-relay",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Which other gateway responds to a request.
pub enum Responder {
    /// The gateway that runs the saved searches of a slot; without a slot, any that runs some, for a new saved search.
    Saved(Option<Slot>, SlotRunner),
    /// The gateway whose number is the first half of a search's id.
    Search(u64),
}

/// Returns the other gateway that responds to a request; `None` if this one does.
pub fn elsewhere(state: &AppState, route: &Route, segments: &Params<'_, '_>, is_relayed: bool) -> Option<Responder> {
    let gateways = state.config.gateways.as_ref()?;
    match route.access {
        Access::Needs(action, Resource::SavedSearch) => {
            let (slot, runner) = match segments.get("id") {
                // No saved search has an id of another form, so this gateway reports that.
                Some(id) => Slot::of_id(id).map(|slot| (Some(slot), gateways.runner_of(slot)))?,
                None if action == Action::Read => return None,
                None => (None, any(&gateways.runners())),
            };
            match runner {
                SlotRunner::Here => None,
                // The runner has changed while the request was in transit.
                _ if is_relayed => Some(Responder::Saved(slot, SlotRunner::Nobody)),
                runner => Some(Responder::Saved(slot, runner)),
            }
        }
        Access::Needs(_, Resource::Search) if !is_relayed => {
            // The first half of an id.
            let number = u64::from_str_radix(segments.get("id").filter(|id| id.len() == 32)?.get(..16)?, 16).ok()?;
            (number != gateways.number()).then_some(Responder::Search(number))
        }
        _ => None,
    }
}

/// Returns a gateway that runs some saved searches, preferably this one.
fn any(runners: &[SlotRunner]) -> SlotRunner {
    let some = |wanted: fn(&SlotRunner) -> bool| runners.iter().copied().find(wanted);
    some(|runner| *runner == SlotRunner::Here)
        .or_else(|| some(|runner| *runner != SlotRunner::Nobody))
        .unwrap_or_default()
}

/// Builds this gateway's statement about a request.
fn relayed(context: &Context) -> RelayOrigin {
    RelayOrigin {
        client: context.client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        base: context.base.as_str().into(),
    }
}

/// Relays a request, and returns its response.
pub async fn answer(state: AppState, request: Request<Body>, of: Responder) -> Response {
    match pass_on(&state, request, of).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn pass_on(state: &AppState, request: Request<Body>, of: Responder) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let Some(gateways) = state.config.gateways.clone() else { return Err(Problem::internal("no other gateway")) };
    let scope = Scope::from_request_parts(&mut parts, state).await?;
    let caller = parts.extensions.get::<Dispatch>().map(|dispatch| dispatch.caller.clone());
    let switch = parts.extensions.remove::<OnUpgrade>();
    let (method, headers) = (parts.method.clone(), parts.headers.clone());
    let context = Context::from_request_parts(&mut parts, state).await?;
    // The other gateway has its own permits.
    context.lease.give_back();
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let (is_saved, runner) = match of {
        Responder::Saved(slot, runner) => (true, slot.map(|slot| (slot, runner))),
        Responder::Search(_) => (false, None),
    };
    let gateway = match of {
        Responder::Saved(_, SlotRunner::At(number)) => gateways.find(number).await.ok_or_else(nobody)?,
        Responder::Saved(..) => return Err(nobody()),
        Responder::Search(number) => gateways.find(number).await.ok_or_else(|| gone(state))?,
    };
    let (received, refusal) = match method {
        Method::GET | Method::HEAD => (None, Refusal::Allowed),
        // A refusal would deny what the other gateway has done.
        _ => (Some(body::receive(&scope, &headers, body).await?), Refusal::Excluded),
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let relayed = relayed(&context);
    let mut request = gateways
        .client()
        .request(method, format!("{}{path}", gateway.url))
        .headers(passed_on(&headers, switch.is_some(), &gateway)?)
        .header(&HEADER, relayed.written(&gateway.key));
    if let Some(received) = &received {
        request = request.body(received.bytes.clone());
    }
    let silent = |why: &str| {
        tracing::debug!(why, url = &*gateway.url, "another gateway does not answer");
        let detail = match is_saved {
            true => "the gateway that runs the saved search does not answer: look whether it was done, and try again",
            false => "the gateway that runs this search does not answer: if it is gone, so is the search",
        };
        Problem::new(Kind::Overloaded, detail)
    };
    let response = match timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(silent(&error.to_string())),
        Err(_) => return Err(silent("the time is over")),
    };
    let (status, mut headers) = (response.status(), response.headers().clone());
    OF_HOP.iter().filter(|name| **name != "content-length").for_each(|name| drop(headers.remove(*name)));
    let (closed, mut answer) = (gateways.closed(runner), Response::new(Body::empty()));
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let (Some(switch), Some(caller)) = (switch, caller) else {
            return Err(Problem::internal("another gateway switched protocols unasked"));
        };
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        let state = state.clone();
        answer.extensions_mut().insert(AfterSwitch::new(async move {
            let (Ok(client), Ok(mut other)) = (switch.await, response.upgrade().await) else { return };
            let charged = Some((caller.clone(), state.clone()));
            let mut client = ChargedConnection::new(TokioIo::new(client), charged);
            // Whichever side ends first drops both connections.
            tokio::select! {
                _ = copy_bidirectional_with_sizes(&mut client, &mut other, SOCKET_BYTES, SOCKET_BYTES) => {}
                () = void(caller, state) => {}
                () = closed => {}
            }
        }));
    } else {
        let body = axum::http::Response::<reqwest::Body>::from(response).into_body();
        let body = RelayedBody { body, closed: Box::pin(closed) };
        let body = passed::charged(body, refusal, &scope.answers(), state, answer.extensions_mut())?;
        *answer.body_mut() = body;
    }
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

/// Returns the request headers as sent to the other gateway.
fn passed_on(headers: &HeaderMap, upgrades: bool, gateway: &Gateway) -> Result<HeaderMap> {
    let mut passed = headers.clone();
    OF_HOP.iter().for_each(|name| drop(passed.remove(*name)));
    if upgrades && headers.contains_key(header::UPGRADE) {
        passed.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        passed.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    // The page was checked here, against the names of this gateway. The other gateway has other names.
    if passed.remove("sec-fetch-site").is_some() || passed.contains_key(header::ORIGIN) {
        let origin = HeaderValue::from_str(&gateway.url).map_err(Problem::internal)?;
        passed.insert(header::ORIGIN, origin);
    }
    Ok(passed)
}

fn nobody() -> Problem {
    let detail = "no gateway runs these saved searches now, or it is not known which: try again";
    Problem::new(Kind::Overloaded, detail)
}

fn gone(state: &AppState) -> Problem {
    let keep = state.config.search.keep.as_secs();
    Problem::not_found(format!(
        "there is no such search: it never existed, ended more than {keep} s ago, or its gateway is gone"
    ))
}

/// A response body of another gateway. It ends when this gateway stops, or when the saved search moves to another one.
struct RelayedBody {
    body: reqwest::Body,
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for RelayedBody {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, reqwest::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match frame.is_pending() && self.closed.as_mut().poll(cx).is_ready() {
            true => Poll::Ready(None),
            false => frame,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
