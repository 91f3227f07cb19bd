//! Labels: what an image shows, as far as a model tells that the operator names. Bytes in, labels out: nothing here fetches.
//!
//! The model is an ONNX file that sorts images into classes, run by [rten](https://docs.rs/rten) inside this process
//! (decision 021). The feature `model` has it; without that feature a model in the settings is refused with a sentence.
//! Start reading at `model.rs`.

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

/// What a model takes an image for.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Name of the class.
    pub label: String,
    /// How sure the model is, from 0 to 1, to a thousandth.
    pub score: f64,
}

/// All that a model has to say of an image. It is a guess, and says whose.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// The model's name.
    pub model: String,
    /// Its labels, the surest first; none where it is sure enough of nothing.
    pub labels: Vec<Label>,
}
