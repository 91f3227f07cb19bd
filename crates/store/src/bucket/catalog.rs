//! The catalog in a bucket: manifests numbered without gaps, each created after the previous one.
//!
//! `model::policy::owner` decides the next number, whether a commit stands and which manifests are deleted; its steps
//! are executed here.
//!
//! A *receipt* beside the manifests records which of them was the newest. No step depends on it. It is written once its
//! manifest stands, and a search that begins later finds that manifest or a newer one. So a search that ends below a
//! receipt proves that a manifest was lost; without the receipt the older state would pass for the newest.

use super::Bucket;
use super::create::{CreateOutcome, create, outcome};
use crate::codec::{Reader, frame, put_u8, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::seams::{Catalog, Clock, CommitError, Newest, Proof};
use meridian_model::policy::owner::{
    Commit, CommitOutcome, CommitStep, Head, Kind, KnownObject, Lookup, LookupStep, Rules,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"MRDNCATB";
const VERSION: u32 = 1;
/// The prefix of a receipt's name, before the number of its manifest.
const RECEIPT: &str = "0-newest-";

/// The manifests of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketCatalog {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// Prefix of the names: `.../manifests/`.
    folder: String,
    /// Random, so that no other writer's object has the same bytes as one of this writer.
    writer: u64,
    /// The newest object known to this process.
    known: Mutex<Option<KnownObject>>,
    /// Version of the newest manifest seen here.
    committed: Arc<AtomicU64>,
    /// Numbers of the receipts seen here.
    receipts: Mutex<BTreeSet<u64>>,
}

/// Returns the stored code of a kind.
fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Nothing => 0,
        Kind::First => 1,
        Kind::Later => 2,
        Kind::End => 3,
    }
}

fn kind_of(code: u8) -> Result<Kind, String> {
    let kind = [Kind::First, Kind::Later, Kind::End].into_iter().find(|kind| code_of(*kind) == code);
    kind.ok_or_else(|| format!("an object of kind {code}"))
}

