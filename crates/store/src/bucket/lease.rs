//! The lease over a bucket: terms in a chain of objects, each created after the previous one. The rules are
//! `model::policy::lease`.

use super::Bucket;
use super::create::{CreateOutcome, create};
use super::terms::{MAGIC, Terms, VERSION};
use crate::codec::frame;
use crate::error::StoreError;
use crate::seams::{Clock, Seams};
use meridian_model::policy::complete::Complete;
use meridian_model::policy::lease::{Candidate, Step, Term};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Name of the lease of the process that writes.
pub const OWNER: &str = "owner";
/// Number of terms kept: a reader of the chain needs only the newest.
const KEPT: u64 = 8;
/// Max repetitions of a read while others write.
const TURNS: usize = 8;

/// The owner of the lease, after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// This process; the next turn is due after this time.
    Owner(Duration),
    /// Another process, or none; check again after this time.
    Other(Option<Term>, Duration),
}

/// A candidate for the lease: it takes its turns, and reports whether it holds the lease.
///
/// Shared between threads: one takes turns, others query it.
#[derive(Debug)]
pub struct Lease {
    terms: Terms,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Allows one turn at a time.
    turning: Mutex<()>,
    says: Mutex<LeaseStatement>,
}

/// The owner's statement about its collections, made at each renewal; `None` if it makes none now.
pub type Statement = Arc<dyn Fn() -> Option<Complete> + Send + Sync>;

/// The statement, and the epoch of the terms that carry it.
#[derive(Default)]
struct LeaseStatement(Option<(u64, Statement)>);

impl fmt::Debug for LeaseStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Says").field(&self.0.as_ref().map(|(epoch, _)| epoch)).finish()
    }
}

#[derive(Debug)]
struct State {
    candidate: Candidate,
    /// Number of the newest term seen.
    number: u64,
}

impl Lease {
    /// Creates a candidate for the lease of this name. `address` is where others reach this process; they find it in
    /// [`Term::address`]. `ttl` is how long a term holds without renewal.
    pub fn new(
        bucket: &Arc<dyn Bucket>,
        name: &str,
        node: impl Into<String>,
        address: impl Into<String>,
        ttl: Duration,
        seams: &Seams,
    ) -> Lease {
        Lease::of_process(bucket, name, (node, seams.random.next_u64()), address, ttl, seams)
    }

    /// Creates a candidate with a given random process number, which a process uses for all its leases.
    pub fn of_process(
        bucket: &Arc<dyn Bucket>,
        name: &str,
        (node, process): (impl Into<String>, u64),
        address: impl Into<String>,
        ttl: Duration,
        seams: &Seams,
    ) -> Lease {
        let candidate = Candidate::new(node, process, address, ttl);
        Lease {
            terms: Terms::new(bucket, name),
            clock: seams.clock.clone(),
            state: Mutex::new(State { candidate, number: 0 }),
            turning: Mutex::default(),
            says: Mutex::default(),
        }
    }

    /// Makes each renewal in an epoch carry a statement from now on; `None` stops that. It is made before the renewal
    /// is written, and counts only if the renewal stands. Then no other process has held the lease since the epoch
    /// began. A lease that was lost and retaken has another epoch, so statements about earlier state do not count.
    pub fn say(&self, epoch: u64, statement: Option<Statement>) {
        *self.says.lock() = LeaseStatement(statement.map(|statement| (epoch, statement)));
    }

    /// Returns the statement for a term of this epoch.
    fn statement(&self, epoch: u64) -> Option<Complete> {
        let says = self.says.lock().0.clone();
        says.filter(|(of, _)| *of == epoch).and_then(|(_, says)| says())
    }

    /// Sets how many candidates come before this one, from now on.
    pub fn ranks(&self, rank: usize) {
        self.state.lock().candidate.ranks(u32::try_from(rank).unwrap_or(u32::MAX));
    }

