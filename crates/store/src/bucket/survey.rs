//! The state of a cluster, read from its bucket for operators. Writes nothing, not even a pin.
//!
//! It is not a snapshot: each object is read at its own time. So a count may lag behind the manifest beside it by what
//! an owner did meanwhile.

use super::storage::BucketStorage;
use super::{
    Bucket, COLLECTIONS, ReadOnly, Roll, RollEntry, ScanServerStatus, groups_of, kind, log, peers, pins, roll,
    said_groups, terms_of,
};
use crate::error::StoreError;
use crate::paths::partition_dir;
use crate::seams::{LogPlace, Registry, Seams, Storage};
use crate::stream::{SharedLog, Streams, prefix_of};
use meridian_model::Positions;
use meridian_model::policy::groups::{Group, Groups};
use meridian_model::policy::lease::Term;
use meridian_model::policy::owner::epoch_of;
use meridian_model::policy::pins::InUse;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Placeholder for the data folder, which does not exist; object names do not contain it.
const ROOT: &str = "/";
/// Max objects of a log whose lengths are requested.
const LENGTHS_MAX: usize = 1_000;
/// Max numbers tried for an object that its process has renewed since the listing.
const TRIES: u64 = 3;

/// How long an owner counts a pin that is not renewed.
pub const PIN_HELD: Duration =
    Duration::from_secs(pins::TTL.as_secs() + pins::TTL.as_secs() / pins::MARGIN_PART.unsigned_abs());

/// The newest object of a process: its name, when it was written, and its content.
type Newest<T> = (String, Option<i64>, Result<T, StoreError>);

/// Reads the state of a cluster from a bucket.
#[derive(Debug)]
pub struct Survey {
    bucket: Arc<dyn Bucket>,
    storage: BucketStorage,
}

/// The owner of a group of partitions.
#[derive(Debug)]
pub struct GroupOwner {
    /// The group.
    pub group: Group,
    /// The newest term of its lease, and when it was written, by the bucket's clock; `None` if there never was one.
    pub term: Option<(Term, Option<i64>)>,
}

/// An existing collection.
#[derive(Debug)]
pub struct SurveyedCollection {
    /// Its tenant.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// The folders of its partitions in the bucket, as named in pins.
    pub folders: Vec<String>,
    /// The sum of the newest manifests of its partitions, or why they cannot be read.
    pub flushed: Result<FlushedTotals, StoreError>,
}

/// The sum of the newest manifests of a collection's partitions.
#[derive(Debug)]
pub struct FlushedTotals {
    /// The max version.
    pub version: u64,
    /// The last epoch of a writer.
    pub epoch: u64,
    /// Positions up to which they cover the logs.
    pub position: Positions,
    /// When the collection was created, in microseconds since 1970.
    pub made: i64,
    /// Live segments.
    pub segments: u64,
    /// Their rows, dead ones included.
    pub rows: u64,
    /// Their bytes, and those of their archives.
    pub bytes: u64,
    /// The log entries beyond it, or why they cannot be read; `None` if the place of the log is unknown.
    pub tail: Option<Result<Tail, StoreError>>,
}

impl FlushedTotals {
    /// Adds the next partition.
    fn and(self, next: FlushedTotals) -> FlushedTotals {
        let tail = self.tail.zip(next.tail).map(|(all, one)| {
            let (all, one) = (all?, one?);
            Ok::<_, StoreError>(Tail {
                entries: all.entries + one.entries,
                bytes: all.bytes.zip(one.bytes).map(|(all, one)| all + one),
            })
        });
        FlushedTotals {
            version: self.version.max(next.version),
            epoch: self.epoch.max(next.epoch),
            position: self.position.as_slice().iter().chain(next.position.as_slice()).copied().collect(),
            made: self.made,
            segments: self.segments + next.segments,
            rows: self.rows + next.rows,
            bytes: self.bytes + next.bytes,
            tail,
        }
    }
}

