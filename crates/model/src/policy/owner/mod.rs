//! The protocol of owners over a bucket, as steps without I/O: the next call to make, and the meaning of its
//! response.
//!
//! Each operation is a state machine. `step` returns the call it needs; the caller makes it and passes the response
//! in, until the last step. The store executes the steps against its bucket, and the explorer of
//! `crates/model/tests/owner` against a bucket in memory. There every call can be delayed, or lost before or after it
//! took effect. Every process can be killed or paused between any two calls. Both run the code below.
//!
//! | file | decides |
//! |---|---|
//! | `create.rs` | what came of a create whose answer may be lost |
//! | `log.rs` | where the log ends, when it is fenced, which old objects go |
//! | `writer.rs` | which object a writer creates next, what a refusal means, where a replay begins |
//! | `numbers.rs` | the newest number of a chain without a listing, and which old numbers stay |
//! | `catalog.rs` | which manifest is the newest, and whether a commit stands |
//! | `takeover.rs` | in which order a process becomes the owner, and when it serves |
//! | `files.rs` | names of files, and which of them are leftovers |
//! | `rules.rs` | the numbers of the protocol, and the ways in which tests break it |
//!
//! The lease decides who may *try* ([`super::lease`]). Nothing here depends on it: the explorer lets any process try
//! at any time.

mod catalog;
mod create;
mod files;
mod log;
mod numbers;
mod rules;
mod takeover;
mod writer;

pub use catalog::{Commit, CommitOutcome, CommitStep, Head, Kind, KnownObject, Lookup, LookupStep};
pub use create::{Create, CreateOutcome, CreateStep, GetOutcome, PutOutcome};
pub use files::{epoch_of, first_of_next_epoch, is_leftover};
pub use log::{Link, LogPlace, ReadOutcome, Replay, ReplayStep, obsolete};
pub use numbers::{Search, newest, stays};
pub use rules::{Breakage, Rules};
pub use takeover::{Takeover, TakeoverStep};
pub use writer::{AppendOutcome, LogGroup, Writer};
