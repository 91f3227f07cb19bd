//! Labels of images by a model that the operator configures. Bytes in, labels out: this crate makes no network calls.
//!
//! The model is an ONNX image classifier, run by [rten](https://docs.rs/rten) in this process (decision 021). It
//! requires the feature `model`. Without it, a model in the settings is an error. Start reading at `model.rs`.

#[cfg(not(feature = "model"))]
mod absent;
#[cfg(feature = "model")]
mod model;
#[cfg(feature = "model")]
mod picture;
#[cfg(all(feature = "model", any(test, feature = "samples")))]
pub mod samples;
mod settings;
#[cfg(all(test, feature = "model"))]
mod tests;

#[cfg(not(feature = "model"))]
pub use absent::Classifier;
#[cfg(feature = "model")]
pub use model::Classifier;
pub use settings::{ImageSettings, Layout, Scores};

/// A class that the model assigns to an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Name of the class.
    pub label: String,
    /// Score from 0 to 1, rounded to a thousandth.
    pub score: f64,
}

/// The labels of an image. They are guesses, with the model named.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// The model's name.
    pub model: String,
    /// Its labels, by descending score; empty if all scores are too low.
    pub labels: Vec<Label>,
}
