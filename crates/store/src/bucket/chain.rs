//! A chain of objects `1, 2, 3...` to which several processes append: compare-and-swap built from create-if-absent.
//!
//! A process reads to the end, and creates the next number. Exactly one of the competitors succeeds; the others read
//! what it wrote and retry. A link holds a change, or is *whole*: it replaces all links before it. A reader begins
//! there, and older links can be deleted.
//!
//! A deleted number looks like one that never existed. Therefore:
//! - the end is found as that of manifests is (`model::policy::owner`), and all links from the newest whole one on
//!   exist;
//! - the newest [`KEPT`] links stay. So if the number is still that recent right after its create, it never existed
//!   before, and the link is in the chain. A process that finds its link older than that was paused, before its create
//!   or after it. What it finds then may be the work of other paused processes and proves nothing, so it reports an
//!   unknown outcome. A link outside the chain is harmless.
//!
//! Old links are deleted a few at a time, because each change waits for the deletes.

use super::Bucket;
use super::create::{CreateOutcome, Failure, create};
use crate::codec::{Reader, frame, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::seams::{Clock, Seams};
use meridian_model::policy::owner::{Rules, newest, stays};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"MRDNLINK";
const VERSION: u32 = 1;
/// Number of newest links that always stay.
const KEPT: u64 = 256;
/// Weight of a link besides its bytes: a call, and a disk block.
const WEIGHT: u64 = 4 << 10;
/// Max links deleted with one change.
const DELETES: usize = 64;
/// Max times that a process reads on and retries while others write.
const TURNS: usize = 64;

/// A chain in a folder of a bucket.
#[derive(Debug)]
pub(crate) struct Chain {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// Prefix of the names: `records/access/`.
    folder: String,
    /// Random, so that no other writer's link has the same bytes as one of this writer.
    writer: u64,
    /// Links that this writer has tried to create.
    tried: AtomicU64,
    old: Mutex<OldLinks>,
}

/// Links that may have to be deleted.
#[derive(Debug, Default)]
struct OldLinks {
    /// The links at the start of this process: an earlier process may have left old ones.
    listed: Vec<u64>,
    /// The links to be deleted.
    goes: BTreeSet<u64>,
}

/// How far a process has read a chain; the default is the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// Number of the last link read.
    pub number: u64,
    /// Number of the newest whole link.
    pub base: u64,
    /// Weight of the links after the whole one, in bytes.
    pub weight: u64,
    crc: u32,
}

/// A link read from the bucket.
#[derive(Debug)]
pub(crate) struct Link {
    pub number: u64,
    pub content: Vec<u8>,
    /// Number of the newest whole link up to and including this one.
    base: u64,
    /// Checksum of the previous link.
    before: u32,
    crc: u32,
}

impl Link {
    /// Returns true if the link replaces all before it.
    pub fn is_whole(&self) -> bool {
        self.base == self.number
    }
}

