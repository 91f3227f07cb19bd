//! Admission: who calls, and what requests and searches may hold of the server.
//!
//! [`gate`] decides which requests run, wait or are refused. [`identity`] turns the credential of a request into a caller with a tenant and rights. [`ByteBudget`] bounds the bytes
//! that all holders of one purpose have together: bodies, responses, packets. The crate knows neither HTTP nor
//! collections; callers map a refusal to an error of their own.

mod bytes;
pub mod gate;
pub mod identity;

pub use bytes::{ByteBudget, ByteShare};
