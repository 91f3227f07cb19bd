//! Saved searches: questions that stand, matched with new events as they come and asked of outside providers now and then.
//!
//! An event goes from the store's acknowledgement through a bounded queue (`ear.rs`) to one thread that finds the questions
//! that it answers (`matcher.rs`, by the index of `index.rs` and `grid.rs`), and on as a packet to their readers: streams and
//! webhooks (`webhook.rs`). No write waits for any of it. Up to where events were looked at is kept (`looked.rs`), and a start catches
//! up from there (`catch_up.rs`). `book.rs` is where saved searches are kept.

mod book;
mod catch_up;
mod changes;
mod definition;
mod ear;
mod grid;
mod index;
mod kept;
mod looked;
mod matcher;
mod poll;
mod post;
mod reading;
mod search;
mod settings;
mod shelf;
mod webhook;

#[cfg(test)]
mod tests;

pub use book::{SavedFigures, SavedSearches};
pub use definition::{Definition, Webhook};
pub use search::SavedSearch;
pub use settings::{SavedSettings, WebhookSettings};
pub use webhook::signature;
