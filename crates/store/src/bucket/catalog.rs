//! The catalog in a bucket: manifests numbered without a gap, each created after the one before.
//!
//! The number is not the manifest's version: of two writers that follow one manifest both create the next number, and one finds it taken.
//!
//! Old manifests are deleted, so a number may be free again, and a stalled writer could create it anew. Two rules prevent that:
//! - The first manifest of each writer is never deleted, nor is the end of a collection. Another writer's manifest in the place of the next
//!   one of a former writer is always such a first one: so the former writer finds it for ever.
//! - A writer that has just created its first manifest looks whether a newer one exists (`numbers.rs`). If so it started from an older one,
//!   and takes its own back.

use super::create::{Created, Failure, create};
use super::{Bucket, numbers};
use crate::catalog::manifest::Manifest;
use crate::codec::{Reader, frame, put_u8, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::seams::{Catalog, Clock, CommitError, Newest, Proof};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MRDNCATB";
const VERSION: u32 = 1;
/// Max searches for the newest manifest, while others commit and delete.
const TURNS: usize = 16;
/// Most numbers of old manifests that are remembered.
const OLD_MAX: usize = 256;

/// The manifests of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketCatalog {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// What names begin with: `.../manifests/`.
    folder: String,
    /// Random: the bytes of no other writer's object are those of one of this one.
    writer: u64,
    known: Mutex<Option<Known>>,
}

/// The newest object as far as this process knows.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    number: u64,
    kind: Kind,
    /// Version of its manifest; 0: there is none, or the collection was dropped.
    version: u64,
    /// This writer has created it.
    ours: bool,
    /// Numbers of manifests that may be there still and need not stay for ever.
    old: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// There is no object yet.
    Nothing,
    /// The first manifest of its writer: it stays for ever.
    First,
    /// A later one of the same writer.
    Later,
    /// The collection was dropped.
    End,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Nothing => 0,
            Kind::First => 1,
            Kind::Later => 2,
            Kind::End => 3,
        }
    }

    fn of(code: u8) -> Result<Kind, String> {
        let kind = [Kind::First, Kind::Later, Kind::End].into_iter().find(|kind| kind.code() == code);
        kind.ok_or_else(|| format!("an object of kind {code}"))
    }
}

