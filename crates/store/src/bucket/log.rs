//! The log in a bucket: a chain of objects. Each is a group of writes, or the fence that ends its writer's part of the
//! chain.
//!
//! `model::policy::owner` decides which object comes next and what a refusal means; its steps are executed here.

use super::Bucket;
use super::ahead::ReadAhead;
use super::create::{create, outcome};
use crate::codec::{Reader, frame, put_u8, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::log::read_record;
use crate::seams::Record;
use crate::seams::{AppendError, Clock, LogContents, LogPlace, Removal, WriteLog};
use meridian_model::policy::owner::{
    AppendOutcome, Link, LogGroup, ReadOutcome, Replay, ReplayStep, Rules, Writer, obsolete,
};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"MRDNWALB";
const VERSION: u32 = 1;
/// Min time between objects, unless they are large: a store bills and limits calls, not bytes.
const BATCH_EVERY: Duration = Duration::from_millis(250);
/// A group of at least this size does not wait.
const BATCH_BYTES: usize = 4 << 20;

/// The log of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketLog {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// Prefix of the names: `.../wal/`.
    folder: String,
    /// Random, so that no other writer's object has the same bytes as one of this writer.
    writer: u64,
    /// The epoch of this process's lease; 0 if it has none.
    term: u64,
    /// The part of the chain that this process writes; `None` if the log has to be replayed first.
    chain: Option<Writer>,
    /// When the last object was sent, in microseconds of the clock's elapsed time.
    sent: Option<i64>,
}

/// The content of an object.
pub(super) enum Content {
    Group(Vec<Record>),
    /// Ends the writer's part; the part of this epoch begins.
    Fence(u64),
}

/// An object read from the bucket.
pub(super) struct ReadObject {
    /// Checksum of the previous object in the chain.
    pub(super) before: u32,
    pub(super) content: Content,
    pub(super) crc: u32,
    pub(super) bytes: u64,
}

impl ReadObject {
    fn link(&self) -> Link {
        let fence = match self.content {
            Content::Fence(epoch) => Some(epoch),
            Content::Group(_) => None,
        };
        Link::Object { before: self.before, sum: self.crc, fence }
    }
}

