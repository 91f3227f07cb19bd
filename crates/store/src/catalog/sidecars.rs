//! The small files beside segments: which rows are dead, which are hidden, and which files a manifest names.

use crate::catalog::manifest::{
    Manifest, SegmentEntry, archive_name, dead_name, hidden_name, keys_name, rows_name, segment_name,
};
use crate::codec::{frame, put_bytes, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::ingest::partition::Partition;
use crate::part::Entry;
use crate::part::dead::DeadRows;
use crate::part::removal::delete;
use crate::seams::Objects;
use crate::seams::objects::{put_all, read_all};
use meridian_model::{Invalid, Seq};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

const DEAD_MAGIC: &[u8; 8] = b"MRDNDEAD";
const DEAD_VERSION: u32 = 2;
const HIDDEN_MAGIC: &[u8; 8] = b"MRDNHIDE";
const HIDDEN_VERSION: u32 = 1;

impl Partition {
    /// Writes the dead rows of segments that changed since the last save, all into one file. Returns whether there were
    /// any.
    pub(crate) fn save_dead(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<bool, StoreError> {
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
            return Ok(false);
        }
        // One file for all segments of a save: a sync costs more than the bytes.
        let file = self.shared.number_file();
        let mut content = Vec::new();
        put_u32(&mut content, changed.len() as u32);
        for (e, count) in changed {
            let Some(meta) = segments.get_mut(&e.part.number) else { continue };
            put_u64(&mut content, meta.file);
            put_bytes(&mut content, &e.dead.encode(last).map_err(Invalid::new)?);
            meta.dead = Some((file, count));
        }
        self.write_sidecar(&dead_name(file), &frame(DEAD_MAGIC, DEAD_VERSION, &content)).map(|()| true)
    }

    /// Writes the hidden rows of all segments into one file, in collections of mode `latest`.
    pub(crate) fn save_hidden(
        &self,
        entries: &[Entry],
        segments: &BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Option<u64>, StoreError> {
        let some: Vec<_> = entries
            .iter()
            .filter(|e| !e.hidden.is_empty())
            .filter_map(|e| Some((segments.get(&e.part.number)?.file, &e.hidden)))
            .collect();
        if some.is_empty() {
            return Ok(None);
        }
        let mut content = Vec::new();
        put_u32(&mut content, some.len() as u32);
        for (segment, hidden) in some {
            put_u64(&mut content, segment);
            put_bytes(&mut content, &hidden.encode(Seq::end_of(flushed)).map_err(Invalid::new)?);
        }
        let file = self.shared.number_file();
        self.write_sidecar(&hidden_name(file), &frame(HIDDEN_MAGIC, HIDDEN_VERSION, &content))?;
        Ok(Some(file))
    }

    fn write_sidecar(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.shared.counters.add_sidecar_bytes(bytes.len() as u64);
        let objects = self.shared.objects.as_ref();
        put_all(objects, name, bytes).map(|_| ()).map_err(StoreError::io("write", &objects.path(name)))
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

/// Returns true if an object of this name does not belong to a segment.
pub(crate) fn is_sidecar(name: &str) -> bool {
    [".dead", ".hidden", ".keys"].iter().any(|end| name.ends_with(end))
}

/// Returns the files of dead rows and keys that a manifest names.
pub(crate) fn sidecars(manifest: &Manifest) -> BTreeSet<String> {
    let dead = manifest.segments.iter().filter_map(|s| s.dead).map(|(file, _)| dead_name(file));
    let hidden = manifest.hidden.map(hidden_name);
    dead.chain(manifest.keys.iter().map(|k| keys_name(k.file))).chain(hidden).collect()
}

/// Returns all files in the segments folder that a manifest names. Listed archives that have expired are removed by
/// maintenance ([`Partition::sweep_listed`]), not when the folder is opened.
pub(crate) fn files_of(manifest: &Manifest) -> BTreeSet<String> {
    let mut files = sidecars(manifest);
    files.extend(manifest.segments.iter().flat_map(|s| [segment_name(s.file), rows_name(s.file)]));
    files.extend(manifest.segments.iter().filter(|s| s.archive.is_some()).map(|s| archive_name(s.file)));
    files.extend(manifest.listed.iter().map(|(file, _)| archive_name(*file)));
    files
}

/// Returns the files that a backup holds: for an archived segment, everything but the archive can be rebuilt.
pub(crate) fn needed_files(manifest: &Manifest) -> BTreeSet<String> {
    let mut files = sidecars(manifest);
    for meta in &manifest.segments {
        match meta.archive {
            Some(_) => files.extend([archive_name(meta.file)]),
            None => files.extend([segment_name(meta.file), rows_name(meta.file)]),
        }
    }
    files
}

/// Reads a complete sidecar, and returns its path for messages too.
pub(crate) fn read(objects: &dyn Objects, name: &str) -> Result<(PathBuf, Vec<u8>), StoreError> {
    let path = objects.path(name);
    match read_all(objects, name) {
        Ok(bytes) => Ok((path, bytes)),
        Err(e) => Err(StoreError::io("read", &path)(e)),
    }
}

/// Reads the hidden rows of all segments, by file.
pub(crate) fn read_hidden(objects: &dyn Objects, manifest: &Manifest) -> Result<HashMap<u64, DeadRows>, StoreError> {
    let Some(file) = manifest.hidden else { return Ok(HashMap::new()) };
    let (path, bytes) = read(objects, &hidden_name(file))?;
    let content = unframe(&path, HIDDEN_MAGIC, HIDDEN_VERSION, &bytes)?;
    let parse = || -> Result<HashMap<u64, DeadRows>, String> {
        let mut reader = crate::codec::Reader::new(content);
        let mut found = HashMap::new();
        for _ in 0..reader.u32()? {
            let (segment, bytes) = (reader.u64()?, reader.bytes()?);
            let meta = manifest.segments.iter().find(|s| s.file == segment);
            let meta = meta.ok_or_else(|| format!("the manifest has no segment {}", segment_name(segment)))?;
            found.insert(segment, DeadRows::decode(bytes, meta.rows)?);
        }
        reader.end()?;
        Ok(found)
    };
    parse().map_err(|e| StoreError::corrupt(&path, e))
}

/// Returns the number of the last write that a file of dead or hidden rows covers.
pub(crate) fn last_death_of(objects: &dyn Objects, name: &str) -> Result<u64, StoreError> {
    let (path, bytes) = read(objects, name)?;
    let content = unframe(&path, DEAD_MAGIC, DEAD_VERSION, &bytes)
        .or_else(|_| unframe(&path, HIDDEN_MAGIC, HIDDEN_VERSION, &bytes))?;
    let last = |all: HashMap<u64, DeadRows>| all.values().map(DeadRows::last).max().unwrap_or(0);
    parse_marks(content, |_| Some(u32::MAX)).map(last).map_err(|e| StoreError::corrupt(&path, e))
}

/// Reads a file of dead rows, whichever manifest names it. `rows_of` returns the number of rows of a segment.
pub(crate) fn dead_of_all(
    objects: &dyn Objects,
    name: &str,
    rows_of: impl Fn(u64) -> Option<u32>,
) -> Result<HashMap<u64, DeadRows>, StoreError> {
    let (path, bytes) = read(objects, name)?;
    let content = unframe(&path, DEAD_MAGIC, DEAD_VERSION, &bytes)?;
    parse_marks(content, rows_of).map_err(|e| StoreError::corrupt(&path, e))
}

fn parse_marks(content: &[u8], rows_of: impl Fn(u64) -> Option<u32>) -> Result<HashMap<u64, DeadRows>, String> {
    let (mut reader, mut found) = (crate::codec::Reader::new(content), HashMap::new());
    for _ in 0..reader.u32()? {
        let (segment, bytes) = (reader.u64()?, reader.bytes()?);
        // Segments merged since then are skipped: their rows are in other segments now.
        if let Some(rows) = rows_of(segment) {
            found.insert(segment, DeadRows::decode(bytes, rows)?);
        }
    }
    reader.end()?;
    Ok(found)
}

/// Reads the dead rows of one segment from the file that its manifest names.
pub(crate) fn read_dead(objects: &dyn Objects, meta: &SegmentEntry) -> Result<DeadRows, StoreError> {
    let Some((file, count)) = meta.dead else { return Ok(DeadRows::default()) };
    let (path, bytes) = read(objects, &dead_name(file))?;
    let content = unframe(&path, DEAD_MAGIC, DEAD_VERSION, &bytes)?;
    let parse = || -> Result<DeadRows, String> {
        let mut reader = crate::codec::Reader::new(content);
        for _ in 0..reader.u32()? {
            let (segment, bytes) = (reader.u64()?, reader.bytes()?);
            if segment == meta.file {
                let dead = DeadRows::decode(bytes, meta.rows)?;
                let found = dead.count();
                // The count in the manifest catches an intact but older file.
                return if found == count { Ok(dead) } else { Err(format!("{found} dead rows instead of {count}")) };
            }
        }
        Err(format!("the segment {} is not in it", segment_name(meta.file)))
    };
    parse().map_err(|e| StoreError::corrupt(&path, e))
}