impl BucketCatalog {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>, folder: String, writer: u64) -> BucketCatalog {
        BucketCatalog {
            bucket,
            clock,
            folder,
            writer,
            known: Mutex::new(None),
            committed: Arc::default(),
            receipts: Mutex::default(),
        }
    }

    /// Returns the version of the newest manifest seen here, which is kept up to date.
    pub(crate) fn committed(&self) -> Arc<AtomicU64> {
        self.committed.clone()
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
    fn look(&self) -> Result<(KnownObject, Option<Manifest>), StoreError> {
        let (mut look, mut read, mut receipt) = (Lookup::new(Rules::SERVER), (0, String::new(), Vec::new()), 0);
        loop {
            match look.step() {
                LookupStep::List => {
                    let listed = self.bucket.list(&self.folder);
                    let names = listed.map_err(StoreError::io("list", &self.path(&self.folder)))?;
                    let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
                    let receipts: BTreeSet<u64> = names.iter().filter_map(|name| receipt_of(name)).collect();
                    receipt = receipts.last().copied().unwrap_or(0);
                    *self.receipts.lock() = receipts;
                    look.listed(names.iter().filter_map(number).max().unwrap_or(0));
                }
                LookupStep::Exists(number) => look.exists(self.exists(number)?),
                LookupStep::Nothing if receipt > 0 => return Err(self.lost(receipt)),
                LookupStep::Nothing => return Ok((KnownObject::nothing(), None)),
                LookupStep::Get(number) => {
                    let name = self.name(number);
                    match self.bucket.get(&name) {
                        Ok(bytes) => {
                            read = (number, name, bytes);
                            look.got(true);
                        }
                        Err(e) if e.kind() == ErrorKind::NotFound => look.got(false),
                        Err(e) => return Err(StoreError::io("read", &self.path(&name))(e)),
                    }
                }
                LookupStep::Found if receipt > read.0 => return Err(self.lost(receipt)),
                LookupStep::Found => {
                    let (number, name, bytes) = read;
                    return self.parse(number, &name, &bytes);
                }
                LookupStep::Busy => {
                    let detail =
                        format!("the manifests in {} change too fast to be read: try again later", self.folder);
                    return Err(StoreError::Busy(detail));
                }
            }
        }
    }

    fn parse(&self, number: u64, name: &str, bytes: &[u8]) -> Result<(KnownObject, Option<Manifest>), StoreError> {
        let path = self.path(name);
        let content = unframe(&path, MAGIC, VERSION, bytes)?;
        let mut reader = Reader::new(content);
        let mut head = || -> Result<(u64, u64, Kind, Vec<u64>), String> {
            let (writer, own, kind) = (reader.u64()?, reader.u64()?, kind_of(reader.u8()?)?);
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
        Ok((KnownObject { number, kind, version, ours: writer == self.writer, old }, manifest))
    }

    /// Creates the object after the known one: a manifest, or the end marker.
    fn follow(&self, follows: u64, manifest: Option<&Manifest>) -> Result<u64, CommitError> {
        let mut known = self.known.lock();
        let version = manifest.map_or(0, Manifest::version);
        let mut commit = Commit::new(Rules::SERVER, follows, version, manifest.is_none(), known.take());
        // For the result: bytes written, the version that is newest instead, and the bucket's error.
        let (mut written, mut newest, mut said) = (0, None, None);
        loop {
            match commit.step() {
                CommitStep::Look => {
                    let (found, _) = self.look().map_err(CommitError::Clean)?;
                    newest = Some(found.version);
                    commit.looked(found);
                }
                CommitStep::Create(number) => {
                    let (name, bytes) = (self.name(number), self.encode(&commit.head(), manifest)?);
                    let created = create(self.bucket.as_ref(), self.clock.as_ref(), &name, &bytes);
                    commit.created(outcome(&created));
                    match created {
                        Ok(CreateOutcome::Ours) => written = bytes.len() as u64,
                        Ok(CreateOutcome::Theirs(found)) => {
                            newest = self.parse(number, &name, &found).ok().map(|(known, _)| known.version);
                        }
                        Err(failure) => {
                            said = Some(StoreError::io("create", &self.path(&name))(failure.into_error()));
                        }
                    }
                }
                CommitStep::Exists(number) => {
                    let exists = self.exists(number).map_err(|error| said = Some(error)).ok();
                    commit.exists(exists);
                    if exists == Some(true) {
                        newest = self.look().ok().map(|(known, _)| known.version);
                    }
                }
                CommitStep::Delete(number) => commit.deleted(self.bucket.delete(&self.name(number)).is_ok()),
                CommitStep::Done(committed) => {
                    *known = commit.into_known();
                    if committed == CommitOutcome::Stands {
                        self.write_receipt(known.as_ref().map_or(0, |known| known.number));
                    }
                    let said = said.unwrap_or_else(|| StoreError::Busy("the bucket did not say why".to_owned()));
                    return match committed {
                        CommitOutcome::Stands => {
                            self.committed.fetch_max(version, Ordering::AcqRel);
                            Ok(written)
                        }
                        CommitOutcome::Stale => Err(CommitError::Stale { newest: newest.unwrap_or(0) }),
                        CommitOutcome::Refused => Err(CommitError::Clean(said)),
                        CommitOutcome::Unknown => Err(CommitError::Unknown(said)),
                    };
                }
            }
        }
    }

    /// Returns the error for a receipt whose manifest is gone although no newer one exists.
    fn lost(&self, receipt: u64) -> StoreError {
        let detail = format!(
            "it is missing: the object {RECEIPT}{receipt:016x} beside it says that it was the newest manifest; put it back from a copy of the \
             bucket"
        );
        StoreError::corrupt(&self.path(&self.name(receipt)), detail)
    }

    /// Writes the receipt of this manifest, and removes earlier receipts.
    fn write_receipt(&self, number: u64) {
        let name = |number: u64| format!("{}{RECEIPT}{number:016x}", self.folder);
        let mut receipts = self.receipts.lock();
        // Tried once: the manifest stands without it. A missing or late receipt proves nothing.
        if let Err(error) = self.bucket.put(&name(number), b"") {
            tracing::warn!(%error, "the receipt of a manifest could not be written: if the manifest is lost, that goes unnoticed");
            return;
        }
        // Only earlier ones: another process may have written later ones by now.
        receipts.retain(|old| *old >= number || self.bucket.delete(&name(*old)).is_err());
        receipts.insert(number);
    }

    fn encode(&self, head: &Head, manifest: Option<&Manifest>) -> Result<Vec<u8>, CommitError> {
        let mut content = Vec::new();
        put_u64(&mut content, self.writer);
        put_u64(&mut content, head.number);
        put_u8(&mut content, code_of(head.kind));
        put_u32(&mut content, head.old.len() as u32);
        head.old.iter().for_each(|at| put_u64(&mut content, *at));
        if let Some(manifest) = manifest {
            content.extend(manifest.encode(&self.path(&self.name(head.number))).map_err(CommitError::Clean)?);
        }
        Ok(frame(MAGIC, VERSION, &content))
    }
}

/// Returns the offset of the manifest in an object's content; `None` if the magic number is not that of a catalog.
pub(super) fn manifest_in(magic: &[u8; 8], content: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(content);
    let mut head = || -> Result<(), String> {
        let (_, _, _) = (reader.u64()?, reader.u64()?, reader.u8()?);
        (0..reader.u32()?).try_for_each(|_| reader.u64().map(drop))
    };
    (magic == MAGIC && head().is_ok()).then(|| content.len() - reader.left())
}

/// Returns the manifest number of a receipt; `None` if the name is not one of a receipt.
fn receipt_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.rsplit('/').next()?.strip_prefix(RECEIPT)?, 16).ok()
}

impl Catalog for BucketCatalog {
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        let (known, manifest) = self.look()?;
        self.committed.fetch_max(known.version, Ordering::AcqRel);
        *self.known.lock() = Some(known);
        Ok(manifest.map(|manifest| Newest { manifest, proof: Proof::Newest { behind: false } }))
    }

    fn commit(&self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        self.follow(follows, Some(manifest))
    }

    fn end(&self, follows: u64) -> Result<(), CommitError> {
        self.follow(follows, None).map(|_| ())
    }

    fn is_ended(&self) -> Result<bool, StoreError> {
        Ok(self.look()?.0.kind == Kind::End)
    }
}