impl BucketLog {
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        clock: Arc<dyn Clock>,
        folder: String,
        writer: u64,
        term: u64,
    ) -> BucketLog {
        BucketLog { bucket, clock, folder, writer, term, chain: None, sent: None }
    }

    fn name(&self, place: LogPlace) -> String {
        name_of(&self.folder, place)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }

    /// Reads the object at a place; `None` if it does not exist.
    pub(super) fn read(&self, place: LogPlace) -> Result<Option<ReadObject>, StoreError> {
        let name = self.name(place);
        match self.bucket.get(&name) {
            Ok(bytes) => self.parse(place, &name, &bytes).map(Some),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &self.path(&name))(e)),
        }
    }

    /// Returns the error for an object that does not follow from the previous one.
    pub(super) fn unlinked(&self, place: LogPlace) -> StoreError {
        let detail = "it does not follow the object before it, so acknowledged writes may be missing";
        StoreError::corrupt(&self.path(&self.name(place)), detail)
    }

    fn parse(&self, place: LogPlace, name: &str, bytes: &[u8]) -> Result<ReadObject, StoreError> {
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
        Ok(ReadObject { before, content, crc: crc32c::crc32c(bytes), bytes: bytes.len() as u64 })
    }

    /// Encodes the head of an object of this writer, without its content.
    fn head(&self, place: LogPlace, before: u32, kind: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.writer);
        put_u64(&mut bytes, place.epoch);
        put_u64(&mut bytes, place.number);
        put_u32(&mut bytes, before);
        put_u8(&mut bytes, kind);
        bytes
    }

    fn fence(&self, place: LogPlace, before: u32, epoch: u64) -> Vec<u8> {
        let mut content = self.head(place, before, 1);
        put_u64(&mut content, epoch);
        frame(MAGIC, VERSION, &content)
    }

    /// Waits so that objects are at least [`BATCH_EVERY`] apart. Writes that arrive meanwhile form the next group.
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

    /// Reads the object at a place for a replay, and takes what counts of it.
    fn take(
        &self,
        place: LogPlace,
        flushed: u64,
        replay: &mut Replay,
        ahead: &mut ReadAhead<Result<Option<ReadObject>, StoreError>>,
        found: &mut LogContents,
        held: &mut VecDeque<LogGroup>,
    ) -> Result<(), StoreError> {
        let read = match ahead.get(place, |place| self.read(place)) {
            // This result may be old: the chain ends only where an object is absent now.
            Ok(None) | Err(StoreError::Io { .. }) => self.read(place),
            read => read,
        };
        let (link, read, damage) = match read {
            Ok(None) => (Link::Absent, None, None),
            Ok(Some(read)) => (read.link(), Some(read), None),
            Err(damage @ StoreError::Corrupt { .. }) => (Link::Damaged, None, Some(damage)),
            Err(error) => return Err(error),
        };
        match replay.read(link) {
            ReadOutcome::Next => {}
            ReadOutcome::Unlinked => {
                found.damage.push(self.unlinked(place));
            }
            ReadOutcome::Damaged => found.damage.extend(damage),
            ReadOutcome::Missing(gap) => {
                let detail = "it is missing, and with it acknowledged writes: later objects of the log are there";
                found.damage.push(StoreError::corrupt(&self.path(&self.name(gap)), detail));
                return Ok(());
            }
            ReadOutcome::Nothing => return Ok(()),
        }
        if let Some(ReadObject { content: Content::Group(records), bytes, .. }) = read {
            let last_position = records.last().map_or(0, |record| record.position);
            let time = records.first().map_or(0, |record| record.time);
            held.push_back(LogGroup { place, last_position, time, bytes });
            found.records.extend(records.into_iter().filter(|record| record.position > flushed));
        }
        Ok(())
    }

    /// Returns problems of the chain from a place up to its current end, and the position of the last write that it or
    /// a manifest up to `flushed` covers. Nothing is fenced.
    pub(crate) fn check(&self, flushed: u64, from: Option<LogPlace>) -> Result<(Vec<StoreError>, u64), StoreError> {
        let (mut found, mut held, mut ahead) = (LogContents::default(), VecDeque::new(), ReadAhead::new());
        let mut last = flushed;
        let mut replay = Replay::new(Rules::SERVER, from.unwrap_or(LogPlace::FIRST), self.term);
        loop {
            match replay.step() {
                ReplayStep::Read(place) => {
                    self.take(place, flushed, &mut replay, &mut ahead, &mut found, &mut held)?;
                }
                ReplayStep::List => replay.listed(self.places()?),
                // The end of the chain.
                _ => return Ok((found.damage, last)),
            }
            last = held.iter().fold(last, |last, group: &LogGroup| last.max(group.last_position));
            // Frees memory, as a log may be large.
            found.records.clear();
            held.clear();
        }
    }

    fn places(&self) -> Result<Vec<LogPlace>, StoreError> {
        listed(self.bucket.as_ref(), &self.folder).map_err(StoreError::io("list", &self.path(&self.folder)))
    }

    fn delete(&self, place: LogPlace) -> Result<(), StoreError> {
        let name = self.name(place);
        self.bucket.delete(&name).map_err(StoreError::io("remove", &self.path(&name)))
    }
}

