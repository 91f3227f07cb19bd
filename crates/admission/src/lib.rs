//! Admission: callers, and the resources that requests and searches may hold.
//!
//! [`identity`] turns the credential of a request into a caller with a tenant and rights. A tenant's [`Ledger`] holds
//! its quotas and what it uses. [`gate`] decides which requests run, wait or are refused. [`ByteBudget`] bounds the
//! bytes that all holders together use for one purpose: bodies, responses, packets. The crate knows neither HTTP nor
//! collections; callers map refusals to errors of their own.

mod accounts;
mod bytes;
pub mod gate;
pub mod identity;
mod ledger;
pub mod pace;

pub use bytes::{ByteBudget, ByteShare};
pub use ledger::{Ledger, QuotaPermit, RequestPermit, Share};
