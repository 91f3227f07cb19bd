//! Records: what a log holds.

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Adds events with new ids.
    Write,
    /// Adds events; earlier ones with the same ids are dead from here on.
    Replace,
    /// Kills events, named by number and id.
    Delete,
    /// Kills the events that ended before an instant.
    Expire,
}

impl Kind {
    /// Returns the number that stands for it in logs.
    pub(crate) fn code(self) -> u16 {
        match self {
            Kind::Write => 1,
            Kind::Replace => 2,
            Kind::Delete => 3,
            Kind::Expire => 4,
        }
    }

    /// Returns the kind of a number; `None` if there is none.
    pub(crate) fn of(code: u16) -> Option<Kind> {
        [Kind::Write, Kind::Replace, Kind::Delete, Kind::Expire].into_iter().find(|k| k.code() == code)
    }
}

/// One write, as stored in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Number of the write, contiguous in a log.
    pub position: u64,
    /// Its kind.
    pub kind: Kind,
    /// When the write was accepted, in microseconds since 1970.
    pub time: i64,
    /// Number of events it adds.
    pub events: u32,
    /// Its idempotency key; empty if it has none.
    pub key: Vec<u8>,
    /// The events it adds or kills, encoded by `ingest/bodies.rs`.
    pub body: Vec<u8>,
}
