//! The store's bucket in a folder.

mod upload;

use crate::calls::{Calls, LARGE, SMALL, error_of, put_of};
use bytes::Bytes;
use futures_util::TryStreamExt;
use meridian_store::StoreError;
use meridian_store::bucket::{Bucket, Put, Span, Upload};
use meridian_store::seams::not_a_file;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use upload::FolderUpload;

/// Objects in a folder shared by processes: on one machine, or on a network file system with exclusive creates and hard
/// links.
#[derive(Debug, Clone)]
pub(crate) struct FolderBucket {
    store: Arc<LocalFileSystem>,
    calls: Calls,
    folder: PathBuf,
}

impl FolderBucket {
    /// Opens the folder. A missing one is created, for this user alone.
    pub(crate) fn open(folder: &Path, calls: Calls) -> Result<FolderBucket, StoreError> {
        let failed = |action, source| StoreError::Io { action, path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| failed("create", e))?;
        make_private(folder).map_err(|e| failed("create", e))?;
        FolderBucket::open_existing(folder, calls)
    }

    /// Opens the folder, which must exist.
    pub(crate) fn open_existing(folder: &Path, calls: Calls) -> Result<FolderBucket, StoreError> {
        let failed = |action, source| StoreError::Io { action, path: folder.to_owned(), source };
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|e| failed("open", error_of(e)))?;
        // Content and name are on disk before a create is acknowledged.
        let store = Arc::new(store.with_fsync(true));
        Ok(FolderBucket { store, calls, folder: folder.to_owned() })
    }

    /// Returns the path of an object's file.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        self.store.path_to_filesystem(&name_of(name)?).map_err(error_of)
    }
}

/// Creates the folders of records and of the audit log, which hold secrets of webhooks and digests of tokens. They are
/// closed to others, even if an older version has made the bucket readable for all. A group that shares the bucket
/// keeps its rights.
#[allow(clippy::disallowed_methods, reason = "object_store knows no rights of folders")]
fn make_private(bucket: &Path) -> io::Result<()> {
    let rights = std::fs::metadata(bucket)?.permissions().mode() & 0o770;
    for name in ["records", "audit"] {
        match DirBuilder::new().mode(rights).create(bucket.join(name)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    // A create syncs only the folders it creates itself.
    File::open(bucket)?.sync_all()
}

/// Converts the name of an object to that of `object_store`.
fn name_of(name: &str) -> io::Result<Name> {
    Name::parse(name).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
}

/// Opens an object's file and reads it, on a thread for blocking work. `object_store` would open whatever has the name,
/// and the open of a pipe waits for ever.
async fn read<T: Send + 'static>(
    path: io::Result<PathBuf>,
    content: impl FnOnce(&File, &Metadata) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path = path?;
    let reads = move || {
        let answer = open_object(&path).and_then(|(file, found)| content(&file, &found));
        answer.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    };
    tokio::task::spawn_blocking(reads).await?
}

/// Opens a regular file, and refuses anything else.
#[allow(clippy::disallowed_methods, reason = "a bucket's folder is none of the store's")]
fn open_object(path: &Path) -> io::Result<(File, Metadata)> {
    // Its path is looked up once, since each lookup may be a call to another machine, and what has the name may change
    // between two. With this flag the open of a pipe does not wait; files ignore it.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        // Sockets, and devices without a driver.
        Some(Errno::NXIO | Errno::OPNOTSUPP) => not_a_file(),
        _ => error,
    })?;
    let found = file.metadata()?;
    if found.is_dir() {
        // Folders hold objects, and are none.
        return Err(io::Error::new(ErrorKind::NotFound, "a folder and no object"));
    }
    if !found.is_file() {
        return Err(not_a_file());
    }
    Ok((file, found))
}

fn read_range(file: &File, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut into = vec![0; bytes];
    file.read_exact_at(&mut into, offset)?;
    Ok(into)
}

impl Bucket for FolderBucket {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        let (store, name) = (self.store.clone(), name_of(name)?);
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        put_of(self.calls.wait(LARGE, async move { store.put_opts(&name, payload, options).await.map(drop) }))
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        Ok(Box::new(FolderUpload::new(self.clone(), name)))
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let object = read(self.path(name), |mut file, _| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        });
        self.calls.answer(LARGE, object)?
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = into.len();
        let range = read(self.path(name), move |file, _| read_range(file, offset, bytes));
        into.copy_from_slice(&self.calls.answer(LARGE, range)??);
        Ok(())
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let range = |span: &Span| {
            let (offset, bytes) = (span.range.start, span.bytes());
            read(self.path(&span.name), move |file, _| read_range(file, offset, bytes))
        };
        self.calls.together(LARGE, wanted.iter().map(range).collect())
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.calls.answer(SMALL, read(self.path(name), |_, found| Ok(found.len())))?
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let (store, folder) = (self.store.clone(), name_of(folder.trim_end_matches('/'))?);
        let listed = self.calls.wait(LARGE, async move {
            store.list(Some(&folder)).map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>().await
        });
        match listed {
            Ok(mut names) => {
                names.sort_unstable();
                Ok(names)
            }
            // A folder without objects does not exist.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let (store, name) = (self.store.clone(), name_of(name)?);
        match self.calls.wait(SMALL, async move { store.delete(&name).await }) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }

    /// A name may be visible before it is on disk: if the response to the create was lost, nothing has confirmed that
    /// it is.
    fn settle(&self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        let folder = path.parent().map(Path::to_owned);
        let synced = read(Ok(path), move |file, _| {
            file.sync_all()?;
            folder.as_deref().map_or(Ok(()), sync_folder)
        });
        self.calls.answer(LARGE, synced)?
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        let written = read(self.path(name), |_, found| found.modified());
        let since = self.calls.answer(SMALL, written)??.duration_since(UNIX_EPOCH);
        Ok(since.ok().and_then(|since| i64::try_from(since.as_micros()).ok()))
    }

    fn place(&self) -> String {
        format!("file://{}", self.folder.display())
    }
}

#[allow(clippy::disallowed_methods, reason = "a bucket's folder is none of the store's")]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
