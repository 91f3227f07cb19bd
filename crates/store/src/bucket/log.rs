//! The log in a bucket: a chain of objects, each a group of writes or the fence that ends its writer's part of the chain.
//!
//! After the object `(epoch, number)` comes `(epoch, number + 1)`, or, where that object is a fence, `(the fence's epoch, number + 1)`.
//! A writer sends one object at a time, and always the next one of its own epoch. So a process that creates a fence under that very name has ended the
//! writer's part for good: its next create finds another object. Fences are never deleted, so no former writer ever finds its next name free.
//!
//! A manifest names the place from which the log continues. Objects before it are deleted once the manifest stands. A process
//! that starts from an older manifest may meet the deleted names and put a fence where nobody looks any more; its own commit is then
//! refused, as there is a newer manifest, and it starts again from that.

use super::Bucket;
use super::create::{Created, Failure, create};
use crate::codec::{Reader, frame, put_u8, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::log::{Record, read_record};
use crate::seams::{AppendError, Clock, LogPlace, Replayed, WriteLog};
use meridian_model::policy::lease::next_epoch;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"MRDNWALB";
const VERSION: u32 = 1;
/// Objects are at least so far apart, unless they are large: a store bills and limits calls, not bytes.
const BATCH_EVERY: Duration = Duration::from_millis(250);
/// From so many bytes on a group does not wait for that.
const BATCH_BYTES: usize = 4 << 20;
/// Max searches for the end of the chain, while others append to it.
const TURNS: usize = 32;

/// The log of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketLog {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// What names begin with: `.../wal/`.
    folder: String,
    /// Random: the bytes of no other writer's object are those of one of this one.
    writer: u64,
    /// The epoch that the lease has given to this process; 0: it has none.
    term: u64,
    /// Where the next object goes; `None`: the log has to be replayed first.
    next: Option<LogPlace>,
    /// Checksum of the object before.
    before: u32,
    /// Objects with records, oldest first.
    held: VecDeque<Held>,
    /// When the last object was sent, in microseconds of the clock's elapsed time.
    sent: Option<i64>,
}

#[derive(Debug)]
struct Held {
    place: LogPlace,
    last_position: u64,
    bytes: u64,
}

/// What an object holds.
enum Content {
    Group(Vec<Record>),
    /// The writer's part ends here; the one of this epoch begins.
    Fence(u64),
}

/// An object as it was read.
struct Read {
    /// Checksum of the object before it in the chain.
    before: u32,
    content: Content,
    crc: u32,
    bytes: u64,
}

