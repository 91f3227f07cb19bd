//! A collection at one position, held unchanged while it is copied.

use crate::catalog::sidecars::sidecars;
use crate::codec::FRAME_BYTES;
use crate::collection::Collection;
use crate::error::StoreError;
use crate::ingest::partition::Partition;
use crate::manifest::{Manifest, archive_name, rows_name, segment_name};
use crate::options::Durability;
use crate::part::Part;
use crate::part::segment::{Archive, RowsFile};
use crate::seams::Object;
use crate::store::Store;
use meridian_model::{Invalid, Seq};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A manifest and its opened files, which merges cannot make unreadable.
pub(super) struct PinnedFiles {
    pub(super) manifest: Manifest,
    pub(super) events: u64,
    pub(super) files: Vec<PinnedFile>,
}

/// A pinned file.
pub(super) struct PinnedFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    file: Arc<dyn Object>,
    kind: Kind,
}

/// How the integrity of a file is verified.
enum Kind {
    /// A small framed file.
    Framed,
    /// The files served beside a segment's rows.
    Index(Arc<Part>),
    Rows(Arc<RowsFile>),
    Archive(Arc<Archive>),
}

impl Store {
    /// Pins all partitions of a collection, so that a backup has all of them or none; `None` if it was dropped
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if it was closed meanwhile and still exists, perhaps under another name.
    pub(super) fn pin(&self, partitions: &[Arc<Collection>]) -> Result<Option<Vec<PinnedFiles>>, StoreError> {
        let pinned = partitions.iter().map(|partition| partition.pin()).collect::<Result<_, _>>();
        if !partitions.iter().any(|partition| partition.stop.load(Ordering::Acquire)) {
            return pinned.map(Some);
        }
        // A drop and a rename close the partitions first: this waits for the end of either.
        drop(self.inner().changing.lock());
        let is_dropped = partitions.iter().all(|partition| partition.dropped.load(Ordering::Acquire));
        // A renamed collection keeps its seeds, and is not lost from a backup in silence.
        let seed = |partition: &Arc<Collection>| partition.core.lock().manifest.seed;
        let seeds: BTreeSet<u64> = partitions.iter().map(seed).collect();
        match is_dropped && !self.collections().iter().any(|other| seeds.contains(&seed(other))) {
            true => Ok(None),
            false => Err(StoreError::closes()),
        }
    }
}

impl Collection {
    /// Pins everything acknowledged before the call, and complete batches of later writes.
    pub(super) fn pin(&self) -> Result<PinnedFiles, StoreError> {
        // Checked before the flush: a copy of an incomplete collection would look complete.
        self.core.lock().check_whole()?;
        if self.is_durable() && !self.shared.complete.is_followed() {
            self.flush()?;
        }
        // Checked again: a write or a read may have found damage during the flush.
        self.core.lock().pin()
    }
}

impl Partition {
    /// Returns an error if a part of the collection cannot be read: a copy would look complete without it.
    pub(crate) fn check_whole(&self) -> Result<(), StoreError> {
        // A followed collection refuses all writes but is not incomplete.
        if let Some(why) = self.refuses.as_ref().filter(|_| !self.shared.complete.is_followed()) {
            let name = &self.manifest.collection;
            return Err(Invalid::new(format!("the collection {name} is read-only: {why}")).into());
        }
        match self.problems.first() {
            Some(problem) => Err(StoreError::corrupt(&problem.path, problem.detail.clone())),
            None => Ok(()),
        }
    }

