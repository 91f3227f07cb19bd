//! The level of a bucket: the formats that its processes write (`model::policy::level`).
//!
//! Each level from the second on has an object `levels/{level}`. These are never deleted, so each is found by name and
//! no listing is needed. A bucket without any is at the first level; an unused one starts at the level of its first
//! program.

use super::create::create;
use super::{Bucket, Survey};
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::seams::Seams;
use meridian_model::policy::level::{FormatMismatch, fits};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MRDNLEVL";
const VERSION: u32 = 1;
/// Level of a bucket without a level object.
const FIRST: u32 = 1;

/// The content of an object. Fields of newer programs are ignored.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    level: u32,
    /// Version of the first program that needs it, for messages.
    program: String,
    /// Random, so that no other process writes the same bytes.
    id: u64,
}

/// The level of a bucket, as known to a process.
#[derive(Debug)]
pub struct Levels {
    bucket: Arc<dyn Bucket>,
    seams: Seams,
    /// The level of this program; the next field is its version.
    own: u32,
    program: String,
}

impl Levels {
    /// Creates one for a program of level `own`.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, own: u32, program: &str) -> Levels {
        Levels { bucket, seams: seams.clone(), own, program: program.to_owned() }
    }

    /// Returns the level of the bucket, at most one above that of this program.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn now(&self) -> Result<u32, StoreError> {
        // No listing, which may be stale: a process that is too old must detect that.
        let mut level = FIRST;
        while level <= self.own && self.exists(level + 1)? {
            level += 1;
        }
        Ok(level)
    }

    /// Returns the level of the bucket if this program can work with it; otherwise the reason, as a sentence.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn check(&self) -> Result<Result<u32, String>, StoreError> {
        let (level, own, program) = (self.now()?, self.own, &self.program);
        Ok(match fits(level, own) {
            Ok(()) => Ok(level),
            Err(FormatMismatch::TooOld) => {
                let newer = self.program_of(level).unwrap_or_else(|_| "a newer version".to_owned());
                Err(format!(
                    "this bucket is at level {level}, and this program (Meridian {program}) reads up to level {own}: all processes were of \
                     a newer version, so it has forms that an older one does not read: use Meridian {newer}, or a newer one"
                ))
            }
            // Nothing is written yet: it starts with the formats of this program.
            Err(FormatMismatch::TooNew) if Survey::new(&self.bucket, &self.seams).is_empty()? => {
                (level + 1..=own).try_for_each(|next| self.raise(next))?;
                Ok(own)
            }
            Err(FormatMismatch::TooNew) => Err(format!(
                "this bucket is at level {level}, and this program (Meridian {program}) writes levels {} and {own}: first run all of its \
                 processes with the version between, until its level has risen",
                own - 1
            )),
        })
    }

    /// Raises the level by one, to this one; another process may have done so already.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn raise(&self, level: u32) -> Result<(), StoreError> {
        let (name, path) = self.name(level);
        let record = Record { level, program: self.program.clone(), id: self.seams.random.next_u64() };
        let json = serde_json::to_vec(&record).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        let created = create(self.bucket.as_ref(), self.seams.clock.as_ref(), &name, &frame(MAGIC, VERSION, &json));
        created.map(drop).map_err(|failure| StoreError::io("create", &path)(failure.into_error()))
    }

    fn exists(&self, level: u32) -> Result<bool, StoreError> {
        let (name, path) = self.name(level);
        match self.bucket.len(&name) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(StoreError::io("read", &path)(e)),
        }
    }

    /// Returns the version of the program that raised the bucket to a level.
    fn program_of(&self, level: u32) -> Result<String, StoreError> {
        let (name, path) = self.name(level);
        let bytes = self.bucket.get(&name).map_err(StoreError::io("read", &path))?;
        let content = unframe(&path, MAGIC, VERSION, &bytes)?;
        let record: Record = serde_json::from_slice(content).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        Ok(record.program)
    }

    fn name(&self, level: u32) -> (String, PathBuf) {
        let name = format!("levels/{level:08x}");
        let path = Path::new(&self.bucket.place()).join(&name);
        (name, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;

    #[test]
    fn a_level_rises_and_older_programs_are_refused_in_a_sentence() {
        let memory = MemoryBucket::new();
        let levels = |own, program| Levels::new(Arc::new(memory.clone()), &Seams::real(), own, program);
        memory.put("leases/owner/0000000000000001", b"").unwrap();
        let (old, new) = (levels(1, "0.1.0"), levels(2, "0.2.0"));
        assert_eq!((old.check().unwrap(), new.check().unwrap()), (Ok(1), Ok(1)));
        let why = levels(3, "0.3.0").check().unwrap().unwrap_err();
        assert!(why.contains("level 1") && why.contains("levels 2 and 3"), "{why}");
        // Raised by two at once, and repeatedly: the level stays the same.
        memory.freeze_listings(true);
        (0..2).for_each(|_| new.raise(2).unwrap());
        assert_eq!(new.check().unwrap(), Ok(2));
        let why = old.check().unwrap().unwrap_err();
        assert!(why.contains("level 2") && why.contains("Meridian 0.2.0"), "{why}");
        assert_eq!(levels(3, "0.3.0").check().unwrap(), Ok(2));
        // An unused bucket starts at the level of its first program.
        memory.heal();
        for (name, _) in memory.objects() {
            memory.delete(&name).unwrap();
        }
        assert_eq!((levels(4, "0.4.0").check().unwrap(), levels(3, "0.3.0").now().unwrap()), (Ok(4), 4));
        // A bucket that does not answer is not taken for one at the first level.
        memory.cut(true);
        assert!(old.check().is_err());
    }
}
