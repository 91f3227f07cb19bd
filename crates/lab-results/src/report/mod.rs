//! `lab report`: a results folder as one page and a folder of pictures.
//!
//! The page is for a reader with ten seconds: the first paragraph summarises the run, the pictures show why. It is one
//! file that works from a disk, without scripts or external resources; `pictures/` holds the same pictures as SVG and
//! PNG.

mod captioned;
mod digest;
mod live;
mod modes;
pub mod page;
mod pictures;
mod words;

#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::folder;
use digest::Digest;
pub use live::LivePage;
use std::path::{Path, PathBuf};

/// Max samples from which pictures are drawn.
const SAMPLES_MAX: usize = 200_000;

/// Returns the style of a report page, for pages beside it.
pub fn style() -> &'static str {
    page::STYLE
}

/// The written files.
#[derive(Debug)]
pub struct Report {
    /// Path of the page.
    pub page: PathBuf,
    /// Folder of the pictures.
    pub pictures: PathBuf,
    /// The first paragraph: a summary of the run.
    pub words: String,
}

/// Writes `report.html` and `pictures/` into a results folder.
///
/// # Errors
///
/// The folder cannot be read, has a newer format, or cannot be written to.
pub fn write(dir: &Path) -> Result<Report> {
    let results = folder::open(dir)?;
    let mut digest = Digest::new();
    for batch in results.records()? {
        batch?.iter().for_each(|record| digest.add(record));
    }
    let mut samples = Vec::new();
    for batch in results.samples()? {
        samples.extend(batch?);
        // Reads on past the limit, so that a damaged file is reported even if its end is not drawn.
        samples.truncate(SAMPLES_MAX);
    }
    let pictures = pictures::all(&results.run, &digest, &samples);
    let folder = dir.join("pictures");
    for picture in &pictures {
        page::picture(&folder, &picture.name, &picture.plot.svg())?;
    }
    let page = dir.join("report.html");
    page::write(&page, &page::html(&results, &digest, &pictures))?;
    Ok(Report { page, pictures: folder, words: words::first_paragraph(&results.run, &digest) })
}