    fn pin(&self) -> Result<PinnedFiles, StoreError> {
        self.check_whole()?;
        if self.manifest.settings.durability == Durability::Ephemeral {
            // An ephemeral collection is kept as its definition, without events.
            return Ok(PinnedFiles { manifest: self.manifest.without_events(), events: 0, files: Vec::new() });
        }
        let manifest = Manifest {
            segments: self.segments.values().cloned().collect(),
            listed: Vec::new(),
            // A restored collection has another log.
            log: None,
            ..self.manifest.clone()
        };
        // Deaths after this position are in the log, which is not copied.
        let flushed = Seq::end_of(manifest.flushed);
        let mut files = Vec::new();
        let mut events = 0;
        for e in &self.entries {
            let (Some(meta), Some(segment)) = (self.segments.get(&e.part.number), e.part.segment()) else { continue };
            events += u64::from(meta.rows) - e.dead.count_by(flushed.0);
            match (meta.archive, segment.archive(), segment.rows_file()) {
                (Some(_), Some(archive), _) => {
                    // Only the archive: everything else of the segment is rebuilt from it.
                    files.push(self.open_pinned(archive_name(meta.file), Kind::Archive(archive))?)
                }
                (None, _, Some(rows)) => {
                    files.push(self.open_pinned(rows_name(meta.file), Kind::Rows(rows))?);
                    files.push(self.open_pinned(segment_name(meta.file), Kind::Index(e.part.clone()))?);
                }
                _ => return Err(StoreError::corrupt(&segment.index.path, "its rows are gone")),
            }
        }
        for name in sidecars(&manifest) {
            files.push(self.open_pinned(name, Kind::Framed)?);
        }
        Ok(PinnedFiles { manifest, events, files })
    }

    fn open_pinned(&self, name: String, kind: Kind) -> Result<PinnedFile, StoreError> {
        let objects = self.shared.objects.as_ref();
        let path = objects.path(&name);
        let file = objects.open(&name).map_err(StoreError::io("open", &path))?;
        let bytes = file.len().map_err(StoreError::io("read", &path))?;
        Ok(PinnedFile { name, path, bytes, file, kind })
    }
}

impl PinnedFile {
    /// Returns the name in a backup, which identifies the file's content.
    pub(super) fn stored(&self, seed: u64) -> Result<String, StoreError> {
        let mark = match &self.kind {
            Kind::Archive(archive) => archive.entry.crc32c,
            // These bytes contain the checksum of the rest.
            Kind::Framed => self.crc_of(0, FRAME_BYTES)?,
            Kind::Index(_) | Kind::Rows(_) => self.crc_of(self.bytes.saturating_sub(24), 24)?,
        };
        let (number, extension) = self.name.split_once('.').unwrap_or((&self.name, ""));
        Ok(format!("{seed:016x}-{number}-{mark:08x}.{extension}"))
    }

    fn crc_of(&self, from: u64, bytes: usize) -> Result<u32, StoreError> {
        let mut into = vec![0; bytes.min(self.bytes as usize)];
        self.read(from, &mut into)?;
        Ok(crc32c::crc32c(&into))
    }

    pub(super) fn read(&self, from: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.file.read_at(from, into).map_err(StoreError::io("read", &self.path))
    }

    /// Verifies the file's content: damage in a copy would be discovered too late.
    pub(super) fn verify(&self) -> Result<(), StoreError> {
        let bad = match &self.kind {
            Kind::Framed => return self.verify_frame(),
            Kind::Archive(archive) => archive.verify(),
            Kind::Rows(rows) => rows.verify(),
            Kind::Index(part) => part.segment().map(|s| s.index.verify(&s.footer.blocks)).unwrap_or_default(),
        };
        bad.into_iter().next().map_or(Ok(()), Err)
    }

    fn verify_frame(&self) -> Result<(), StoreError> {
        let mut buffer = vec![0; super::COPY_BYTES];
        let (mut at, mut crc, mut expected) = (0, 0, None);
        while at < self.bytes {
            let take = buffer.len().min((self.bytes - at) as usize);
            self.read(at, &mut buffer[..take])?;
            let mut piece = &buffer[..take];
            if at == 0
                && let Some((head, rest)) = piece.split_at_checked(FRAME_BYTES)
            {
                crc = crc32c::crc32c(&head[..12]);
                expected = head[12..].try_into().ok().map(u32::from_le_bytes);
                piece = rest;
            }
            crc = crc32c::crc32c_append(crc, piece);
            at += take as u64;
        }
        if expected == Some(crc) { Ok(()) } else { Err(StoreError::corrupt(&self.path, "its checksum is wrong")) }
    }
}
