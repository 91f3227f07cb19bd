//! A bucket as a program of the next level would write it, to test programs of two versions side by side.
//!
//! Framed JSON objects get an unknown field, and state the next level. These are terms of leases, manifests, pins, the
//! roll, orders and levels. Records, the audit log, the log and segments have other formats, and stay as they are.

use super::catalog::manifest_in;
use super::{Bucket, Put, Span, Upload};
use crate::codec::{FRAME_BYTES, frame};
use meridian_model::policy::level::LEVEL;
use serde_json::Value;
use std::io;
use std::sync::Arc;

/// The prefix of all magic numbers of this program.
const OURS: &[u8] = b"MRDN";

/// A bucket whose objects are written in the formats of the next level.
#[derive(Debug)]
pub struct NextLevel(Arc<dyn Bucket>);

impl NextLevel {
    /// Wraps a bucket.
    pub fn over(bucket: Arc<dyn Bucket>) -> Arc<dyn Bucket> {
        Arc::new(NextLevel(bucket))
    }
}

/// Returns the object in the next format, if it is one of those above.
fn newer(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, content) = bytes.split_at_checked(FRAME_BYTES)?;
    let magic: &[u8; 8] = head.get(..8)?.try_into().ok().filter(|magic: &&[u8; 8]| magic.starts_with(OURS))?;
    let version = u32::from_le_bytes(head.get(8..12)?.try_into().ok()?);
    if let Some(at) = manifest_in(magic, content) {
        let (head, manifest) = content.split_at_checked(at)?;
        return Some(frame(magic, version, &[head, &newer(manifest)?].concat()));
    }
    let mut value: Value = serde_json::from_slice(content).ok()?;
    // What servers need of quotas: the names in it are tenants.
    if magic == b"MRDNPEER" && value.get("process").is_none() {
        return None;
    }
    let all = match &mut value {
        Value::Array(all) => all.iter_mut().collect(),
        one => vec![one],
    };
    for object in all.into_iter().filter_map(Value::as_object_mut) {
        object.insert("of_the_next_level".to_owned(), serde_json::json!({"text": "unknown", "list": [1, null]}));
        if let Some(level) = object.get_mut("level") {
            *level = (LEVEL + 1).into();
        }
    }
    Some(frame(magic, version, &serde_json::to_vec(&value).ok()?))
}

impl Bucket for NextLevel {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        match newer(bytes) {
            Some(newer) => self.0.put(name, &newer),
            None => self.0.put(name, bytes),
        }
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.0.upload(name)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name)
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.get_range(name, offset, into)
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        self.0.get_ranges(wanted)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.0.len(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.delete(name)
    }

    fn settle(&self, name: &str) -> io::Result<()> {
        self.0.settle(name)
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        self.0.modified(name)
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::unframe;
    use std::path::Path;

    #[test]
    fn objects_in_json_get_a_field_and_others_stay() {
        let written = newer(&frame(b"MRDNLEAS", 1, br#"{"node":"n1","level":1}"#)).unwrap();
        let content = unframe(Path::new("o"), b"MRDNLEAS", 1, &written).unwrap();
        let value: Value = serde_json::from_slice(content).unwrap();
        assert_eq!((&value["node"], &value["level"]), (&"n1".into(), &(LEVEL + 1).into()));
        assert!(value["of_the_next_level"].is_object());
        let pins = newer(&frame(b"MRDNPINS", 1, br#"[{"folder":"f"}]"#)).unwrap();
        let content = unframe(Path::new("o"), b"MRDNPINS", 1, &pins).unwrap();
        assert!(serde_json::from_slice::<Value>(content).unwrap()[0]["of_the_next_level"].is_object());
        // A manifest is preceded by numbers.
        let head = [&[1; 8][..], &[2; 8], &[1], &2u32.to_le_bytes(), &[3; 16]].concat();
        let manifest = [&head[..], &frame(b"MRDNMANI", 1, br#"{"tenant":"t"}"#)].concat();
        let written = newer(&frame(b"MRDNCATB", 1, &manifest)).unwrap();
        let content = unframe(Path::new("o"), b"MRDNCATB", 1, &written).unwrap();
        let (kept, manifest) = content.split_at(head.len());
        let json = unframe(Path::new("o"), b"MRDNMANI", 1, manifest).unwrap();
        let value: Value = serde_json::from_slice(json).unwrap();
        assert!(kept == head && value["tenant"] == "t" && value["of_the_next_level"].is_object());
        // The end marker of a collection has no manifest.
        for other in [&frame(b"MRDNCATB", 1, &head)[..], b"nats abcd2345", b"", &frame(b"MRDNLINK", 1, &[0, 1, 2])] {
            assert!(newer(other).is_none());
        }
    }
}
