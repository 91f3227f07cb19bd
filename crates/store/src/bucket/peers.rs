//! State that the processes of a cluster publish periodically while they run. Servers publish what they need of quotas
//! (`peers/`), and each process what it is (`nodes/`, see `roll.rs`).
//!
//! A process has one object. It creates the next one, `peers/{server}/{number}`, and deletes the previous one. Others
//! list them, and count a server as alive while its number grows, by their own clock: clocks are never compared. The
//! content is a hint: nothing stored depends on it.

use super::Bucket;
use super::create::{CreateOutcome, create};
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::seams::{Clock, Seams};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"MRDNPEER";
const VERSION: u32 = 1;
pub(super) const FOLDER: &str = "peers/";
/// How long a server counts while its number does not grow.
const TTL: Duration = Duration::from_secs(5);
/// Objects of such a server are removed after this multiple of [`TTL`].
const LEFT: i64 = 12;
/// Max own objects that a server remembers to delete.
const OLD_MAX: usize = 64;
/// Max silence of a server without quotas, by the bucket's clock. It renews its object every quarter of this.
pub const SERVER_HELD: Duration = Duration::from_secs(60);
/// Max numbers tried for an object that was renewed since it was listed.
const TRIES: u64 = 3;
/// Max servers that count; more would not be a real cluster.
const SERVERS_MAX: usize = 1_000;

/// A server among the others of its cluster.
#[derive(Debug)]
pub struct Peers {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    folder: &'static str,
    /// How long a server counts while its number does not grow, in microseconds.
    ttl_us: i64,
    /// Random, so that no other start of a process has it.
    server: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    /// Numbers of this server's objects that may exist.
    there: Vec<u64>,
    /// The other servers, by name.
    others: BTreeMap<String, PeerState>,
}

#[derive(Debug)]
struct PeerState {
    number: u64,
    /// When this number was first seen, in microseconds of the clock's elapsed time.
    since: i64,
    said: Vec<u8>,
}

