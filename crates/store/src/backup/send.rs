//! Sends a backup of a live store.

use super::pin::PinnedFiles;
use super::tar::TarWriter;
use super::{
    Backup, BackupScope, COPY_BYTES, ERROR, FILES, LISTING, SavedFile, SavedLines, SavedPartition, SavedRecord,
};
use crate::audit::LineSink;
use crate::bucket::SharedRecords;
use crate::codec::hash;
use crate::error::StoreError;
use crate::store::Store;
use crate::store::records::Records;
use meridian_model::Invalid;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Name of the output in errors.
const SENT: &str = "the backup";

impl Store {
    /// Writes a backup of what `scope` includes to `out`, as a tar for a backup folder. Files in `have` (name and
    /// checksum) are omitted, since the folder holds them. Each collection is at one position, no earlier than this
    /// call.
    ///
    /// Writers and readers continue. An error before the first byte is a plain refusal. A later one is reported in the
    /// tar if possible, and the tar stays unterminated.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or [`StoreError::Invalid`] if a collection cannot be read completely, [`StoreError::Io`]
    /// of the disk or of `out`, [`StoreError::Closed`] once `cancelled` returns true.
    pub fn backup(
        &self,
        scope: &BackupScope,
        have: &BTreeMap<String, u32>,
        out: &mut dyn Write,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Backup, StoreError> {
        if self.is_ephemeral() {
            return Err(Invalid::new(
                "the server keeps everything in memory (--ephemeral): there is nothing to back up",
            )
            .into());
        }
        let mut collections = self.collections();
        collections.retain(|collection| scope.takes(collection.tenant()));
        if let Some(unopened) = self.unopened(|tenant| scope.takes(tenant)).into_iter().next() {
            return Err(StoreError::corrupt(&unopened.path, unopened.detail));
        }
        for collection in &collections {
            let whole = collection.core.lock().check_whole();
            // One that is being dropped or renamed is decided on when it is pinned.
            if !collection.stop.load(Ordering::Acquire) {
                whole?;
            }
        }
        let records = self.all_records();
        if let Some(damaged) = records.iter().find_map(|(_, records)| records.verify().into_iter().next()) {
            return Err(StoreError::corrupt(&damaged.path, damaged.detail));
        }
        let records = records.into_iter().map(|(folder, records)| (folder, Box::new(records) as Box<dyn RecordSource>));
        let mut pinned = collections
            .chunk_by(|a, b| (a.tenant(), a.name()) == (b.tenant(), b.name()))
            .filter_map(|partitions| self.pin(partitions).transpose());
        let sent = BackupRequest { scope, have, cancelled, made: self.now() };
        let audit = |sink: &mut LineSink<'_>| self.audit().copy(sink);
        sent.all(out, &records.collect::<Vec<_>>(), &audit, &mut pinned)
    }
}

/// Records of one kind.
pub(super) trait RecordSource {
    /// Returns their names, sorted.
    fn names(&self) -> Result<Vec<String>, StoreError>;
    /// Returns the record of this name; `None` if it is gone.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
}

impl RecordSource for Records {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.names()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(name)
    }
}

impl RecordSource for Arc<SharedRecords> {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.as_ref().names()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.as_ref().get(name)
    }
}

/// Passes the lines of the audit log to a sink.
type AuditLines<'a> = dyn Fn(&mut LineSink<'_>) -> Result<(), StoreError> + 'a;

/// Pins one collection after another, each with all its partitions.
type PinnedCollections<'a> = dyn Iterator<Item = Result<Vec<PinnedFiles>, StoreError>> + 'a;

/// The content that is sent.
pub(super) struct BackupRequest<'a> {
    pub(super) scope: &'a BackupScope,
    /// Files that the folder already has, with their checksums.
    pub(super) have: &'a BTreeMap<String, u32>,
    pub(super) cancelled: &'a dyn Fn() -> bool,
    pub(super) made: i64,
}

impl BackupRequest<'_> {
    /// Sends records and audit lines, then what the iterator pins; one collection's files are open at a time. The
    /// caller checks for damage first, since an error before the first byte is a plain refusal.
    pub(super) fn all(
        &self,
        out: &mut dyn Write,
        records: &[(String, Box<dyn RecordSource>)],
        audit: &AuditLines<'_>,
        pinned: &mut PinnedCollections<'_>,
    ) -> Result<Backup, StoreError> {
        let mut tar = TarWriter::new(out);
        let sent = send_records(&mut tar, records, self)
            .and_then(|begun| send_audit(&mut tar, audit, begun, self))
            .and_then(|begun| send(&mut tar, pinned, begun, (self.have, self.cancelled)));
        match sent {
            Ok(backup) => tar.finish().map(|()| backup).map_err(StoreError::io("send", Path::new(SENT))),
            Err(error) => {
                // Within a file, the receiver would take the text for its content.
                if tar.is_between() {
                    let _ = tar.file(ERROR, error.to_string().as_bytes(), self.made / 1_000_000);
                }
                Err(error)
            }
        }
    }
}

