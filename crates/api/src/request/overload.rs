//! Refusals by an overloaded server.

use crate::protocol::problem::{Kind, Problem};
use crate::state::AppState;
use axum::http::{HeaderName, HeaderValue};
use meridian_admission::gate::{Refusal, Refused};
use std::time::Duration;

/// Returns the problem for a request that the gate refused.
pub fn refused(state: &AppState, refused: Refused, slots: usize) -> Problem {
    let why = match refused.refusal {
        Refusal::QueueFull => "too many wait",
        Refusal::Waited => "no slot came free in time",
        Refusal::Deadline => "no slot came free before the deadline",
    };
    let detail = format!("the server runs {slots} requests, its limit, and {why}: try again");
    with_retry(state, detail, slots, refused.retry_after)
}

/// Returns the refusal of an overloaded server, with the headers of draft-ietf-httpapi-ratelimit-headers.
pub fn overloaded(state: &AppState, detail: String, quota: usize) -> Problem {
    with_retry(state, detail, quota, Duration::from_secs(1))
}

fn with_retry(state: &AppState, detail: String, quota: usize, wait: Duration) -> Problem {
    let retry = spread(state, wait);
    let policy = format!("\"running\";q={quota};qu=\"concurrent-requests\"");
    let room = format!("\"running\";r=0;t={}", retry.as_secs());
    with_limit(Problem::new(Kind::Overloaded, detail).retry_after(retry), policy, room)
}

/// The refusal while there is no memory for a response.
pub fn no_room(state: &AppState) -> Problem {
    let why = "the responses that clients have not taken yet use all the memory set aside for them: try again, or ask for less at once";
    overloaded(state, why.to_owned(), state.config.requests_running_max)
}

/// The refusal while all slots for work on passwords are taken.
pub fn passwords(state: &AppState, slots: usize) -> Problem {
    overloaded(state, "too many passwords are being checked: try again".to_owned(), slots)
}

/// Adds the headers `RateLimit-Policy` and `RateLimit`.
pub fn with_limit(mut problem: Problem, policy: String, room: String) -> Problem {
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", room)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            problem = problem.header(HeaderName::from_static(name), value);
        }
    }
    problem
}

/// Returns a retry time in whole seconds, extended by a random part of up to a quarter. Otherwise clients that were
/// refused together would retry together.
pub fn spread(state: &AppState, wait: Duration) -> Duration {
    let seconds = (wait.as_secs_f64().ceil() as u64).max(1);
    let more = state.random.next_u64() % (seconds / 4 + 2);
    Duration::from_secs(seconds.saturating_add(more))
}