impl Peers {
    /// Creates a server that has not published anything yet.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams) -> Peers {
        Peers::within(FOLDER, TTL, bucket, seams, seams.random.next_u64())
    }

    /// Does the same in another folder. `ttl` is how long a silent process counts; `process` is random.
    pub(super) fn within(
        folder: &'static str,
        ttl: Duration,
        bucket: Arc<dyn Bucket>,
        seams: &Seams,
        process: u64,
    ) -> Peers {
        let (server, ttl_us) = (format!("{process:016x}"), i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / LEFT));
        Peers { bucket, clock: seams.clock.clone(), folder, ttl_us, server, state: Mutex::default() }
    }

    /// Publishes `said`, and returns what each of the others publishes. One whose object cannot be parsed counts as
    /// present, with an empty statement. Call it again within a few seconds.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn tell(&self, said: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.say(said)?;
        self.hear()
    }

    /// Publishes this for any process that reads it, and reads nothing: two calls of the bucket, whatever the number of
    /// servers. Returns the number used.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn say(&self, said: &[u8]) -> Result<u64, StoreError> {
        let mut state = self.state.lock();
        // Whatever the outcome, no other object gets this number.
        state.number += 1;
        let number = state.number;
        let name = self.name(&self.server, number);
        state.there.push(number);
        // Applies while the bucket does not answer too: the rest is removed once this server is gone.
        let over = state.there.len().saturating_sub(OLD_MAX);
        state.there.drain(..over);
        match create(self.bucket.as_ref(), self.clock.as_ref(), &name, &frame(MAGIC, VERSION, said)) {
            Ok(CreateOutcome::Ours) => {}
            Ok(CreateOutcome::Theirs(_)) => {
                return Err(StoreError::corrupt(&self.path(&name), "another process wrote it"));
            }
            Err(failure) => return Err(StoreError::io("create", &self.path(&name))(failure.into_error())),
        }
        // Failed deletes are retried.
        state.there.retain(|old| *old == number || self.bucket.delete(&self.name(&self.server, *old)).is_err());
        Ok(number)
    }

    /// Returns the statement of each of the others.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub(super) fn hear(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut state = self.state.lock();
        self.look(&mut state)?;
        let now = self.clock.elapsed();
        let live = state.others.values().filter(|other| now - other.since <= self.ttl_us);
        Ok(live.map(|other| other.said.clone()).collect())
    }

    /// Notifies the others that this server is gone. An object that remains counts until it expires.
    pub fn leave(&self) {
        let there = std::mem::take(&mut self.state.lock().there);
        // The newest first, since only that one counts. Stops at the first failure, so only one call waits for a bucket
        // that does not answer.
        let _ = there.into_iter().rev().try_for_each(|number| self.bucket.delete(&self.name(&self.server, number)));
    }

    /// Reads what others publish, and removes the objects of servers that are gone.
    fn look(&self, state: &mut State) -> Result<(), StoreError> {
        let names = self.bucket.list(self.folder).map_err(StoreError::io("list", &self.path(self.folder)))?;
        let mut newest = newest(self.folder, &names);
        newest.remove(&*self.server);
        let now = self.clock.elapsed();
        for (server, number) in newest.into_iter().take(SERVERS_MAX) {
            // Numbers only grow: a stale listing adds nothing.
            let known = state.others.get(server);
            if known.is_some_and(|known| known.number >= number) {
                continue;
            }
            let (number, said) = match read_newest(self.bucket.as_ref(), self.folder, server, number) {
                Ok(Some(found)) => found,
                // It left since the listing, or renews too fast: its previous statement counts until the next time.
                Ok(None) => (number, known.map(|known| known.said.clone()).unwrap_or_default()),
                Err(StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }) => (number, Vec::new()),
                Err(error) => return Err(error),
            };
            state.others.insert(server.to_owned(), PeerState { number, since: now, said });
        }
        let is_left = |other: &PeerState| now - other.since > self.ttl_us * LEFT;
        for name in &names {
            if parse(self.folder, name).and_then(|(server, _)| state.others.get(server)).is_some_and(is_left) {
                // Retried when it is listed again.
                let _ = self.bucket.delete(name);
            }
        }
        let there: Vec<&str> = names.iter().filter_map(|name| Some(parse(self.folder, name)?.0)).collect();
        // A server that is no longer listed has left.
        state.others.retain(|server, other| !is_left(other) && there.contains(&server.as_str()));
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }

    fn name(&self, server: &str, number: u64) -> String {
        name_of(self.folder, server, number)
    }
}

pub(super) fn name_of(folder: &str, server: &str, number: u64) -> String {
    format!("{folder}{server}/{number:016x}")
}

/// Returns the last statement of a process, and its number: the listed one, or one shortly after. A process that has
/// renewed it since the listing has deleted the listed one. `None` if it is gone, or renews faster than it can be read.
///
/// # Errors
/// Errors of the bucket, or that the object cannot be parsed.
pub(super) fn read_newest(
    bucket: &dyn Bucket,
    folder: &str,
    process: &str,
    listed: u64,
) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
    for number in listed..=listed.saturating_add(TRIES - 1) {
        if let Some(said) = read(bucket, &name_of(folder, process, number))? {
            return Ok(Some((number, said)));
        }
    }
    Ok(None)
}

/// Returns the statement of a process under this name; `None` if it has been replaced.
///
/// # Errors
/// Errors of the bucket, or that the object cannot be parsed.
pub(super) fn read(bucket: &dyn Bucket, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let path = Path::new(&bucket.place()).join(name);
    match bucket.get(name) {
        Ok(bytes) => Ok(Some(unframe(&path, MAGIC, VERSION, &bytes)?.to_vec())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::io("read", &path)(e)),
    }
}

/// Returns the newest number of each process among these names.
pub(super) fn newest<'a>(folder: &str, names: &'a [String]) -> BTreeMap<&'a str, u64> {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for (server, number) in names.iter().filter_map(|name| parse(folder, name)) {
        let known = newest.entry(server).or_default();
        *known = number.max(*known);
    }
    newest
}

