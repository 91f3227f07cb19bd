//! Checks: whether a response is sound, and whether objectives hold.

pub mod checker;
pub mod objectives;
mod truth;