fn send(
    tar: &mut TarWriter<'_>,
    pinned: &mut PinnedCollections<'_>,
    mut backup: Backup,
    (have, cancelled): (&BTreeMap<String, u32>, &dyn Fn() -> bool),
) -> Result<Backup, StoreError> {
    let made = backup.made;
    for partitions in pinned {
        for pinned in partitions? {
            let mut files = Vec::new();
            for file in pinned.files {
                let stored = file.stored(pinned.manifest.seed)?;
                let crc32c = match have.get(&stored) {
                    Some(crc) => *crc,
                    None => {
                        // Read twice on purpose: damage is reported before it gets into the backup.
                        file.verify()?;
                        send_file(tar, &file, &stored, made, cancelled)?
                    }
                };
                files.push(SavedFile { name: file.name, stored, bytes: file.bytes, crc32c });
            }
            backup.collections.push(SavedPartition { manifest: pinned.manifest, events: pinned.events, files });
        }
    }
    tar.file(LISTING, &backup.encode()?, made / 1_000_000).map_err(StoreError::io("send", Path::new(SENT)))?;
    Ok(backup)
}

/// Sends the records that other crates keep, and begins the listing with them.
fn send_records(
    tar: &mut TarWriter<'_>,
    all: &[(String, Box<dyn RecordSource>)],
    &BackupRequest { scope, have, cancelled, made }: &BackupRequest<'_>,
) -> Result<Backup, StoreError> {
    let mut backup = Backup { made, tenant: scope.tenant.clone(), ..Backup::default() };
    let mut send = |kind: &str, folder: &str, name: &str, content: &[u8]| {
        let crc32c = crc32c::crc32c(content);
        let stored = format!("{kind}-{:016x}-{crc32c:08x}", hash(0, format!("{folder}/{name}").as_bytes()));
        if !have.contains_key(&stored) {
            let written = tar.file(&format!("{FILES}/{stored}"), content, made / 1_000_000);
            written.map_err(StoreError::io("send", Path::new(SENT)))?;
        }
        let file = SavedFile { name: name.to_owned(), stored, bytes: content.len() as u64, crc32c };
        Ok::<_, StoreError>(SavedRecord { folder: folder.to_owned(), file })
    };
    for (folder, records) in all {
        for name in records.names()? {
            if cancelled() {
                return Err(StoreError::Closed);
            }
            // A record removed meanwhile is skipped.
            let Some(content) = records.get(&name)? else { continue };
            let part = (scope.part_of)(folder, &name, &content);
            if let Some(plain) = &part.plain {
                backup.records.push(send("record", folder, &name, plain)?);
            }
            match (part.secret, &scope.key) {
                (None, _) => {}
                (Some(_), Some(key)) => {
                    let sealed = key.seal(folder, &name, &content)?;
                    backup.sealed.push(send("sealed", folder, &name, &sealed)?);
                }
                (Some(kind), None) => *backup.left_out.entry(kind.to_owned()).or_default() += 1,
            }
        }
    }
    Ok(backup)
}

/// Sends the lines of the audit log.
fn send_audit(
    tar: &mut TarWriter<'_>,
    audit: &AuditLines<'_>,
    mut backup: Backup,
    &BackupRequest { scope, have, cancelled, made }: &BackupRequest<'_>,
) -> Result<Backup, StoreError> {
    if scope.tenant.is_some() {
        return Ok(backup);
    }
    audit(&mut |first, lines| {
        if cancelled() {
            return Err(StoreError::Closed);
        }
        let crc32c = crc32c::crc32c(lines);
        let stored = format!("audit-{first:016x}-{crc32c:08x}");
        if !have.contains_key(&stored) {
            let written = tar.file(&format!("{FILES}/{stored}"), lines, made / 1_000_000);
            written.map_err(StoreError::io("send", Path::new(SENT)))?;
        }
        let file = SavedFile { name: String::new(), stored, bytes: lines.len() as u64, crc32c };
        backup.audit.push(SavedLines { first, file });
        Ok(())
    })?;
    Ok(backup)
}

/// Sends a file and returns its checksum.
fn send_file(
    tar: &mut TarWriter<'_>,
    file: &super::pin::PinnedFile,
    stored: &str,
    made: i64,
    cancelled: &dyn Fn() -> bool,
) -> Result<u32, StoreError> {
    let sent = |result: std::io::Result<()>| result.map_err(StoreError::io("send", Path::new(SENT)));
    sent(tar.begin(&format!("{FILES}/{stored}"), file.bytes, made / 1_000_000))?;
    let mut buffer = vec![0; COPY_BYTES];
    let (mut at, mut crc) = (0, 0);
    while at < file.bytes {
        if cancelled() {
            return Err(StoreError::Closed);
        }
        let take = buffer.len().min((file.bytes - at) as usize);
        file.read(at, &mut buffer[..take])?;
        crc = crc32c::crc32c_append(crc, &buffer[..take]);
        sent(tar.data(&buffer[..take]))?;
        at += take as u64;
    }
    Ok(crc)
}
