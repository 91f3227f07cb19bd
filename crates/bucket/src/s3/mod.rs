//! The store's bucket in an S3-compatible object store.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the operator's settings |
//! | `clients.rs` | credentials, and which calls are retried |
//! | `upload.rs` | objects of any size, in parts |
//! | `fault.rs` | errors of failed calls |

mod clients;
mod fault;
mod options;
mod upload;

pub use options::S3Options;

use crate::calls::put_of;
use crate::calls::{Calls, LARGE, SMALL, whole};
use bytes::Bytes;
use clients::Clients;
use fault::BucketLocation;
use futures_util::TryStreamExt;
use meridian_model::Invalid;
use meridian_store::StoreError;
use meridian_store::bucket::{Bucket, Put, Span, Upload};
use meridian_store::seams::Random;
use object_store::path::Path as Name;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use upload::S3Upload;

/// Max size of objects created within [`SMALL`]: a lease must not wait a minute for a silent connection.
const SMALL_BYTES: usize = 1 << 20;

/// Objects of an S3-compatible store, below a prefix of a bucket.
#[derive(Clone)]
pub(crate) struct S3Bucket {
    clients: Arc<Clients>,
    calls: Calls,
    location: Arc<BucketLocation>,
    /// Prefix of all keys, with its slash, or empty.
    prefix: String,
}

impl fmt::Debug for S3Bucket {
    /// Omits the clients, which hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Bucket").field("location", &self.location).finish_non_exhaustive()
    }
}

impl S3Bucket {
    /// Opens a bucket, which must exist.
    pub(crate) fn open(bucket: &str, prefix: &str, options: &S3Options, calls: Calls) -> Result<S3Bucket, StoreError> {
        let region = options.region()?;
        let endpoint = options.endpoint_of(bucket).unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let (address, prefix) = match prefix {
            "" => (format!("s3://{bucket}"), String::new()),
            prefix => (format!("s3://{bucket}/{prefix}"), format!("{prefix}/")),
        };
        let location = Arc::new(BucketLocation { address, bucket: bucket.to_owned(), endpoint, region });
        let opened = S3Bucket { clients: Arc::new(Clients::new(bucket, options)?), calls, location, prefix };
        // The first call finds what is wrong with the settings, once, before 32 creates do.
        match opened.list("probe") {
            Ok(_) => Ok(opened),
            // The store responded with a refusal, and will refuse again.
            Err(refused) if matches!(refused.kind(), ErrorKind::PermissionDenied | ErrorKind::Other) => {
                Err(Invalid::new(refused.to_string()).into())
            }
            Err(source) => Err(StoreError::Io { action: "open", path: opened.path(), source }),
        }
    }

    /// Refuses a store that completes an upload in parts although the name is taken.
    pub(crate) fn probe_parts(&self, random: &dyn Random) -> Result<(), StoreError> {
        let name = format!("probe/{:016x}{:016x}", random.next_u64(), random.next_u64());
        let failed = |action, source| StoreError::Io { action, path: self.path().join(&name), source };
        self.put(&name, b"first").map_err(|e| failed("create", e))?;
        let completed = (|| {
            let mut upload = S3Upload::new(self.clone(), &name);
            upload.write(b"second")?;
            upload.send()?;
            Box::new(upload).finish()
        })();
        let found = self.get(&name).map_err(|e| failed("read", e))?;
        // A leftover belongs to no one: its name is random.
        let _ = self.delete(&name);
        match completed.map_err(|e| failed("create", e))? {
            Put::Exists if found == b"first" => Ok(()),
            _ => Err(Invalid::field(
                "bucket",
                format!(
                    "{} cannot hold collections: an upload in parts has replaced an object; expected a store that takes If-None-Match at \
                     its end",
                    self.location.address
                ),
            )
            .into()),
        }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(&self.location.address)
    }

    /// Returns the key of an object.
    fn key(&self, name: &str) -> io::Result<Name> {
        Name::parse(format!("{}{name}", self.prefix)).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
    }

    /// Waits for a call until its deadline.
    fn wait<T>(&self, within: Duration, call: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.calls.answer(within, call)?.map_err(|error| self.location.error(&error))
    }

    /// Returns the metadata of an object, by reading its first byte. A failed HEAD has no body, so it does not tell
    /// whether the object, the bucket or a right is missing.
    fn meta(&self, name: &str) -> io::Result<ObjectMeta> {
        let (store, key) = (self.clients.reads.clone(), self.key(name)?);
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        let answer = self.wait(SMALL, async move {
            let found = store.get_opts(&key, options).await?;
            let meta = found.meta.clone();
            // Read to the end, so that the connection can be reused.
            found.bytes().await.map(|_| meta)
        });
        match answer {
            // An empty object.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let (store, key) = (self.clients.reads.clone(), self.key(name)?);
                self.wait(SMALL, async move { store.head(&key).await })
            }
            answer => answer,
        }
    }
}

impl Bucket for S3Bucket {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        let (store, key) = (self.clients.writes.clone(), self.key(name)?);
        let within = if bytes.len() <= SMALL_BYTES { SMALL } else { LARGE };
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        put_of(self.wait(within, async move { store.put_opts(&key, payload, options).await.map(drop) }))
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        Ok(Box::new(S3Upload::new(self.clone(), name)))
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let (store, key) = (self.clients.reads.clone(), self.key(name)?);
        let bytes = self.wait(LARGE, async move { store.get(&key).await?.bytes().await })?;
        Ok(bytes.into())
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (store, key) = (self.clients.reads.clone(), self.key(name)?);
        let range = offset..offset + into.len() as u64;
        let bytes = self.wait(LARGE, async move { store.get_range(&key, range).await })?;
        if bytes.len() != into.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let read = |span: &Span| {
            let (store, key, range) = (self.clients.reads.clone(), self.key(&span.name), span.range.clone());
            let location = self.location.clone();
            async move { store.get_range(&key?, range).await.map_err(|error| location.error(&error)) }
        };
        let answers = self.calls.together(LARGE, wanted.iter().map(read).collect());
        answers.into_iter().zip(wanted).map(|(answer, span)| whole(answer?, span)).collect()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.meta(name).map(|meta| meta.size)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let (store, folder) = (self.clients.reads.clone(), self.key(folder.trim_end_matches('/'))?);
        let keys = self.wait(LARGE, async move {
            store.list(Some(&folder)).map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>().await
        })?;
        let mut names: Vec<String> =
            keys.into_iter().filter_map(|key| Some(key.strip_prefix(&self.prefix)?.to_owned())).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let (store, key) = (self.clients.writes.clone(), self.key(name)?);
        match self.wait(SMALL, async move { store.delete(&key).await }) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        self.meta(name).map(|meta| Some(meta.last_modified.timestamp_micros()))
    }

    fn place(&self) -> String {
        self.location.address.clone()
    }
}
