//! Saved searches without a server.

mod deaths;
mod matching;
mod missed;
mod paused;
mod standing;
