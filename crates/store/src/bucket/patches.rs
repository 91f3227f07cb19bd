//! Objects of which this process has a better copy than the bucket: indexes of segments, damaged there and rebuilt from
//! the rows.
//!
//! No object of a bucket is ever replaced. So a rebuilt copy lives in memory, for this process alone, and maintenance
//! rewrites the segment under a new name. A reader uses the copy for as long as a manifest names the damaged object.

use crate::seams::{Object, ObjectWriter};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Max total bytes.
const BYTES_MAX: usize = 256 << 20;

/// Objects by name.
#[derive(Debug, Default)]
pub(super) struct Patches(Mutex<HashMap<String, Arc<[u8]>>>);

impl Patches {
    /// Returns the object that replaces the one of this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<dyn Object>> {
        self.0.lock().get(name).map(|bytes| Arc::new(Patch(bytes.clone())) as Arc<dyn Object>)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.lock().contains_key(name)
    }

    /// Drops the object of this name.
    pub(super) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Begins an object that replaces the one of this name.
    pub(super) fn writer(self: &Arc<Self>, name: String) -> Box<dyn ObjectWriter> {
        Box::new(PatchWriter { patches: self.clone(), name, bytes: Vec::new() })
    }

    fn insert(&self, name: String, bytes: Vec<u8>) -> io::Result<()> {
        let mut patches = self.0.lock();
        // The former copy goes first: its bytes must not count beside those that replace it.
        patches.remove(&name);
        let held = |patches: &HashMap<String, Arc<[u8]>>| patches.values().map(|bytes| bytes.len()).sum::<usize>();
        if held(&patches) + bytes.len() > BYTES_MAX {
            // Drops those of segments that no reader has open: a reader is not notified when a segment is removed.
            patches.retain(|_, bytes| Arc::strong_count(bytes) > 1);
        }
        check(held(&patches) + bytes.len())?;
        patches.insert(name, bytes.into());
        Ok(())
    }
}

fn check(bytes: usize) -> io::Result<()> {
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    let detail = "an object of a bucket is never replaced, and there is no room to have it in memory";
    Err(io::Error::new(ErrorKind::Unsupported, detail))
}

#[derive(Debug)]
struct Patch(Arc<[u8]>);

impl Object for Patch {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = from.checked_add(into.len()).and_then(|end| self.0.get(from..end));
        into.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

struct PatchWriter {
    patches: Arc<Patches>,
    name: String,
    bytes: Vec<u8>,
}

impl ObjectWriter for PatchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Checked before it is complete, so that an object that cannot stay does not fill memory first.
        check(self.bytes.len() + bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        let PatchWriter { patches, name, bytes } = *self;
        let len = bytes.len() as u64;
        // Visible only now, so that no reader finds half of it.
        patches.insert(name, bytes).map(|()| len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_is_bounded_and_read_like_any_object() {
        let patches = Arc::new(Patches::default());
        let mut writer = patches.writer("a".to_owned());
        writer.write(b"index").unwrap();
        assert!(!patches.has("a"), "nothing takes its place before it is whole");
        assert_eq!(writer.finish().unwrap(), 5);
        let (found, mut piece) = (patches.get("a").unwrap(), [0; 3]);
        found.read_at(2, &mut piece).unwrap();
        assert_eq!(&piece, b"dex");
        assert_eq!(found.read_at(3, &mut piece).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let mut large = patches.writer("b".to_owned());
        let refused = (0..=256).try_for_each(|_| large.write(&vec![0; 1 << 20])).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        patches.forget("a");
        assert!(patches.get("a").is_none());
    }
}
