//! The files beside a manifest that say which rows are dead or hidden.

use super::Partition;
use crate::catalog::sidecars::{encode_dead, encode_hidden, sidecars};
use crate::error::StoreError;
use crate::manifest::{Manifest, SegmentEntry, dead_name, hidden_name};
use crate::part::Entry;
use crate::part::dead::DeadRows;
use crate::part::removal::delete;
use meridian_model::{Invalid, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Partition {
    /// Returns a file with the dead rows of the segments whose rows changed since the last manifest: its name and
    /// content. `segments` get its number.
    pub(crate) fn dead_file(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        let last = Seq::end_of(flushed);
        let mut changed = Vec::new();
        for e in entries.iter().filter(|e| e.dead.count() > 0) {
            let Some(meta) = segments.get(&e.part.number) else { continue };
            // Later deaths are in the log, which is kept: writing them here would apply them twice on replay.
            let count = e.dead.count_by(last.0);
            // Deaths up to a position are only ever added, so an equal count means equal rows.
            if count != meta.dead.map_or(0, |(_, count)| count) {
                changed.push((e, count));
            }
        }
        if changed.is_empty() {
            return Ok(None);
        }
        // One file for all segments of a manifest: a sync costs more than the bytes.
        let file = self.shared.number_file();
        let mut marks = Vec::with_capacity(changed.len());
        for (e, count) in changed {
            let Some(meta) = segments.get_mut(&e.part.number) else { continue };
            marks.push((meta.file, e.dead.encode(last).map_err(Invalid::new)?));
            meta.dead = Some((file, count));
        }
        Ok(Some((dead_name(file), encode_dead(&marks))))
    }

    /// Returns a file with the hidden rows of all segments, in collections of mode `latest`: its number, name and
    /// content.
    pub(crate) fn hidden_file(
        &self,
        entries: &[Entry],
        segments: &BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Option<(u64, String, Vec<u8>)>, StoreError> {
        let some: Vec<_> = entries
            .iter()
            .filter(|e| !e.hidden.is_empty())
            .filter_map(|e| Some((segments.get(&e.part.number)?.file, &e.hidden)))
            .collect();
        if some.is_empty() {
            return Ok(None);
        }
        let encode = |(segment, hidden): (u64, &Arc<DeadRows>)| Ok((segment, hidden.encode(Seq::end_of(flushed))?));
        let marks = some.into_iter().map(encode).collect::<Result<Vec<_>, String>>().map_err(Invalid::new)?;
        let file = self.shared.number_file();
        Ok(Some((file, hidden_name(file), encode_hidden(&marks))))
    }

    /// Removes files of dead rows and keys that the manifest no longer names.
    pub(crate) fn remove_sidecars(&self, old: &Manifest) {
        let named = sidecars(&self.manifest);
        for name in sidecars(old).difference(&named) {
            // A sidecar is read when a partition is opened, and not after that.
            delete(self.shared.objects.as_ref(), name);
        }
    }
}
