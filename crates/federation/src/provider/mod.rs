//! Providers: whom a search asks.
//!
//! A provider is a declaration file ([`Declared`], asked over HTTP by [`Outside`]) or a Rust type that implements
//! [`Provider`], as Meridian's own collections are ([`Own`]). Either hands what it gets to a [`crate::pipeline::Sink`] and
//! ends with a word on how it went.

mod declaration;
mod decode;
mod doubt;
mod fetch;
mod guard;
mod health;
mod join;
mod mapping;
mod outside;
mod own;
mod path;
mod rule;
pub mod shipped;
mod sign;
mod template;
mod token;
mod trial;
mod variables;
mod when;

#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "testing"))]
pub mod told;

pub use declaration::{Declared, Keywords, Takes};
pub(crate) use fetch::call;
pub use fetch::{Http, Raw};
pub use fetch::{chain, client_of_webhooks};
pub use guard::may_call;
pub use mapping::{Mapped, Mapping};
pub use outside::Outside;
pub(crate) use own::of_feature;
pub use own::{Own, locate};
pub use trial::{Finding, Trial};

use crate::pipeline::Sink;
use crate::question::Question;
use serde_json::Value;
use std::pin::Pin;

/// How asking ends where it does not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The source is broken, or what it sent is not what its declaration says.
    Error(String),
    /// The source was not asked, or would not answer: budget, rate, breaker.
    Refused(String),
    /// The source took too long.
    Timeout(String),
}

/// A provider at work.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;

/// Somebody who can be asked.
pub trait Provider: Send + Sync + 'static {
    /// Its name in questions and packets.
    fn name(&self) -> &str;

    /// Its name for people.
    fn title(&self) -> &str;

    /// Whether it can take a question; else why not, in a sentence.
    fn takes(&self, question: &Question) -> Result<(), String>;

    /// The parts of a question that its results need not be held against again.
    fn sure_of(&self) -> &[String];

    /// Whether what its results lead to may be fetched from private addresses.
    fn allows_private(&self) -> bool {
        false
    }

    /// How many searches may ask it at once; later ones wait, in the order of their priority.
    fn at_once(&self) -> usize;

    /// Asks it. Dropped as soon as the search is over.
    fn ask(&self, sink: Sink) -> Asking<'_>;

    /// How it has been of late, for `GET /providers`.
    fn report(&self) -> Value;
}