    /// Acquires the lease, renews it, or checks its holder, whichever is due. The caller repeats it after the returned
    /// time.
    ///
    /// # Errors
    /// Errors of the bucket. These do not lose the lease; [`Lease::holds`] returns true for as long as it still holds.
    pub fn turn(&self) -> Result<LeaseState, StoreError> {
        let _turning = self.turning.lock();
        for _ in 0..TURNS {
            let known = self.state.lock().number;
            let newest = self.terms.newest_from(known)?;
            // Before the write begins: other candidates count from when the term stands, which is later.
            let now = self.now();
            let (number, term) = newest.map_or((0, None), |(number, term)| (number, Some(term)));
            let step = {
                let mut state = self.state.lock();
                state.number = number;
                state.candidate.look(term.as_ref(), now)
            };
            match step {
                Step::Wait(after) if self.holds() => return Ok(LeaseState::Owner(after)),
                Step::Wait(after) => return Ok(LeaseState::Other(term.filter(|term| !term.resigned), after)),
                // Lost to another process: the next check shows which one.
                Step::Write(next) => {
                    let next = Term { complete: self.statement(next.epoch), ..next };
                    self.write(self.terms.after(number)?, next, now)?;
                }
            }
        }
        Err(StoreError::Busy("the lease changes hands too fast: try again later".to_owned()))
    }

    /// Returns true if this process holds the lease now, by its own clock.
    pub fn holds(&self) -> bool {
        let now = self.now();
        self.state.lock().candidate.held(now).is_some()
    }

    /// Returns the term that this process holds now.
    pub fn term(&self) -> Option<Term> {
        let now = self.now();
        self.state.lock().candidate.held(now).cloned()
    }

    /// Returns the epoch of that term.
    pub fn epoch(&self) -> Option<u64> {
        let now = self.now();
        self.state.lock().candidate.held(now).map(|term| term.epoch)
    }

    /// Returns the number of this process, which terms name.
    pub fn process(&self) -> u64 {
        self.state.lock().candidate.process()
    }

    /// Returns true if a previous holder passed the lease to this process.
    pub fn has_inherited(&self) -> bool {
        self.state.lock().candidate.has_inherited()
    }

    /// Stops this process from taking the lease, or allows it again. A lease that it holds is kept.
    pub fn withdraw(&self, withdrawn: bool) {
        self.state.lock().candidate.withdraw(withdrawn);
    }

    /// Returns true if this process no longer takes the lease.
    pub fn has_withdrawn(&self) -> bool {
        self.state.lock().candidate.has_withdrawn()
    }

    /// Names the process to which the lease is about to pass, so that it polls often and others let it take the lease.
    /// `None` withdraws the heir. Returns true if this process holds the lease.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn name_heir(&self, heir: Option<u64>) -> Result<bool, StoreError> {
        let _turning = self.turning.lock();
        self.state.lock().candidate.name_heir(heir);
        let Some(term) = self.term() else { return Ok(false) };
        let number = self.state.lock().number;
        let now = self.now();
        let next = Term { complete: self.statement(term.epoch), ..term.for_heir(heir) };
        self.write(self.terms.after(number)?, next, now)
    }

    /// Gives up the lease, so that the next candidate need not wait. Does nothing if this process does not hold it.
    pub fn resign(&self) -> Result<(), StoreError> {
        let _turning = self.turning.lock();
        let Some(term) = self.term() else { return Ok(()) };
        let number = self.state.lock().number;
        let now = self.now();
        let last = Term { complete: self.statement(term.epoch), ..term.given_up() };
        // From here on this process does not hold it, whatever the outcome of the write.
        self.state.lock().candidate.lost();
        self.write(self.terms.after(number)?, last, now).map(drop)
    }

    /// Writes a term in the place after the newest; returns true if it stands there.
    fn write(&self, number: u64, term: Term, since: Duration) -> Result<bool, StoreError> {
        let name = self.terms.name(number);
        let path = self.terms.path(&name);
        let json = serde_json::to_vec(&term).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        let bucket = self.terms.bucket.as_ref();
        let created = create(bucket, self.clock.as_ref(), &name, &frame(MAGIC, VERSION, &json));
        let mut state = self.state.lock();
        match created {
            Ok(CreateOutcome::Ours) => {
                state.candidate.wrote(term, since);
                state.number = number;
                drop(state);
                if let Some(old) = number.checked_sub(KEPT)
                    && let Err(error) = bucket.delete(&self.terms.name(old))
                {
                    tracing::warn!(%error, "an old term of a lease could not be removed");
                }
                Ok(true)
            }
            Ok(CreateOutcome::Theirs(_)) => {
                state.candidate.lost();
                Ok(false)
            }
            // A failed renewal takes nothing away: the last one counts until it expires.
            Err(failure) => Err(StoreError::io("create", &path)(failure.into_error())),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.clock.elapsed()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
