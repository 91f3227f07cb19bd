//! One file per subcommand.

pub mod aggregate;
pub mod check;
pub mod create;
pub mod export;
pub mod files;
pub mod query;
pub mod serve;
