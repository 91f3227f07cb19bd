//! The check `same_as`: another target gets the requests that one target has answered, one at a time.
//!
//! The comparison adds to no latency, since the response has ended. Beside open arrivals it runs separately, and a
//! response that the other target has no time for is marked as not compared. A closed user waits for it, then thinks.

use super::shared::TrialState;
use crate::check::checker::Checker;
use crate::clock::Clock;
use crate::generate::Question;
use crate::protocol::connection::Connection;
use crate::protocol::scan::Scan;
use crate::protocol::{Client, Exchange};
use crate::scenario::Limits;
use meridian_lab_results::record::{Outcome, Record};
use std::cell::Cell;
use std::time::Duration;
use tokio::sync::Mutex;

/// Max wait for the other target, and for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// Max bytes of responses that wait for the other target.
const HELD_MAX: usize = 64 << 20;

/// Size of a response besides its body.
const AROUND: usize = 1 << 10;

/// The other target.
#[derive(Debug)]
pub struct ReferenceTarget {
    name: String,
    connection: Mutex<Connection>,
    seen: Cell<u32>,
    held: Cell<usize>,
}

/// A sound response whose record waits for the other target's response.
#[derive(Debug)]
pub struct Comparison {
    /// The request.
    pub question: Question,
    /// The response.
    pub scan: Scan,
    /// The record so far.
    pub record: Record,
}

/// The outcome of a record whose responses differ.
type Judgement = (Outcome, String);

impl ReferenceTarget {
    /// Prepares to query `name` over a connection.
    pub fn new(name: &str, connection: Connection) -> ReferenceTarget {
        ReferenceTarget {
            name: name.to_owned(),
            connection: Mutex::new(connection),
            seen: Cell::new(0),
            held: Cell::new(0),
        }
    }

    /// Returns whether this sound response is compared with this target.
    pub fn is_due(&self, judge: &Checker) -> bool {
        let Some((_, every)) = judge.same_as().filter(|(target, _)| *target == self.name) else { return false };
        let seen = self.seen.get();
        self.seen.set(seen.wrapping_add(1));
        seen.is_multiple_of(every)
    }

    /// Sends the same request to the other target, writes an unsound outcome if the responses differ, and keeps the
    /// record. A failure of the other target is not charged to this one. But a response that could not be compared does
    /// not count as sound either.
    pub async fn settle(&self, shared: &TrialState, mut comparison: Comparison, limits: &Limits) {
        let bytes = AROUND + comparison.scan.body.as_ref().map_or(0, Vec::len);
        // The other target may be slower than the load. Responses that wait for it must not fill the lab's memory.
        let verdict = if self.held.get() >= HELD_MAX {
            Err(self.left_out("too many answers wait for it"))
        } else {
            self.held.set(self.held.get() + bytes);
            let abort = shared.stop.abort.notified();
            let verdict = if shared.stop.is_aborted() {
                Err(self.left_out(ENDED))
            } else {
                tokio::select! {
                    // An abort takes precedence over a response, so that the run ends within its grace period.
                    biased;
                    () = abort => Err(self.left_out(ENDED)),
                    verdict = self.ask(shared, &comparison) => verdict,
                }
            };
            self.held.set(self.held.get() - bytes);
            verdict
        };
        if let Err((outcome, detail)) = verdict {
            comparison.record.outcome = outcome;
            comparison.record.detail = Some(detail);
        }
        shared.keep(comparison.record, limits);
    }

    async fn ask(&self, shared: &TrialState, of: &Comparison) -> Result<(), Judgement> {
        let (name, Comparison { question, scan, record }) = (&self.name, of);
        let Some(judge) = shared.checkers.get(usize::from(record.request)) else { return Ok(()) };
        let Ok(mut connection) = tokio::time::timeout(PATIENCE, self.connection.lock()).await else {
            return Err(self.left_out("it is a minute behind"));
        };
        let mut other = Scan::default();
        other.reset(judge.unit(), true);
        let (mut theirs, clock) = (Record::default(), Clock::start());
        let mut exchange =
            Exchange { question, unit: judge.unit(), record: &mut theirs, scan: &mut other, clock: &clock };
        let asked = tokio::time::timeout(PATIENCE, connection.ask(&mut exchange)).await;
        let detail = match asked {
            Ok(Ok(())) => {
                other.end(clock.now());
                if theirs.status != record.status {
                    format!("{name} answered with another status")
                } else if judge.same(scan, &other) {
                    return Ok(());
                } else {
                    format!("{name} answered differently")
                }
            }
            Ok(Err(fault)) => format!("{name} could not be compared with: {}", fault.detail),
            Err(_) => {
                // Otherwise a late response would be read as that to the next request.
                connection.abandon();
                format!("{name} could not be compared with: no answer within a minute")
            }
        };
        Err((Outcome::Unsound, detail))
    }

    /// Returns the finding for a response that is not compared: sound, as the other checks found it.
    fn left_out(&self, why: &str) -> Judgement {
        (Outcome::Sound, format!("not compared with {}: {why}", self.name))
    }
}

/// Reason why comparisons have stopped.
const ENDED: &str = "the run was ended first";
