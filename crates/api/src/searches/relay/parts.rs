//! The parts of a response about all saved searches: each gateway contributes its own, and the gateway that received
//! the request combines them.

use super::{HEADER, nobody, passed_on, relayed};
use crate::cluster::gateways::SlotRunner;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use meridian_saved::{SLOTS, Slot};
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

/// Headers by which a client requests a part of a response, a conditional one, or its compressed form.
static OF_WHOLE: [&str; 6] =
    ["accept-encoding", "if-match", "if-modified-since", "if-none-match", "if-unmodified-since", "range"];

/// Header of a response to another gateway that lists the slots that it covers.
static SLOTS_OF: HeaderName = HeaderName::from_static("meridian-slots");

/// Returns the slots that this gateway runs now.
pub fn here(state: &AppState) -> BTreeSet<Slot> {
    let runners = state.config.gateways.as_ref().map(|gateways| gateways.runners()).unwrap_or_default();
    Slot::all().zip(runners).filter(|(_, runner)| *runner == SlotRunner::Here).map(|(slot, _)| slot).collect()
}

/// Lists the covered slots in a response to another gateway.
pub fn say_slots(context: &Context, slots: &BTreeSet<Slot>, response: &mut Response) {
    let numbers: Vec<String> = slots.iter().map(|slot| slot.number().to_string()).collect();
    if let Ok(numbers) = HeaderValue::from_str(&numbers.join(","))
        && context.headers.contains_key(&HEADER)
    {
        response.headers_mut().insert(&SLOTS_OF, numbers);
    }
}

/// Sends the same request with GET to the other gateways that run saved searches, and returns their responses as JSON.
/// Returns nothing for a relayed request. `own` are the slots covered by this gateway.
///
/// # Errors
/// 503 if a gateway does not respond, or if the responses do not cover every slot: one has no runner, or is moving.
pub async fn of_others(state: &AppState, context: &Context, own: &BTreeSet<Slot>) -> Result<Vec<Value>> {
    let Some(gateways) = state.config.gateways.clone().filter(|_| !context.headers.contains_key(&HEADER)) else {
        return Ok(Vec::new());
    };
    let at = gateways
        .runners()
        .into_iter()
        .filter_map(|runner| if let SlotRunner::At(number) = runner { Some(number) } else { None });
    let others: BTreeSet<u64> = at.collect();
    if !others.is_empty() {
        context.lease.give_back();
    }
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let query = context.query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
    let relayed = relayed(context);
    let mut answers = JoinSet::new();
    for number in others {
        let gateway = gateways.find(number).await.ok_or_else(nobody)?;
        let mut headers = passed_on(&context.headers, false, &gateway)?;
        OF_WHOLE.iter().for_each(|name| drop(headers.remove(*name)));
        let request = gateways.client().get(format!("{}{}{query}", gateway.url, context.path)).headers(headers);
        let request = request.header(&HEADER, relayed.written(&gateway.key));
        answers.spawn(timeout_at(deadline, async move {
            let answer = request.send().await?.error_for_status()?;
            let slots = slots_in(answer.headers());
            Ok::<_, reqwest::Error>((slots, answer.bytes().await?))
        }));
    }
    let silent = |why: String| {
        tracing::debug!(why, "a gateway does not say which saved searches it runs");
        let detail = "a gateway that runs saved searches does not answer: try again";
        Problem::new(Kind::Overloaded, detail)
    };
    let (mut bodies, mut slots) = (Vec::new(), own.clone());
    while let Some(answer) = answers.join_next().await {
        let answer = answer.map_err(Problem::internal)?.map_err(|_| silent("the time is over".to_owned()))?;
        let (of, body) = answer.map_err(|error| silent(error.to_string()))?;
        slots.extend(of);
        bodies.push(serde_json::from_slice(&body).map_err(|error| silent(error.to_string()))?);
    }
    // A slot that moved meanwhile may be missing from every response.
    if slots.len() < usize::from(SLOTS) { Err(nobody()) } else { Ok(bodies) }
}

/// Parses the slots covered by a response.
fn slots_in(headers: &HeaderMap) -> BTreeSet<Slot> {
    let numbers = headers.get(&SLOTS_OF).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let said = |slot: &Slot| numbers.split(',').any(|number| number.parse() == Ok(slot.number()));
    Slot::all().filter(said).collect()
}
