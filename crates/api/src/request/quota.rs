//! Quotas of tenants: which of them apply to a route, and the refusal of a request that exceeds one.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::overload;
use crate::request::route::{Access, Action, Resource, Route};
use crate::state::AppState;
use crate::state::event_streams::StreamSlot;
use axum::http::Method;
use meridian_admission::identity::Identity;
use meridian_admission::{Ledger, RequestPermit};
use meridian_backend::Collection;
use meridian_model::policy::quota::{Exceeded, Quota};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// Parameters that reduce how much a query reads.
pub const NARROWER: &str = "bbox=, datetime= or filter=";

/// Bytes of a response that are covered by the fixed charge of a request.
pub const SMALL_BYTES: u64 = 16 << 10;
/// Processor time per byte sent in nanoseconds, including the kernel's work; measured over loopback (decision 031).
const NANOS_PER_BYTE: u64 = 1;

/// How often the stored bytes of tenants are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// How a route uses its caller's tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Nothing: administration must work even if a tenant has used up its quotas.
    Nothing,
    /// It reads and responds.
    Reading,
    /// It adds events.
    Adding,
}

/// Returns the use of a route. Deleting does not count as adding: a tenant that has used up its space must be able to
/// make room.
fn use_of(route: &Route, is_operator: bool) -> Use {
    match route.access {
        // A tenant's changes have a pace of their own (`access::audit::admit`), so that an admin can always revoke the
        // token of a flood. Its lists have none.
        Access::Needs(Action::Read, _) if route.is_administration() && !is_operator => Use::Reading,
        _ if route.is_administration() => Use::Nothing,
        Access::Needs(Action::Write, Resource::Collection | Resource::Places) if route.method != Method::DELETE => {
            Use::Adding
        }
        _ => Use::Reading,
    }
}

/// Admits a request under the quotas of its caller's tenant. Returns its place among the concurrent requests, to be
/// held until the response is sent.
///
/// # Errors
/// 429 with the quota that is used up.
pub fn enter<'a>(
    state: &AppState,
    route: &Route,
    caller: &'a Identity,
    at: Instant,
) -> Result<Option<RequestPermit<'a>>> {
    let ledger = &caller.ledger;
    let exceeded = |over| exceeded(state, over);
    let rates: &[Quota] = match use_of(route, caller.is_operator()) {
        Use::Nothing => return Ok(None),
        Use::Reading => &[Quota::ScannedBytesPerSecond, Quota::ResultBytesPerSecond],
        Use::Adding => {
            // Before the body is read. It is checked again once the body has arrived.
            ledger.within(Quota::StoredBytes, || ledger.stored()).map_err(exceeded)?;
            &[Quota::EventsPerSecond]
        }
    };
    ledger.enter(rates, caller.share(), at).map_err(exceeded)
}

/// Takes a slot for a stream of events or packets.
///
/// # Errors
/// 503 if the server has none for this caller, 429 if the caller's tenant may have no more.
pub fn stream_slot(state: &AppState, caller: &Identity) -> Result<StreamSlot> {
    // The tenant's own quota first: its 429 names a cause that the client can change.
    let held = caller.ledger.hold(Quota::Streams, caller.share()).map_err(|over| exceeded(state, over))?;
    // Without a credential it takes none of the slots that are guaranteed to tenants, their caller's own included.
    let pool = if caller.is_anonymous() { state.callers.nobody.ledger.tenant() } else { &caller.tenant };
    state.live.take(pool, held).ok_or_else(|| {
        let max = state.config.streams_max;
        let detail = format!("{} streams are open, of {max} in all: try again", state.live.open());
        overload::overloaded(state, detail, max)
    })
}

/// Charges the bytes sent to a caller to the quota of its tenant, and as processor time.
pub fn charge_sent(state: &AppState, caller: &Identity, bytes: u64) {
    caller.ledger.charge(Quota::ResultBytesPerSecond, bytes);
    // A small response is covered by the fixed charge of every request.
    if bytes > SMALL_BYTES {
        state.gate.bill(&caller.ledger, Duration::from_nanos(bytes * NANOS_PER_BYTE));
    }
}

