//! Saved searches: questions matched with new events as they arrive, and sent to remote providers at intervals.
//!
//! An event goes from the store's acknowledgement through a bounded queue (`event_queue.rs`) to a single thread. The
//! thread finds the questions of the event's tenant that it matches (`matcher.rs`, with the index in `index.rs` and
//! `grid.rs`). Packets go to their readers: streams and webhooks (`webhook.rs`). No write waits for any of this.
//! Events, polls and calls of tenants are processed in turn (`fair_queue.rs`).
//!
//! A checkpoint records the positions up to which events were processed (`checkpoint.rs`); a start catches up from
//! there (`catch_up.rs`). In a cluster, gateways divide the saved searches in slots (`slots.rs`). One gateway runs a
//! slot (`assigned.rs`), and the records identify it (`claim.rs`). Start reading at the registry of saved searches,
//! `registry.rs`. The crate is built on the questions and packets of `federation`, which does not depend on it.

mod assigned;
mod backup;
mod catch_up;
mod census;
mod changes;
mod checkpoint;
mod checkpoints;
mod claim;
mod clean_state;
mod dead_letters;
mod definition;
mod event_queue;
mod fair_queue;
mod fences;
mod figures;
mod follow;
mod grid;
mod index;
mod ledgers;
mod lifecycle;
mod match_index;
mod matcher;
mod missed;
mod opening;
mod parts;
mod permits;
mod poll;
mod poll_schedule;
mod progress;
mod records;
mod recovery;
mod registry;
mod retention;
mod search;
mod settings;
mod slot;
mod slots;
mod slots_before;
mod status;
mod webhook;

#[cfg(test)]
mod tests;

pub use backup::BackupParts;
pub use claim::AssignmentCheck;
pub use definition::{Definition, Webhook};
pub use figures::SavedFigures;
pub use ledgers::Ledgers;
pub use parts::Parts;
pub use records::RECORDS;
pub use registry::SavedSearches;
pub use search::SavedSearch;
pub use settings::{SavedSettings, WebhookSettings};
pub use slot::{SLOTS, Slot};
pub use slots::SavedSlots;
pub use status::{DeadLetterReport, PollReport, SavedSearchStatus, WebhookReport};
pub use webhook::signature;
