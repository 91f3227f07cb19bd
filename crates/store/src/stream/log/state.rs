//! States of a writer:
//!
//! **Writing.** It takes groups.
//!
//! **Cut**, after a group that was stored in part: an owner record voids that part before the next group.
//!
//! **Broken**, after the stream turned out to have lost acknowledged messages. This process has those writes in memory.
//! So they are flushed first, and the manifest names the next *generation*: a stream of another name, where writing
//! continues. The previous one is deleted, so that no former writer can be acknowledged there.
//!
//! **Stopped**, after a group of unknown outcome, and **fenced**, after another writer's message: it takes no more
//! groups. It still knows where the log continues, as a flush that began earlier may yet be committed.

use super::super::Stream;
use std::sync::Arc;

#[derive(Debug)]
pub(super) enum State {
    /// The log has to be replayed first.
    Closed,
    Writing(Writer),
    /// Part of a group is in the stream.
    Cut(Writer),
    /// The stream has lost acknowledged messages.
    Broken(Writer, LogBreak),
    /// The next replay shows whether the group after this writer's last message is in the stream.
    Stopped(Writer),
    /// Another process writes.
    Fenced(Writer),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogBreak {
    /// The writes in this process's memory have to be flushed.
    Unflushed,
    /// A manifest covers all of it, and names the next generation.
    Flushed,
}

#[derive(Debug, Clone)]
pub(super) struct Writer {
    pub(super) stream: Arc<dyn Stream>,
    pub(super) epoch: u32,
    /// Number of the last message.
    pub(super) sequence: u64,
    /// Its hash.
    pub(super) before: u64,
}
