//! Follows a collection that another process writes: each newer manifest replaces the previous one for all readers at
//! once. The log beyond it is shown too (`ingest/tail.rs`).

use super::open::{Common, prepare};
use crate::catalog::disk::MANIFEST;
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::error::{Problem, StoreError};
use crate::ingest::partition::Partition;
use crate::ingest::tail::{Tail, is_followed};
use crate::manifest::{Manifest, SegmentEntry};
use crate::part::dead::DeadRows;
use crate::part::segment::Segment;
use crate::part::{ClosedSegment, Context, Entry, Part};
use meridian_model::{Mode, Schema};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Why a followed collection refuses writes.
const READ_ONLY: &str = "this server only reads it: send writes to a gateway";
/// Max reads of the newest manifest when its objects were removed meanwhile.
const TRIES: usize = 4;

/// Opens a collection that another process writes; `None` if it does not exist.
pub(crate) fn follow_new(common: &Common, dir: &Path) -> Result<Option<Partition>, StoreError> {
    let Some(newest) = common.storage_of(dir).catalog.newest()? else { return Ok(None) };
    let mut partition = prepare(common, dir, newest.manifest.without_events())?;
    partition.refuses = Some(READ_ONLY.to_owned());
    if common.options.follow_log && is_followed(&newest.manifest.schema) {
        partition.tail = common.storage.log_reader(dir)?.map(Tail::new);
    }
    // Not searched a second time, as that takes some forty reads.
    if let Err(error) = partition.follow(newest.manifest, false) {
        if !error.is_damage() {
            return Err(error);
        }
        // Dropped meanwhile, and its objects removed: nothing is damaged, and nothing is there to be served.
        if partition.follow_newest()?.is_none() {
            return Ok(None);
        }
    }
    partition.publish();
    Ok(Some(partition))
}

