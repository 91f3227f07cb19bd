//! A test provider with scripted behaviour.

use super::{Provider, ProviderFuture, Sink};
use crate::question::Question;
use meridian_backend::View;
use serde_json::{Value, json};

/// A provider that accepts every question and is sure of nothing.
pub struct ScriptedProvider {
    /// Its name and title.
    pub name: &'static str,
    /// Max concurrent searches.
    pub at_once: usize,
    /// Whether its links may lead to private addresses.
    pub allows_private: bool,
    /// Its behaviour when queried.
    pub does: Box<dyn Fn(Sink) -> ProviderFuture<'static> + Send + Sync>,
}

impl ScriptedProvider {
    /// Creates a provider for one search at a time, whose links may not lead to private addresses.
    pub fn new(
        name: &'static str,
        does: impl Fn(Sink) -> ProviderFuture<'static> + Send + Sync + 'static,
    ) -> ScriptedProvider {
        ScriptedProvider { name, at_once: 1, allows_private: false, does: Box::new(does) }
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        self.name
    }
    fn title(&self) -> &str {
        self.name
    }
    fn takes(&self, _: &Question, _: &View) -> Result<(), String> {
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
    fn ask(&self, sink: Sink) -> ProviderFuture<'_> {
        (self.does)(sink)
    }
    fn report(&self, _: &View) -> Value {
        json!({})
    }
}
