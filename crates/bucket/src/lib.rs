//! The shared bucket of a cluster: objects in a folder or in an S3-compatible store, by blocking calls with deadlines.
//!
//! [`open`] returns the bucket in which the store keeps collections ([`meridian_store::Bucket`]). The calls go through
//! `object_store`, whose tasks run on a runtime of the caller. The calling thread waits for the response, until its
//! deadline.
//!
//! A bucket is probed when it is opened. Everything above depends on one operation, the exclusive create of an object.
//! So a bucket where two creates can win is refused.
//!
//! | file | holds |
//! |---|---|
//! | `address.rs` | parses addresses |
//! | `calls.rs` | blocking calls over a runtime, with deadlines |
//! | `folder/` | the bucket in a folder |
//! | `s3/` | the bucket in an S3-compatible store |
//! | `probe.rs` | checks that exactly one of many creates wins |

mod address;
mod calls;
mod folder;
mod probe;
mod s3;

pub use s3::S3Options;

use address::Address;
use calls::Calls;
use folder::FolderBucket;
use meridian_store::seams::Random;
use meridian_store::{Bucket, StoreError};
use s3::S3Bucket;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Opens the bucket at an address for reading: no folder is created, and nothing is probed.
///
/// # Errors
/// [`StoreError::Invalid`] for an address that names no bucket, and for settings; [`StoreError::Io`] if there is no
/// such bucket.
pub fn open_to_look(address: &str, s3: &S3Options, handle: &Handle) -> Result<Arc<dyn Bucket>, StoreError> {
    let calls = Calls::new(handle.clone());
    Ok(match Address::parse(address)? {
        Address::Folder(folder) => Arc::new(FolderBucket::open_existing(&folder, calls)?),
        Address::S3 { bucket, prefix } => Arc::new(S3Bucket::open(&bucket, &prefix, s3, calls)?),
    })
}

/// Opens the bucket at an address. A missing folder (`file://DIR`) is created; a missing bucket of a store
/// (`s3://BUCKET/PREFIX`) is not.
///
/// `s3`: how the store is reached. `handle`: runtime of the calls, with timers and sockets. `random`: source of the
/// probe's object names.
///
/// # Errors
/// [`StoreError::Invalid`] for an address that names no bucket, for settings, and for a bucket whose creates are not
/// exclusive. [`StoreError::Io`] if the bucket does not respond, or refuses.
pub fn open(
    address: &str,
    s3: &S3Options,
    handle: &Handle,
    random: &Arc<dyn Random>,
) -> Result<Arc<dyn Bucket>, StoreError> {
    let calls = Calls::new(handle.clone());
    let bucket: Arc<dyn Bucket> = match Address::parse(address)? {
        Address::Folder(folder) => Arc::new(FolderBucket::open(&folder, calls)?),
        Address::S3 { bucket, prefix } => {
            let opened = S3Bucket::open(&bucket, &prefix, s3, calls)?;
            opened.probe_parts(random.as_ref())?;
            Arc::new(opened)
        }
    };
    probe::probe(&bucket, random.as_ref())?;
    Ok(bucket)
}
