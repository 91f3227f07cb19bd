//! Where tokens, tenants, users and sessions are kept: in records beside the collections, or in records that the servers of a cluster share.

use crate::quota;
use crate::records::RECORDS;
use crate::state::AppState;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// All kinds of records that servers keep. That of tokens is the last: where records are moved, it says that all are there.
pub const RECORD_KINDS: [&str; 2] = [meridian_saved::RECORDS, RECORDS];
/// Why nobody is let in.
pub const BEHIND: &str =
    "the server cannot read which tokens, tenants and users there are, and lets nobody in until it can";

/// Interval between reads of shared records. With the interval of `entry::revocation`, a stream ends within a second of a revocation elsewhere.
const LOOK: Duration = Duration::from_millis(250);
/// Time in which other servers have heard of a change, if they can read the records.
pub const HEARD: Duration = Duration::from_millis(300);
/// For how long callers are served by what is known, while the shared records cannot be read.
const BEHIND_MAX: Duration = Duration::from_secs(30);

/// Takes up what other servers change of shared records. Runs until it is dropped; ends at once where nobody else changes them.
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
                // A store that does not answer is waited for until its own deadline.
                Err(_) => judge(&state, current),
            }
        };
        match followed {
            Ok(Ok(tenants)) => {
                // As of its beginning: that is what the answer knows.
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
            // Not awaited: it asks the owner about each of them, and the next revocation must not wait for that. One at a time: an owner
            // that is slow is not asked by more and more threads.
            let (state, tenants) = (state.clone(), std::mem::take(&mut uncounted));
            let count = move || tenants.iter().for_each(|name| quota::count_of(&state, name));
            counting = Some(tokio::task::spawn_blocking(count));
        }
    }
}

/// Decides whether callers are still served, by when the records were read last.
fn judge(state: &AppState, current: Instant) {
    // What is known may have been revoked since: then it lets nobody in, and streams end.
    let behind = current.elapsed() > BEHIND_MAX;
    if behind && !state.registry.is_behind() {
        tracing::error!("requests are refused until tokens, tenants and users can be read");
    }
    state.registry.set_behind(behind);
}

/// The effects of changes of tenants beyond the registry, except on their stored data.
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
