//! Short queries run on the thread that read their request: a hop to a blocking thread and back costs more.
//!
//! A query is tried there for at most [`TIME_MAX`], if [`crate::state::brief_runs`] predicts that this is enough. A
//! query that takes longer, or that would wait for a read, starts again on a blocking thread. While queries wait for a
//! permit, none is tried.

use crate::protocol::problem::{Problem, Result};
use crate::request::blocking::Run;
use crate::state::AppState;
use crate::state::brief_runs::QueryKind;
use meridian_backend::{Collection, without_waits};
use meridian_observe as observe;
use meridian_query::Control;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::time::Instant;

/// Time after which a try ends at its next check. Other requests on the thread wait meanwhile.
const TIME_MAX: Duration = Duration::from_micros(500);

/// Runs `work` on this thread if it is likely to be short. `None` if it was not tried, or turned out to be long: then
/// it must run on a blocking thread. `work` must not block, and returns `None` if the rest of it would be long.
pub fn attempt<T>(
    state: &AppState,
    kind: QueryKind,
    collection: &dyn Collection,
    run: &Run,
    work: impl FnOnce(&Control) -> Result<Option<T>>,
) -> Option<Result<T>> {
    let meter = run.permit.meter();
    if !collection.may_be_brief() || meter.is_contended() {
        return None;
    }
    let current = state.brief.start(run.permit.account().ledger.tenant(), collection.name(), kind)?;
    let (control, began) = (run.control.brief(TIME_MAX), Instant::now());
    meter.begin();
    let run_here = || {
        // Contained here, as on a blocking thread: the panic of one query must not end its connection.
        let (outcome, would_wait) = without_waits(|| catch_unwind(AssertUnwindSafe(|| work(&control))));
        let outcome = outcome.unwrap_or_else(|_| Err(Problem::internal("a query panicked")));
        let is_void = would_wait || control.is_exceeded() || matches!(outcome, Ok(None));
        (outcome, is_void)
    };
    let (outcome, is_void) = observe::try_once(run_here, |(_, is_void)| *is_void);
    // A result may be complete and late, if its last steps were long ones.
    current.record(!is_void && began.elapsed() <= TIME_MAX);
    if is_void {
        meter.stop();
        return None;
    }
    control.settle();
    outcome.transpose()
}