impl BucketLog {
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        clock: Arc<dyn Clock>,
        folder: String,
        writer: u64,
        term: u64,
    ) -> BucketLog {
        BucketLog { bucket, clock, folder, writer, term, next: None, before: 0, held: VecDeque::new(), sent: None }
    }

    fn name(&self, place: LogPlace) -> String {
        name_of(&self.folder, place)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }

    /// Reads the object at a place; `None` where there is none.
    fn read(&self, place: LogPlace) -> Result<Option<Read>, StoreError> {
        let name = self.name(place);
        match self.bucket.get(&name) {
            Ok(bytes) => self.parse(place, &name, &bytes).map(Some),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &self.path(&name))(e)),
        }
    }

    fn parse(&self, place: LogPlace, name: &str, bytes: &[u8]) -> Result<Read, StoreError> {
        let path = self.path(name);
        let corrupt = |detail: String| StoreError::corrupt(&path, detail);
        let content = unframe(&path, MAGIC, VERSION, bytes)?;
        let mut reader = Reader::new(content);
        let mut head = || -> Result<(u64, u64, u32, u8), String> {
            reader.u64()?;
            Ok((reader.u64()?, reader.u64()?, reader.u32()?, reader.u8()?))
        };
        let (epoch, number, before, kind) = head().map_err(corrupt)?;
        if (LogPlace { epoch, number }) != place {
            return Err(corrupt(format!("it is the object {epoch:08x}-{number:016x}")));
        }
        let content = match kind {
            0 => Content::Group(records_of(reader.rest(), epoch).map_err(corrupt)?),
            _ => Content::Fence(reader.u64().map_err(corrupt)?),
        };
        Ok(Read { before, content, crc: crc32c::crc32c(bytes), bytes: bytes.len() as u64 })
    }

    /// An object of this writer, without the content that follows.
    fn head(&self, place: LogPlace, kind: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.writer);
        put_u64(&mut bytes, place.epoch);
        put_u64(&mut bytes, place.number);
        put_u32(&mut bytes, self.before);
        put_u8(&mut bytes, kind);
        bytes
    }

    fn fence(&self, place: LogPlace, epoch: u64) -> Vec<u8> {
        let mut content = self.head(place, 1);
        put_u64(&mut content, epoch);
        frame(MAGIC, VERSION, &content)
    }

    /// Where records continue after a place that holds nothing; `None`: the chain ends there.
    ///
    /// A listing only gives the hint: it may be behind, and show what was deleted.
    fn after_gap(&self, gap: LogPlace) -> Result<Option<LogPlace>, StoreError> {
        let later = |place: &LogPlace| place.number >= gap.number && place.epoch >= gap.epoch && *place != gap;
        let listed =
            listed(self.bucket.as_ref(), &self.folder).map_err(StoreError::io("list", &self.path(&self.folder)))?;
        for place in listed.into_iter().filter(later) {
            // Fences beyond are what processes left that started from an older manifest.
            if let Ok(Some(Read { content: Content::Group(_), .. })) = self.read(place) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Lets objects come at least [`BATCH_EVERY`] apart. Writes that arrive meanwhile form the next group.
    fn pace(&mut self, bytes: usize) {
        if let Some(sent) = self.sent
            && bytes < BATCH_BYTES
        {
            let passed = Duration::from_micros(u64::try_from(self.clock.elapsed() - sent).unwrap_or(0));
            if let Some(rest) = BATCH_EVERY.checked_sub(passed).filter(|rest| !rest.is_zero()) {
                self.clock.sleep(rest);
            }
        }
        self.sent = Some(self.clock.elapsed());
    }

    /// Reads the chain from a place to its end, which `end` is given.
    fn walk(&mut self, from: LogPlace, flushed: u64, found: &mut Replayed) -> Result<LogPlace, StoreError> {
        let (mut at, mut before) = (from, None);
        loop {
            match self.read(at) {
                Ok(Some(read)) => {
                    if before.is_some_and(|before| before != read.before) {
                        let detail = "it does not follow the object before it, so acknowledged writes may be missing";
                        found.damage.push(StoreError::corrupt(&self.path(&self.name(at)), detail));
                    }
                    before = Some(read.crc);
                    self.before = read.crc;
                    at = match read.content {
                        Content::Fence(epoch) => LogPlace { epoch, number: at.number + 1 },
                        Content::Group(records) => {
                            let last_position = records.last().map_or(0, |record| record.position);
                            self.held.push_back(Held { place: at, last_position, bytes: read.bytes });
                            found.records.extend(records.into_iter().filter(|record| record.position > flushed));
                            at.next()
                        }
                    };
                }
                Ok(None) => {
                    let Some(later) = self.after_gap(at)? else { return Ok(at) };
                    // The writer may have gone on between the two looks.
                    if matches!(self.read(at), Ok(Some(_))) {
                        continue;
                    }
                    let detail = "it is missing, and with it acknowledged writes: later objects of the log are there";
                    found.damage.push(StoreError::corrupt(&self.path(&self.name(at)), detail));
                    (at, before) = (later, None);
                }
                Err(damaged @ StoreError::Corrupt { .. }) => {
                    found.damage.push(damaged);
                    (at, before) = (at.next(), None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl WriteLog for BucketLog {
    fn replay(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<Replayed, StoreError> {
        let from = from.unwrap_or(LogPlace::FIRST);
        self.next = None;
        for _ in 0..TURNS {
            let mut found = Replayed::default();
            self.held.clear();
            self.before = 0;
            let end = self.walk(from, flushed, &mut found)?;
            let epoch = self.term.max(next_epoch(0, 0, end.epoch));
            let (name, fence) = (self.name(end), self.fence(end, epoch));
            match create(self.bucket.as_ref(), self.clock.as_ref(), &name, &fence) {
                Ok(Created::Ours) => {
                    self.before = crc32c::crc32c(&fence);
                    self.next = Some(LogPlace { epoch, number: end.number + 1 });
                    sweep(self.bucket.as_ref(), &self.folder, from.number)
                        .map_err(StoreError::io("remove", &self.path(&self.folder)))?;
                    return Ok(found);
                }
                // The writer went on, or another candidate came first: it is read like the rest. Each turn means that another
                // process made progress.
                Ok(Created::Theirs(_)) => {}
                Err(failure) => return Err(StoreError::io("create", &self.path(&name))(failure.into_error())),
            }
        }
        Err(StoreError::Busy(format!("other processes append to the log {} without end: try again later", self.folder)))
    }

    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        let Some(place) = self.next else { return Err(AppendError::Clean(StoreError::Closed)) };
        let Some(last) = records.last() else { return Ok(0) };
        let mut content = self.head(place, 0);
        for record in records {
            record.encode(place.epoch, 0, &mut content);
        }
        let bytes = frame(MAGIC, VERSION, &content);
        drop(content);
        self.pace(bytes.len());
        let name = self.name(place);
        let failed = |error| StoreError::io("create", &self.path(&name))(error);
        match create(self.bucket.as_ref(), self.clock.as_ref(), &name, &bytes) {
            Ok(Created::Ours) => {
                let size = bytes.len() as u64;
                self.held.push_back(Held { place, last_position: last.position, bytes: size });
                self.before = crc32c::crc32c(&bytes);
                self.next = Some(place.next());
                Ok(size)
            }
            // The place stays: every further append finds the same object there. What was held is the new writer's to release.
            Ok(Created::Theirs(_)) => {
                self.held.clear();
                let detail = format!("another process has taken the collection over: {name} is not of this one");
                Err(AppendError::Fenced(StoreError::Fenced(detail)))
            }
            Err(Failure::Clean(error)) => Err(AppendError::Clean(failed(error))),
            Err(Failure::Unknown(error)) => {
                let error = failed(error);
                self.next = None;
                Err(AppendError::Unknown(error))
            }
        }
    }

    fn release(&mut self, flushed: u64) -> Result<(), StoreError> {
        while let Some(held) = self.held.front().filter(|held| held.last_position <= flushed) {
            let name = self.name(held.place);
            self.bucket.delete(&name).map_err(StoreError::io("remove", &self.path(&name)))?;
            self.held.pop_front();
        }
        Ok(())
    }

    fn place(&self, flushed: u64) -> Option<LogPlace> {
        self.held.iter().find(|held| held.last_position > flushed).map(|held| held.place).or(self.next)
    }

    fn tail_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.bytes).sum()
    }
}

/// Deletes objects with a lower number, as a crash leaves them. The last object of each epoch is its fence, and stays.
pub(super) fn sweep(bucket: &dyn Bucket, folder: &str, below: u64) -> io::Result<()> {
    let mut of_epoch: BTreeMap<u64, Vec<LogPlace>> = BTreeMap::new();
    for place in listed(bucket, folder)? {
        of_epoch.entry(place.epoch).or_default().push(place);
    }
    for mut places in of_epoch.into_values() {
        // By the order of numbers the last of them is the fence, or what a listing that is behind shows as the last.
        places.pop();
        for place in places.into_iter().filter(|place| place.number < below) {
            bucket.delete(&name_of(folder, place))?;
        }
    }
    Ok(())
}

/// All places that a listing shows, in order of number.
fn listed(bucket: &dyn Bucket, folder: &str) -> io::Result<Vec<LogPlace>> {
    let mut places: Vec<LogPlace> = bucket.list(folder)?.iter().filter_map(|name| place_of(name)).collect();
    places.sort_by_key(|place| (place.number, place.epoch));
    Ok(places)
}

fn name_of(folder: &str, place: LogPlace) -> String {
    format!("{folder}{:08x}-{:016x}", place.epoch, place.number)
}

fn place_of(name: &str) -> Option<LogPlace> {
    let (epoch, number) = name.rsplit('/').next()?.split_once('-')?;
    Some(LogPlace { epoch: u64::from_str_radix(epoch, 16).ok()?, number: u64::from_str_radix(number, 16).ok()? })
}

fn records_of(bytes: &[u8], epoch: u64) -> Result<Vec<Record>, String> {
    let (mut records, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let stored = read_record(bytes, at, epoch).ok_or_else(|| format!("no record stands at byte {at}"))?;
        at += stored.stored_len();
        records.push(stored.to_record());
    }
    Ok(records)
}
