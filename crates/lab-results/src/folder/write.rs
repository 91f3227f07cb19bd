//! Writing a results folder: rows go to disk as they come, memory is bounded, and nothing half-written keeps the name.

use super::summary::{Names, Summary};
use super::{FORMAT_VERSION, Run, Sample, columns};
use crate::error::{LabError, Result};
use crate::record::Record;
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Rows of a row group: less than 1 MB of columns in memory, so that writing it out holds the processor for under a millisecond.
const GROUP_ROWS: usize = 16_384;
/// Rows of a page: small, so that no push of a few rows has all columns' pages to compress at length.
const PAGE_ROWS: usize = 2_048;
/// Samples are kept until there are so many.
const SAMPLE_ROWS: usize = 4_096;

/// A results folder in the making. Dropped before [`Writer::finish`], it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    place: PathBuf,
    partial: PathBuf,
    requests: Option<ArrowWriter<File>>,
    samples: Option<ArrowWriter<File>>,
    held: Vec<Sample>,
    summary: Summary,
}

impl Writer {
    /// Begins a folder at `place`, which must not be there yet (or be empty).
    pub fn create(place: &Path, scenario_toml: &str) -> Result<Writer> {
        let taken = fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some()) || place.is_file();
        if taken {
            return Err(LabError::scenario(format!(
                "{}: is there already: expected a new folder for results",
                place.display()
            )));
        }
        let mut name = place.file_name().map(std::ffi::OsStr::to_owned).unwrap_or_else(|| "results".into());
        name.push(".partial");
        let partial = place.with_file_name(name);
        // What a killed run left is of no use to anyone.
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(|e| broken(&partial, &e))?;
        }
        fs::create_dir_all(&partial).map_err(|e| broken(&partial, &e))?;
        let mut writer = Writer {
            place: place.to_owned(),
            partial,
            requests: None,
            samples: None,
            held: Vec::new(),
            summary: Summary::default(),
        };
        writer.file("scenario.toml", scenario_toml.as_bytes())?;
        writer.requests = Some(writer.parquet("requests.parquet", columns::record_batch(&[]))?);
        writer.samples = Some(writer.parquet("samples.parquet", columns::sample_batch(&[]))?);
        Ok(writer)
    }

    /// Adds rows. They count in the summary at once.
    pub fn push(&mut self, records: &[Record]) -> Result<()> {
        records.iter().for_each(|record| self.summary.add(record));
        let batch = columns::record_batch(records).map_err(|e| broken(&self.partial, &e))?;
        let done = self.requests.as_mut().map_or(Ok(()), |file| file.write(&batch));
        done.map_err(|e| broken(&self.partial, &e))
    }

    /// Adds samples.
    pub fn sample(&mut self, samples: impl IntoIterator<Item = Sample>) -> Result<()> {
        self.held.extend(samples);
        if self.held.len() >= SAMPLE_ROWS { self.flush_samples() } else { Ok(()) }
    }

    /// What has been pushed so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Completes the folder and gives it its name.
    pub fn finish(mut self, run: &Run) -> Result<Summary> {
        self.flush_samples()?;
        for file in [self.requests.take(), self.samples.take()].into_iter().flatten() {
            let file = file.into_inner().map_err(|e| broken(&self.partial, &e))?;
            file.sync_all().map_err(|e| broken(&self.partial, &e))?;
        }
        let run = Run { format_version: FORMAT_VERSION, ..run.clone() };
        self.json("run.json", &run)?;
        let summary = std::mem::take(&mut self.summary);
        self.json("summary.json", &summary.named(&Names::of(&run)))?;
        if self.place.exists() {
            fs::remove_dir(&self.place).map_err(|e| broken(&self.place, &e))?;
        }
        // The rename comes last, so a folder under the final name is always complete.
        fs::rename(&self.partial, &self.place).map_err(|e| broken(&self.place, &e))?;
        Ok(summary)
    }

    fn flush_samples(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let batch = columns::sample_batch(&self.held).map_err(|e| broken(&self.partial, &e))?;
        self.held.clear();
        let done = self.samples.as_mut().map_or(Ok(()), |file| file.write(&batch));
        done.map_err(|e| broken(&self.partial, &e))
    }

    fn parquet(&self, name: &str, like: std::result::Result<RecordBatch, ArrowError>) -> Result<ArrowWriter<File>> {
        let path = self.partial.join(name);
        let schema = like.map_err(|e| broken(&path, &e))?.schema();
        let file = File::create(&path).map_err(|e| broken(&path, &e))?;
        // Times hardly repeat: a dictionary of them would be made and thrown away. Texts repeat.
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

    fn json(&self, name: &str, value: &impl serde::Serialize) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(value).map_err(|e| LabError::results(format!("{name}: {e}")))?;
        text.push(b'\n');
        self.file(name, &text)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.partial.join(name);
        fs::write(&path, bytes).map_err(|e| broken(&path, &e))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After `finish` the name is no longer there. A failure here can be neither reported nor harmful.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

fn broken(path: &Path, error: &dyn std::fmt::Display) -> LabError {
    LabError::results(format!("{}: results cannot be written: {error}", path.display()))
}
