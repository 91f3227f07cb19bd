//! Who may try to be the owner: rules over a record that candidates replace in turn.
//!
//! A lease decides only who *tries*. Two holders at a time are possible (a paused process, a clock that runs slow), and do no harm: the log
//! and the catalog fence all but one of them. The lease keeps candidates from fencing one another for nothing.
//!
//! Nothing compares clocks of two machines. A candidate measures by its own monotonic clock how long a record stays as it is.

use super::complete::Complete;
use super::level::LEVEL;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A holder renews after this part of the term's length.
const RENEW_PART: u32 = 3;
/// A candidate waits longer than the term by this part of it: clocks of two machines differ in rate.
const MARGIN_PART: u32 = 8;
/// A candidate looks again after this part of the term at the latest: its wait counts from when it saw the record first, and a
/// look after the whole wait would find one that was renewed since, and wait as long again.
const LOOK_PART: u32 = 12;
/// The same for a candidate of a later rank, which waits for those before it anyway.
const LATE_LOOK_PART: u32 = 4;
/// A candidate waits longer than the one ranked before it by this part of the term.
const RANK_PART: u32 = 6;
/// The same for a lease that is free: who gave it up for another one leaves that time to look.
const FREE_RANK_PART: u32 = 2;
/// Ranks beyond this wait no longer.
const RANK_MAX: u32 = 6;
/// The process that a lease passes to looks again after this part of the term: nobody owns the data until it has looked.
const HEIR_LOOK_PART: u32 = 120;
/// Others wait for that process for this part of the term. It may have died since it was named.
const HEIR_PART: u32 = 3;

/// A record of the lease: who holds it, and for how long after it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Name of the owner's node.
    pub node: String,
    /// The start of the process: a restarted node is another owner.
    pub process: u64,
    /// Where the owner is reached.
    pub address: String,
    /// Greater than that of every owner before.
    pub epoch: u64,
    /// How long it holds without being renewed, in milliseconds.
    pub ttl_ms: u64,
    /// Grows with each renewal, so that a record never looks like the one before.
    pub counter: u64,
    /// The owner has given it up: the next candidate need not wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resigned: bool,
    /// The process that the lease passes to: its owner is about to give it up, or has. Others let that one take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heir: Option<u64>,
    /// Level of the owner's program (`policy::level`); 0: from before there were levels.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// What the owner knew when it wrote the record: up to when what it has flushed is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

impl Term {
    /// How long it holds without being renewed.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// The same, renewed.
    pub fn renewed(&self) -> Term {
        Term { counter: self.counter + 1, ..self.clone() }
    }

    /// The same, given up.
    pub fn given_up(&self) -> Term {
        Term { resigned: true, ..self.renewed() }
    }

    /// The same, renewed, with the process that it passes to.
    pub fn for_heir(&self, heir: Option<u64>) -> Term {
        Term { heir, ..self.renewed() }
    }
}

fn is_zero(level: &u32) -> bool {
    *level == 0
}

/// The epoch of a new owner: above every epoch that lease, manifest and log have seen.
pub fn next_epoch(lease: u64, manifest: u64, log: u64) -> u64 {
    lease.max(manifest).max(log) + 1
}

/// What a candidate, or the holder, knows of the lease.
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
    /// What this process holds, and when it began to write the record.
    held: Option<(Term, Duration)>,
}

