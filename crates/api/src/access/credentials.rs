//! Storage of tokens, tenants, users and sessions: in records beside the collections, or in records shared by the
//! servers of a cluster.

use crate::access::records::RECORDS;
use crate::request::quota;
use crate::state::AppState;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// All kinds of records that servers keep. Tokens come last: when records are moved, their presence shows that all
/// kinds have arrived.
pub const RECORD_KINDS: [&str; 2] = [meridian_saved::RECORDS, RECORDS];
/// The reason given while no credential is accepted.
pub const BEHIND: &str =
    "the server cannot read which tokens, tenants and users there are, and lets nobody in until it can";

/// Interval between reads of shared records. Together with the interval of `dispatch::revocation`, a stream ends within
/// a second of a revocation elsewhere.
const LOOK: Duration = Duration::from_millis(250);
/// Time within which other servers apply a change, if they can read the records.
pub const HEARD: Duration = Duration::from_millis(300);
/// How long callers are served from the known state while the shared records cannot be read.
const BEHIND_MAX: Duration = Duration::from_secs(30);

/// Applies other servers' changes to shared records. Runs until dropped; returns at once if no other server changes
/// them.
pub async fn follow(state: AppState) {
    if !state.backend.records(RECORDS).is_shared() {
        return;
    }
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut current, mut failing) = (Instant::now(), false);
    let (mut uncounted, mut counting) = (BTreeSet::new(), None::<JoinHandle<()>>);
    loop {
        ticks.tick().await;
        let (registry, begun) = (state.registry.clone(), Instant::now());
        let mut look = tokio::task::spawn_blocking(move || registry.follow());
        let followed = loop {
            match timeout(LOOK, &mut look).await {
                Ok(followed) => break followed,
                // An unresponsive store has a deadline of its own, until which this waits.
                Err(_) => judge(&state, current),
            }
        };
        match followed {
            Ok(Ok(tenants)) => {
                // Counted from the start of the read, since the result reflects that moment.
                (current, failing) = (begun, false);
                if !tenants.is_empty() {
                    apply(&state, &tenants);
                    uncounted.extend(tenants);
                }
            }
            Ok(Err(error)) if !failing => {
                tracing::error!(%error, "changes of tokens, tenants and users cannot be read: trying again");
                failing = true;
            }
            Ok(Err(_)) => {}
            Err(error) => tracing::error!(%error, "reading changes of tokens, tenants and users failed"),
        }
        judge(&state, current);
        if !uncounted.is_empty() && counting.as_ref().is_none_or(JoinHandle::is_finished) {
            // Not awaited: it asks the owner about each tenant, and the next revocation must not wait for that. Only
            // one runs at a time, so that a slow owner does not occupy more and more threads.
            let (state, tenants) = (state.clone(), std::mem::take(&mut uncounted));
            let count = move || tenants.iter().for_each(|name| quota::count_of(&state, name));
            counting = Some(tokio::task::spawn_blocking(count));
        }
    }
}

/// Decides whether callers are still served, depending on when the records were last read.
fn judge(state: &AppState, current: Instant) {
    // Any known credential may have been revoked since, so none is accepted any more, and streams end.
    let behind = current.elapsed() > BEHIND_MAX;
    if behind && !state.registry.is_behind() {
        tracing::error!("requests are refused until tokens, tenants and users can be read");
    }
    state.registry.set_behind(behind);
}

/// Applies the effects of tenant changes outside the registry, except on stored data.
fn apply(state: &AppState, tenants: &BTreeSet<String>) {
    state.share_out();
    for name in tenants {
        match state.registry.tenant(name) {
            None => state.searches.stop_of(name, true),
            Some(tenant) if tenant.suspended => state.searches.stop_of(name, false),
            Some(_) => {}
        }
    }
}
