//! Who may try to become the owner: rules over a record that candidates replace in turn.
//!
//! A lease decides only who *tries*. Two holders at a time are possible (a paused process, a slow clock). They do no
//! harm: the log and the catalog fence all but one of them. The lease keeps candidates from fencing one another
//! needlessly.
//!
//! Clocks of different machines are never compared. A candidate measures by its own monotonic clock how long a record
//! stays unchanged.

mod term;

pub use term::{Term, next_epoch};

use super::level::LEVEL;
use std::time::Duration;

/// Fraction of the term after which a holder renews.
const RENEW_PART: u32 = 3;
/// Fraction of the term that a candidate waits beyond the term: clocks of two machines differ in rate.
const MARGIN_PART: u32 = 8;
/// Max polling interval of a candidate, as a fraction of the term. Its wait counts from when it first saw the record.
/// Polling only after the whole wait would find a renewed record, and wait as long again.
const LOOK_PART: u32 = 12;
/// Polling interval of a lower-ranked candidate, which waits for those ranked before it anyway.
const LATE_LOOK_PART: u32 = 4;
/// Fraction of the term by which a candidate waits longer than the one ranked before it.
const RANK_PART: u32 = 6;
/// The same for a free lease, which gives the process that it was given up for time to poll.
const FREE_RANK_PART: u32 = 2;
/// Max rank that lengthens the wait.
const RANK_MAX: u32 = 6;
/// Polling interval of the heir, as a fraction of the term: the data has no owner until the heir has polled.
const HEIR_LOOK_PART: u32 = 120;
/// Fraction of the term that others wait for the heir, which may have died since it was named.
const HEIR_PART: u32 = 3;

/// The lease as seen by a candidate or holder.
#[derive(Debug, Clone)]
pub struct Candidate {
    node: String,
    process: u64,
    address: String,
    ttl: Duration,
    /// Number of candidates ranked before this one.
    rank: u32,
    /// Whether it takes no more leases; it keeps the one it holds.
    withdrawn: bool,
    /// The process that renewals name as the next owner.
    heir: Option<u64>,
    /// Whether the previous holder named this process.
    inherited: bool,
    /// The last record seen of another process (or none), and when it was first seen.
    seen: Option<(Option<Term>, Duration)>,
    /// The term that this process holds, and when the write of its record began.
    held: Option<(Term, Duration)>,
}

/// The next step after reading the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Replace the seen record with this one, by compare-and-swap.
    Write(Term),
    /// Poll again after this time.
    Wait(Duration),
}

impl Candidate {
    /// A process that wants to be the owner. `process` is random and unique to this start.
    pub fn new(node: impl Into<String>, process: u64, address: impl Into<String>, ttl: Duration) -> Candidate {
        let (node, address) = (node.into(), address.into());
        let (rank, withdrawn, heir, inherited) = (0, false, None, false);
        Candidate { node, process, address, ttl, rank, withdrawn, heir, inherited, seen: None, held: None }
    }

    /// The number of this process.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// Sets the number of candidates ranked before this one, which it gives time to take the lease.
    pub fn ranks(&mut self, rank: u32) {
        self.rank = rank.min(RANK_MAX);
    }

    /// Sets the process that renewals name as the next holder, if any.
    pub fn name_heir(&mut self, heir: Option<u64>) {
        self.heir = heir;
    }

    /// Whether the previous holder has passed the lease to this process.
    pub fn has_inherited(&self) -> bool {
        self.inherited
    }

    /// Stops it from taking the lease, or allows it again. It keeps a lease that it holds until it gives it up.
    pub fn withdraw(&mut self, withdrawn: bool) {
        self.withdrawn = withdrawn;
    }

    /// Whether it is withdrawn.
    pub fn has_withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Decides the next step from the newest record. `now` is this process's monotonic clock.
    pub fn look(&mut self, newest: Option<&Term>, now: Duration) -> Step {
        if let Some(newest) = newest
            && newest.process == self.process
            && !newest.resigned
        {
            self.seen = None;
            // A write of this process whose response was lost. It holds the lease only once it can prove it, by the
            // next renewal.
            let Some((held, since)) = self.held.as_ref().filter(|(held, _)| held == newest) else {
                return Step::Write(newest.for_heir(self.heir));
            };
            let due = *since + held.ttl() / RENEW_PART;
            return if now >= due { Step::Write(held.for_heir(self.heir)) } else { Step::Wait(due - now) };
        }
        self.held = None;
        let since = match &self.seen {
            Some((seen, since)) if seen.as_ref() == newest => *since,
            // Changed since the last poll, so the holder was alive: the wait starts over.
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
            // A lease that was given up, or never held, is free for the first candidate, after the heir.
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
        // A withdrawn candidate only polls.
        Step::Wait(if now >= due { look } else { look.min(due - now) })
    }

    /// Records that this process's record was written. `since` is when the write began.
    pub fn wrote(&mut self, term: Term, since: Duration) {
        self.held = (!term.resigned).then_some((term, since));
        self.seen = None;
    }

    /// Records that another process's record took the place of the one to be written.
    pub fn lost(&mut self) {
        self.held = None;
    }

    /// The term that this process holds, by its own clock.
    pub fn held(&self, now: Duration) -> Option<&Term> {
        // Counted from the beginning of the write: a candidate counts from when it sees the record, which is later.
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
