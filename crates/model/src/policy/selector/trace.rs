//! The outcome of each attempt at a scan, for the log of slow requests and for people.

use std::fmt;
use std::time::Duration;

/// An attempt. Times count from the beginning of the scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// The server's name.
    pub server: String,
    /// It is the tablet's owner, asked as there was no scan server.
    pub owner: bool,
    /// It was asked beside another one that was slow.
    pub hedge: bool,
    /// The wait before the request, after failures.
    pub delay: Duration,
    /// How long the server might leave the scan unstarted.
    pub busy_timeout: Duration,
    /// When it was asked.
    pub asked: Duration,
    /// When its first data came.
    pub started: Option<Duration>,
    /// When it ended.
    pub ended: Option<Duration>,
    /// How it ended.
    pub end: End,
}

/// How an attempt ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// Not yet, and nothing has come.
    #[default]
    Asked,
    /// Not yet; data come.
    Started,
    /// With the whole answer.
    Done,
    /// The server did not start it in time, and never will.
    Busy,
    /// The server failed, or the connection to it.
    Failed,
    /// Another attempt started first, or nobody waits for the scan any more.
    Dropped,
}

impl End {
    /// Whether the attempt has not ended.
    pub fn is_under_way(self) -> bool {
        matches!(self, End::Asked | End::Started)
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (if self.owner { "owner " } else { "" }, if self.hedge { " (hedge)" } else { "" });
        let word = match self.end {
            End::Asked => "no answer",
            End::Started => "not at its end",
            End::Done => "done",
            End::Busy => "busy",
            End::Failed => "failed",
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
