//! Writes a results folder: rows go to disk as they arrive, memory is bounded, and an incomplete folder never has the
//! final name.

use super::summary::{Names, Summary};
use super::{FORMAT_VERSION, Run, Sample, columns};
use crate::atomic::{NewFolder, broken};
use crate::error::Result;
use crate::record::Record;
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::Path;

/// Rows of a row group: less than 1 MB of columns in memory, so that writing it takes under a millisecond of processor
/// time.
const GROUP_ROWS: usize = 16_384;
/// Rows of a page: small, so that no push of a few rows must compress long pages of all columns.
const PAGE_ROWS: usize = 2_048;
/// Number of samples that are collected before they are written.
const SAMPLE_ROWS: usize = 4_096;

/// A results folder under construction. Dropped before [`Writer::finish`], it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    folder: NewFolder,
    requests: Option<ArrowWriter<File>>,
    samples: Option<ArrowWriter<File>>,
    held: Vec<Sample>,
    summary: Summary,
}

impl Writer {
    /// Begins a folder at `place`, which must not exist yet (or be empty).
    pub fn create(place: &Path, scenario_toml: &str) -> Result<Writer> {
        let mut writer = Writer {
            folder: NewFolder::create(place)?,
            // Opened below, since their paths are inside the folder.
            requests: None,
            samples: None,
            held: Vec::new(),
            summary: Summary::default(),
        };
        writer.folder.write("scenario.toml", scenario_toml.as_bytes())?;
        writer.requests = Some(writer.parquet("requests.parquet", columns::record_batch(&[]))?);
        writer.samples = Some(writer.parquet("samples.parquet", columns::sample_batch(&[]))?);
        Ok(writer)
    }

    /// Adds rows. They count in the summary at once.
    pub fn push(&mut self, records: &[Record]) -> Result<()> {
        records.iter().for_each(|record| self.summary.add(record));
        let batch = columns::record_batch(records).map_err(|e| broken(self.folder.path(), &e))?;
        let done = self.requests.as_mut().map_or(Ok(()), |file| file.write(&batch));
        done.map_err(|e| broken(self.folder.path(), &e))
    }

    /// Adds samples.
    pub fn sample(&mut self, samples: impl IntoIterator<Item = Sample>) -> Result<()> {
        self.held.extend(samples);
        if self.held.len() >= SAMPLE_ROWS { self.flush_samples() } else { Ok(()) }
    }

    /// Returns the number of records pushed so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Completes the folder and gives it its name.
    pub fn finish(mut self, run: &Run) -> Result<Summary> {
        self.flush_samples()?;
        for file in [self.requests.take(), self.samples.take()].into_iter().flatten() {
            let file = file.into_inner().map_err(|e| broken(self.folder.path(), &e))?;
            // Before the rename: after a power loss a folder under its final name must not hold empty files.
            file.sync_all().map_err(|e| broken(self.folder.path(), &e))?;
        }
        let run = Run { format_version: FORMAT_VERSION, ..run.clone() };
        self.folder.json("run.json", &run)?;
        let summary = std::mem::take(&mut self.summary);
        self.folder.json("summary.json", &summary.named(&Names::of(&run)))?;
        self.folder.finish()?;
        Ok(summary)
    }

    fn flush_samples(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let batch = columns::sample_batch(&self.held).map_err(|e| broken(self.folder.path(), &e))?;
        self.held.clear();
        let done = self.samples.as_mut().map_or(Ok(()), |file| file.write(&batch));
        done.map_err(|e| broken(self.folder.path(), &e))
    }

    fn parquet(&self, name: &str, like: std::result::Result<RecordBatch, ArrowError>) -> Result<ArrowWriter<File>> {
        let path = self.folder.path().join(name);
        let schema = like.map_err(|e| broken(&path, &e))?.schema();
        let file = File::create(&path).map_err(|e| broken(&path, &e))?;
        // Times hardly repeat: a dictionary of them would be built and discarded. Texts repeat.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_dictionary_enabled(false);
        for text in ["detail", "source", "metric"] {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(text), true);
        }
        ArrowWriter::try_new(file, schema, Some(properties.build())).map_err(|e| broken(&path, &e))
    }
}
