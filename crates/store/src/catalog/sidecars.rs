//! The small files beside segments: which rows are dead, which are hidden, and which files a manifest names.

use crate::codec::{Reader, frame, put_bytes, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::manifest::{
    Manifest, SegmentEntry, archive_name, dead_name, hidden_name, keys_name, rows_name, segment_name,
};
use crate::part::dead::DeadRows;
use crate::seams::Objects;
use crate::seams::objects::read_all;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

const DEAD_MAGIC: &[u8; 8] = b"MRDNDEAD";
const DEAD_VERSION: u32 = 2;
const HIDDEN_MAGIC: &[u8; 8] = b"MRDNHIDE";
const HIDDEN_VERSION: u32 = 1;

/// Encodes a file of dead rows: the number of each segment, and its encoded rows.
pub(crate) fn encode_dead(marks: &[(u64, Vec<u8>)]) -> Vec<u8> {
    frame(DEAD_MAGIC, DEAD_VERSION, &encode_marks(marks))
}

/// Encodes a file of hidden rows.
pub(crate) fn encode_hidden(marks: &[(u64, Vec<u8>)]) -> Vec<u8> {
    frame(HIDDEN_MAGIC, HIDDEN_VERSION, &encode_marks(marks))
}

fn encode_marks(marks: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut content = Vec::new();
    put_u32(&mut content, marks.len() as u32);
    for (segment, rows) in marks {
        put_u64(&mut content, *segment);
        put_bytes(&mut content, rows);
    }
    content
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
/// maintenance, not when the folder is opened.
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
        let mut reader = Reader::new(content);
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
    let (mut reader, mut found) = (Reader::new(content), HashMap::new());
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
        let mut reader = Reader::new(content);
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
