//! Tests of filters as a whole; tests of single files are in those files.

mod distances;
pub(crate) mod events;
mod examples;
mod expressions;
mod matching;
mod mistakes;
mod oracle;
mod properties;
