//! One collection.

use crate::history::History;
use crate::lookups::Lookups;
use crate::part::Part;
use crate::queries::Queries;
use crate::writes::Writes;
use crate::written::Files;
use meridian_model::{Field, Schema};
use meridian_store::{CollectionStats, Settings, StoreError};
use std::sync::Arc;
use tokio::time::Instant;

/// A named set of events with one schema: what it is, and its parts by idea ([`Queries`], [`Lookups`], [`Writes`],
/// [`History`]).
pub trait Collection: Queries + Lookups + Writes + History {
    /// Its name.
    fn name(&self) -> &str;

    /// Creation time in microseconds since 1970. It distinguishes collections of the same name.
    fn created(&self) -> i64;

    /// Start of its content, in microseconds since 1970: its creation or restore, or the process start for an ephemeral
    /// one. Two contents that give the same numbers to different events differ in this.
    fn began(&self) -> i64;

    /// The current schema.
    fn schema(&self) -> Arc<Schema>;

    /// Its settings.
    fn settings(&self) -> Settings;

    /// Its statistics.
    fn stats(&self) -> CollectionStats;

    /// Returns one of its partitions, counted from 0; `None` if there is no such partition.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the server that has it cannot be reached.
    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError>;

    /// Adds optional fields and changes the settings: both, or neither on an error.
    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError>;

    /// Returns the number of events that these settings would remove.
    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError>;

    /// Writes everything to GeoParquet files that hold exactly what one snapshot shows, and returns their names.
    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError>;
}
