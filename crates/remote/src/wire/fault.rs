//! Errors on the wire: those of the store and of queries with all details for clients, and those of the link.

use meridian_backend::{Damaged, Problem, SnapshotGone, StoreError, WriteError};
use meridian_model::{Invalid, Seq};
use meridian_query::QueryError;
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// An error, named like the variant of its crate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    // Errors of queries.
    Deadline,
    Cancelled,
    Gone {
        seq: u64,
    },
    NoMemory {
        limit: u64,
    },
    ReadsTooMuch {
        events: u64,
        bytes: u64,
        limit: Option<u64>,
    },
    // Errors of the store.
    Invalid(WireInvalid),
    Exists {
        tenant: String,
        name: String,
    },
    Damaged(WireDamaged),
    NewerFormat {
        path: String,
        found: u32,
        supported: u32,
    },
    InUse {
        path: String,
    },
    ReadOnly {
        path: String,
        source: String,
    },
    Corrupt {
        path: String,
        detail: String,
    },
    Io {
        action: String,
        path: String,
        source: String,
        full: bool,
    },
    Busy(String),
    /// The owner has lost its partition to another one.
    Fenced(String),
    Closed,
    // Errors of writes.
    InvalidBatch(Vec<WireInvalid>),
    Conflict {
        ids: Vec<String>,
        total: usize,
    },
    KeyReused {
        position: u64,
        #[serde(default)]
        partition: Option<usize>,
        events: u64,
    },
    Changed,
    /// Number of stored events of a write, and why the others are not stored.
    Partly(u64, Box<Fault>),
    BatchTooLarge {
        bytes: u64,
        limit: u64,
    },
    Late(String),
    Full(String),
    Refused(String),
    Failed(String),
    Unknown(String),
    // Errors of a scan server.
    /// It did not start the query within its busy timeout, and never will.
    NotStarted,
    // Errors of the link.
    /// No owner responds: retry later.
    Unavailable(String),
    /// The peer sent something invalid.
    Internal(String),
}

/// [`Invalid`] on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireInvalid {
    field: Option<String>,
    line: Option<u64>,
    detail: String,
    not_kept: bool,
}

/// [`Damaged`] on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireDamaged {
    tenant: String,
    name: String,
    path: String,
    detail: String,
    cure: String,
}

impl From<Invalid> for WireInvalid {
    fn from(invalid: Invalid) -> WireInvalid {
        // Bodies are read before they are sent on: no mistake that is sent has a line besides its number.
        let Invalid { field, line, on_line: _, detail, not_kept } = invalid;
        WireInvalid { field, line, detail, not_kept }
    }
}

impl From<WireInvalid> for Invalid {
    fn from(invalid: WireInvalid) -> Invalid {
        let WireInvalid { field, line, detail, not_kept } = invalid;
        Invalid { field, line, on_line: None, detail, not_kept }
    }
}

impl From<Damaged> for WireDamaged {
    fn from(damaged: Damaged) -> WireDamaged {
        let Damaged { tenant, name, problem, cure } = damaged;
        WireDamaged { tenant, name, path: shown(&problem.path), detail: problem.detail, cure: cure.into_owned() }
    }
}

impl From<WireDamaged> for Damaged {
    fn from(damaged: WireDamaged) -> Damaged {
        let WireDamaged { tenant, name, path, detail, cure } = damaged;
        Damaged { tenant, name, problem: Problem { path: path.into(), detail }, cure: cure.into() }
    }
}

