//! The lease over a bucket: terms in a chain of objects, each created after the previous one. The rules are `model::policy::lease`.

use super::Bucket;
use super::create::{Created, create};
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
/// How many terms stay: a reader of the chain needs the newest alone.
const KEPT: u64 = 8;
/// How often a look is repeated while others write.
const TURNS: usize = 8;

/// Who the owner is, after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This process; the next turn is due after this time.
    Owner(Duration),
    /// Another process, or none; look again after this time.
    Other(Option<Term>, Duration),
}

/// A process that would be the owner: it takes its turns, and asks whether it holds the lease.
///
/// Shared between threads: one takes turns, others ask.
#[derive(Debug)]
pub struct Lease {
    terms: Terms,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// One turn at a time.
    turning: Mutex<()>,
    says: Mutex<Says>,
}

/// The statement of an owner about its collections with each renewal; `None`: nothing now.
pub type Statement = Arc<dyn Fn() -> Option<Complete> + Send + Sync>;

/// The statement, and the epoch of the terms that carry it.
#[derive(Default)]
struct Says(Option<(u64, Statement)>);

impl fmt::Debug for Says {
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
    /// A candidate for the lease of this name. `address`: where others reach this process, as they find it in [`Term::address`]. `ttl`: how
    /// long a term holds without being renewed.
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

    /// The same of a process with this number, which is random: it has the same one in all its leases.
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

    /// Lets each renewal in an epoch carry a statement from now on, or (`None`) no more. It is made before
    /// the renewal is written, and counts only if that stands. Then no other process has held the lease since
    /// the epoch began. A lease that was lost and taken again has another epoch, and what was opened before
    /// says nothing any more.
    pub fn say(&self, epoch: u64, statement: Option<Statement>) {
        *self.says.lock() = Says(statement.map(|statement| (epoch, statement)));
    }

    /// The statement in a term of this epoch.
    fn statement(&self, epoch: u64) -> Option<Complete> {
        let says = self.says.lock().0.clone();
        says.filter(|(of, _)| *of == epoch).and_then(|(_, says)| says())
    }

    /// Says how many candidates are to come before this one, from now on.
    pub fn ranks(&self, rank: usize) {
        self.state.lock().candidate.ranks(u32::try_from(rank).unwrap_or(u32::MAX));
    }

    /// Takes the lease, renews it or checks its holder, whichever is due. A caller repeats it after the time that it gives.
    ///
    /// # Errors
    /// Errors of the bucket. The lease is not lost by that: [`Lease::holds`] says for how long.
    pub fn turn(&self) -> Result<Standing, StoreError> {
        let _turning = self.turning.lock();
        for _ in 0..TURNS {
            let known = self.state.lock().number;
            let newest = self.terms.newest_from(known)?;
            // Before the write begins: a candidate elsewhere counts from when the term stands, which is later.
            let now = self.now();
            let (number, term) = newest.map_or((0, None), |(number, term)| (number, Some(term)));
            let step = {
                let mut state = self.state.lock();
                state.number = number;
                state.candidate.look(term.as_ref(), now)
            };
            match step {
                Step::Wait(after) if self.holds() => return Ok(Standing::Owner(after)),
                Step::Wait(after) => return Ok(Standing::Other(term.filter(|term| !term.resigned), after)),
                // Lost to another: the next check shows which one.
                Step::Write(next) => {
                    let next = Term { complete: self.statement(next.epoch), ..next };
                    self.write(self.terms.after(number)?, next, now)?;
                }
            }
        }
        Err(StoreError::Busy("the lease changes hands too fast: try again later".to_owned()))
    }

    /// Whether this process holds the lease now, by its own clock.
    pub fn holds(&self) -> bool {
        let now = self.now();
        self.state.lock().candidate.held(now).is_some()
    }

    /// The term that this process holds now.
    pub fn term(&self) -> Option<Term> {
        let now = self.now();
        self.state.lock().candidate.held(now).cloned()
    }

    /// The epoch of that term.
    pub fn epoch(&self) -> Option<u64> {
        let now = self.now();
        self.state.lock().candidate.held(now).map(|term| term.epoch)
    }

    /// The number of this process, by which terms name it.
    pub fn process(&self) -> u64 {
        self.state.lock().candidate.process()
    }

    /// Whether this process has the lease from a holder that passed it to this one.
    pub fn has_inherited(&self) -> bool {
        self.state.lock().candidate.has_inherited()
    }

    /// Lets this process take the lease no more, or again. What it holds it keeps.
    pub fn withdraw(&self, withdrawn: bool) {
        self.state.lock().candidate.withdraw(withdrawn);
    }

    /// Whether it takes the lease no more.
    pub fn has_withdrawn(&self) -> bool {
        self.state.lock().candidate.has_withdrawn()
    }

    /// Says to which process the lease is about to pass, so that this one looks often, and others let it take the lease. `None`: to none, after
    /// all. Gives whether this process holds it.
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

    /// Gives the lease up, so that the next candidate need not wait. Not holding it is well.
    pub fn resign(&self) -> Result<(), StoreError> {
        let _turning = self.turning.lock();
        let Some(term) = self.term() else { return Ok(()) };
        let number = self.state.lock().number;
        let now = self.now();
        let last = Term { complete: self.statement(term.epoch), ..term.given_up() };
        // From here on this process does not hold it, whatever becomes of the write.
        self.state.lock().candidate.lost();
        self.write(self.terms.after(number)?, last, now).map(drop)
    }

    /// Writes a term in the place after the newest; says whether it stands there.
    fn write(&self, number: u64, term: Term, since: Duration) -> Result<bool, StoreError> {
        let name = self.terms.name(number);
        let path = self.terms.path(&name);
        let json = serde_json::to_vec(&term).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        let bucket = self.terms.bucket.as_ref();
        let created = create(bucket, self.clock.as_ref(), &name, &frame(MAGIC, VERSION, &json));
        let mut state = self.state.lock();
        match created {
            Ok(Created::Ours) => {
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
            Ok(Created::Theirs(_)) => {
                state.candidate.lost();
                Ok(false)
            }
            // A renewal that failed takes nothing away: the last one counts until its end.
            Err(failure) => Err(StoreError::io("create", &path)(failure.into_error())),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.clock.elapsed()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
