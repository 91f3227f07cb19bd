//! Operator settings of image labels.

use std::path::PathBuf;
use std::time::Duration;

/// The model that labels images of results, its input, and its limits. [`ImageSettings::default`] has no model.
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// An ONNX file with one input for one image and one output with a score for each class. Empty: no model.
    pub model: PathBuf,
    /// A file with the class names, one per line.
    pub labels: PathBuf,
    /// Side of the square input, in pixels; 0 for the model's own, or 224 if the model leaves it open.
    pub size: usize,
    /// The channel order of its input.
    pub layout: Layout,
    /// Mean, subtracted from red, green and blue (each from 0 to 1).
    pub mean: [f64; 3],
    /// Standard deviation, by which the difference is divided.
    pub std: [f64; 3],
    /// The meaning of its output.
    pub scores: Scores,
    /// Max labels of an image.
    pub top: usize,
    /// Min score of a label, from 0 to 1.
    pub score_min: f64,
    /// Max size of an image, in bytes.
    pub bytes_max: usize,
    /// Max pixels of a decoded image.
    pub pixels_max: u64,
    /// Max images being fetched or waiting for the model.
    pub at_once: usize,
    /// Max results that wait for their image. Others pass without labels.
    pub waiting: usize,
    /// Threads of the model, and max images labelled at once.
    pub threads: usize,
    /// Max wait of a result for its labels, at most a quarter of the time its search has left. Then it passes without.
    pub timeout: Duration,
}

impl ImageSettings {
    /// Max side that a model may require, in pixels.
    pub const SIZE_MAX: usize = 4_096;
}

impl Default for ImageSettings {
    /// No model. Mean and standard deviation are those of ImageNet, which most models were trained with.
    fn default() -> Self {
        ImageSettings {
            model: PathBuf::new(),
            labels: PathBuf::new(),
            size: 0,
            layout: Layout::Auto,
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
            scores: Scores::Auto,
            top: 3,
            score_min: 0.2,
            bytes_max: 4 << 20,
            pixels_max: 16 << 20,
            at_once: 4,
            waiting: 256,
            threads: 1,
            timeout: Duration::from_secs(2),
        }
    }
}

/// The channel order of a model's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// By the 3 in its declared shape; channels first if unknown.
    Auto,
    /// Channels first: `[N,3,H,W]`.
    Nchw,
    /// Channels last: `[N,H,W,3]`.
    Nhwc,
}

/// The meaning of a model's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// Detected in the self-test: probabilities if they are from 0 to 1 and add up to 1, else logits.
    Auto,
    /// Unbounded scores, to which a softmax is applied.
    Logits,
    /// Numbers from 0 to 1, used unchanged.
    Probabilities,
}

/// Implements reading an enumeration from its word.
macro_rules! words {
    ($of:ident, $expected:literal, $($word:literal => $value:ident),+) => {
        impl $of {
            /// Reads its word. The error lists the words.
            pub fn read(word: &str) -> Result<$of, String> {
                match word {
                    $($word => Ok($of::$value),)+
                    _ => Err(format!(concat!("{:?}: expected ", $expected), word)),
                }
            }

            /// Returns its word.
            pub fn word(self) -> &'static str {
                match self {
                    $($of::$value => $word,)+
                }
            }
        }
    };
}

words!(Layout, "\"auto\", \"nchw\" or \"nhwc\"", "auto" => Auto, "nchw" => Nchw, "nhwc" => Nhwc);
words!(Scores, "\"auto\", \"logits\" or \"probabilities\"", "auto" => Auto, "logits" => Logits, "probabilities" => Probabilities);