/// What to do after a look at the record.
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

    /// Lets renewals name the process that the lease is about to pass to, or nobody.
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
            // Changed since the last look, so its owner was there after that: the wait begins anew.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TTL: Duration = Duration::from_secs(3);

    fn candidate(process: u64) -> Candidate {
        Candidate::new(format!("n{process}"), process, format!("host:{process}"), TTL)
    }

    /// Takes the lease, as the record allows.
    fn take(candidate: &mut Candidate, newest: Option<&Term>, now: Duration) -> Term {
        let Step::Write(term) = candidate.look(newest, now) else { panic!("it has to wait") };
        candidate.wrote(term.clone(), now);
        term
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_lease_is_taken_once_it_was_unchanged_for_its_time_and_a_margin() {
        let (mut one, mut two) = (candidate(1), candidate(2));
        let first = take(&mut one, None, seconds(0.0));
        assert_eq!((first.epoch, first.node.as_str()), (1, "n1"));
        assert!(one.held(seconds(2.9)).is_some() && one.held(seconds(3.0)).is_none());
        // The clocks of the two have nothing in common.
        let soon = Step::Wait(seconds(0.25));
        assert_eq!(two.look(Some(&first), seconds(100.0)), soon);
        let second = take(&mut one, Some(&first), seconds(1.0));
        assert_eq!((second.epoch, second.counter), (1, 1));
        assert_eq!(two.look(Some(&second), seconds(103.3)), soon, "it was renewed");
        assert_eq!(two.look(Some(&second), seconds(106.6)), Step::Wait(seconds(0.075)));
        let taken = take(&mut two, Some(&second), seconds(106.7));
        assert_eq!((taken.epoch, taken.node.as_str()), (2, "n2"));
        // The one before finds that out, and waits its turn.
        assert_eq!(one.look(Some(&taken), seconds(2.0)), soon);
        assert!(one.held(seconds(2.0)).is_none());
    }

    /// Whenever its holder dies, the lease goes on at the latest after the term, the margin and one look.
    #[test]
    fn a_candidate_that_looks_when_it_should_is_never_late() {
        let step = Duration::from_millis(10);
        for death in (0..300).map(|n| step * n) {
            let (mut one, mut two) = (candidate(1), candidate(2));
            let mut term = take(&mut one, None, Duration::ZERO);
            let (mut now, mut due) = (Duration::ZERO, Duration::ZERO);
            loop {
                if now <= death
                    && let Step::Write(renewed) = one.look(Some(&term), now)
                {
                    one.wrote(renewed.clone(), now);
                    term = renewed;
                }
                if now >= due {
                    match two.look(Some(&term), now) {
                        Step::Write(_) => break,
                        Step::Wait(after) => due = now + after,
                    }
                }
                now += step;
            }
            assert!(now <= death + TTL + TTL / MARGIN_PART + TTL / LOOK_PART + step, "{now:?} after {death:?}");
        }
    }

    #[test]
    fn who_resigns_is_followed_at_once() {
        let (mut one, mut two) = (candidate(1), candidate(2));
        let first = take(&mut one, None, seconds(0.0));
        let last = first.given_up();
        one.wrote(last.clone(), seconds(1.0));
        assert!(one.held(seconds(1.0)).is_none());
        assert_eq!(take(&mut two, Some(&last), seconds(50.0)).epoch, 2);
    }

    #[test]
    fn a_candidate_leaves_time_to_those_before_it() {
        let (mut one, mut two, mut three) = (candidate(1), candidate(2), candidate(3));
        two.ranks(1);
        three.ranks(2);
        // Nobody has it yet.
        assert_eq!(two.look(None, seconds(0.0)), Step::Wait(seconds(0.75)));
        assert!(matches!(one.look(None, seconds(0.0)), Step::Write(_)), "the first does not wait");
        assert!(matches!(two.look(None, seconds(1.5)), Step::Write(_)), "the first did not come");
        let first = take(&mut one, None, seconds(0.0));
        // Its holder is gone: they follow one after the other.
        let waits = |candidate: &mut Candidate| {
            let mut now = seconds(100.0);
            while let Step::Wait(after) = candidate.look(Some(&first), now) {
                now += after;
            }
            now
        };
        let (second, third) = (waits(&mut two), waits(&mut three));
        assert_eq!((second, third), (seconds(103.875), seconds(104.375)));
        // It gave the lease up: who had it ranks behind now, and does not take it again at once.
        let last = first.given_up();
        one.wrote(last.clone(), seconds(1.0));
        one.ranks(1);
        two.ranks(0);
        assert!(matches!(one.look(Some(&last), seconds(1.0)), Step::Wait(_)));
        assert!(matches!(two.look(Some(&last), seconds(200.0)), Step::Write(_)));
    }

    #[test]
    fn the_heir_follows_at_once_and_others_only_if_it_does_not_come() {
        let (mut one, mut two, mut three) = (candidate(1), candidate(2), candidate(3));
        let first = take(&mut one, None, seconds(0.0));
        let named = first.for_heir(Some(2));
        one.wrote(named.clone(), seconds(1.0));
        assert!(one.held(seconds(1.0)).is_some(), "it owns until it resigns");
        // It looks often from now on, the other as ever.
        assert_eq!(two.look(Some(&named), seconds(1.0)), Step::Wait(seconds(0.025)));
        assert_eq!(three.look(Some(&named), seconds(1.0)), Step::Wait(seconds(0.25)));
        let last = named.given_up();
        one.wrote(last.clone(), seconds(1.5));
        let waits = Step::Wait(seconds(0.25));
        assert_eq!(
            [one.look(Some(&last), seconds(1.5)), three.look(Some(&last), seconds(1.5))],
            [waits.clone(), waits]
        );
        let mut late = two.clone();
        assert_eq!(take(&mut two, Some(&last), seconds(1.6)).epoch, 2);
        // It does not come: another takes it, the one before among them.
        assert_eq!(three.look(Some(&last), seconds(2.49)), Step::Wait(seconds(0.01)));
        assert_eq!(take(&mut three.clone(), Some(&last), seconds(2.5)).epoch, 2);
        assert_eq!(take(&mut one, Some(&last), seconds(2.5)).epoch, 2);
        // It is not named in the term of the next owner.
        assert_eq!(take(&mut late, Some(&last), seconds(9.0)).heir, None);
        assert_eq!((two.has_inherited(), one.has_inherited()), (true, false));
    }

    #[test]
    fn one_that_has_withdrawn_keeps_what_it_holds_and_takes_nothing() {
        let (mut one, mut two) = (candidate(1), candidate(2));
        two.withdraw(true);
        assert!(matches!(two.look(None, seconds(0.0)), Step::Wait(_)));
        let first = take(&mut one, None, seconds(0.0));
        one.withdraw(true);
        assert_eq!(one.look(Some(&first), seconds(1.0)), Step::Write(first.renewed()));
        let last = first.given_up();
        one.wrote(last.clone(), seconds(1.0));
        for at in [1.0, 10.0, 20.0] {
            assert!(matches!(one.look(Some(&last), seconds(at)), Step::Wait(_)));
            assert!(matches!(two.look(Some(&last), seconds(at)), Step::Wait(_)));
        }
        two.withdraw(false);
        assert_eq!(take(&mut two, Some(&last), seconds(21.0)).epoch, 2);
    }

    #[test]
    fn a_term_of_a_newer_program_reads() {
        let term = candidate(1).first(7);
        let mut newer = serde_json::to_value(&term).unwrap();
        newer["unknown"] = serde_json::json!({"to": "this version"});
        newer["level"] = 2.into();
        assert_eq!(serde_json::from_value::<Term>(newer).unwrap(), Term { level: 2, ..term });
    }

    #[test]
    fn a_write_whose_answer_was_lost_is_held_only_after_the_next() {
        let mut one = candidate(1);
        let Step::Write(term) = one.look(None, seconds(0.0)) else { panic!("there is none") };
        // The record stands, and nobody told the process.
        assert!(one.held(seconds(0.0)).is_none());
        assert_eq!(one.look(Some(&term), seconds(9.0)), Step::Write(term.renewed()));
    }

    #[test]
    fn an_epoch_is_above_all_that_were_seen() {
        assert_eq!(next_epoch(0, 0, 0), 1);
        assert_eq!([next_epoch(7, 3, 5), next_epoch(3, 7, 5), next_epoch(3, 5, 7)], [8; 3]);
    }

    proptest! {
        /// Candidates with clocks of their own, over one register with compare-and-swap: with clocks that run at about one rate no two
        /// hold at a time, epochs grow, and somebody holds it again after all had time to wait.
        #[test]
        fn no_two_hold_it_at_a_time(
            steps in prop::collection::vec((0..3usize, 1..900u64, 0..20u8), 1..200),
            starts in prop::array::uniform3(0..1_000_000u64),
            rates in prop::array::uniform3(95..=105u64),
        ) {
            let mut all: Vec<Candidate> = (1..=3).map(candidate).collect();
            let clock = |at: usize, ms: u64| Duration::from_millis(starts[at] + ms * rates[at] / 100);
            let (mut register, mut ms): (Option<Term>, u64) = (None, 0);
            let turn = |all: &mut Vec<Candidate>, register: &mut Option<Term>, at: usize, ms: u64, luck: u8| {
                let now = clock(at, ms);
                let step = all[at].look(register.as_ref(), now);
                if let Step::Write(mut term) = step {
                    if luck == 0 && term.counter > 0 {
                        term = term.given_up();
                    }
                    if luck == 2 && term.counter > 0 {
                        // One of them, or a process that is gone.
                        term.heir = Some(ms % 5);
                    }
                    if let Some(before) = register.as_ref() {
                        assert!((term.epoch, term.counter) > (before.epoch, before.counter));
                    }
                    *register = Some(term.clone());
                    // Now and then the answer is lost.
                    if luck != 1 {
                        all[at].wrote(term, now);
                    }
                }
            };
            for (at, pass, luck) in steps {
                ms += pass;
                turn(&mut all, &mut register, at, ms, luck);
                let holders = (0..3).filter(|at| all[*at].held(clock(*at, ms)).is_some()).count();
                prop_assert!(holders <= 1, "{holders} hold it");
            }
            for _ in 0..40 {
                ms += 500;
                turn(&mut all, &mut register, 0, ms, 9);
            }
            prop_assert!(all[0].held(clock(0, ms)).is_some());
        }
    }
}
