//! The report of a run in progress.

use super::digest::Digest;
use super::{page, pictures, words};
use crate::folder::Run;
use crate::picture::escaped;
use crate::record::Record;
use std::fmt::Write;

/// The records so far, in bounded memory.
#[derive(Debug)]
pub struct LivePage {
    digest: Digest,
}

impl Default for LivePage {
    fn default() -> Self {
        LivePage { digest: Digest::new() }
    }
}

impl LivePage {
    /// Adds records.
    pub fn add(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.digest.add(record));
    }

    /// Returns their report, as a piece of HTML. `run` has the names.
    pub fn html(&self, run: &Run) -> String {
        let mut out = String::new();
        if self.digest.lines.is_empty() {
            out.push_str("<p class=\"lead\">No request has ended yet.</p>");
            return out;
        }
        if self.digest.measured() > 0 {
            let _ = write!(out, "<p class=\"lead\">{}</p>", escaped(&words::first_paragraph(run, &self.digest)));
            let (header, rows) = words::table(run, &self.digest);
            page::table(&mut out, &header, &rows);
        } else {
            out.push_str("<p class=\"lead\">Nothing has been measured yet.</p>");
        }
        page::reasons(&mut out, &self.digest);
        for picture in pictures::all(run, &self.digest, &[]) {
            page::figure(&mut out, &picture.plot.svg(), &picture.caption);
        }
        out
    }
}
