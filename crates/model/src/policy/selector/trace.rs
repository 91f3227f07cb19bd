//! The outcome of each attempt at a scan, for the log of slow requests and for people.

use std::fmt;
use std::time::Duration;

/// An attempt. Times count from the beginning of the scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttemptRecord {
    /// The server's name.
    pub server: String,
    /// Whether it is the tablet's owner, asked for lack of a scan server.
    pub owner: bool,
    /// Whether it was asked as a hedge beside a slow one.
    pub hedge: bool,
    /// Wait before the request, after failures.
    pub delay: Duration,
    /// How long the server might leave the scan unstarted.
    pub busy_timeout: Duration,
    /// When the request was sent.
    pub asked: Duration,
    /// When its first data arrived.
    pub started: Option<Duration>,
    /// When it ended.
    pub ended: Option<Duration>,
    /// How it ended.
    pub end: End,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// In progress, with no data yet.
    #[default]
    Asked,
    /// In progress, with data arriving.
    Started,
    /// Completed.
    Done,
    /// The server did not start it in time, and never will.
    Busy,
    /// The server failed.
    Failed,
    /// The server could not be reached, or the connection to it was lost.
    Unreachable,
    /// The server does not have the tablet, or has it set apart as damaged.
    Refused,
    /// Another attempt started first, or the scan is no longer wanted.
    Dropped,
}

impl End {
    /// Whether the attempt is in progress.
    pub fn is_under_way(self) -> bool {
        matches!(self, End::Asked | End::Started)
    }
}

impl fmt::Display for AttemptRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (if self.owner { "owner " } else { "" }, if self.hedge { " (hedge)" } else { "" });
        let word = match self.end {
            End::Asked => "no answer",
            End::Started => "not at its end",
            End::Done => "done",
            End::Busy => "busy",
            End::Failed => "failed",
            End::Unreachable => "unreachable",
            End::Refused => "refused",
            End::Dropped => "dropped",
        };
        write!(f, "{before}{}{after}: {word}", self.server)?;
        let since = |at: Duration| at.saturating_sub(self.asked).as_millis();
        if let Some(ended) = self.ended {
            write!(f, " after {} ms", since(ended))?;
        }
        match self.started {
            Some(started) => write!(f, ", begun after {} ms", since(started)),
            None => Ok(()),
        }
    }
}