impl Partition {
    /// Loads the newest manifest if it has changed; `None` if the collection was dropped. Damaged or missing objects
    /// are left out and reported as missing, as by an owner. They are retried with each call. On an error nothing
    /// changes.
    pub(crate) fn follow_newest(&mut self) -> Result<Option<bool>, StoreError> {
        self.look_at_tail();
        // Version of the manifest with an object that could not be read.
        let whole = self.damaged.is_empty() && self.problems.is_empty();
        let mut failed = (!whole).then(|| self.manifest.version());
        for _ in 0..TRIES {
            let Some(manifest) = self.catalog.newest()? else { return Ok(None) };
            // The newest never goes back: manifests were lost, and this process knows more than what is left.
            if manifest.version() < self.manifest.version() {
                let path = self.shared.dir.join(MANIFEST);
                return Err(StoreError::corrupt(&path, "a newer manifest, which was read here before, is missing"));
            }
            if manifest == self.manifest && whole && !self.entries.iter().any(|entry| self.is_sick(entry)) {
                return Ok(Some(self.show_tail(false)));
            }
            let version = manifest.version();
            // The writer may have removed an object since: then there is a newer manifest. Otherwise the object is
            // lost.
            match self.follow(manifest, failed == Some(version)) {
                Ok(()) => return Ok(Some(true)),
                Err(error) if error.is_damage() => failed = Some(version),
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Busy("the manifests of the collection change too fast to be followed".to_owned()))
    }

    /// Loads a manifest. With `rest`, damaged objects are left out and recorded; otherwise they are an error.
    fn follow(&mut self, manifest: Manifest, rest: bool) -> Result<(), StoreError> {
        let objects = self.shared.objects.clone();
        // Unreadable objects may be readable again.
        let whole = self.problems.is_empty();
        let (mut damaged, mut problems) = (Vec::new(), Vec::new());
        let mut leave_out = |error: StoreError| match rest && error.is_damage() {
            true => {
                problems.push(Problem::of(&error));
                Ok(())
            }
            false => Err(error),
        };
        let mut hidden = match read_hidden(objects.as_ref(), &manifest) {
            Ok(hidden) => hidden,
            Err(error) => leave_out(error).map(|()| HashMap::default())?,
        };
        // By file number: open segments stay open, and cached blocks stay valid.
        let open: HashMap<u64, (&SegmentEntry, &Entry)> = self
            .entries
            .iter()
            .filter_map(|entry| self.segments.get(&entry.part.number).map(|meta| (meta.file, (meta, entry))))
            .collect();
        let (mut entries, mut segments, mut notes) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut unmendable = Vec::new();
        for meta in &manifest.segments {
            let known = open.get(&meta.file).filter(|(known, _)| known.archive == meta.archive);
            // A read has found damage. The segment is rebuilt for this process, and reopened.
            let mended = known.filter(|(_, entry)| self.is_sick(entry)).is_some_and(|(_, entry)| {
                let rebuilt = entry.part.segment().map(|segment| segment.rebuild(meta.file, self.context.rule));
                let mended = rebuilt.is_some_and(|rebuilt| rebuilt.is_ok());
                unmendable.extend((!mended).then_some(entry.part.number));
                mended
            });
            // One that a query could not open, or that was left out before: opened here, it is repaired or left out.
            let broken = known.is_some_and(|(_, entry)| entry.part.closed().is_some_and(ClosedSegment::is_sick))
                || self.damaged.iter().any(|damaged| damaged.file == meta.file);
            let part = match known.filter(|_| !mended && !broken) {
                Some((_, entry)) => entry.part.clone(),
                None => match self.part_of(meta, &manifest.schema, rest || broken, broken) {
                    Ok((part, note)) => {
                        notes.extend(note);
                        Arc::new(part)
                    }
                    Err(error) => {
                        leave_out(error)?;
                        damaged.push(meta.clone());
                        continue;
                    }
                },
            };
            let dead = match known {
                Some((known, entry)) if whole && known.dead == meta.dead => entry.dead.clone(),
                _ => match read_dead(objects.as_ref(), meta) {
                    Ok(dead) => Arc::new(dead),
                    // The segment is served anyway: deleted events may reappear.
                    Err(error) => leave_out(error).map(|()| Arc::default())?,
                },
            };
            let hidden: DeadRows = match manifest.schema.mode {
                Mode::History => DeadRows::default(),
                Mode::Latest => hidden.remove(&meta.file).unwrap_or_default(),
            };
            segments.insert(part.number, meta.clone());
            entries.push(Entry { part, dead, hidden: Arc::new(hidden) });
        }
        // Nothing below can fail.
        let gone = self.entries.iter().filter(|entry| !segments.contains_key(&entry.part.number));
        gone.clone().for_each(|entry| self.shared.cache.opened.forget(entry.part.number));
        self.left.extend(gone.map(|entry| (self.manifest.version(), Arc::downgrade(&entry.part))));
        if manifest.schema != self.manifest.schema {
            self.context = Context::of(&manifest, &self.shared.counters);
        }
        self.notes.extend(notes);
        self.unmendable.extend(unmendable);
        self.shared.horizon.follow(manifest.dropped_seq);
        self.position = manifest.flushed;
        (self.damaged, self.problems) = (damaged, problems);
        (self.entries, self.segments, self.manifest) = (entries, segments, manifest);
        // In one step with the log beyond it, which readers have already seen.
        if !self.show_tail(true) {
            self.measure();
            self.publish();
        }
        Ok(())
    }

    /// Returns true if the index of a segment turned out to be damaged, and may be rebuilt.
    fn is_sick(&self, entry: &Entry) -> bool {
        let damaged = entry.part.segment().is_some_and(Segment::is_damaged)
            || entry.part.closed().is_some_and(ClosedSegment::is_sick);
        damaged && !self.unmendable.contains(&entry.part.number)
    }

    /// Returns the version of the oldest manifest with an object that is read here.
    pub(crate) fn oldest_in_use(&mut self) -> u64 {
        self.left.retain(|(_, part)| part.strong_count() > 0);
        self.left.iter().map(|(version, _)| *version).min().unwrap_or(u64::MAX).min(self.manifest.version())
    }

    /// Returns the part of a segment: closed, if segments are opened for queries.
    fn part_of(
        &self,
        meta: &SegmentEntry,
        schema: &Schema,
        rest: bool,
        broken: bool,
    ) -> Result<(Part, Option<Problem>), StoreError> {
        let lazily = self.shared.options.tree_bytes.is_some() && !broken;
        match lazily.then(|| ClosedSegment::part(&self.shared.place(), meta, schema)).flatten() {
            Some(part) => Ok((part, None)),
            None => self.open_part(meta, rest),
        }
    }

    fn open_part(&self, meta: &SegmentEntry, rest: bool) -> Result<(Part, Option<Problem>), StoreError> {
        let place = self.shared.place();
        let archive = meta.archive.map(|entry| Segment::open_archive(&place, meta.file, entry)).transpose();
        match archive.and_then(|archive| Part::open(&place, meta.file, archive)) {
            Ok(part) => Ok((part, None)),
            // Rebuilt for this process from intact files. The owner may have removed absent ones since.
            Err(error) if matches!(error, StoreError::Corrupt { .. }) || (rest && error.is_damage()) => {
                let (mut meta, mut note) = (meta.clone(), None);
                self.open_segment(&mut meta, true, &mut note).map(|part| (part, note))
            }
            Err(error) => Err(error),
        }
    }
}
