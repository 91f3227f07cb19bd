//! "Same answer?": another target is asked what one target has answered, one question at a time, unhurried.

use super::clock::Clock;
use super::judge::Judge;
use super::link::Link;
use super::scan::Scan;
use super::wire::{Exchange, Wire};
use crate::generate::Question;
use crate::record::{Outcome, Record};
use std::cell::Cell;
use std::time::Duration;
use tokio::sync::Mutex;

/// Longest wait for the other target.
const PATIENCE: Duration = Duration::from_secs(60);

/// The other target.
#[derive(Debug)]
pub struct Same {
    name: String,
    link: Mutex<Link>,
    seen: Cell<u32>,
}

impl Same {
    /// Ready to ask `name` over a link.
    pub fn new(name: &str, link: Link) -> Same {
        Same { name: name.to_owned(), link: Mutex::new(link), seen: Cell::new(0) }
    }

    /// Asks the same and writes an unsound outcome where the answers differ. The other side's failure is no fault of this one,
    /// but an answer that could not be compared does not count as sound either.
    pub async fn compare(&self, question: &Question, judge: &Judge, mine: &Scan, record: &mut Record) {
        let Some((target, every)) = judge.same_as() else { return };
        let seen = self.seen.get();
        self.seen.set(seen.wrapping_add(1));
        if target != self.name || !seen.is_multiple_of(every) {
            return;
        }
        let mut other = Scan::default();
        other.reset(judge.unit(), true);
        let (mut theirs, clock) = (Record::default(), Clock::start());
        let mut link = self.link.lock().await;
        let mut of = Exchange { question, unit: judge.unit(), record: &mut theirs, scan: &mut other, clock: &clock };
        let asked = tokio::time::timeout(PATIENCE, link.ask(&mut of)).await;
        let detail = match asked {
            Ok(Ok(())) => {
                other.end(clock.now());
                if theirs.status != record.status {
                    format!("{target} answered with another status")
                } else if judge.same(mine, &other) {
                    return;
                } else {
                    format!("{target} answered differently")
                }
            }
            Ok(Err(fault)) => format!("{target} could not be compared with: {}", fault.detail),
            Err(_) => {
                link.abandon();
                format!("{target} could not be compared with: no answer within a minute")
            }
        };
        record.outcome = Outcome::Unsound;
        record.detail = Some(detail);
    }
}
