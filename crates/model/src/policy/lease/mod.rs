//! Who may try to be the owner: rules over a record that candidates replace in turn.
//!
//! A lease decides only who *tries*. Two holders at a time are possible (a paused process, a clock that runs
//! slow). They do no harm: the log and the catalog fence all but one of them. The lease keeps candidates from
//! fencing one another for nothing.
//!
//! Nothing compares clocks of two machines. A candidate measures by its own monotonic clock how long a record stays as it is.

mod term;

pub use term::{Term, next_epoch};

use super::level::LEVEL;
use std::time::Duration;

/// A holder renews after this part of the term's length.
const RENEW_PART: u32 = 3;
/// A candidate waits longer than the term by this part of it: clocks of two machines differ in rate.
const MARGIN_PART: u32 = 8;
/// A candidate looks again after this part of the term at the latest. Its wait counts from when it first saw
/// the record. A look after the whole wait would find a renewed record, and wait as long again.
const LOOK_PART: u32 = 12;
/// The same for a candidate of a later rank, which waits for those before it anyway.
const LATE_LOOK_PART: u32 = 4;
/// A candidate waits longer than the one ranked before it by this part of the term.
const RANK_PART: u32 = 6;
/// The same for a free lease: a process that gave it up for another one leaves that time to look.
const FREE_RANK_PART: u32 = 2;
/// Ranks beyond this wait no longer.
const RANK_MAX: u32 = 6;
/// The process that a lease passes to looks again after this part of the term: no process owns the data until it has looked.
const HEIR_LOOK_PART: u32 = 120;
/// Others wait for that process for this part of the term. It may have died since it was named.
const HEIR_PART: u32 = 3;

/// The state of the lease as a candidate or the holder knows it.
#[derive(Debug, Clone)]
pub struct Candidate {
    node: String,
    process: u64,
    address: String,
    ttl: Duration,
    /// How many candidates are to come before this one.
    rank: u32,
    /// It takes the lease no more, and keeps what it holds.
    withdrawn: bool,
    /// The process that renewals name as the next owner.
    heir: Option<u64>,
    /// The holder before has named this process.
    inherited: bool,
    /// The record of another seen last, or that there is none, and when that was first seen so.
    seen: Option<(Option<Term>, Duration)>,
    /// The term that this process holds, and when it began to write the record.
    held: Option<(Term, Duration)>,
}

/// The next step after a read of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write this record in the place of the one that was seen, if that is still there.
    Write(Term),
    /// Look again after this time.
    Wait(Duration),
}

impl Candidate {
    /// A process that would be the owner. `process` is random: no other start of a process has it.
    pub fn new(node: impl Into<String>, process: u64, address: impl Into<String>, ttl: Duration) -> Candidate {
        let (node, address) = (node.into(), address.into());
        let (rank, withdrawn, heir, inherited) = (0, false, None, false);
        Candidate { node, process, address, ttl, rank, withdrawn, heir, inherited, seen: None, held: None }
    }

    /// The number of this process.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// Says how many candidates are to come before this one, from now on: it leaves them time to take the lease.
    pub fn ranks(&mut self, rank: u32) {
        self.rank = rank.min(RANK_MAX);
    }

    /// Lets renewals name the process that the lease is about to pass to, or none.
    pub fn name_heir(&mut self, heir: Option<u64>) {
        self.heir = heir;
    }

    /// Whether the holder before has passed the lease to this process.
    pub fn has_inherited(&self) -> bool {
        self.inherited
    }

    /// Lets it take the lease no more, or again. A lease that it holds it keeps until it gives it up.
    pub fn withdraw(&mut self, withdrawn: bool) {
        self.withdrawn = withdrawn;
    }

    /// Whether it takes the lease no more.
    pub fn has_withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Decides by the newest record. `now` is of this process's monotonic clock.
    pub fn look(&mut self, newest: Option<&Term>, now: Duration) -> Step {
        if let Some(newest) = newest
            && newest.process == self.process
            && !newest.resigned
        {
            self.seen = None;
            // A write of this process whose answer was lost: it holds from when it can prove that it does, the next renewal.
            let Some((held, since)) = self.held.as_ref().filter(|(held, _)| held == newest) else {
                return Step::Write(newest.for_heir(self.heir));
            };
            let due = *since + held.ttl() / RENEW_PART;
            return if now >= due { Step::Write(held.for_heir(self.heir)) } else { Step::Wait(due - now) };
        }
        self.held = None;
        let since = match &self.seen {
            Some((seen, since)) if seen.as_ref() == newest => *since,
            // Changed since the last look, so its owner was there after that: the wait begins again.
            _ => {
                self.seen = Some((newest.cloned(), now));
                now
            }
        };
        let ttl = newest.map_or(self.ttl, Term::ttl);
        let heir = newest.and_then(|newest| newest.heir);
        let is_heir = heir == Some(self.process);
        let rank = if is_heir { 0 } else { self.rank };
        let is_held = newest.is_some_and(|newest| !newest.resigned);
        let wait = match heir {
            _ if is_held => ttl + ttl / MARGIN_PART + self.ttl / RANK_PART * rank,
            // One that was given up, or never held, is free for the candidate of the first rank, after the heir.
            Some(_) if !is_heir => ttl / HEIR_PART + self.ttl / FREE_RANK_PART * rank,
            _ => self.ttl / FREE_RANK_PART * rank,
        };
        let due = since + wait;
        if now >= due && !self.withdrawn {
            self.inherited = is_heir;
            return Step::Write(self.first(newest.map_or(0, |newest| newest.epoch)));
        }
        let look = match rank {
            _ if is_heir => HEIR_LOOK_PART,
            0 => LOOK_PART,
            _ => LATE_LOOK_PART,
        };
        let look = ttl / look;
        // One that has withdrawn only looks.
        Step::Wait(if now >= due { look } else { look.min(due - now) })
    }

    /// Says that a record of this process stands. `since`: when the write of it began.
    pub fn wrote(&mut self, term: Term, since: Duration) {
        self.held = (!term.resigned).then_some((term, since));
        self.seen = None;
    }

    /// Says that another's record stands in the place of the one to be written.
    pub fn lost(&mut self) {
        self.held = None;
    }

    /// The term that this process holds, by its own clock.
    pub fn held(&self, now: Duration) -> Option<&Term> {
        // From the beginning of the write: a candidate counts from when it sees the record, which is later.
        self.held.as_ref().filter(|(term, since)| now < *since + term.ttl()).map(|(term, _)| term)
    }

    fn first(&self, before: u64) -> Term {
        Term {
            node: self.node.clone(),
            process: self.process,
            address: self.address.clone(),
            epoch: next_epoch(before, 0, 0),
            ttl_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            counter: 0,
            resigned: false,
            heir: None,
            level: LEVEL,
            complete: None,
        }
    }
}

#[cfg(test)]
mod tests;
