//! The shared bucket of a cluster: objects in a folder, by blocking calls with deadlines.
//!
//! [`open`] gives the store what it keeps collections in ([`meridian_store::Bucket`]). The calls go through `object_store`, whose tasks run on
//! a runtime of the caller; the thread that calls waits for the answer, until its deadline.
//!
//! A bucket is probed when it is opened: everything above rests on one operation, the create of an object that is not there, so a folder
//! where that lets two win is refused.
//!
//! | file | holds |
//! |---|---|
//! | `address.rs` | what an address names |
//! | `calls.rs` | blocking calls over a runtime, with deadlines |
//! | `bucket.rs` | the bucket of the store over these calls |
//! | `upload.rs` | objects of any size, in parts |
//! | `probe.rs` | whether one create of many wins |

mod address;
mod bucket;
mod calls;
mod probe;
mod upload;

use bucket::FolderBucket;
use calls::Calls;
use meridian_store::seams::Random;
use meridian_store::{Bucket, StoreError};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Opens the bucket at an address to look at it: no folder is made, and nothing is probed.
///
/// # Errors
/// [`StoreError::Invalid`] of an address that names no bucket; [`StoreError::Io`] where there is no such folder.
pub fn open_to_look(address: &str, handle: &Handle) -> Result<Arc<dyn Bucket>, StoreError> {
    let folder = address::folder_of(address)?;
    Ok(Arc::new(FolderBucket::open_existing(&folder, Calls::new(handle.clone()))?))
}

/// Opens the bucket at an address, `file://DIR`; the folder is made if it is not there.
///
/// `handle`: the runtime on which calls run. `random`: names of the objects of the probe.
///
/// # Errors
/// [`StoreError::Invalid`] of an address that names no bucket, and of a bucket where creates do not exclude each other;
/// [`StoreError::Io`] where the bucket does not answer.
pub fn open(address: &str, handle: &Handle, random: &Arc<dyn Random>) -> Result<Arc<dyn Bucket>, StoreError> {
    let folder = address::folder_of(address)?;
    let calls = Calls::new(handle.clone());
    let bucket: Arc<dyn Bucket> = Arc::new(FolderBucket::open(&folder, calls)?);
    probe::probe(&bucket, random.as_ref())?;
    Ok(bucket)
}
