//! The result of a search, as its folder holds it.

use super::Step;
use meridian_lab_results::atomic::NewFolder;
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder;
use meridian_lab_results::stats::Estimate;
use meridian_lab_results::stats::usl::Law;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of `breakpoint.json`.
pub(super) const FORMAT_VERSION: u32 = 1;
/// The file's name.
const FILE: &str = "breakpoint.json";

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// The interval is as narrow as requested, and was confirmed by fresh trials.
    Found,
    /// There is an interval, wider than requested.
    Wide,
    /// The largest load held.
    Above,
    /// The smallest load failed.
    Below,
    /// The lab or the machine was the limit.
    Void,
    /// The search was interrupted.
    Interrupted,
    /// The target could no longer be reached.
    Gone,
}

/// `breakpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Version of the file format.
    pub format_version: u32,
    /// Version of the program.
    pub program: String,
    /// The scenario's name.
    pub name: String,
    /// When the search began (RFC 3339).
    pub started: String,
    /// When it ended.
    pub ended: String,
    /// The unit of the load.
    pub unit: String,
    /// Whether the load is a rate, so that the served rate can be compared with it.
    pub is_rate: bool,
    /// How the search ended.
    pub conclusion: Conclusion,
    /// The result as text.
    pub sentence: String,
    /// The load at which the objectives fail half of the time, with its 95 % confidence interval. Null if only one
    /// side was seen.
    pub breakpoint: Option<Estimate>,
    /// Half of the interval over its middle.
    pub within: Option<f64>,
    /// The requested interval.
    pub wanted_within: f64,
    /// The max rate at which no backlog grows, however long the load lasts, with 95 % confidence. Null if the load is
    /// not a rate, or no backlog grew.
    #[serde(default)]
    pub sustainable: Option<Estimate>,
    /// Length of the measured phase of a step, in seconds: the breakpoint holds for steps of this length.
    #[serde(default)]
    pub measured_s: f64,
    /// The objective that failed first.
    pub objective: Option<String>,
    /// How the server fails.
    pub shape: Option<Shape>,
    /// The largest load that held, over all steps.
    pub most_held: Option<f64>,
    /// The scalability law fitted to throughput over users, if users were the load and there are enough points.
    pub law: Option<Law>,
    /// Every step.
    pub steps: Vec<Step>,
}

/// How a server fails past its breakpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The same in one word.
    pub kind: ShapeKind,
    /// The percentile leaps at the breakpoint.
    pub abrupt: bool,
    /// More load reduces the number of responses.
    pub gives_way: bool,
    /// The same as text.
    pub words: String,
}

/// The outcomes of requests past the breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeKind {
    /// Each waits longer than the previous one.
    Queue,
    /// All take longer to the same degree.
    Slower,
    /// They are refused.
    Refusing,
    /// They get no response in time.
    TimingOut,
    /// They get errors.
    Failing,
    /// They get wrong or incomplete responses.
    Unsound,
    /// They could not be sent for lack of connections.
    NotSent,
}

impl Breakpoint {
    /// Returns whether the breakpoint is known as well as requested.
    pub fn is_good(&self) -> bool {
        self.conclusion == Conclusion::Found
    }

    /// Returns whether every load up to `load` is known to hold, and to be sustained if the load is a rate whose edge
    /// is known.
    pub fn holds_at(&self, load: f64) -> bool {
        if self.sustainable.is_some_and(|edge| edge.low < load) {
            return false;
        }
        match (&self.breakpoint, self.conclusion) {
            (Some(at), Conclusion::Found | Conclusion::Wide) => at.low >= load,
            (None, Conclusion::Above) => self.most_held.is_some_and(|most| most >= load),
            _ => false,
        }
    }

    /// Reads a search's folder.
    pub fn open(dir: &Path) -> Result<Breakpoint> {
        let shown = dir.display();
        let text = folder::read_text(&dir.join(FILE))
            .map_err(|e| LabError::results(format!("{shown}: not the folder of a breakpoint search: {FILE}: {e}")))?;
        folder::versioned(&text, FILE, dir, FORMAT_VERSION)
    }

    /// Returns whether a folder is that of a search.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).is_file()
    }

    pub(super) fn write(&self, folder: &NewFolder) -> Result<()> {
        folder.json(FILE, self)
    }
}

/// Rounds to four digits.
pub(super) fn short(x: f64) -> String {
    let digits = (3.0 - x.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
