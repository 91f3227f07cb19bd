//! Providers: the sources that a search queries.
//!
//! A provider is a declaration file ([`SourceDeclaration`](crate::SourceDeclaration), queried over HTTP by
//! [`RemoteProvider`]) or a Rust type that implements [`Provider`], such as [`LocalProvider`] for Meridian's
//! collections. Either passes its results to a [`Sink`] and returns how the request ended. Its part of a search is a
//! [`Leg`].

mod call_record;
mod drift;
mod leg;
mod local;
mod remote;
pub mod shipped;
mod sink;
mod tokens;
mod variables;

#[cfg(any(test, feature = "testing"))]
pub mod scripted;
#[cfg(test)]
mod tests;

pub(crate) use leg::Leg;
pub(crate) use local::ReadPermit;
pub use local::{LocalProvider, locate};
pub use remote::RemoteProvider;
pub use sink::Sink;
pub(crate) use sink::{Intake, PageSummary, Push, Response};

use crate::question::Question;
use meridian_backend::View;
use serde_json::Value;
use std::pin::Pin;

/// How a request to a provider failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The source failed, or its response is not as declared.
    Error(String),
    /// The source was not queried, or it refused: budget, rate limit, circuit breaker.
    Refused(String),
    /// The source did not respond in time.
    Timeout(String),
}

/// The future of a request to a provider.
pub type ProviderFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;

/// A source of results.
pub trait Provider: Send + Sync + 'static {
    /// Returns its name in questions and packets.
    fn name(&self) -> &str;

    /// Returns its human-readable name.
    fn title(&self) -> &str;

    /// Checks whether it can answer a question; the error is a sentence that gives the reason.
    fn takes(&self, question: &Question, view: &View) -> Result<(), String>;

    /// Returns the parts of a question that need not be checked again on its results.
    fn sure_of(&self) -> &[String];

    /// Returns whether the links in its results may lead to private addresses.
    fn allows_private(&self) -> bool {
        false
    }

    /// Returns the max concurrent searches. Others wait in order of priority.
    fn at_once(&self) -> usize;

    /// Requests results. The future is dropped when the search ends.
    fn ask(&self, sink: Sink) -> ProviderFuture<'_>;

    /// Returns its recent health, for `GET /providers`.
    fn report(&self, view: &View) -> Value;
}
