//! Following a collection that another process writes: each newer manifest replaces the previous one for all readers at once.

use super::open::{Common, prepare};
use crate::catalog::manifest::{Manifest, SegmentEntry};
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::error::{Problem, StoreError};
use crate::ingest::partition::Partition;
use crate::part::dead::DeadRows;
use crate::part::segment::Segment;
use crate::part::{Context, Entry, Part};
use meridian_model::Mode;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Why a followed collection refuses writes.
const READ_ONLY: &str = "this server only reads it: send writes to a gateway";
/// How often the newest manifest is read again because its objects were removed meanwhile.
const TRIES: usize = 4;

/// Opens a collection that another process writes; `None`: there is none.
pub(crate) fn follow_new(common: &Common, dir: &Path) -> Result<Option<Partition>, StoreError> {
    let Some(newest) = common.storage_of(dir).catalog.newest()? else { return Ok(None) };
    let mut partition = prepare(common, dir, newest.manifest.without_events())?;
    partition.refuses = Some(READ_ONLY.to_owned());
    partition.follow_newest()?;
    partition.publish();
    Ok(Some(partition))
}

impl Partition {
    /// Loads the newest manifest if it has changed; `None`: the collection was dropped. On an error nothing changes.
    pub(crate) fn follow_newest(&mut self) -> Result<Option<bool>, StoreError> {
        let mut failed = None;
        for _ in 0..TRIES {
            let Some(manifest) = self.catalog.newest()? else { return Ok(None) };
            if manifest == self.manifest && !self.entries.iter().any(|entry| self.is_sick(entry)) {
                return Ok(Some(false));
            }
            match self.follow(manifest) {
                Ok(()) => return Ok(Some(true)),
                // The writer has removed an object since: then there is a newer manifest. Anything else stays as it is.
                Err(error) if error.is_damage() => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or(StoreError::Closed))
    }

    fn follow(&mut self, manifest: Manifest) -> Result<(), StoreError> {
        let objects = self.shared.objects.clone();
        let mut hidden = read_hidden(objects.as_ref(), &manifest)?;
        // By the number of the file: open segments stay open, and cached blocks stay valid.
        let open: HashMap<u64, (&SegmentEntry, &Entry)> = self
            .entries
            .iter()
            .filter_map(|entry| self.segments.get(&entry.part.number).map(|meta| (meta.file, (meta, entry))))
            .collect();
        let (mut entries, mut segments, mut notes) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut unmendable = Vec::new();
        for meta in &manifest.segments {
            let known = open.get(&meta.file).filter(|(known, _)| known.archive == meta.archive);
            // Damage that a read has met. Rebuilt, for this process, the segment is opened anew.
            let mended = known.filter(|(_, entry)| self.is_sick(entry)).is_some_and(|(_, entry)| {
                let rebuilt = entry.part.segment().map(|segment| segment.rebuild(meta.file, self.context.rule));
                let mended = rebuilt.is_some_and(|rebuilt| rebuilt.is_ok());
                unmendable.extend((!mended).then_some(entry.part.number));
                mended
            });
            let part = match known.filter(|_| !mended) {
                Some((_, entry)) => entry.part.clone(),
                None => {
                    let (part, note) = self.open_part(meta)?;
                    notes.extend(note);
                    Arc::new(part)
                }
            };
            let dead = match known {
                Some((known, entry)) if known.dead == meta.dead => entry.dead.clone(),
                _ => Arc::new(read_dead(objects.as_ref(), meta)?),
            };
            let hidden: DeadRows = match manifest.schema.mode {
                Mode::History => DeadRows::default(),
                Mode::Latest => hidden.remove(&meta.file).unwrap_or_default(),
            };
            segments.insert(part.number, meta.clone());
            entries.push(Entry { part, dead, hidden: Arc::new(hidden) });
        }
        // Nothing below fails.
        let gone = self.entries.iter().filter(|entry| !segments.contains_key(&entry.part.number));
        self.left.extend(gone.map(|entry| (self.manifest.version(), Arc::downgrade(&entry.part))));
        if manifest.schema != self.manifest.schema {
            self.context = Context::of(&manifest, &self.shared.counters);
        }
        self.notes.extend(notes);
        self.unmendable.extend(unmendable);
        self.shared.horizon.follow(manifest.dropped_seq);
        self.position = manifest.flushed;
        (self.entries, self.segments, self.manifest) = (entries, segments, manifest);
        self.measure();
        self.publish();
        Ok(())
    }

    /// Whether the index of a segment turned out to be damaged, and may be rebuilt.
    fn is_sick(&self, entry: &Entry) -> bool {
        entry.part.segment().is_some_and(Segment::is_damaged) && !self.unmendable.contains(&entry.part.number)
    }

    /// Version of the oldest manifest of which something is read here.
    pub(crate) fn oldest_in_use(&mut self) -> u64 {
        self.left.retain(|(_, part)| part.strong_count() > 0);
        self.left.iter().map(|(version, _)| *version).min().unwrap_or(u64::MAX).min(self.manifest.version())
    }

    fn open_part(&self, meta: &SegmentEntry) -> Result<(Part, Option<Problem>), StoreError> {
        let place = self.shared.place();
        let archive = meta.archive.map(|entry| Segment::open_archive(&place, meta.file, entry)).transpose();
        match archive.and_then(|archive| Part::open(&place, meta.file, archive)) {
            Ok(part) => Ok((part, None)),
            // Rebuilt for this process from what is whole. What is absent is not damaged: the owner may have removed it since.
            Err(StoreError::Corrupt { .. }) => {
                let (mut meta, mut note) = (meta.clone(), None);
                self.open_segment(&mut meta, &mut note).map(|part| (part, note))
            }
            Err(error) => Err(error),
        }
    }
}
