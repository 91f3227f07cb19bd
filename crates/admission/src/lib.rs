//! What requests and searches may hold of the server, so that memory stays bounded by the settings.
//!
//! [`ByteBudget`] bounds the bytes that all holders of one purpose have together: bodies, answers, packets. The crate
//! knows neither HTTP nor collections; callers turn a refusal into their own.

mod bytes;

pub use bytes::{ByteBudget, ByteShare};
