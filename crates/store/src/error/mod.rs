//! Errors, grouped by what the caller can do about them.

pub(crate) mod damaged;

pub use damaged::Damaged;
use meridian_model::{Invalid, Seq};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The request is at fault: correct it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A collection of this name already exists.
    #[error("the collection {name} of tenant {tenant} exists already")]
    Exists {
        /// Tenant.
        tenant: String,
        /// Collection.
        name: String,
    },
    /// The collection exists but cannot be opened: it is neither served nor overwritten.
    #[error("{0}")]
    Damaged(Box<Damaged>),
    /// The folder was written by a newer Meridian, which is needed to open it.
    #[error(
        "{} has format version {found}, and this program reads versions up to {supported}: \
         it was made by a newer Meridian, use that version or a newer one", path.display()
    )]
    NewerFormat {
        /// The file with that version.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version that this program reads.
        supported: u32,
    },
    /// Another process has the folder open.
    #[error("the data folder {} is in use by another process: stop that one, or name another folder", path.display())]
    InUse {
        /// The data folder.
        path: PathBuf,
    },
    /// The folder cannot be written to.
    #[error("the data folder {} cannot be written to ({source}): Meridian needs to write there", path.display())]
    ReadOnly {
        /// The data folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The content of a file differs from what was written.
    #[error("{} is damaged: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The error.
        detail: String,
    },
    /// The thread must not wait for a read; see [`crate::without_waits`].
    #[error("a read would wait, on a thread that must not")]
    MustNotWait,
    /// A disk operation failed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// The attempted call: `read`, `write`, `sync`...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A bug in the program.
    #[error("a {what} ended by a fault of the program: {detail}")]
    Internal {
        /// The job.
        what: &'static str,
        /// The panic message.
        detail: String,
    },
    /// The schema or the settings to be changed are not those that were read.
    #[error("the schema or the settings of the collection were changed meanwhile: read it, and decide again")]
    Changed,
    /// Something else is in progress: retry later.
    #[error("{0}")]
    Busy(String),
    /// The outcome is unknown: check, and retry.
    #[error("{0}")]
    Unknown(String),
    /// Another process now writes the collection: this one has to stop.
    #[error("{0}")]
    Fenced(String),
    /// The collection was dropped, or a job was cancelled.
    #[error("the collection is closed")]
    Closed,
}

/// The error of a store that has released its collections, which still exist.
const CLOSES: &str =
    "the server is shutting down, the collection is being renamed, or another server takes it over: try again";

impl StoreError {
    /// Returns the error for a store that was closed.
    pub(crate) fn closes() -> StoreError {
        StoreError::Busy(CLOSES.to_owned())
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { action, path: path.to_owned(), source }
    }

    /// Returns true if the cause is a full disk.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Io { source, .. } if is_full(source))
    }

    /// Returns true if bytes are damaged or missing, and not merely unreadable for now.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            StoreError::Corrupt { .. } => true,
            StoreError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Turns the absence of a file that has to be there into damage, by its name.
    pub(crate) fn absence_is_damage(self) -> StoreError {
        match self {
            StoreError::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StoreError::corrupt(&path, "it is missing")
            }
            other => other,
        }
    }

    /// Returns true if a later attempt to open may succeed: nothing is known to be damaged.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            StoreError::Io { .. } => !self.is_damage(),
            StoreError::Busy(_) | StoreError::Unknown(_) | StoreError::Fenced(_) | StoreError::Internal { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn corrupt(path: &Path, detail: impl Into<String>) -> StoreError {
        StoreError::Corrupt { path: path.to_owned(), detail: detail.into() }
    }
}

