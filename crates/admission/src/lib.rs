//! Admission: what requests and searches may hold of the server, so that memory stays bounded by the settings.
//!
//! [`ByteBudget`] bounds the bytes that all holders of one purpose have together: bodies, responses, packets. The
//! crate knows neither HTTP nor collections; callers map a refusal to an error of their own.

mod bytes;

pub use bytes::{ByteBudget, ByteShare};
