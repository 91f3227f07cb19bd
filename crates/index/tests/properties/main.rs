//! Everything the index answers, compared with naive scans over random events.

mod bytes;
mod events;
mod order;
mod pyramid;
mod trees;
