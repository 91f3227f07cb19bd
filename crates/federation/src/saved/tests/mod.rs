//! Saved searches without a server.

mod matching;
mod standing;
