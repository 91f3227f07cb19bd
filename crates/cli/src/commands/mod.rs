//! One file per subcommand, and the client that they share.

mod administration;
pub mod aggregate;
pub mod audit;
pub mod backup;
pub mod check;
mod client;
#[cfg_attr(not(feature = "cluster"), path = "cluster_absent.rs")]
pub mod cluster;
pub mod completions;
pub mod copied;
pub mod create;
pub mod delete;
pub mod describe;
pub mod drop;
pub mod export;
pub mod files;
pub mod health;
#[cfg_attr(not(feature = "lab"), path = "lab_absent.rs")]
pub mod lab;
pub mod list;
pub mod manual;
pub mod provider;
pub mod query;
pub mod rename;
pub mod restore;
pub mod search;
pub mod serve;
pub mod tenant;
pub mod token;
pub mod user;
