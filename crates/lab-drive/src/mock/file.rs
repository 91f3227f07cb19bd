//! The file of `meridian lab mock`: sources, their delays, and the times of their faults.

use crate::scenario::anchored;
use meridian_lab_results::error::{LabError, Result};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Any number of sources behind one address.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MockFile {
    /// The seed of all random values.
    #[serde(default = "one")]
    pub seed: u64,
    /// The sources; the first whose path is a prefix of a request's path responds.
    pub source: Vec<SourceFile>,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Name of the source, which responds under `/NAME`.
    pub name: String,
    /// Time between request and response.
    #[serde(default)]
    pub delay: Delay,
    /// Number of pages of a whole result; `?page=2` requests the second.
    #[serde(default = "one")]
    pub pages: u64,
    /// Number of items of a page.
    #[serde(default = "ten")]
    pub items: u64,
    /// Bytes of text in an item.
    #[serde(default = "hundred")]
    pub item_bytes: usize,
    /// Share of calls that get an error page.
    #[serde(default)]
    pub error_share: f64,
    /// Status of the error page.
    #[serde(default = "server_error")]
    pub error_status: u16,
    /// Max concurrent calls, each for its delay; others wait in a queue, first in, first out. 0: no limit. Workers and
    /// delay together make a server of known capacity.
    #[serde(default)]
    pub workers: usize,
    /// Calls per second beyond which the source responds with 429; 0: no limit.
    #[serde(default)]
    pub rate_limit: f64,
    /// Packets in sequence instead of pages: a search's stream, over a WebSocket on request, else as Server-Sent
    /// Events.
    #[serde(default)]
    pub stream: Option<StreamFile>,
    /// The faults and their times.
    #[serde(default)]
    pub fault: Vec<Fault>,
}

/// Timing of a source's packets: the first after the source's delay, each with the items of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamFile {
    /// Number of packets with items; a final one follows at once.
    pub packets: u64,
    /// Milliseconds between two packets.
    pub every_ms: f64,
}

/// Time between request and response.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Delay {
    /// Constant.
    Fixed {
        /// Milliseconds.
        ms: f64,
    },
    /// Log-normal: most are near the median, some much longer.
    Lognormal {
        /// Median, milliseconds.
        median_ms: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Drawn evenly from measured delays.
    Empirical {
        /// A file with one delay per line, in milliseconds; relative to the mock's file.
        file: PathBuf,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Delay::Fixed { ms: 0.0 }
    }
}

/// A temporary state of a source.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The kind of fault.
    pub kind: MockFault,
    /// Start, in seconds after the start of the mock.
    #[serde(default)]
    pub from_s: f64,
    /// End of the fault; by default it lasts for ever.
    #[serde(default = "forever")]
    pub to_s: f64,
    /// Share of the calls in that period.
    #[serde(default = "whole")]
    pub share: f64,
    /// For `slow`: the factor of the delay.
    #[serde(default = "ten_times")]
    pub factor: f64,
}

/// The fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MockFault {
    /// The delay is multiplied by the factor.
    Slow,
    /// The connection is closed without a response.
    Down,
    /// Half of the response is sent, then nothing; the connection stays open.
    HalfOpen,
    /// The response is not HTTP.
    Garbage,
    /// Half of the response is sent, then the connection is closed.
    Truncated,
    /// Nothing is sent; the connection stays open.
    Hang,
    /// A valid response of another shape: `items` is `results`, ids are numbers.
    Schema,
}

impl MockFault {
    /// Returns its word in the file and in the log of calls.
    pub fn name(self) -> &'static str {
        match self {
            MockFault::Slow => "slow",
            MockFault::Down => "down",
            MockFault::HalfOpen => "half-open",
            MockFault::Garbage => "garbage",
            MockFault::Truncated => "truncated",
            MockFault::Hang => "hang",
            MockFault::Schema => "schema",
        }
    }
}

fn one() -> u64 {
    1
}
fn ten() -> u64 {
    10
}
fn hundred() -> usize {
    100
}
fn server_error() -> u16 {
    500
}
fn forever() -> f64 {
    f64::INFINITY
}
fn whole() -> f64 {
    1.0
}
fn ten_times() -> f64 {
    10.0
}

/// Max workers; more could never all be busy.
const WORKERS_MAX: usize = 100_000;
/// Max size of a page.
const PAGE_MAX: u64 = 64 << 20;