/// The part of a log that no manifest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Objects in the bucket, or messages of the stream. Includes the fences with which a new owner ended its
    /// predecessor's part.
    pub entries: u64,
    /// Bytes of the objects; `None` for messages, and for a very large number of objects.
    pub bytes: Option<u64>,
}

/// The newest pin of a reader.
#[derive(Debug)]
pub struct ReaderPin {
    /// The reader: a random number, new after each start of a process.
    pub reader: String,
    /// When the pin was written, by the bucket's clock, in microseconds since 1970; `None` if the bucket does not
    /// report it.
    pub written: Option<i64>,
    /// Its uses, or why they cannot be read.
    pub uses: Result<Vec<PinUse>, StoreError>,
    /// The status of a scan server; `None` for other readers, such as a check.
    pub serves: Option<ScanServerStatus>,
}

/// A reader's use of one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinUse {
    /// The folder of its partition in the bucket.
    pub folder: String,
    /// Version of the oldest manifest with an object that is in use.
    pub manifest: u64,
    /// Min sequence number of a snapshot that a request may use.
    pub seq: u64,
}

/// The newest status of a server that serves clients.
#[derive(Debug)]
pub struct StoredStatus {
    /// The server: a random number, new after each start of a process.
    pub server: String,
    /// When it was published, by the bucket's clock, in microseconds since 1970; `None` if the bucket does not report
    /// it.
    pub written: Option<i64>,
    /// The status, or why it cannot be read.
    pub content: Result<Vec<u8>, StoreError>,
}

impl PinUse {
    /// Returns the collection, which all its partitions share: `tenants/{tenant}/{collection}`.
    pub fn collection(&self) -> &str {
        let ends = self.folder.match_indices('/').map(|(at, _)| at).nth(2);
        &self.folder[..ends.unwrap_or(self.folder.len())]
    }
}

impl Survey {
    /// Surveys this bucket.
    pub fn new(bucket: &Arc<dyn Bucket>, seams: &Seams) -> Survey {
        let bucket: Arc<dyn Bucket> = Arc::new(ReadOnly(bucket.clone()));
        let storage = BucketStorage::new(bucket.clone(), seams.clone(), ROOT, 0, Duration::ZERO);
        Survey { bucket, storage }
    }

    /// Returns the kind of log of the collections: `bucket` or `nats`. A bucket that no owner has opened yet has the
    /// former.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer.
    pub fn log(&self) -> Result<String, StoreError> {
        Ok(kind::said(self.bucket.as_ref())?.0)
    }

    /// Returns the lease of each group of partitions; there is one group unless the first owner decided otherwise. Read
    /// the owners before the collections: then their statements hold for the manifests that are found.
    ///
    /// # Errors
    /// Those of [`super::Terms::newest`].
    pub fn owners(&self) -> Result<Vec<GroupOwner>, StoreError> {
        let groups = groups_of(self.bucket.as_ref())?.unwrap_or(Groups::ONE);
        let one = |(group, terms): (Group, super::Terms)| {
            let Some((number, term)) = terms.newest()? else { return Ok(GroupOwner { group, term: None }) };
            Ok(GroupOwner { group, term: Some((term, terms.written(number)?)) })
        };
        groups.all().zip(terms_of(&self.bucket, groups)).map(one).collect()
    }