/// Converts a path to text: it is displayed, never opened by the other side.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Fault {
        Fault::Invalid(invalid.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        let full = error.is_full();
        match error {
            StoreError::Invalid(invalid) => Fault::Invalid(invalid.into()),
            StoreError::Exists { tenant, name } => Fault::Exists { tenant, name },
            StoreError::Damaged(damaged) => Fault::Damaged((*damaged).into()),
            StoreError::NewerFormat { path, found, supported } => {
                Fault::NewerFormat { path: shown(&path), found, supported }
            }
            StoreError::InUse { path } => Fault::InUse { path: shown(&path) },
            StoreError::ReadOnly { path, source } => Fault::ReadOnly { path: shown(&path), source: source.to_string() },
            StoreError::Corrupt { path, detail } => Fault::Corrupt { path: shown(&path), detail },
            StoreError::Io { action, path, source } => {
                Fault::Io { action: action.to_owned(), path: shown(&path), source: source.to_string(), full }
            }
            StoreError::Internal { .. } | StoreError::MustNotWait => Fault::internal(error.to_string()),
            StoreError::Changed => Fault::Changed,
            StoreError::Busy(why) => Fault::Busy(why),
            StoreError::Unknown(why) => Fault::Unknown(why),
            StoreError::Fenced(why) => Fault::Fenced(why),
            StoreError::Closed => Fault::Closed,
        }
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Fault {
        match error {
            QueryError::Deadline => Fault::Deadline,
            QueryError::Cancelled => Fault::Cancelled,
            QueryError::Gone(SnapshotGone { seq }) => Fault::Gone { seq: seq.0 },
            QueryError::Busy { limit } => Fault::NoMemory { limit },
            QueryError::TooLarge { events, bytes, limit } => Fault::ReadsTooMuch { events, bytes, limit },
            QueryError::Invalid(invalid) => Fault::Invalid(invalid.into()),
            QueryError::Store(error) => error.into(),
        }
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Fault {
        match error {
            WriteError::Invalid(list) => Fault::InvalidBatch(list.into_iter().map(WireInvalid::from).collect()),
            WriteError::Conflict { ids, total } => Fault::Conflict { ids, total },
            WriteError::KeyReused { position, partition, events } => Fault::KeyReused { position, partition, events },
            WriteError::Changed => Fault::Changed,
            WriteError::TooLarge { bytes, limit } => Fault::BatchTooLarge { bytes, limit },
            WriteError::Busy(why) => Fault::Busy(why),
            WriteError::Late(why) => Fault::Late(why),
            WriteError::Full(why) => Fault::Full(why),
            WriteError::Refused(why) => Fault::Refused(why),
            WriteError::Failed(why) => Fault::Failed(why),
            WriteError::Unknown(why) => Fault::Unknown(why),
            WriteError::Partly { stored, why } => Fault::Partly(stored, Box::new((*why).into())),
            WriteError::Closed => Fault::Closed,
        }
    }
}

impl Fault {
    pub(crate) fn internal(detail: impl Into<String>) -> Fault {
        Fault::Internal(detail.into())
    }

    /// Returns true if another owner, or the same one a little later, may respond.
    pub(crate) fn is_of_the_link(&self) -> bool {
        matches!(self, Fault::Unavailable(_) | Fault::Fenced(_))
    }

    /// Returns true if the owner did not respond because it is away or slow.
    pub(crate) fn is_of_absence(&self) -> bool {
        self.is_of_the_link() || matches!(self, Fault::Deadline)
    }

    /// Returns true if a scan server does not have the collection: it does not know it, or has it set apart as damaged.
    /// One that opens it again by itself is not meant.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Fault::Closed => true,
            Fault::Damaged(damaged) => !Damaged::from(damaged.clone()).is_retried(),
            _ => false,
        }
    }

    /// Returns true if the server cannot read what it needs but another one may be able to. Its connection to the
    /// bucket is down, or its version is older. Or it has just found damage, which it works around once it has read the
    /// manifest again.
    pub(crate) fn is_of_the_reader(&self) -> bool {
        matches!(
            self,
            Fault::Io { .. } | Fault::Corrupt { .. } | Fault::Damaged(_) | Fault::NewerFormat { .. } | Fault::Busy(_)
        )
    }

    pub(crate) fn into_query(self) -> QueryError {
        match self {
            Fault::Deadline => QueryError::Deadline,
            Fault::Cancelled => QueryError::Cancelled,
            Fault::Gone { seq } => QueryError::Gone(SnapshotGone { seq: Seq(seq) }),
            Fault::NoMemory { limit } => QueryError::Busy { limit },
            Fault::ReadsTooMuch { events, bytes, limit } => QueryError::TooLarge { events, bytes, limit },
            Fault::Invalid(invalid) => QueryError::Invalid(invalid.into()),
            other => QueryError::Store(other.into_store()),
        }
    }

    pub(crate) fn into_store(self) -> StoreError {
        match self {
            Fault::Invalid(invalid) => StoreError::Invalid(invalid.into()),
            Fault::Exists { tenant, name } => StoreError::Exists { tenant, name },
            Fault::Damaged(damaged) => StoreError::Damaged(Box::new(damaged.into())),
            Fault::NewerFormat { path, found, supported } => {
                StoreError::NewerFormat { path: path.into(), found, supported }
            }
            Fault::InUse { path } => StoreError::InUse { path: path.into() },
            Fault::ReadOnly { path, source } => {
                StoreError::ReadOnly { path: path.into(), source: Error::new(ErrorKind::ReadOnlyFilesystem, source) }
            }
            Fault::Corrupt { path, detail } => StoreError::Corrupt { path: path.into(), detail },
            Fault::Io { action, path, source, full } => {
                let kind = if full { ErrorKind::StorageFull } else { ErrorKind::Other };
                StoreError::Io { action: known(&action), path: path.into(), source: Error::new(kind, source) }
            }
            Fault::Busy(why) | Fault::Unavailable(why) | Fault::Fenced(why) => StoreError::Busy(why),
            Fault::Changed => StoreError::Changed,
            Fault::Unknown(why) => StoreError::Unknown(why),
            Fault::Closed => StoreError::Closed,
            Fault::NotStarted => StoreError::Busy("all scan servers are busy: try again".to_owned()),
            Fault::Deadline => StoreError::Busy("the owner of the data did not answer in time: try again".to_owned()),
            other => StoreError::Io {
                action: "ask",
                path: PathBuf::from("the owner of the data"),
                source: Error::other(other.text()),
            },
        }
    }

    pub(crate) fn into_write(self) -> WriteError {
        match self {
            Fault::Invalid(invalid) => WriteError::Invalid(vec![invalid.into()]),
            Fault::InvalidBatch(list) => WriteError::Invalid(list.into_iter().map(Invalid::from).collect()),
            Fault::Conflict { ids, total } => WriteError::Conflict { ids, total },
            Fault::KeyReused { position, partition, events } => WriteError::KeyReused { position, partition, events },
            Fault::Changed => WriteError::Changed,
            Fault::BatchTooLarge { bytes, limit } => WriteError::TooLarge { bytes, limit },
            Fault::Busy(why) | Fault::Unavailable(why) | Fault::Fenced(why) => WriteError::Busy(why),
            Fault::Late(why) => WriteError::Late(why),
            Fault::Full(why) => WriteError::Full(why),
            Fault::Refused(why) => WriteError::Refused(why),
            Fault::Failed(why) => WriteError::Failed(why),
            Fault::Unknown(why) => WriteError::Unknown(why),
            Fault::Partly(stored, why) => WriteError::Partly { stored, why: Box::new(why.into_write()) },
            Fault::Closed => WriteError::Closed,
            Fault::Deadline => WriteError::Busy("the owner of the data did not answer in time: try again".to_owned()),
            other => WriteError::Busy(other.text()),
        }
    }

    /// Returns its text, for a variant without a counterpart in the crates below.
    fn text(self) -> String {
        match self {
            Fault::Internal(why) => why,
            Fault::Damaged(WireDamaged { name, detail, cure, .. }) => {
                format!("the collection {name:?} cannot be used: {detail}; {cure}")
            }
            other => format!("{other:?}"),
        }
    }
}

/// Returns the static name of a disk operation, for messages and errors.
fn known(action: &str) -> &'static str {
    const ACTIONS: [&str; 14] = [
        "read", "write", "sync", "open", "create", "rename", "remove", "list", "lock", "stat", "seal", "cut", "move",
        "ask",
    ];
    ACTIONS.into_iter().find(|known| *known == action).unwrap_or("use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_of_a_log_stays_apart_from_that_of_a_server() {
        let over = |error: WriteError| {
            let json = serde_json::to_vec(&Fault::from(error)).unwrap();
            serde_json::from_slice::<Fault>(&json).unwrap().into_write()
        };
        assert!(matches!(over(WriteError::late()), WriteError::Late(_)));
        assert!(matches!(over(WriteError::no_room()), WriteError::Busy(_)));
        let partly = over(WriteError::Partly { stored: 3, why: Box::new(WriteError::late()) });
        assert!(matches!(partly, WriteError::Partly { stored: 3, why } if matches!(*why, WriteError::Late(_))));
    }
}
