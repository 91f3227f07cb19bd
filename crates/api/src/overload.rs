//! Refusals of an overloaded server.

use crate::problem::{Kind, Problem};
use axum::http::{HeaderName, HeaderValue};
use meridian_admission::gate::Refusal;
use std::time::Duration;

/// The problem of a request that the gate refused.
pub fn refused(refusal: Refusal, slots: usize) -> Problem {
    let why = match refusal {
        Refusal::QueueFull => "too many wait",
        Refusal::Waited => "no slot came free in time",
        Refusal::Deadline => "no slot came free before the deadline",
    };
    overloaded(format!("the server runs {slots} requests, its limit, and {why}: try again"), slots)
}

/// The refusal of an overloaded server, with the headers of draft-ietf-httpapi-ratelimit-headers.
pub fn overloaded(detail: String, quota: usize) -> Problem {
    const RETRY: Duration = Duration::from_secs(1);
    let policy = format!("\"running\";q={quota};qu=\"concurrent-requests\"");
    let mut problem = Problem::new(Kind::Overloaded, detail)
        .retry_after(RETRY)
        .header(HeaderName::from_static("ratelimit"), HeaderValue::from_static("\"running\";r=0;t=1"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        problem = problem.header(HeaderName::from_static("ratelimit-policy"), policy);
    }
    problem
}