/// Returns the problem for a request beyond a quota, with the headers of draft-ietf-httpapi-ratelimit-headers.
pub fn exceeded(state: &AppState, exceeded: Exceeded) -> Problem {
    let Exceeded { quota, limit, wait, .. } = exceeded;
    let (advice, retry) = match (quota, wait) {
        (_, Some(wait)) => ("try again later", Some(wait)),
        // With a limit of 0, waiting does not help and the client cannot make room.
        (_, None) if limit == 0 => ("an operator of the server can raise it", None),
        (Quota::ConcurrentRequests | Quota::Searches, None) => ("wait for others to end", Some(Duration::from_secs(1))),
        (Quota::ScannedBytesPerRequest, None) => ("ask for less", None),
        (Quota::Streams, None) => ("close others first", None),
        (_, None) => ("delete some first", None),
    };
    problem(exceeded, format!("{exceeded}: {advice}"), retry.map(|wait| overload::spread(state, wait)))
}

/// Returns the problem for a query that reads more than its tenant's quota allows; `size` is the amount. The query has
/// already counted the refusal.
pub fn read_too_much(limit: u64, size: &str) -> Problem {
    let exceeded = Exceeded { quota: Quota::ScannedBytesPerRequest, limit, whole: limit, wait: None };
    let detail = format!("{size}; the tenant's quota {} is {limit}: ask for less with {NARROWER}", exceeded.quota);
    problem(exceeded, detail, None)
}

fn problem(exceeded: Exceeded, detail: String, retry: Option<Duration>) -> Problem {
    let Exceeded { quota, limit, whole, .. } = exceeded;
    let unit = match quota {
        _ if quota.is_of_bytes() => ";qu=\"content-bytes\"",
        Quota::EventsPerSecond => ";qu=\"events\"",
        Quota::ConcurrentRequests | Quota::Searches | Quota::Streams => ";qu=\"concurrent-requests\"",
        _ => "",
    };
    let window = if quota.is_rate() { ";w=1" } else { "" };
    let policy = format!("\"{quota}\";q={limit}{window}{unit}");
    let problem = Problem::new(Kind::QuotaExceeded, detail).with("quota", quota.name()).with("limit", limit);
    // For a quota that is divided between the servers of a cluster, the limit is this server's share.
    let problem = if whole == limit { problem } else { problem.with("whole", whole) };
    match retry {
        Some(wait) => {
            let room = format!("\"{quota}\";r=0;t={}", wait.as_secs());
            overload::with_limit(problem.retry_after(wait), policy, room)
        }
        None => overload::with_limit(problem, policy, format!("\"{quota}\";r=0")),
    }
}

/// Counts the stored bytes of tenants with a quota, for as long as it is polled.
pub async fn count_stored(state: AppState) {
    let mut ticks = interval(COUNT_INTERVAL);
    loop {
        ticks.tick().await;
        state.registry.ledgers().iter().for_each(|ledger| count(&state, ledger));
    }
}

/// Counts the stored bytes of a tenant, if it has a quota for them.
pub fn count_of(state: &AppState, tenant: &str) {
    state.registry.ledger(tenant).iter().for_each(|ledger| count(state, ledger));
}

fn count(state: &AppState, ledger: &Ledger) {
    // Counting walks all collections of the tenant, so it is done only where it matters.
    if ledger.limit(Quota::StoredBytes).is_some() {
        match state.backend.list(ledger.tenant()) {
            Ok(collections) => ledger.set_stored(stored(&collections)),
            // The last count stays in effect.
            Err(error) => tracing::debug!(%error, "the stored bytes of a tenant cannot be counted"),
        }
    }
}

/// Returns the bytes of these collections' events, in files and in memory.
pub fn stored(collections: &[Arc<dyn Collection>]) -> u64 {
    let stats = collections.iter().map(|collection| collection.stats());
    stats.map(|stats| stats.bytes + stats.memory_bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn what_adds_events_is_told_from_what_makes_room_and_from_administration() {
        let adding: Vec<&str> =
            ROUTES.iter().filter(|route| use_of(route, false) == Use::Adding).map(|route| route.id).collect();
        assert_eq!(adding, ["createFeatures", "replaceFeature", "updateFeature", "createPlace"]);
        for route in ROUTES {
            let administers = matches!(route.access, Access::Needs(_, Resource::Server | Resource::Tokens));
            assert!(!administers || use_of(route, true) == Use::Nothing, "{}", route.id);
        }
        let counts = |route: &&Route| {
            matches!(route.access, Access::Needs(_, Resource::Tokens | Resource::Audit))
                && use_of(route, false) != Use::Nothing
        };
        let counted: Vec<&str> = ROUTES.iter().filter(counts).map(|route| route.id).collect();
        assert_eq!(counted, ["getTokens", "getUsers", "getAudit"]);
    }
}
