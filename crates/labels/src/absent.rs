//! What stands for a model in a program that was built without one.

use crate::{ImageSettings, Labels};
use std::convert::Infallible;
use std::sync::Arc;

/// A model: there is none.
#[derive(Debug)]
pub struct Classifier(Infallible);

impl Classifier {
    /// `None` where no model is named.
    ///
    /// # Errors
    /// A sentence that begins with the setting, where one is.
    pub fn load(settings: &ImageSettings) -> Result<Option<Arc<Classifier>>, String> {
        match settings.model.as_os_str().is_empty() {
            true => Ok(None),
            false => Err("model: this program was built without the feature `images`: leave it empty".to_owned()),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &ImageSettings {
        match self.0 {}
    }

    /// What an image shows.
    pub fn labels(&self, _: &[u8]) -> Result<Labels, String> {
        match self.0 {}
    }
}
