//! A provider that does as a test tells it.

use super::{Asking, Provider};
use crate::pipeline::Sink;
use crate::question::Question;
use serde_json::{Value, json};

/// It takes every question, and is sure of nothing.
pub struct Told {
    /// Its name and title.
    pub name: &'static str,
    /// Searches that it takes at once.
    pub at_once: usize,
    /// Whether its links may lead to private addresses.
    pub allows_private: bool,
    /// What it does when it is asked.
    pub does: Box<dyn Fn(Sink) -> Asking<'static> + Send + Sync>,
}

impl Told {
    /// One that is asked by one search at once, and leads to no private address.
    pub fn new(name: &'static str, does: impl Fn(Sink) -> Asking<'static> + Send + Sync + 'static) -> Told {
        Told { name, at_once: 1, allows_private: false, does: Box::new(does) }
    }
}

impl Provider for Told {
    fn name(&self) -> &str {
        self.name
    }
    fn title(&self) -> &str {
        self.name
    }
    fn takes(&self, _: &Question) -> Result<(), String> {
        Ok(())
    }
    fn sure_of(&self) -> &[String] {
        &[]
    }
    fn allows_private(&self) -> bool {
        self.allows_private
    }
    fn at_once(&self) -> usize {
        self.at_once
    }
    fn ask(&self, sink: Sink) -> Asking<'_> {
        (self.does)(sink)
    }
    fn report(&self) -> Value {
        json!({})
    }
}
