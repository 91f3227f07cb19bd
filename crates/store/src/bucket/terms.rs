//! Reads the terms of a lease, in any process.

use super::Bucket;
use crate::codec::unframe;
use crate::error::StoreError;
use meridian_model::policy::lease::Term;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const MAGIC: &[u8; 8] = b"MRDNLEAS";
pub(super) const VERSION: u32 = 1;

/// A reader of the terms of a lease.
#[derive(Debug, Clone)]
pub struct Terms {
    pub(super) bucket: Arc<dyn Bucket>,
    /// Prefix of the names: `leases/{name}/`.
    folder: String,
}

impl Terms {
    /// Creates a reader for the lease of this name.
    pub fn new(bucket: &Arc<dyn Bucket>, name: &str) -> Terms {
        Terms { bucket: bucket.clone(), folder: format!("leases/{name}/") }
    }

    /// Returns the newest term and its number, which grows with each renewal; `None` if no process ever held the lease.
    /// The term may be given up or long expired, which shows in its number not growing.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer, [`StoreError::Corrupt`], [`StoreError::NewerFormat`].
    pub fn newest(&self) -> Result<Option<(u64, Term)>, StoreError> {
        self.newest_from(0)
    }

    /// Does the same for a caller that knows the number of a term (0: none). While that term exists no listing is
    /// needed, and two reads suffice if it is the newest.
    ///
    /// # Errors
    /// Those of [`Terms::newest`].
    pub fn newest_from(&self, known: u64) -> Result<Option<(u64, Term)>, StoreError> {
        if known > 0
            && let Some(mut found) = self.read(known)?.map(|term| (known, term))
        {
            while let Some(next) = found.0.checked_add(1)
                && let Some(term) = self.read(next)?
            {
                found = (next, term);
            }
            return Ok(Some(found));
        }
        let names = self.bucket.list(&self.folder).map_err(StoreError::io("list", &self.path(&self.folder)))?;
        let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
        let listed = names.iter().filter_map(number).max();
        if known > 0 && listed.is_none() {
            // Terms are replaced by newer ones, and never all deleted.
            let gone = std::io::Error::new(ErrorKind::NotFound, "it was there, and is gone: is the bucket mounted?");
            return Err(StoreError::io("read", &self.path(&self.name(known)))(gone));
        }
        let hint = listed.unwrap_or(0).max(known);
        let (mut at, mut found) = (hint, None);
        // The listing may be stale: the terms after the last one listed are found by name.
        loop {
            match self.read(at)? {
                Some(term) => found = Some((at, term)),
                None if at == 0 => {}
                // It existed, so newer ones do, and neither the listing nor the caller shows them yet.
                None if found.is_none() && hint > 0 => {
                    return Err(StoreError::Busy("the terms of the lease change too fast: try again later".to_owned()));
                }
                None => return Ok(found),
            }
            match at.checked_add(1) {
                Some(next) => at = next,
                None => return Ok(found),
            }
        }
    }

    /// Returns the number of the next term.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for the last possible number, which no process ever reaches.
    pub(super) fn after(&self, number: u64) -> Result<u64, StoreError> {
        let last = || StoreError::corrupt(&self.path(&self.name(number)), "no term can come after it");
        number.checked_add(1).ok_or_else(last)
    }

    /// Returns when a term was written, by the bucket's clock, in microseconds since 1970. The result is `None` if the
    /// bucket does not report it, or the term is gone.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not answer.
    pub fn written(&self, number: u64) -> Result<Option<i64>, StoreError> {
        let name = self.name(number);
        match self.bucket.modified(&name) {
            Ok(written) => Ok(written),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &self.path(&name))(e)),
        }
    }

    fn read(&self, number: u64) -> Result<Option<Term>, StoreError> {
        let name = self.name(number);
        let path = self.path(&name);
        match self.bucket.get(&name) {
            Ok(bytes) => {
                let content = unframe(&path, MAGIC, VERSION, &bytes)?;
                let term = serde_json::from_slice(content);
                term.map(Some).map_err(|e| StoreError::corrupt(&path, format!("it does not read: {e}")))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::io("read", &path)(e)),
        }
    }

    pub(super) fn name(&self, number: u64) -> String {
        format!("{}{number:016x}", self.folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(name)
    }
}