impl BucketCatalog {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>, folder: String, writer: u64) -> BucketCatalog {
        BucketCatalog { bucket, clock, folder, writer, known: Mutex::new(None) }
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number:016x}", self.folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }

    fn exists(&self, number: u64) -> Result<bool, StoreError> {
        let name = self.name(number);
        match self.bucket.len(&name) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(StoreError::io("read", &self.path(&name))(e)),
        }
    }

    /// Finds the newest object and reads it.
    fn look(&self) -> Result<(Known, Option<Manifest>), StoreError> {
        for _ in 0..TURNS {
            // A listing that is behind costs a few more steps, and decides nothing.
            let names = self.bucket.list(&self.folder).map_err(StoreError::io("list", &self.path(&self.folder)))?;
            let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
            let hint = names.iter().filter_map(number).max().unwrap_or(0);
            let number = numbers::newest(hint, |number| self.exists(number))?;
            if number == 0 {
                let known = Known { number, kind: Kind::Nothing, version: 0, ours: false, old: Vec::new() };
                return Ok((known, None));
            }
            let name = self.name(number);
            match self.bucket.get(&name) {
                Ok(bytes) => return self.parse(number, &name, &bytes),
                // Newer ones were made since, and this one deleted.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(StoreError::io("read", &self.path(&name))(e)),
            }
        }
        Err(StoreError::Busy(format!("the manifests in {} change too fast to be read: try again later", self.folder)))
    }

    fn parse(&self, number: u64, name: &str, bytes: &[u8]) -> Result<(Known, Option<Manifest>), StoreError> {
        let path = self.path(name);
        let content = unframe(&path, MAGIC, VERSION, bytes)?;
        let mut reader = Reader::new(content);
        let mut head = || -> Result<(u64, u64, Kind, Vec<u64>), String> {
            let (writer, own, kind) = (reader.u64()?, reader.u64()?, Kind::of(reader.u8()?)?);
            let old = (0..reader.u32()?).map(|_| reader.u64()).collect::<Result<_, _>>()?;
            Ok((writer, own, kind, old))
        };
        let (writer, own, kind, old) = head().map_err(|e| StoreError::corrupt(&path, e))?;
        if own != number {
            return Err(StoreError::corrupt(&path, format!("it is the object {own:016x}")));
        }
        let manifest = match kind {
            Kind::End => None,
            _ => Some(Manifest::decode(&path, reader.rest())?),
        };
        let version = manifest.as_ref().map_or(0, Manifest::version);
        Ok((Known { number, kind, version, ours: writer == self.writer, old }, manifest))
    }

    /// Creates the object after the known one.
    fn follow(&self, follows: u64, kind: Kind, manifest: Option<&Manifest>) -> Result<u64, CommitError> {
        let mut guard = self.known.lock();
        let known = match guard.take() {
            Some(known) if known.version == follows => known,
            // What was known is of another commit, or nothing was: the bucket decides.
            _ => self.look().map_err(CommitError::Clean)?.0,
        };
        if known.version != follows {
            let newest = known.version;
            *guard = Some(known);
            return Err(CommitError::Stale { newest });
        }
        // Not its first one only if the manifest before is this writer's as well.
        let first = !(known.ours && matches!(known.kind, Kind::First | Kind::Later));
        let kind = if first && kind == Kind::Later { Kind::First } else { kind };
        let number = known.number + 1;
        let mut old = known.old.clone();
        if known.kind == Kind::Later {
            old.push(known.number);
        }
        let (name, bytes) = (self.name(number), self.encode(number, kind, &old, manifest)?);
        match create(self.bucket.as_ref(), self.clock.as_ref(), &name, &bytes) {
            Ok(Created::Ours) => {}
            Ok(Created::Theirs(found)) => {
                // Its version is for the message; whose it is has been decided.
                let newest = self.parse(number, &name, &found).map_or(0, |(known, _)| known.version);
                return Err(CommitError::Stale { newest });
            }
            Err(Failure::Clean(error)) => {
                *guard = Some(known);
                return Err(CommitError::Clean(StoreError::io("create", &self.path(&name))(error)));
            }
            Err(Failure::Unknown(error)) => {
                return Err(CommitError::Unknown(StoreError::io("create", &self.path(&name))(error)));
            }
        }
        if first {
            let newer = numbers::successor(number, |number| self.exists(number)).map_err(CommitError::Unknown)?;
            if newer.is_some() {
                // The number was deleted long ago. Nobody takes the object for the newest, whether it goes or not.
                let _ = self.bucket.delete(&name);
                return Err(CommitError::Stale { newest: self.look().map_or(0, |(known, _)| known.version) });
            }
        }
        let old = self.tidy(number, old);
        let version = manifest.map_or(0, Manifest::version);
        *guard = Some(Known { number, kind, version, ours: true, old });
        Ok(bytes.len() as u64)
    }

    fn encode(
        &self,
        number: u64,
        kind: Kind,
        old: &[u64],
        manifest: Option<&Manifest>,
    ) -> Result<Vec<u8>, CommitError> {
        let mut content = Vec::new();
        put_u64(&mut content, self.writer);
        put_u64(&mut content, number);
        put_u8(&mut content, kind.code());
        put_u32(&mut content, old.len() as u32);
        old.iter().for_each(|at| put_u64(&mut content, *at));
        if let Some(manifest) = manifest {
            content.extend(manifest.encode(&self.path(&self.name(number))).map_err(CommitError::Clean)?);
        }
        Ok(frame(MAGIC, VERSION, &content))
    }

    /// Deletes old manifests that need not stay, and returns the remaining ones. One that cannot be deleted now is tried again after the
    /// next commit.
    fn tidy(&self, newest: u64, old: Vec<u64>) -> Vec<u64> {
        let goes = |number: &u64| !numbers::stays(*number, newest) && self.bucket.delete(&self.name(*number)).is_ok();
        let mut left: Vec<u64> = old.into_iter().filter(|number| !goes(number)).collect();
        // While nothing can be deleted the oldest are forgotten: they take room, and no more than that.
        left.drain(..left.len().saturating_sub(OLD_MAX));
        left
    }

    /// Whether the collection was dropped; `false` as well if it was never made.
    pub(super) fn is_ended(&self) -> Result<bool, StoreError> {
        Ok(self.look()?.0.kind == Kind::End)
    }
}

impl Catalog for BucketCatalog {
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        let (known, manifest) = self.look()?;
        *self.known.lock() = Some(known);
        Ok(manifest.map(|manifest| Newest { manifest, proof: Proof::Newest { behind: false } }))
    }

    fn commit(&self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        self.follow(follows, Kind::Later, Some(manifest))
    }

    fn end(&self, follows: u64) -> Result<(), CommitError> {
        self.follow(follows, Kind::End, None).map(|_| ())
    }
}
