//! Saved searches: questions that stand, matched with new events as they come and put to outside providers at intervals.
//!
//! An event goes from the store's acknowledgement through a bounded queue (`event_queue.rs`) to one thread. It finds the
//! questions that the event answers (`matcher.rs`, by the index of `index.rs` and `grid.rs`). Packets go on to their
//! readers: streams and webhooks (`webhook.rs`). No write waits for any of it.
//!
//! A checkpoint says up to where events were processed (`checkpoint.rs`); a start catches up from there
//! (`catch_up.rs`). The registry of saved searches is in `registry.rs`: start reading there. The crate is built on
//! `federation`'s questions and packets, which know nothing of it.

mod catch_up;
mod changes;
mod checkpoint;
mod clean_state;
mod dead_letters;
mod definition;
mod event_queue;
mod grid;
mod index;
mod matcher;
mod poll;
mod recovery;
mod registry;
mod retention;
mod search;
mod settings;
mod status;
mod webhook;

#[cfg(test)]
mod tests;

pub use definition::{Definition, Webhook};
pub use registry::{SavedFigures, SavedSearches};
pub use search::SavedSearch;
pub use settings::{SavedSettings, WebhookSettings};
pub use status::{DeadLetterReport, PollReport, SavedSearchStatus, WebhookReport};
pub use webhook::signature;