    /// Returns all collections, by tenant and name. `log` is the place of their log, if known.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer. Problems of one collection are in its
    /// [`SurveyedCollection::flushed`].
    pub fn collections(&self, log: Option<&SharedLog>) -> Result<Vec<SurveyedCollection>, StoreError> {
        let mut found = Vec::new();
        let id = match log {
            Some(SharedLog::Streams { .. }) => kind::said(self.bucket.as_ref())?.1,
            Some(SharedLog::Bucket) | None => String::new(),
        };
        for (tenant, name) in self.storage.collections()? {
            let dir = |partition| partition_dir(Path::new(ROOT), &tenant, &name, partition);
            let (mut flushed, partitions) = match self.flushed(&dir(0), log, &id) {
                Ok(None) => continue,
                Ok(Some((flushed, partitions))) => (Ok(flushed), u32::from(partitions)),
                Err(error) => (Err(error), 1),
            };
            for partition in 1..partitions {
                flushed = flushed.and_then(|all| match self.flushed(&dir(partition), log, &id)? {
                    Some((one, _)) => Ok(all.and(one)),
                    // Dropped since the first one was read, or lost.
                    None => Err(StoreError::Busy(format!("partition {partition} has no manifest"))),
                });
            }
            let folders = (0..partitions).map(|partition| self.storage.place_of(&dir(partition))).collect();
            found.push(SurveyedCollection { folders, tenant, name, flushed });
        }
        Ok(found)
    }

    /// Returns the newest pin of each reader.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer. A damaged pin is reported in its [`ReaderPin::uses`].
    pub fn readers(&self) -> Result<Vec<ReaderPin>, StoreError> {
        let one = |InUse { folder, manifest, seq }| PinUse { folder, manifest, seq };
        let read = |reader: &str, number| pins::read(self.bucket.as_ref(), reader, number);
        let found = self.newest_of_each(pins::FOLDER, pins::parse, pins::name_of, read)?;
        let pin = |(reader, written, read): Newest<pins::PinContent>| {
            let (uses, serves) = match read {
                Ok(said) => (Ok(said.in_use.into_iter().map(one).collect()), said.serves),
                Err(error) => (Err(error), None),
            };
            ReaderPin { reader, written, uses, serves }
        };
        Ok(found.into_iter().map(pin).collect())
    }

    /// Returns the status of each server that serves clients.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer. A damaged object is reported in its [`StoredStatus::content`].
    pub fn servers(&self) -> Result<Vec<StoredStatus>, StoreError> {
        let name_of = |server: &str, number| peers::name_of(peers::FOLDER, server, number);
        let read = |server: &str, number| {
            let name = name_of(server, number);
            let gone = || self.failed("read", &name)(ErrorKind::NotFound.into());
            peers::read(self.bucket.as_ref(), &name)?.ok_or_else(gone)
        };
        let found = self.newest_of_each(peers::FOLDER, |name| peers::parse(peers::FOLDER, name), name_of, read)?;
        Ok(found.into_iter().map(|(server, written, content)| StoredStatus { server, written, content }).collect())
    }

    /// Returns the entry of each process on the roll.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer. Damaged objects are left out.
    pub fn nodes(&self) -> Result<Vec<RollEntry>, StoreError> {
        Roll::read(self.bucket.as_ref(), None)
    }

    /// Returns true if no cluster has used the bucket: there never was an owner, and no collection, record or process
    /// exists.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        // The most likely evidence first, so that one call is enough in most cases.
        if said_groups(self.bucket.as_ref())?.is_some() {
            return Ok(false);
        }
        for folder in ["leases/", COLLECTIONS, "records/", roll::FOLDER, peers::FOLDER, pins::FOLDER] {
            if !self.bucket.list(folder).map_err(self.failed("list", folder))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the newest object of each process that keeps replacing its own object, with the time at which it was
    /// written.
    fn newest_of_each<T>(
        &self,
        folder: &str,
        parse: impl Fn(&str) -> Option<(&str, u64)>,
        name_of: impl Fn(&str, u64) -> String,
        read: impl Fn(&str, u64) -> Result<T, StoreError>,
    ) -> Result<Vec<Newest<T>>, StoreError> {
        let names = self.bucket.list(folder).map_err(self.failed("list", folder))?;
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, number) in names.iter().filter_map(|name| parse(name)) {
            let known = newest.entry(process).or_default();
            *known = number.max(*known);
        }
        let mut found = Vec::new();
        for (process, number) in newest {
            for number in number..=number.saturating_add(TRIES - 1) {
                let read = read(process, number);
                // Renewed since the listing, or released.
                if matches!(&read, Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound) {
                    continue;
                }
                let written = self.bucket.modified(&name_of(process, number)).ok().flatten();
                found.push((process.to_owned(), written, read));
                break;
            }
        }
        Ok(found)
    }

