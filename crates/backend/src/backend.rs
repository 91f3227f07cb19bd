//! A server's collections.

use crate::collection::Collection;
use crate::records::Records;
use meridian_model::{Schema, Subscriber};
use meridian_store::{Backup, Damaged, Settings, StoreError};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The collections of a server, by tenant and name.
pub trait Backend: Debug + Send + Sync {
    /// The collection of this name; `None` where there is none or it is damaged. Returns at once.
    fn collection(&self, tenant: &str, name: &str) -> Option<Arc<dyn Collection>>;

    /// The collections of a tenant in order of name. Returns at once.
    fn list(&self, tenant: &str) -> Vec<Arc<dyn Collection>>;

    /// The collections of a tenant that cannot be opened, in order of name: neither absent nor served. Returns at once.
    fn damaged(&self, tenant: &str) -> Vec<Damaged>;

    /// Why the collection of this name cannot be opened; `None` if it can, or if there is none. Returns at once.
    fn why_damaged(&self, tenant: &str, name: &str) -> Option<Damaged>;

    /// Makes a collection.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] where something that may hold events has the name,
    /// [`StoreError::Invalid`], or what the disk said.
    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError>;

    /// Removes a collection and its events; says whether there was one. Questions at work end undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or what the disk said.
    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError>;

    /// Tells a subscriber of every write from now on, in any collection.
    fn subscribe(&self, subscriber: Arc<dyn Subscriber>);

    /// The small records of this kind, kept beside the collections; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// Writes a copy of everything to `out` as a tar for a backup folder, without the files of `have` (name, CRC32C).
    /// Reads and writes go on.
    ///
    /// # Errors
    /// What cannot be read whole, what the disk or `out` said, [`StoreError::Closed`] once `cancelled` says so.
    fn backup(
        &self,
        have: &BTreeMap<String, u32>,
        out: &mut dyn Write,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Backup, StoreError>;

    /// Whether everything is kept in memory only.
    fn is_ephemeral(&self) -> bool;

    /// The folder of the collections' files, where it is on this machine.
    fn data_folder(&self) -> Option<&Path>;

    /// Whether a write met a full disk since [`Backend::full_disk`] last found room. Returns at once.
    fn met_full_disk(&self) -> bool;

    /// The file that found no room on the disk, if there still is none: writes some 100 KiB to see.
    fn full_disk(&self) -> Option<PathBuf>;
}