impl MockFile {
    /// Reads and checks a file, whose paths are relative to its own folder; errors name file, line or key, and what
    /// was expected. `read` reads it: bounded, and a regular file alone. `expect` refuses what is none among the files
    /// that it names.
    pub fn load(
        path: &Path,
        read: impl FnOnce(&Path) -> io::Result<String>,
        expect: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<MockFile> {
        let shown = path.display();
        let text = read(path).map_err(|e| LabError::scenario(format!("{shown}: cannot be read: {e}")))?;
        let mut file = MockFile::parse(&text, &shown.to_string())?;
        for source in &mut file.source {
            if let Delay::Empirical { file } = &mut source.delay {
                anchored(path.parent().unwrap_or(Path::new("")), file);
                expect(file).map_err(|e| {
                    let of = format!("source {}: delay.file {}", source.name, file.display());
                    LabError::scenario(format!("{shown}: {of}: {e}"))
                })?;
            }
        }
        Ok(file)
    }

    /// Like `read`, for a text; `shown` is its name in messages.
    pub fn parse(text: &str, shown: &str) -> Result<MockFile> {
        let file: MockFile = toml::from_str(text).map_err(|e| crate::scenario::mistake(shown, text, &e))?;
        file.check().map_err(|e| LabError::scenario(format!("{shown}: {e}")))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        if self.source.is_empty() {
            return Err("source is missing: expected tables such as [[source]] name = \"a\"".to_owned());
        }
        for (at, source) in self.source.iter().enumerate() {
            source.check().map_err(|e| format!("source {}: {e}", source.name))?;
            if self.source[..at].iter().any(|other| other.name == source.name) {
                return Err(format!("source: two are named {:?}: expected a name for each", source.name));
            }
        }
        Ok(())
    }
}

impl SourceFile {
    fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Err("name: expected letters, digits, - and _, as they stand in a path".to_owned());
        }
        let share = |name: &str, share: f64| match share {
            s if (0.0..=1.0).contains(&s) => Ok(()),
            s => Err(format!("{name} = {s}: expected 0 to 1")),
        };
        let ms = |name: &str, ms: f64| match ms {
            ms if (0.0..=86_400_000.0).contains(&ms) => Ok(()),
            ms => Err(format!("{name} = {ms}: expected milliseconds of 0 to a day")),
        };
        share("error_share", self.error_share)?;
        if !(200..=599).contains(&self.error_status) {
            return Err(format!("error_status = {}: expected 200 to 599", self.error_status));
        }
        if self.pages == 0 || self.items.saturating_mul(self.item_bytes as u64 + 200) > PAGE_MAX {
            return Err("pages and items: expected at least one page and at most 64 MiB of items on it".to_owned());
        }
        if let Some(stream) = &self.stream {
            if stream.packets == 0 {
                return Err("stream.packets = 0: expected at least 1".to_owned());
            }
            ms("stream.every_ms", stream.every_ms)?;
        }
        if self.workers > WORKERS_MAX {
            return Err(format!("workers = {}: expected at most {WORKERS_MAX}, or 0 for no limit", self.workers));
        }
        if !(self.rate_limit >= 0.0 && self.rate_limit.is_finite()) {
            return Err(format!("rate_limit = {}: expected calls a second, or 0", self.rate_limit));
        }
        match &self.delay {
            Delay::Fixed { ms: fixed } => ms("delay.ms", *fixed)?,
            Delay::Lognormal { median_ms, sigma } => {
                ms("delay.median_ms", *median_ms)?;
                if !((0.0..=10.0).contains(sigma) && *median_ms > 0.0) {
                    return Err("delay: expected a median above 0 and a sigma of 0 to 10".to_owned());
                }
            }
            Delay::Empirical { .. } => {}
        }
        for fault in &self.fault {
            share("fault.share", fault.share)?;
            if !(fault.from_s >= 0.0 && fault.from_s < fault.to_s) {
                return Err(format!("fault {}: expected from_s of 0 or more, below to_s", fault.kind.name()));
            }
            if !(fault.factor > 0.0 && fault.factor <= 1e6) {
                return Err(format!("fault {}: factor = {}: expected above 0", fault.kind.name(), fault.factor));
            }
        }
        Ok(())
    }
}