    /// Returns the newest manifest of the partition in a folder; `None` if the collection was dropped or is incomplete.
    /// `id` is the bucket's id in stream names.
    fn flushed(
        &self,
        dir: &Path,
        log: Option<&SharedLog>,
        id: &str,
    ) -> Result<Option<(FlushedTotals, u16)>, StoreError> {
        let Some(newest) = self.storage.partition(dir, 0).catalog.newest()? else { return Ok(None) };
        let manifest = newest.manifest;
        if manifest.making {
            return Ok(None);
        }
        let tail = log.map(|log| match log {
            SharedLog::Bucket => self.objects(&format!("{}/wal/", self.storage.place_of(dir)), manifest.log),
            SharedLog::Streams { streams, .. } => {
                let below = dir.strip_prefix(ROOT).unwrap_or(dir);
                let prefix = prefix_of(id, below, self.storage.life(dir));
                self.messages(streams.as_ref(), &prefix, manifest.log)
            }
        });
        let archives = manifest.segments.iter().filter_map(|segment| segment.archive.map(|archive| archive.bytes));
        let flushed = FlushedTotals {
            version: manifest.version(),
            epoch: epoch_of(manifest.version()),
            position: Positions::one(manifest.flushed),
            made: manifest.created,
            segments: manifest.segments.len() as u64,
            rows: manifest.segments.iter().map(|segment| u64::from(segment.rows)).sum(),
            bytes: manifest.segments.iter().map(|segment| segment.bytes).sum::<u64>() + archives.sum::<u64>(),
            tail,
        };
        Ok(Some((flushed, manifest.settings.partitions)))
    }

    /// Returns the objects of a log from a place on, as listed.
    fn objects(&self, folder: &str, from: Option<LogPlace>) -> Result<Tail, StoreError> {
        let from = from.unwrap_or(LogPlace::FIRST);
        let mut places = log::listed(self.bucket.as_ref(), folder).map_err(self.failed("list", folder))?;
        // Numbers and epochs both grow along the chain.
        places.retain(|place| place.number >= from.number && place.epoch >= from.epoch);
        let (mut entries, mut bytes) = (places.len() as u64, 0);
        if places.len() > LENGTHS_MAX {
            return Ok(Tail { entries, bytes: None });
        }
        for place in places {
            let name = log::name_of(folder, place);
            match self.bucket.len(&name) {
                Ok(len) => bytes += len,
                // Flushed meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => entries -= 1,
                Err(e) => return Err(self.failed("read", &name)(e)),
            }
        }
        Ok(Tail { entries, bytes: Some(bytes) })
    }

    /// Returns the messages from a place on, in streams whose names begin with `prefix`.
    fn messages(&self, streams: &dyn Streams, prefix: &str, from: Option<LogPlace>) -> Result<Tail, StoreError> {
        let (generation, number) = from.map_or((0, 0), |place| (place.epoch, place.number));
        let name = format!("{prefix}{generation}");
        let failed = |source| StoreError::Io { action: "read", path: Path::new(&streams.place()).join(&name), source };
        let stream = streams.open(&name).map_err(failed)?.ok_or_else(|| failed(ErrorKind::NotFound.into()))?;
        let bounds = stream.bounds().map_err(failed)?;
        Ok(Tail { entries: (bounds.last + 1).saturating_sub(number.max(bounds.first)), bytes: None })
    }

    fn failed(&self, action: &'static str, name: &str) -> impl FnOnce(std::io::Error) -> StoreError + use<> {
        let path = Path::new(&self.bucket.place()).join(name);
        move |source| StoreError::Io { action, path, source }
    }
}
