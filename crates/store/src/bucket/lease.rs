//! The lease over a bucket: terms in a chain of objects, each created after the one before. The rules are `model::policy::lease`.

use super::Bucket;
use super::create::{Created, create};
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::seams::{Clock, Seams};
use meridian_model::policy::complete::Complete;
use meridian_model::policy::lease::{Candidate, Step, Term};
use parking_lot::Mutex;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"MRDNLEAS";
const VERSION: u32 = 1;
/// Name of the lease of the process that writes.
pub const OWNER: &str = "owner";
/// How many terms stay: a reader of the chain needs the newest alone.
const KEPT: u64 = 8;
/// How often a look is repeated while others write.
const TURNS: usize = 8;

/// The terms of a lease, to be read.
#[derive(Debug, Clone)]
pub struct Terms {
    bucket: Arc<dyn Bucket>,
    /// What names begin with: `leases/{name}/`.
    folder: String,
}

impl Terms {
    /// The terms of the lease of this name.
    pub fn new(bucket: &Arc<dyn Bucket>, name: &str) -> Terms {
        Terms { bucket: bucket.clone(), folder: format!("leases/{name}/") }
    }

    /// The newest term and its number, which grows with each renewal; `None` if nobody ever held the lease. A term may be given up, or long
    /// over: that shows by its number not growing.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the bucket does not answer, [`StoreError::Corrupt`], [`StoreError::NewerFormat`].
    pub fn newest(&self) -> Result<Option<(u64, Term)>, StoreError> {
        self.newest_from(0)
    }

    /// The same for a caller that knows the number of a term, 0 of none: two reads while that one is there still, and no listing.
    ///
    /// # Errors
    /// As of [`Terms::newest`].
    pub fn newest_from(&self, known: u64) -> Result<Option<(u64, Term)>, StoreError> {
        if known > 0
            && let Some(mut found) = self.read(known)?.map(|term| (known, term))
        {
            while let Some(term) = self.read(found.0 + 1)? {
                found = (found.0 + 1, term);
            }
            return Ok(Some(found));
        }
        let names = self.bucket.list(&self.folder).map_err(StoreError::io("list", &self.path(&self.folder)))?;
        let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
        let listed = names.iter().filter_map(number).max();
        if known > 0 && listed.is_none() {
            // Terms are replaced by newer ones, and never all deleted.
            let gone = std::io::Error::new(ErrorKind::NotFound, "it was there, and is gone: is the bucket mounted?");
            return Err(StoreError::io("read", &self.path(&self.name(known)))(gone));
        }
        let hint = listed.unwrap_or(0).max(known);
        let (mut at, mut found) = (hint, None);
        // The listing may be behind: the terms after the last one listed are found by name.
        loop {
            match self.read(at)? {
                Some(term) => found = Some((at, term)),
                None if at == 0 => {}
                // It was there, so newer ones are, and neither the listing nor the caller knows of them yet.
                None if found.is_none() && hint > 0 => {
                    return Err(StoreError::Busy("the terms of the lease change too fast: try again later".to_owned()));
                }
                None => return Ok(found),
            }
            at += 1;
        }
    }

    /// When a term was written, by the bucket's clock, in microseconds since 1970; `None`: the bucket does not say, or the term is gone.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the bucket does not answer.
    pub fn written(&self, number: u64) -> Result<Option<i64>, StoreError> {
        let name = self.name(number);
        match self.bucket.modified(&name) {
            Ok(written) => Ok(written),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &self.path(&name))(e)),
        }
    }

    fn read(&self, number: u64) -> Result<Option<Term>, StoreError> {
        let name = self.name(number);
        let path = self.path(&name);
        match self.bucket.get(&name) {
            Ok(bytes) => {
                let content = unframe(&path, MAGIC, VERSION, &bytes)?;
                let term = serde_json::from_slice(content);
                term.map(Some).map_err(|e| StoreError::corrupt(&path, format!("it does not read: {e}")))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &path)(e)),
        }
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number:016x}", self.folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }
}

/// Who the owner is, after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This process; the next turn is due after this time.
    Owner(Duration),
    /// Another, or nobody; look again after this time.
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

