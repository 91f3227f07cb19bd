//! Reading a results folder.

use super::{FORMAT_VERSION, Run, Sample, columns};
use crate::error::{LabError, Result};
use crate::record::Record;
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Max rows in memory at once while records are read.
const BATCH_ROWS: usize = 8_192;

/// A results folder, open for reading.
#[derive(Debug, Clone)]
pub struct Results {
    /// Path of the folder.
    pub dir: PathBuf,
    /// The scenario that ran.
    pub run: Run,
    /// The resolved scenario, as TOML.
    pub scenario: String,
    /// `summary.json`.
    pub summary: serde_json::Value,
}

/// Opens a file of a results folder. In its place a pipe would make the open wait, and a device the read.
fn open_file(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        // As `expect_file` of the store, which stands above this crate.
        false => Err(io::Error::other("expected a file, and not a pipe, a socket, a folder or a device")),
    }
}

/// Reads a text of a results folder.
///
/// # Errors
/// A sentence for what is no file, or the error of the file system.
pub fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open_file(path)?)
}

/// Opens a results folder. A folder of a newer format, or any other folder, is refused with a sentence.
pub fn open(dir: &Path) -> Result<Results> {
    let shown = dir.display();
    let text = |name: &str| {
        read_text(&dir.join(name))
            .map_err(|e| LabError::results(format!("{shown}: not a whole results folder: {name}: {e}")))
    };
    let run = text("run.json")?;
    let damaged = |e: serde_json::Error| LabError::results(format!("{shown}: summary.json is damaged: {e}"));
    let run: Run = versioned(&run, "run.json", dir, FORMAT_VERSION)?;
    let summary = serde_json::from_str(&text("summary.json")?).map_err(damaged)?;
    Ok(Results { dir: dir.to_owned(), run, scenario: text("scenario.toml")?, summary })
}

/// Reads a JSON file of at most this format version.
pub fn versioned<T: DeserializeOwned>(text: &str, name: &str, dir: &Path, known: u32) -> Result<T> {
    let shown = dir.display();
    let damaged = |e: &dyn std::fmt::Display| LabError::results(format!("{shown}: {name} is damaged: {e}"));
    // From loose JSON: the typed form of a newer file may not parse, and its version is the useful error.
    let loose: serde_json::Value = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    match loose["format_version"].as_u64() {
        Some(version) if version > u64::from(known) => Err(LabError::results(format!(
            "{shown}: its format version is {version}, this program reads up to {known}: a newer meridian reads it"
        ))),
        Some(_) => serde_json::from_value(loose).map_err(|e| damaged(&e)),
        None => Err(damaged(&"format_version is missing")),
    }
}

impl Results {
    /// Returns every record, in the order in which requests ended, in batches.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<Vec<Record>>> + use<>> {
        self.walk("requests.parquet", columns::records)
    }

    /// Returns every sample, in batches.
    pub fn samples(&self) -> Result<impl Iterator<Item = Result<Vec<Sample>>> + use<>> {
        self.walk("samples.parquet", columns::samples)
    }

    fn walk<T: 'static>(
        &self,
        name: &'static str,
        rows: fn(&RecordBatch) -> Result<Vec<T>, String>,
    ) -> Result<impl Iterator<Item = Result<Vec<T>>> + use<T>> {
        let path = self.dir.join(name);
        let damaged =
            move |e: &dyn std::fmt::Display| LabError::results(format!("{}: cannot be read: {e}", path.display()));
        let file = open_file(&self.dir.join(name)).map_err(|e| damaged(&e))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
        let reader: ParquetRecordBatchReader = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| damaged(&e))?;
        Ok(reader.map(move |batch| rows(&batch.map_err(|e| damaged(&e))?).map_err(|e| damaged(&e))))
    }
}