impl WriteLog for BucketLog {
    fn replay(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogContents, StoreError> {
        let (mut found, mut held, mut ahead) = (LogContents::default(), VecDeque::new(), ReadAhead::new());
        let mut replay = Replay::new(Rules::SERVER, from.unwrap_or(LogPlace::FIRST), self.term);
        self.chain = None;
        loop {
            match replay.step() {
                ReplayStep::Read(place) => {
                    self.take(place, flushed, &mut replay, &mut ahead, &mut found, &mut held)?;
                }
                ReplayStep::List => replay.listed(self.places()?),
                ReplayStep::Fence { at, before, epoch } => {
                    let (name, fence) = (self.name(at), self.fence(at, before, epoch));
                    let created = create(self.bucket.as_ref(), self.clock.as_ref(), &name, &fence);
                    replay.fenced(outcome(&created), crc32c::crc32c(&fence));
                    created.map_err(|failure| StoreError::io("create", &self.path(&name))(failure.into_error()))?;
                }
                ReplayStep::Delete(place) => {
                    self.delete(place)?;
                    replay.deleted();
                }
                ReplayStep::Done { next, before } => {
                    self.chain = Some(Writer::new(Rules::SERVER, next, before, held));
                    return Ok(found);
                }
                ReplayStep::Busy => {
                    let detail =
                        format!("other processes append to the log {} without end: try again later", self.folder);
                    return Err(StoreError::Busy(detail));
                }
            }
        }
    }

    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        let open = self.chain.as_ref().and_then(|chain| Some((chain.next()?, chain.before())));
        let Some((place, before)) = open else { return Err(AppendError::Clean(StoreError::Closed)) };
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(0) };
        let mut content = self.head(place, before, 0);
        for record in records {
            record.encode(place.epoch, 0, &mut content);
        }
        let bytes = frame(MAGIC, VERSION, &content);
        drop(content);
        self.pace(bytes.len());
        let name = self.name(place);
        let created = create(self.bucket.as_ref(), self.clock.as_ref(), &name, &bytes);
        let group = LogGroup { place, last_position: last.position, time: first.time, bytes: bytes.len() as u64 };
        let appended = match &mut self.chain {
            Some(chain) => chain.appended(outcome(&created), group, crc32c::crc32c(&bytes)),
            None => AppendOutcome::Unknown,
        };
        let failed = || match created {
            Err(failure) => StoreError::io("create", &self.path(&name))(failure.into_error()),
            Ok(_) => {
                StoreError::Fenced(format!("another process has taken the collection over: {name} is not of this one"))
            }
        };
        match appended {
            AppendOutcome::Stored => Ok(group.bytes),
            AppendOutcome::Fenced => Err(AppendError::Fenced(failed())),
            AppendOutcome::Refused => Err(AppendError::Clean(failed())),
            AppendOutcome::Unknown => Err(AppendError::Unknown(failed())),
        }
    }

    fn release(&mut self, flushed: u64, _: Option<LogPlace>) -> Result<Option<Removal>, StoreError> {
        let place = self.chain.as_ref().and_then(|chain| chain.releases(flushed));
        Ok(place.map(|place| {
            let (bucket, name) = (self.bucket.clone(), self.name(place));
            let path = self.path(&name);
            Box::new(move || bucket.delete(&name).map_err(StoreError::io("remove", &path))) as Removal
        }))
    }

    fn removed(&mut self) {
        if let Some(chain) = &mut self.chain {
            chain.released();
        }
    }

    fn place(&self, flushed: u64) -> Option<LogPlace> {
        self.chain.as_ref().map(|chain| chain.place(flushed))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn oldest(&self, flushed: u64) -> Option<i64> {
        self.chain.as_ref()?.oldest(flushed)
    }

    fn tail_bytes(&self) -> u64 {
        self.chain.as_ref().map_or(0, Writer::held_bytes)
    }
}

/// Deletes what can be deleted of a log that no process replays any more.
pub(super) fn clear(bucket: &dyn Bucket, folder: &str) -> io::Result<()> {
    let places = obsolete(Rules::SERVER, listed(bucket, folder)?, u64::MAX);
    places.into_iter().try_for_each(|place| bucket.delete(&name_of(folder, place)))
}

/// Returns all places in a listing.
pub(super) fn listed(bucket: &dyn Bucket, folder: &str) -> io::Result<Vec<LogPlace>> {
    Ok(bucket.list(folder)?.iter().filter_map(|name| place_of(name)).collect())
}

pub(super) fn name_of(folder: &str, place: LogPlace) -> String {
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
