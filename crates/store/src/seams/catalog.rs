//! The catalog, which decides which manifest of a partition is the newest.

use crate::error::{Problem, StoreError};
use crate::manifest::Manifest;
use meridian_model::Invalid;

/// The manifests of one partition, each the successor of an earlier one. On disk a file and its copy; in a cluster
/// `manifests/{n}` by create-if-absent.
///
/// # Contract
/// - **Compare-and-swap.** A commit names the version that it follows, and takes effect only if that is the newest. Of
///   concurrent commits that follow one version at most one takes effect.
/// - **Order.** A manifest's version is greater than that of the one it follows. [`Catalog::newest`] never goes back.
/// - **Durable.** A commit that returned `Ok` survives a crash, and every later `newest` returns its manifest or a
///   successor.
/// - **Outcomes.** [`CommitError::Clean`]: nothing took effect, nor will. [`CommitError::Stale`]: another writer
///   committed; this one has to stop. [`CommitError::Unknown`]: the manifest may have taken effect, or still may. The
///   caller then keeps the objects of both and calls `newest` before its next commit.
pub trait Catalog: Send + Sync + std::fmt::Debug {
    /// Returns the newest manifest; `None` if the partition never existed, or was dropped.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the newest cannot be determined, [`StoreError::NewerFormat`], [`StoreError::Io`].
    fn newest(&self) -> Result<Option<Newest>, StoreError>;

    /// Commits a manifest as the successor of version `follows` (0 for the first); returns the bytes written.
    fn commit(&self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError>;

    /// Commits the drop of the collection, as the successor of version `follows`. From then on there is no newest
    /// manifest.
    fn end(&self, follows: u64) -> Result<(), CommitError> {
        let _ = follows;
        Err(CommitError::Clean(Invalid::new("collections of this storage cannot be dropped").into()))
    }

    /// Returns true if the collection was dropped; false also if it never existed, or if drops leave no trace here.
    ///
    /// # Errors
    /// Those of [`Catalog::newest`].
    fn is_ended(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Notifies the catalog that the newest manifest was verified: copies that prove it may be updated.
    fn confirm(&self, manifest: &Manifest) -> Result<(), StoreError> {
        let _ = manifest;
        Ok(())
    }
}

/// The newest manifest, and how far that is proven.
#[derive(Debug)]
pub struct Newest {
    /// The content of the partition.
    pub manifest: Manifest,
    /// Whether it is known to be the newest.
    pub proof: Proof,
}

/// Whether a manifest is known to be the newest that was written. Only then may files that it does not name be removed.
#[derive(Debug)]
pub enum Proof {
    /// It is the newest.
    Newest {
        /// Whether the copy that proves it is behind, because a crash came between the two writes.
        behind: bool,
    },
    /// The program that wrote it kept no proof.
    Never,
    /// A crash came before the first proof was written.
    First,
    /// The proof is missing or damaged.
    Bad(Problem),
}

/// Why a commit failed.
#[derive(Debug)]
pub enum CommitError {
    /// Nothing took effect, nor will.
    Clean(StoreError),
    /// Another manifest is the newest: another writer has taken over.
    Stale {
        /// Version of the newest.
        newest: u64,
    },
    /// The manifest may have taken effect, or still may.
    Unknown(StoreError),
}

impl CommitError {
    /// Returns true if objects that the manifest names must stay, because it may be the newest.
    pub fn is_unknown(&self) -> bool {
        matches!(self, CommitError::Unknown(_))
    }
}

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> StoreError {
        match error {
            CommitError::Clean(error) | CommitError::Unknown(error) => error,
            CommitError::Stale { newest } => {
                StoreError::Fenced(format!("another process has committed manifest {newest} of the collection"))
            }
        }
    }
}