impl Chain {
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, folder: String) -> Chain {
        let (clock, writer) = (seams.clock.clone(), seams.random.next_u64());
        Chain { bucket, clock, folder, writer, tried: AtomicU64::new(0), old: Mutex::default() }
    }

    /// Returns the path of a link, for messages.
    pub fn path(&self, number: u64) -> PathBuf {
        Path::new(&self.bucket.place()).join(self.name(number))
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number:016x}", self.folder)
    }

    fn exists(&self, number: u64) -> Result<bool, StoreError> {
        match self.bucket.len(&self.name(number)) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(StoreError::io("read", &self.path(number))(e)),
        }
    }

    /// Finds the newest number, starting from one that existed.
    fn newest(&self, from: u64) -> Result<u64, StoreError> {
        let hint = match from {
            // A stale listing costs a few more steps, and decides nothing.
            0 => {
                let listed = self.listed().map_err(StoreError::io("list", &self.path(0)))?;
                let newest = listed.iter().max().copied().unwrap_or(0);
                self.old.lock().listed = listed;
                newest
            }
            from => from,
        };
        newest(Rules::SERVER, hint, |number| self.exists(number))
    }

    fn listed(&self) -> io::Result<Vec<u64>> {
        let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
        Ok(self.bucket.list(&self.folder)?.iter().filter_map(number).collect())
    }

    /// Reads a link; `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with its name if it differs from what was written, [`StoreError::NewerFormat`], or the
    /// error of the bucket.
    pub fn read(&self, number: u64) -> Result<Option<Link>, StoreError> {
        let path = self.path(number);
        let bytes = match self.bucket.get(&self.name(number)) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::io("read", &path)(e)),
        };
        let mut reader = Reader::new(unframe(&path, MAGIC, VERSION, &bytes)?);
        let mut head = || -> Result<(u64, u64, u32), String> {
            // The writer's number and its attempt.
            reader.take(16)?;
            Ok((reader.u64()?, reader.u64()?, reader.u32()?))
        };
        let (own, base, before) = head().map_err(|e| StoreError::corrupt(&path, e))?;
        if own != number || base > number {
            return Err(StoreError::corrupt(&path, format!("it is the object {own:016x}, on from {base:016x}")));
        }
        let (content, crc) = (reader.rest().to_vec(), crc32c::crc32c(&bytes));
        Ok(Some(Link { number, content, base, before, crc }))
    }

    /// Returns the links after `from` up to the newest, and the new end; `None` if there is no newer link. If older
    /// links are gone by now, the first link is whole, and its number is not the next one.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a link that is damaged, missing, or does not follow from the previous one;
    /// [`StoreError::Busy`] while others write too fast.
    pub fn follow(&self, from: &End) -> Result<Option<(End, Vec<Link>)>, StoreError> {
        let mut gap = None;
        for _ in 0..TURNS {
            let newest = self.newest(from.number)?;
            if newest == from.number {
                // The newest link is never deleted. Without it, later links cannot be found either.
                if newest == 0 || self.exists(newest)? {
                    return Ok(None);
                }
                if gap.replace((newest, newest)) == Some((newest, newest)) {
                    return Err(StoreError::corrupt(
                        &self.path(newest),
                        "it was there, and is gone: is the bucket mounted?",
                    ));
                }
                continue;
            }
            // Deleted meanwhile, as newer ones were created.
            let Some(last) = self.read(newest)? else { continue };
            // Links from the newest whole one on are never deleted, so each still has its writer's content.
            let first = if from.number >= last.base { from.number + 1 } else { last.base };
            let mut links = Vec::new();
            for number in first..newest {
                match self.read(number)? {
                    Some(link) => links.push(link),
                    None => break,
                }
            }
            let missing = first + links.len() as u64;
            if missing < newest {
                // A newer whole link may have been created meanwhile. If not, this is damage.
                if gap.replace((missing, newest)) == Some((missing, newest)) {
                    let detail = format!("it is missing, and {newest:016x} builds on it");
                    return Err(StoreError::corrupt(&self.path(missing), detail));
                }
                continue;
            }
            links.push(last);
            return Ok(Some((self.joined(from, &links)?, links)));
        }
        Err(self.too_fast())
    }

    /// Checks that links follow from each other, and returns their end.
    fn joined(&self, from: &End, links: &[Link]) -> Result<End, StoreError> {
        let mut end = *from;
        for link in links {
            let follows = link.number == end.number + 1 && link.before == end.crc;
            // The first may be a whole link that replaces deleted ones.
            let begins = end.number == from.number && link.number > end.number + 1 && link.is_whole();
            if !follows && !begins {
                let detail = "it does not follow from the object before it";
                return Err(StoreError::corrupt(&self.path(link.number), detail));
            }
            end = end.after(link.number, link.crc, link.base, link.content.len());
        }
        Ok(end)
    }

    /// Returns the error of a process that others keep overtaking.
    pub fn too_fast(&self) -> StoreError {
        StoreError::Busy(format!("the objects in {} change too fast: try again later", self.folder))
    }

    /// Returns true if the next link should be whole, given that it would have `bytes` bytes.
    pub fn wants_whole(&self, end: &End, bytes: u64, min: u64) -> bool {
        end.number == 0 || end.weight >= bytes.max(min)
    }

    /// Appends a link after `end`. `None` if another process has appended one: read on, then retry.
    ///
    /// # Errors
    /// Errors of the bucket; nothing was appended, or, for [`StoreError::Unknown`], the outcome is unknown.
    pub fn append(&self, end: &End, whole: bool, content: &[u8]) -> Result<Option<End>, StoreError> {
        if end.number > 0 {
            // The previous link may be readable before it is durable. Nothing may outlive what it builds on.
            match self.bucket.settle(&self.name(end.number)) {
                Ok(()) => {}
                // Deleted meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
                Err(e) => return Err(StoreError::io("sync", &self.path(end.number))(e)),
            }
        }
        let last = || StoreError::corrupt(&self.path(end.number), "no object can come after it");
        let number = end.number.checked_add(1).ok_or_else(last)?;
        let base = if whole { number } else { end.base };
        let bytes = self.encode(number, base, end.crc, content);
        match create(self.bucket.as_ref(), self.clock.as_ref(), &self.name(number), &bytes) {
            Ok(CreateOutcome::Ours) => {}
            Ok(CreateOutcome::Theirs(_)) => return Ok(None),
            Err(Failure::Clean(error)) => return Err(StoreError::io("create", &self.path(number))(error)),
            Err(Failure::Unknown(error)) => return Err(self.unknown(number, &error)),
        }
        let crc = crc32c::crc32c(&bytes);
        let newest = self.newest(number).map_err(|error| self.unknown(number, &error))?;
        // A number this recent was never deleted: it never existed before, and the next writer builds on it. Under an
        // older number there may now be the work of other paused processes, which proves nothing.
        if newest >= number.saturating_add(KEPT) {
            return Err(self.unknown(number, &"this process was paused, and others have written since"));
        }
        // Unless the bucket has lost a link: the current one then builds on the lost one.
        if newest > number
            && let Some(next) = self.read(number + 1).map_err(|error| self.unknown(number, &error))?
            && next.before != crc
        {
            let detail = "it does not follow from the object before it, which was lost";
            return Err(StoreError::corrupt(&self.path(number + 1), detail));
        }
        Ok(Some(end.after(number, crc, base, content.len())))
    }

    fn encode(&self, number: u64, base: u64, before: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(content.len() + 64);
        put_u64(&mut bytes, self.writer);
        put_u64(&mut bytes, self.tried.fetch_add(1, Ordering::Relaxed));
        put_u64(&mut bytes, number);
        put_u64(&mut bytes, base);
        put_u32(&mut bytes, before);
        bytes.extend_from_slice(content);
        frame(MAGIC, VERSION, &bytes)
    }

    fn unknown(&self, number: u64, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Unknown(format!("whether {} was written is not known: {why}", self.path(number).display()))
    }

    /// Marks the links that are obsolete after a whole one, except those in `keeps`; [`Chain::tidy`] deletes them.
    /// `before` is the end of the chain before it, `more` are links that had to stay until now.
    ///
    /// The writer of the previous whole link marked everything obsolete then. The next process finds in its listing
    /// whatever an ended process has left.
    pub fn sweep(&self, before: &End, end: &End, more: impl IntoIterator<Item = u64>, keeps: impl Fn(u64) -> bool) {
        // It never becomes required again, so it can be deleted at any time.
        let goes = |number: &u64| {
            let old = *number > 0 && number.saturating_add(KEPT) <= end.base;
            old && !stays(Rules::SERVER, *number, end.base) && !keeps(*number)
        };
        let since = before.base.saturating_sub(KEPT)..=end.base.saturating_sub(KEPT);
        let stayed = (0..u64::BITS).map(|low| before.base >> low << low);
        let mut old = self.old.lock();
        let listed = std::mem::take(&mut old.listed);
        old.goes.extend(listed.into_iter().chain(since).chain(stayed).chain(more).filter(goes));
    }

    /// Deletes some obsolete links. Failed deletes are retried with the next change.
    pub fn tidy(&self) {
        for _ in 0..DELETES {
            let next = self.old.lock().goes.pop_first();
            let Some(number) = next else { return };
            if let Err(error) = self.bucket.delete(&self.name(number)) {
                tracing::warn!(%error, folder = self.folder, "old objects could not be removed");
                self.old.lock().goes.insert(number);
                return;
            }
        }
    }
}

impl End {
    fn after(&self, number: u64, crc: u32, base: u64, bytes: usize) -> End {
        let weight = if base == number { 0 } else { self.weight + bytes as u64 + WEIGHT };
        End { number, base, weight, crc }
    }
}
