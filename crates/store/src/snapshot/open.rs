//! Opens a snapshot from a manifest and its objects alone: without partition, log or lock.

use super::{Snapshot, SnapshotView};
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::part::cache::BlockCache;
use crate::part::segment::{Segment, SegmentAccess};
use crate::part::{Context, Part, PartView};
use crate::seams::Objects;
use crate::snapshot::seen_of;
use crate::stats::Counters;
use meridian_model::{Mode, Seq};
use std::sync::Arc;

impl Snapshot {
    /// Opens the content of a manifest: the collection after the write at [`Manifest::flushed`]. It only reads, so
    /// another process may hold the data folder and write.
    ///
    /// `cache_bytes` limits the decoded blocks kept for it. `taken_at` becomes [`Snapshot::taken_at`].
    ///
    /// # Errors
    /// [`StoreError::Io`] of kind `NotFound` if the writer has removed a file meanwhile: open a newer manifest.
    /// [`StoreError::Corrupt`], [`StoreError::NewerFormat`].
    pub fn open(
        manifest: &Manifest,
        objects: Arc<dyn Objects>,
        cache_bytes: u64,
        taken_at: i64,
    ) -> Result<Snapshot, StoreError> {
        let counters = Arc::new(Counters::default());
        let context = Context::of(manifest, &counters);
        let seq = Seq::end_of(manifest.flushed);
        // Errors are not contained here: a reader without the lock cannot tell damage from a file that the writer has
        // just removed.
        let mut hidden = read_hidden(objects.as_ref(), manifest)?;
        let cache = Arc::new(BlockCache::new(cache_bytes, 0));
        // Nothing is removed here: the files belong to the writer.
        let place = SegmentAccess { objects: objects.clone(), removal: None, cache, counters };
        let mut views = Vec::with_capacity(manifest.segments.len());
        for meta in &manifest.segments {
            let archive = meta.archive.map(|entry| Segment::open_archive(&place, meta.file, entry)).transpose()?;
            let part = Part::open(&place, meta.file, archive)?;
            let dead = match manifest.schema.mode {
                Mode::History => read_dead(objects.as_ref(), meta)?,
                Mode::Latest => hidden.remove(&meta.file).unwrap_or_default(),
            };
            views.push(PartView { part: Arc::new(part), dead: Arc::new(dead), seq, context: context.clone() });
        }
        Ok(Snapshot {
            seq,
            taken_at,
            seen: Arc::new(SnapshotView::of(&context, seen_of(&views.into()), Arc::new([]), &Arc::default())),
            reading: None,
        })
    }
}