/// Splits a name into server and number.
pub(super) fn parse<'a>(folder: &str, name: &'a str) -> Option<(&'a str, u64)> {
    let (server, number) = name.strip_prefix(folder)?.split_once('/')?;
    Some((server, u64::from_str_radix(number, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::{ManualClock, MemoryDisk, SeededRandom};

    const SECOND: i64 = 1_000_000;

    fn peer(bucket: &MemoryBucket, seed: u64) -> (Peers, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(0));
        let random = Arc::new(SeededRandom::new(seed));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random };
        (Peers::new(Arc::new(bucket.clone()), &seams), clock)
    }

    fn said(peers: &Peers, what: &str) -> Vec<String> {
        let others = peers.tell(what.as_bytes()).unwrap();
        let mut others: Vec<String> = others.into_iter().map(|said| String::from_utf8(said).unwrap()).collect();
        others.sort();
        others
    }

    #[test]
    fn servers_hear_each_other_while_they_run() {
        let bucket = MemoryBucket::new();
        let ((one, clock), (two, _), (three, _)) = (peer(&bucket, 1), peer(&bucket, 2), peer(&bucket, 3));
        assert!(said(&one, "1a").is_empty());
        assert_eq!(said(&two, "2a"), ["1a"]);
        assert_eq!(said(&three, "3a"), ["1a", "2a"]);
        assert_eq!(said(&one, "1b"), ["2a", "3a"]);
        // One leaves properly, the other is killed.
        two.leave();
        assert_eq!(said(&one, "1c"), ["3a"]);
        clock.advance(5 * SECOND);
        assert_eq!(said(&one, "1d"), ["3a"]);
        clock.advance(1);
        assert!(said(&one, "1e").is_empty());
        // It was paused, and continues.
        assert_eq!(said(&three, "3b"), ["1e"]);
        assert_eq!(said(&one, "1f"), ["3b"]);
        clock.advance(61 * SECOND);
        assert!(said(&one, "1g").is_empty());
        assert_eq!(bucket.objects().len(), 1, "what it left is removed, and each has one object");
        // One that only publishes can be read, but reads nothing.
        three.say(b"3c").unwrap();
        assert_eq!((said(&one, "1h"), bucket.objects().len()), (vec!["3c".to_owned()], 2));
        three.leave();
        one.leave();
        assert!(bucket.objects().is_empty());
    }

    #[test]
    fn one_that_renews_what_it_says_while_it_is_listed_is_heard() {
        let bucket = MemoryBucket::new();
        let ((one, clock), (two, _)) = (peer(&bucket, 1), peer(&bucket, 2));
        said(&two, "2a");
        bucket.freeze_listings(true);
        two.say(b"2b").unwrap();
        assert_eq!(said(&one, "1a"), ["2b"]);
        // An unchanged listing does not show that it lives.
        two.say(b"2c").unwrap();
        clock.advance(5 * SECOND + 1);
        assert!(said(&one, "1b").is_empty());
        bucket.freeze_listings(false);
        assert_eq!(said(&one, "1c"), ["2c"]);
        // It renews faster than it can be read.
        two.say(b"2d").unwrap();
        bucket.freeze_listings(true);
        (0..TRIES).for_each(|_| assert!(two.say(b"2e").is_ok()));
        assert_eq!(said(&one, "1d"), ["2c"], "it is there");
        bucket.freeze_listings(false);
        assert_eq!(said(&one, "1e"), ["2e"]);
    }

    #[test]
    fn what_does_not_read_says_nothing_and_a_bucket_without_an_answer_is_an_error() {
        let bucket = MemoryBucket::new();
        let ((one, _), (two, _)) = (peer(&bucket, 1), peer(&bucket, 2));
        said(&two, "2a");
        let (name, _) = bucket.objects().remove(0);
        bucket.harm(&name, Some(b"damaged".to_vec()));
        assert_eq!(said(&one, "1a"), [""]);
        bucket.cut(true);
        assert!(one.tell(b"1b").is_err());
        bucket.cut(false);
        assert_eq!(said(&two, "2b"), ["1a"]);
        assert_eq!(said(&one, "1c"), ["2b"]);
        assert_eq!(bucket.objects().len(), 2);
    }
}