/// What an owner says of its collections with each renewal; `None`: nothing now.
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

    /// Lets each renewal in an epoch carry a statement from now on, or (`None`) no more. It is made before the renewal is
    /// written, and counts only if that stands: then no other process has held the lease since the epoch began. A lease
    /// that was lost and taken again has another epoch, and what was opened before says nothing any more.
    pub fn say(&self, epoch: u64, statement: Option<Statement>) {
        *self.says.lock() = Says(statement.map(|statement| (epoch, statement)));
    }

    /// What a term of this epoch says.
    fn statement(&self, epoch: u64) -> Option<Complete> {
        let says = self.says.lock().0.clone();
        says.filter(|(of, _)| *of == epoch).and_then(|(_, says)| says())
    }

    /// Says how many candidates are to come before this one, from now on.
    pub fn ranks(&self, rank: usize) {
        self.state.lock().candidate.ranks(u32::try_from(rank).unwrap_or(u32::MAX));
    }

    /// Takes the lease, renews it or looks who has it, whichever is due. A caller repeats it after the time that it gives.
    ///
    /// # Errors
    /// What the bucket said. The lease is not lost by that: [`Lease::holds`] says for how long.
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
                // Lost to another: who that is shows at the next look.
                Step::Write(next) => {
                    let next = Term { complete: self.statement(next.epoch), ..next };
                    self.write(number + 1, next, now)?;
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

    /// Says to which process the lease is about to pass, so that this one looks often, and others let it take the lease. `None`: to nobody, after
    /// all. Gives whether this process holds it.
    ///
    /// # Errors
    /// What the bucket said.
    pub fn name_heir(&self, heir: Option<u64>) -> Result<bool, StoreError> {
        let _turning = self.turning.lock();
        self.state.lock().candidate.name_heir(heir);
        let Some(term) = self.term() else { return Ok(false) };
        let number = self.state.lock().number;
        let now = self.now();
        let next = Term { complete: self.statement(term.epoch), ..term.for_heir(heir) };
        self.write(number + 1, next, now)
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
        self.write(number + 1, last, now).map(drop)
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
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::{ManualClock, MemoryDisk, SeededRandom};

    const TTL: Duration = Duration::from_secs(3);

    struct Node {
        clock: Arc<ManualClock>,
        lease: Lease,
    }

    fn node(bucket: &MemoryBucket, seed: u64) -> Node {
        let clock = Arc::new(ManualClock::new(0));
        let seams = Seams {
            disk: Arc::new(MemoryDisk::new()),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(seed)),
        };
        let bucket: Arc<dyn Bucket> = Arc::new(bucket.clone());
        Node { clock, lease: Lease::new(&bucket, "owner", format!("n{seed}"), format!("host:{seed}"), TTL, &seams) }
    }

    fn pass(nodes: &[&Node], seconds: f64) {
        nodes.iter().for_each(|node| node.clock.advance((seconds * 1e6) as i64));
    }

    #[test]
    fn a_lease_passes_on_when_its_holder_pauses_or_resigns() {
        let bucket = MemoryBucket::new();
        let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
        assert!(terms.newest().unwrap().is_none());
        let (one, two) = (node(&bucket, 1), node(&bucket, 2));
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(after) if after == TTL / 3));
        let Standing::Other(Some(term), _) = two.lease.turn().unwrap() else { panic!("two hold it") };
        assert_eq!((term.address.as_str(), term.epoch), ("host:1", 1));
        for _ in 0..40 {
            pass(&[&one, &two], 1.0);
            assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
            assert!(matches!(two.lease.turn().unwrap(), Standing::Other(..)));
            assert!(one.lease.holds() && !two.lease.holds());
        }
        assert!(bucket.objects().len() <= KEPT as usize, "old terms stay");
        // The holder pauses: nothing moves, not even its clock.
        pass(&[&two], 3.4);
        assert!(matches!(two.lease.turn().unwrap(), Standing::Owner(_)));
        assert!(one.lease.holds(), "its clock stood still");
        assert!(matches!(one.lease.turn().unwrap(), Standing::Other(Some(term), _) if term.node == "n2"));
        assert!(!one.lease.holds());
        two.lease.resign().unwrap();
        assert!(!two.lease.holds());
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
        assert_eq!(terms.newest().unwrap().unwrap().1.epoch, 3);
    }

    #[test]
    fn a_holder_whose_bucket_is_gone_holds_until_its_term_ends() {
        let bucket = MemoryBucket::new();
        let one = node(&bucket, 1);
        one.lease.turn().unwrap();
        bucket.cut(true);
        pass(&[&one], 2.0);
        assert!(one.lease.turn().is_err() && one.lease.holds());
        pass(&[&one], 1.0);
        assert!(!one.lease.holds());
        bucket.cut(false);
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
        assert_eq!(one.lease.term().unwrap().epoch, 1, "nobody else was there");
    }

    #[test]
    fn a_renewal_says_what_its_owner_knows() {
        let bucket = MemoryBucket::new();
        let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
        let one = node(&bucket, 1);
        one.lease.turn().unwrap();
        let said = |terms: &Terms| terms.newest().unwrap().unwrap().1.complete;
        assert_eq!(said(&terms), None);
        one.lease.say(1, Some(Arc::new(|| Some(Complete::at(7, Vec::new())))));
        pass(&[&one], 1.0);
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
        assert_eq!(said(&terms), Some(Complete::at(7, Vec::new())));
        assert!(one.lease.holds(), "a term with a statement is held like any other");
        one.lease.say(1, None);
        pass(&[&one], 1.0);
        one.lease.turn().unwrap();
        assert_eq!(said(&terms), None);
    }

    #[test]
    fn a_lease_that_was_lost_and_taken_again_does_not_say_what_it_said_before() {
        let bucket = MemoryBucket::new();
        let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
        let (one, two) = (node(&bucket, 1), node(&bucket, 2));
        one.lease.turn().unwrap();
        one.lease.say(1, Some(Arc::new(|| Some(Complete::at(7, Vec::new())))));
        // It is paused; another has the lease, and gives it up.
        two.lease.turn().unwrap();
        pass(&[&two], 3.4);
        assert!(matches!(two.lease.turn().unwrap(), Standing::Owner(_)));
        two.lease.resign().unwrap();
        for _ in 0..3 {
            assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
            let (_, term) = terms.newest().unwrap().unwrap();
            assert_eq!((term.epoch, term.complete), (3, None));
            pass(&[&one], 1.0);
        }
    }

    #[test]
    fn a_lease_passes_to_the_process_that_its_holder_named() {
        let bucket = MemoryBucket::new();
        let (one, two, three) = (node(&bucket, 1), node(&bucket, 2), node(&bucket, 3));
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
        assert!(!two.lease.name_heir(Some(two.lease.process())).unwrap(), "it does not hold the lease");
        assert!(one.lease.name_heir(Some(three.lease.process())).unwrap() && one.lease.holds());
        // Renewed, it says so still.
        pass(&[&one], 1.0);
        assert!(matches!(one.lease.turn().unwrap(), Standing::Owner(_)));
        assert!(matches!(three.lease.turn().unwrap(), Standing::Other(Some(_), after) if after == TTL / 120));
        one.lease.withdraw(true);
        one.lease.resign().unwrap();
        for other in [&one, &two] {
            assert!(matches!(other.lease.turn().unwrap(), Standing::Other(None, _)));
        }
        assert!(matches!(three.lease.turn().unwrap(), Standing::Owner(_)));
        assert_eq!(three.lease.term().unwrap().heir, None);
    }

    #[test]
    fn who_knows_a_term_needs_no_listing() {
        let bucket = MemoryBucket::new();
        let terms = Terms::new(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), "owner");
        let one = node(&bucket, 1);
        one.lease.turn().unwrap();
        let (known, _) = terms.newest().unwrap().unwrap();
        // What was known may be deleted by now.
        for renewals in [1, 3, 20] {
            for _ in 0..renewals {
                pass(&[&one], 1.0);
                one.lease.turn().unwrap();
            }
            let found = terms.newest_from(known).unwrap().unwrap();
            assert_eq!(found, terms.newest().unwrap().unwrap(), "{renewals}");
        }
    }

    #[test]
    fn a_listing_that_is_behind_hides_no_term() {
        let bucket = MemoryBucket::new();
        let (one, two) = (node(&bucket, 1), node(&bucket, 2));
        one.lease.turn().unwrap();
        bucket.freeze_listings(true);
        for _ in 0..5 {
            pass(&[&one], 1.0);
            one.lease.turn().unwrap();
        }
        assert!(matches!(two.lease.turn().unwrap(), Standing::Other(Some(term), _) if term.counter == 5));
    }
}