/// Why a write was refused. Nothing of it is stored, with two exceptions: after [`WriteError::Failed`] the whole write
/// may appear after a crash, and [`WriteError::Partly`] stores a part.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The batch is invalid: up to 100 errors, each with its line.
    #[error("{}", .0.first().map_or_else(|| "the batch is not valid".to_owned(), ToString::to_string))]
    Invalid(Vec<Invalid>),
    /// Ids that the collection already holds.
    #[error("{} of the ids are in the collection already, the first is {:?}", total, ids.first().map_or("", String::as_str))]
    Conflict {
        /// The first 100 of them.
        ids: Vec<String>,
        /// Their total number.
        total: usize,
    },
    /// The idempotency key was used before with other events.
    #[error("the idempotency key came with other events before, as write {position} of {events}: nothing was written")]
    KeyReused {
        /// Position of the earlier write.
        position: u64,
        /// The partition whose log has that position; `None` for a collection of one partition.
        partition: Option<usize>,
        /// Number of events of the earlier write.
        events: u64,
    },
    /// The event to be replaced is not the one that was read.
    #[error("the event was changed or deleted by another write meanwhile")]
    Changed,
    /// The batch is too large.
    #[error("a batch of {bytes} bytes is too large: at most {limit}")]
    TooLarge {
        /// Size found.
        bytes: u64,
        /// Max size.
        limit: u64,
    },
    /// The store is behind: retry later.
    #[error("{0}")]
    Busy(String),
    /// More is written to the collection than its log takes: write slower.
    #[error("{0}")]
    Late(String),
    /// The disk is full: retry once there is space.
    #[error("{0}")]
    Full(String),
    /// The collection refuses writes until an operator has repaired it.
    #[error("the collection accepts no writes: {0}")]
    Refused(String),
    /// The disk failed while the batch was being written: only a restart shows whether it is stored.
    #[error("the write failed and the collection takes no more: {0}")]
    Failed(String),
    /// It is unknown whether the events are stored: the server that wrote them went away before it answered, or its log
    /// does not answer.
    #[error("whether the events are stored is not known: {0}")]
    Unknown(String),
    /// Some partitions have stored their events, others have not.
    #[error("{stored} of the events are stored, and the others are not: {why}")]
    Partly {
        /// Events stored.
        stored: u64,
        /// Why the others have not.
        why: Box<WriteError>,
    },
    /// The collection was dropped.
    #[error("the collection is closed")]
    Closed,
}

impl WriteError {
    /// Returns the error for a collection whose store was closed.
    pub(crate) fn closes() -> WriteError {
        WriteError::Busy(CLOSES.to_owned())
    }

    /// Returns the error for a collection that refuses writes. `reopens` is true if that ends once its process has
    /// reopened it, or another one has.
    pub(crate) fn refused(why: &str, reopens: bool) -> WriteError {
        if reopens { WriteError::Busy(why.to_owned()) } else { WriteError::Refused(why.to_owned()) }
    }

    /// Returns the error for a write that would wait long behind others.
    pub fn late() -> WriteError {
        WriteError::Late("more is written than the log takes: try again later".to_owned())
    }

    /// Returns the error for a write for which no flush has made room in time.
    pub fn no_room() -> WriteError {
        WriteError::Busy("memory for new events is full and its flush to disk lags behind: try again later".to_owned())
    }
}

/// A snapshot that is no longer available, or never existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot {seq} is gone: it was last used more than five minutes ago; ask again without it")]
pub struct SnapshotGone {
    /// The requested snapshot.
    pub seq: Seq,
}

/// Damage in the data folder, as reported by `check` and [`crate::Store::problems`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The damaged file.
    pub path: PathBuf,
    /// The error and its consequence.
    pub detail: String,
}

impl Problem {
    /// Appends what was done about it.
    pub(crate) fn and(mut self, done: &str) -> Problem {
        self.detail.push_str("; ");
        self.detail.push_str(done);
        self
    }

    pub(crate) fn of(error: &StoreError) -> Problem {
        match error {
            StoreError::Corrupt { path, detail } => Problem { path: path.clone(), detail: detail.clone() },
            StoreError::Io { path, action, source } => {
                Problem { path: path.clone(), detail: format!("could not {action} it: {source}") }
            }
            StoreError::NewerFormat { path, .. } | StoreError::InUse { path } | StoreError::ReadOnly { path, .. } => {
                Problem { path: path.clone(), detail: error.to_string() }
            }
            StoreError::Damaged(damaged) => damaged.problem.clone(),
            other => Problem { path: PathBuf::new(), detail: other.to_string() },
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_os_str().is_empty() {
            // Not of a file.
            true => f.write_str(&self.detail),
            false => write!(f, "{}: {}", self.path.display(), self.detail),
        }
    }
}

/// Returns true if the error means that there is no space.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
