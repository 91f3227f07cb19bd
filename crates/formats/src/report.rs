//! Omissions and changes of a reader, for its caller to report.

use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Max events of each list in a [`Report`].
pub const SHOWN_MAX: usize = 10;

/// Omissions and changes of a reader so far, as counts of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events left out as invalid ([`crate::OnError::Skip`]).
    pub skipped: u64,
    /// The first of these, at most [`SHOWN_MAX`], each with its line and error.
    pub skipped_first: Vec<Invalid>,
    /// Events accepted with a repaired shape ([`crate::ReadOptions::mend`]).
    pub mended: u64,
    /// The first of these, at most [`SHOWN_MAX`], each with its line and the repair.
    pub mended_first: Vec<Invalid>,
    /// Events accepted without their heights or measures.
    pub heights_dropped: u64,
    /// Events accepted without their ids.
    pub ids_dropped: u64,
    /// Events accepted with an integer or a decimal that a field of floats has as another number.
    pub rounded: u64,
    /// The first of these, at most [`SHOWN_MAX`], each with its line, field and numbers.
    pub rounded_first: Vec<Invalid>,
    /// Elements that were not taken, as the format has no column for them.
    pub unread: Unread,
}

/// Max names in [`Unread`].
const UNREAD_MAX: usize = 40;

/// Elements of an input that have content but no column, counted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    /// The first names, at most 40, each with the number of its elements. They have no control characters.
    pub named: BTreeMap<String, u64>,
    /// Number of elements under further names.
    pub others: u64,
}

impl Unread {
    pub(crate) fn add(&mut self, name: &str, elements: u64) {
        if let Some(count) = self.named.get_mut(name) {
            *count += elements;
            return;
        }
        let shown = shown(name);
        if self.named.len() < UNREAD_MAX || self.named.contains_key(&shown) {
            *self.named.entry(shown).or_default() += elements;
        } else {
            self.others += elements;
        }
    }
}

/// An [`Unread`] to which a converter adds, and which the reader of its output reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedUnread(Arc<Mutex<Unread>>);

impl SharedUnread {
    pub(crate) fn add(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(name, 1);
    }

    pub(crate) fn get(&self) -> Unread {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Shortens a name of an input, and escapes its control characters: a terminal would obey them.
fn shown(name: &str) -> String {
    if !name.contains(char::is_control) {
        return shorten(name);
    }
    let mut escaped = String::with_capacity(name.len());
    for sign in name.chars() {
        match sign.is_control() {
            true => escaped.extend(sign.escape_default()),
            false => escaped.push(sign),
        }
    }
    shorten(&escaped)
}

impl Report {
    /// Adds the report of another reader.
    pub fn add(&mut self, other: Report) {
        self.skipped += other.skipped;
        self.mended += other.mended;
        self.heights_dropped += other.heights_dropped;
        self.ids_dropped += other.ids_dropped;
        self.rounded += other.rounded;
        other.unread.named.iter().for_each(|(name, elements)| self.unread.add(name, *elements));
        self.unread.others += other.unread.others;
        self.skipped_first.extend(other.skipped_first);
        self.skipped_first.truncate(SHOWN_MAX);
        self.mended_first.extend(other.mended_first);
        self.mended_first.truncate(SHOWN_MAX);
        self.rounded_first.extend(other.rounded_first);
        self.rounded_first.truncate(SHOWN_MAX);
    }

    pub(crate) fn skip(&mut self, mistake: Invalid) {
        self.skipped += 1;
        if self.skipped_first.len() < SHOWN_MAX {
            self.skipped_first.push(mistake);
        }
    }

    pub(crate) fn mend(&mut self, what: Invalid) {
        self.mended += 1;
        if self.mended_first.len() < SHOWN_MAX {
            self.mended_first.push(what);
        }
    }

    pub(crate) fn round(&mut self, what: Invalid) {
        self.rounded += 1;
        if self.rounded_first.len() < SHOWN_MAX {
            self.rounded_first.push(what);
        }
    }
}

/// An event that was left out.
#[derive(Debug)]
pub struct RejectedEvent<'a> {
    /// The error, and its line.
    pub mistake: &'a Invalid,
    /// The event as JSON: a feature or object as written, a row as an object of texts. `None` in columnar formats, and
    /// if it is not JSON.
    pub event: Option<String>,
}

/// Receives the events that are left out.
type RejectSink = dyn Fn(&RejectedEvent<'_>) -> io::Result<()> + Send + Sync;

/// Receives an event that is left out, on the reading thread; an error stops the reading.
#[derive(Clone)]
pub struct Rejects(Arc<RejectSink>);

impl Rejects {
    /// Passes each event that is left out to `take`.
    pub fn new(take: impl Fn(&RejectedEvent<'_>) -> io::Result<()> + Send + Sync + 'static) -> Rejects {
        Rejects(Arc::new(take))
    }

    pub(crate) fn put(&self, rejected: &RejectedEvent<'_>) -> io::Result<()> {
        (self.0)(rejected)
    }
}

impl fmt::Debug for Rejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rejects")
    }
}
