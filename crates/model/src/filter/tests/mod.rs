//! Tests of the filters as a whole; what belongs to one file alone is tested there.

mod distances;
pub(crate) mod events;
mod examples;
mod expressions;
mod matching;
mod mistakes;
mod oracle;
mod properties;
