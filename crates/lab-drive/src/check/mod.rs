//! Checks: whether an answer is sound, and whether objectives hold.

pub mod judge;
mod truth;
pub mod verdict;
