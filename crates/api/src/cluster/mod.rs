//! A server's place in a cluster, and the other gateways that it knows.

pub mod gateways;
pub mod member;
