//! One collection, and one partition of it.

use crate::history::History;
use crate::lookups::Lookups;
use crate::queries::Queries;
use crate::read::{Head, ReadPoint};
use crate::receipts::Files;
use crate::writes::Writes;
use meridian_model::{Field, Schema, Seq};
use meridian_query::partial::RowStream;
use meridian_query::{Control, Items, QueryError};
use meridian_store::{CollectionStats, Definition, ImportOrigin, Settings, StoreError};
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

    /// Its schema and settings. They are read one after the other: after a change in between they are a pair that the
    /// collection never had, and [`Collection::change_from`] refuses it.
    fn definition(&self) -> Definition {
        Definition { schema: Schema::clone(&self.schema()), settings: self.settings() }
    }

    /// Its statistics.
    fn stats(&self) -> CollectionStats;

    /// Returns one of its partitions, counted from 0; `None` if there is no such partition.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the server that has it cannot be reached.
    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError>;

    /// Adds optional fields and changes the settings: both, or neither on an error.
    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError> {
        self.change_from(None, fields, settings)
    }

    /// As [`Collection::change`], only if the collection has the definition `seen`, where one is given.
    ///
    /// # Errors
    /// [`StoreError::Changed`] if it has another one.
    fn change_from(
        &self,
        seen: Option<&Definition>,
        fields: Vec<Field>,
        settings: Option<Settings>,
    ) -> Result<(), StoreError>;

    /// Returns the number of events that these settings would remove.
    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError>;

    /// Writes everything to GeoParquet files that hold exactly what one snapshot shows, and returns their names.
    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError>;
}

/// One partition of a collection, in this or another process.
pub trait Part: Collection {
    /// Returns events in an order, each with its place in it. Returns one more than the limit, if there are as many.
    ///
    /// # Errors
    /// As [`Queries::items`].
    fn rows(
        &self,
        at: ReadPoint,
        question: &Items,
        control: &Control,
    ) -> Result<(Head, Box<dyn RowStream + Send>), QueryError>;

    /// Returns which of its events a restore has divided among a different number of partitions, if any.
    fn imported(&self) -> Option<ImportOrigin>;

    /// Records that another process shows this snapshot now. It is kept for as long as a page token that names it,
    /// unless it is gone already.
    fn note_use(&self, seq: Seq);

    /// Returns the number of existing events with positions after `after`, up to and including `upto`.
    fn count_between(&self, after: u64, upto: u64) -> Result<u64, StoreError>;
}
