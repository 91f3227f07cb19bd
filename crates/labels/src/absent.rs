//! The stand-in for a model in a build without the feature `model`.

use crate::{ImageSettings, Labels};
use std::convert::Infallible;
use std::sync::Arc;

/// An uninhabited model.
#[derive(Debug)]
pub struct Classifier(Infallible);

impl Classifier {
    /// Returns `None` if no model is configured.
    ///
    /// # Errors
    ///
    /// A sentence that begins with the setting, if a model is configured.
    pub fn load(settings: &ImageSettings) -> Result<Option<Arc<Classifier>>, String> {
        match settings.model.as_os_str().is_empty() {
            true => Ok(None),
            false => Err("model: this program was built without the feature `images`: leave it empty".to_owned()),
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ImageSettings {
        match self.0 {}
    }

    /// Returns the labels of an image.
    pub fn labels(&self, _: &[u8]) -> Result<Labels, String> {
        match self.0 {}
    }
}
