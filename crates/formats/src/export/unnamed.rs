//! A GeoPackage in a file without a name, for a server that sends it once it is whole.

use super::GeoPackageWriter;
use super::geopackage::failed;
use crate::write::table::Columns;
use crate::write::{ColumnEncoder, Extras, WriteError, selection};
use meridian_model::{Batch, Schema, Seq};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Beginning of the name that a file has until SQLite has opened it. A process that is killed then leaves it, empty.
const PREFIX: &str = "meridian-gpkg-";

/// Writes batches of events as a GeoPackage. The file has no name once it is begun, so the system removes it when the
/// process ends or drops it, in whatever way.
pub struct UnnamedGeoPackage {
    encoder: ColumnEncoder,
    writer: GeoPackageWriter,
    file: File,
}

impl UnnamedGeoPackage {
    /// Memory in bytes that it takes besides a batch: the pages that SQLite keeps.
    pub const MEMORY_BYTES: usize = 2 << 20;

    /// Begins a layer of the named properties, or of all, in a file on the disk of this folder. `as_of` is when its events
    /// were as they are, in microseconds since 1970: with the same time, the same events give the same bytes.
    ///
    /// # Errors
    /// A property that does not exist, or a folder in which no file can be made.
    pub fn begin(
        folder: &Path,
        collection: &str,
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
        as_of: i64,
    ) -> Result<UnnamedGeoPackage, WriteError> {
        let columns = Columns::of(schema, &selection(schema, properties).map_err(WriteError::of)?);
        let encoder = ColumnEncoder::new(schema, properties, Extras::default()).map_err(WriteError::of)?;
        // Not one that is made without a name: SQLite opens files by their names alone.
        let made = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder).map_err(WriteError::of_disk)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(made.path(), flags).map_err(failed)?;
        let (file, path) = made.into_parts();
        path.close().map_err(WriteError::of_disk)?;
        // From its first access on it looks for no journal, which another program could give the name that was freed.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(failed)?;
        let writer = GeoPackageWriter::begin(connection, collection, columns, Some(as_of))?;
        Ok(UnnamedGeoPackage { encoder, writer, file })
    }

    /// Adds the events of a batch; `seqs[row]` gives generated ids, and may be empty if ids are given.
    ///
    /// # Errors
    /// A disk that is full or fails.
    pub fn write(&mut self, batch: &Batch, seqs: &[Seq]) -> Result<(), WriteError> {
        self.writer.write(&self.encoder.record_batch(batch, seqs)?)
    }

    /// Returns the size of the file in bytes so far.
    ///
    /// # Errors
    /// A disk that fails.
    pub fn bytes(&self) -> Result<u64, WriteError> {
        self.writer.bytes()
    }

    /// Completes the file, and returns it.
    ///
    /// # Errors
    /// A disk that is full or fails.
    pub fn finish(self) -> Result<File, WriteError> {
        self.writer.finish()?;
        Ok(self.file)
    }
}
