//! The store's bucket in a folder.

mod upload;

use crate::calls::{Calls, LARGE, SMALL, error_of, put_of, whole};
use bytes::Bytes;
use futures_util::TryStreamExt;
use meridian_store::StoreError;
use meridian_store::bucket::{Bucket, Put, Span, Upload};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
        let (store, name) = (self.store.clone(), name_of(name)?);
        let bytes = self.calls.wait(LARGE, async move { store.get(&name).await?.bytes().await })?;
        Ok(bytes.into())
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (store, name) = (self.store.clone(), name_of(name)?);
        let range = offset..offset + into.len() as u64;
        let bytes = self.calls.wait(LARGE, async move { store.get_range(&name, range).await })?;
        if bytes.len() != into.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let read = |span: &Span| {
            let (store, name, range) = (self.store.clone(), name_of(&span.name), span.range.clone());
            async move { store.get_range(&name?, range).await.map_err(error_of) }
        };
        let answers = self.calls.together(LARGE, wanted.iter().map(read).collect());
        answers.into_iter().zip(wanted).map(|(answer, span)| whole(answer?, span)).collect()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let (store, name) = (self.store.clone(), name_of(name)?);
        self.calls.wait(SMALL, async move { store.head(&name).await.map(|meta| meta.size) })
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
        let path = self.store.path_to_filesystem(&name_of(name)?).map_err(error_of)?;
        self.calls.wait(LARGE, async move {
            let synced = tokio::task::spawn_blocking(move || sync(&path)).await;
            synced
                .map_err(|source| object_store::Error::JoinError { source })?
                .map_err(|source| object_store::Error::Generic { store: "folder", source: Box::new(source) })
        })
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        let (store, name) = (self.store.clone(), name_of(name)?);
        let written = self.calls.wait(SMALL, async move { store.head(&name).await.map(|meta| meta.last_modified) })?;
        Ok(Some(written.timestamp_micros()))
    }

    fn place(&self) -> String {
        format!("file://{}", self.folder.display())
    }
}

#[allow(clippy::disallowed_methods, reason = "a sync needs the file, which object_store keeps to itself")]
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
