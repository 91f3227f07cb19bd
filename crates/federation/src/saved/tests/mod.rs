//! Saved searches without a server.

mod matching;
mod missed;
mod paused;
mod standing;
