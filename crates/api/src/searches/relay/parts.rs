//! The parts of a response about all saved searches: each gateway contributes its own, and the gateway that received
//! the request combines them.

use super::{HEADER, nobody, passed_on, relayed};
use crate::cluster::gateways::SlotRunner;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body::weight;
use crate::request::context::Context;
use crate::request::overload::no_room;
use crate::request::scope::Scope;
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use meridian_admission::ByteShare;
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

/// Sends the same request with GET to the other gateways that run saved searches, and returns their responses as JSON,
/// each with its share of the memory for responses. Returns nothing for a relayed request. `own` are the slots covered
/// by this gateway.
///
/// # Errors
/// 503 if a gateway does not respond, if there is no memory for its response, or if the responses do not cover every
/// slot: one has no runner, or is moving.
pub async fn of_others(state: &Scope, context: &Context, own: &BTreeSet<Slot>) -> Result<Vec<(Value, ByteShare)>> {
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
        let held = state.answers().empty();
        answers.spawn(timeout_at(deadline, async move {
            let answer = request.send().await?.error_for_status()?;
            let slots = slots_in(answer.headers());
            Ok::<_, reqwest::Error>((slots, received(answer, held).await?))
        }));
    }
    let silent = |why: String| {
        tracing::debug!(why, "a gateway does not say which saved searches it runs");
        let detail = "a gateway that runs saved searches does not answer: try again";
        Problem::new(Kind::Overloaded, detail)
    };
    let (mut pages, mut slots) = (Vec::new(), own.clone());
    while let Some(answer) = answers.join_next().await {
        let answer = answer.map_err(Problem::internal)?.map_err(|_| silent("the time is over".to_owned()))?;
        let (of, part) = answer.map_err(|error| silent(error.to_string()))?;
        slots.extend(of);
        // The permit was given back, so nothing else bounds how many requests hold the pages of all gateways.
        let (body, mut held) = part.ok_or_else(|| no_room(state))?;
        let page: Value = serde_json::from_slice(&body).map_err(|error| silent(error.to_string()))?;
        let (read, kept) = (held.bytes(), weight(&page));
        if !held.try_grow(read + kept) {
            return Err(no_room(state));
        }
        drop(body);
        held.shrink(read);
        pages.push((page, held));
    }
    // A slot that moved meanwhile may be missing from every response.
    if slots.len() < usize::from(SLOTS) { Err(nobody()) } else { Ok(pages) }
}

/// Reads the body of a response. It takes its memory as it arrives; `None` if there is too little.
async fn received(mut answer: reqwest::Response, mut held: ByteShare) -> reqwest::Result<Option<(Vec<u8>, ByteShare)>> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        // A vector that grows may have room for twice its bytes.
        if !held.try_grow(2 * (body.len() + piece.len())) {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some((body, held)))
}

/// Parses the slots covered by a response.
fn slots_in(headers: &HeaderMap) -> BTreeSet<Slot> {
    let numbers = headers.get(&SLOTS_OF).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let said = |slot: &Slot| numbers.split(',').any(|number| number.parse() == Ok(slot.number()));
    Slot::all().filter(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_admission::ByteBudget;

    #[tokio::test]
    async fn a_part_of_another_gateway_takes_memory_or_is_refused() {
        let answer = || reqwest::Response::from(axum::http::Response::new("x".repeat(1_000)));
        let budget = ByteBudget::new(4_000);
        let (body, held) = received(answer(), budget.empty()).await.unwrap().unwrap();
        assert_eq!(body.len(), 1_000);
        assert!(budget.held() >= 1_000);
        drop(held);
        assert_eq!(budget.held(), 0);
        assert!(received(answer(), ByteBudget::new(500).empty()).await.unwrap().is_none());
    }
}
