//! Terms of HTTP, without the state of a server: fields, parameters, ranges, entity tags, problems.

pub mod connection_control;
pub mod fields;
pub mod host_name;
pub mod media_types;
pub mod params;
pub mod problem;
pub mod range;
pub mod retry_time;
pub mod tags;
pub mod vary;
pub mod web_origin;
