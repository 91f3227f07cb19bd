//! What an operator can set about labels of images.

use std::path::PathBuf;
use std::time::Duration;

/// Which model looks at the images of results, what it is given, and what that may cost. [`ImageSettings::default`] has none.
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// An ONNX file with one input for one image and one output with a score for each class. Empty: no image is looked at.
    pub model: PathBuf,
    /// The names of its classes, one a line.
    pub labels: PathBuf,
    /// Side in pixels of the square that it is given; 0: as the model says, and 224 where it leaves that open.
    pub size: usize,
    /// Where its input has the colours.
    pub layout: Layout,
    /// What is taken from red, green and blue (each from 0 to 1) before the model sees them.
    pub mean: [f64; 3],
    /// What they are divided by after that.
    pub std: [f64; 3],
    /// What its output holds.
    pub scores: Scores,
    /// Most labels of an image.
    pub top: usize,
    /// Least score of a label, from 0 to 1.
    pub score_min: f64,
    /// Largest image in bytes.
    pub bytes_max: usize,
    /// Most pixels that it may unfold to.
    pub pixels_max: u64,
    /// Images fetched at once, or waiting to be looked at after that.
    pub at_once: usize,
    /// Results that may wait for their image; more go on without labels.
    pub waiting: usize,
    /// Threads that all looking at images is done on, and images that are looked at at once.
    pub threads: usize,
    /// Longest wait of a result for its labels, and never more than a quarter of what its search has left. Then it goes
    /// without.
    pub timeout: Duration,
}

impl ImageSettings {
    /// Largest side in pixels that a model may want.
    pub const SIZE_MAX: usize = 4_096;
}

impl Default for ImageSettings {
    /// No model. The mean and the spread of the colours are those of ImageNet, which most models were made with.
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

/// Where the input of a model has the colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Where its declared shape has a 3; before height and width if it does not say.
    Auto,
    /// One colour after the other: `[N,3,H,W]`.
    Nchw,
    /// One pixel after the other: `[N,H,W,3]`.
    Nhwc,
}

/// What the output of a model holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// Seen by trying it: probabilities where they are that and add up to 1.
    Auto,
    /// Any numbers: the greater, the surer. A softmax is put over them.
    Logits,
    /// Numbers from 0 to 1, taken as they are.
    Probabilities,
}

/// Makes an enumeration readable by its words.
macro_rules! words {
    ($of:ident, $expected:literal, $($word:literal => $value:ident),+) => {
        impl $of {
            /// Reads its word; the error says which there are.
            pub fn read(word: &str) -> Result<$of, String> {
                match word {
                    $($word => Ok($of::$value),)+
                    _ => Err(format!(concat!("{:?}: expected ", $expected), word)),
                }
            }

            /// Its word.
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
