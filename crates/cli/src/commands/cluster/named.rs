//! The cluster named by a command: by its bucket, or by the folder of `meridian cluster up`.

use super::FOLDER;
use super::nodes::Nodes;
use crate::args::bucket_exists;
use crate::config::{Config, S3};
use crate::failure::Failure;
use meridian_store::{Bucket, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// A cluster with its bucket opened for reading.
pub(super) struct NamedCluster {
    /// The bucket's address.
    pub(super) address: String,
    pub(super) bucket: Arc<dyn Bucket>,
    /// The folder of `meridian cluster up`, if no bucket was named.
    pub(super) folder: Option<PathBuf>,
    /// Settings of a process of the cluster, if known.
    pub(super) config: Option<Config>,
    /// Runs the calls to the bucket; other threads wait for them.
    pub(super) runtime: Runtime,
}

impl NamedCluster {
    /// Opens the existing bucket at an address, or of a folder (by default [`FOLDER`]).
    ///
    /// # Errors
    /// [`Failure::Usage`] for wrong options; otherwise the error of the bucket.
    pub(super) fn open(
        bucket: Option<&str>,
        dir: Option<&Path>,
        config: Option<&Path>,
    ) -> Result<NamedCluster, Failure> {
        let (address, folder) = match bucket {
            Some(bucket) => (bucket.to_owned(), None),
            None => {
                let folder = dir.unwrap_or_else(|| Path::new(FOLDER)).to_owned();
                (nodes_of(&folder)?.bucket, Some(folder))
            }
        };
        bucket_exists(&address)?;
        let config = config_of(config, folder.as_deref())?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
        let s3 = config.as_ref().map_or_else(S3::default, |config| config.cluster.s3.clone()).options();
        let bucket = meridian_bucket::open_to_look(&address, &s3, runtime.handle()).map_err(|e| match e {
            StoreError::Invalid(what) => Failure::Usage(format!("--bucket {address}: {what}")),
            other => other.into(),
        })?;
        Ok(NamedCluster { address, bucket, folder, config, runtime })
    }
}

/// Returns the processes of a folder.
pub(super) fn nodes_of(folder: &Path) -> Result<Nodes, Failure> {
    Nodes::read(folder)?.ok_or_else(|| {
        Failure::Usage(format!(
            "--dir {}: no cluster was started there by `meridian cluster up`; name it, or a bucket with --bucket file://DIR or s3://BUCKET/PREFIX",
            folder.display()
        ))
    })
}

/// Returns the settings that name the bucket's store, and the NATS servers of the log.
fn config_of(named: Option<&Path>, folder: Option<&Path>) -> Result<Option<Config>, Failure> {
    match (named, folder) {
        (Some(file), _) => Config::read(file).map(Some),
        // As written by `meridian cluster up`.
        (None, Some(folder)) => {
            let file = folder.join("owner-1").join("settings.toml");
            file.is_file().then(|| Config::read(&file)).transpose()
        }
        (None, None) => Ok(None),
    }
}
