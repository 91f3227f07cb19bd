//! The settings of `[search.images]`: the model that looks at images of results, and what that may cost.

use super::setting::{KIB, MIB, Setting, size, text, within};
use crate::units;
use meridian_federation::{ImageSettings, Layout, Scores};
use std::path::PathBuf;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "search.images.model",
        help: "ONNX file of a model that sorts images into classes, to label images of results; empty: none.",
        get: |c| Value::String(c.images.model.display().to_string()),
        set: |c, v| text(v).map(|t| c.images.model = PathBuf::from(t)),
    },
    Setting {
        key: "search.images.labels",
        help: "File with the names of its classes, one a line.",
        get: |c| Value::String(c.images.labels.display().to_string()),
        set: |c, v| text(v).map(|t| c.images.labels = PathBuf::from(t)),
    },
    count!(
        "search.images.size",
        "Side in pixels of the square that it is given; 0: as it says, else 224.",
        images.size,
        0,
        ImageSettings::SIZE_MAX as u64
    ),
    Setting {
        key: "search.images.layout",
        help: "Where its input has the colours: \"nchw\", \"nhwc\", or \"auto\": as it says.",
        get: |c| Value::String(c.images.layout.word().to_owned()),
        set: |c, v| Layout::read(&text(v)?).map(|layout| c.images.layout = layout),
    },
    Setting {
        key: "search.images.mean",
        help: "What is taken from red, green and blue (0 to 1) before it sees them.",
        get: |c| colours(c.images.mean),
        set: |c, v| read_colours(v).map(|mean| c.images.mean = mean),
    },
    Setting {
        key: "search.images.std",
        help: "What they are divided by after that.",
        get: |c| colours(c.images.std),
        set: |c, v| read_colours(v).map(|std| c.images.std = std),
    },
    Setting {
        key: "search.images.scores",
        help: "What it gives: \"logits\", \"probabilities\", or \"auto\": seen by trying it.",
        get: |c| Value::String(c.images.scores.word().to_owned()),
        set: |c, v| Scores::read(&text(v)?).map(|scores| c.images.scores = scores),
    },
    count!("search.images.top", "Most labels of an image.", images.top, 1, 20),
    Setting {
        key: "search.images.at_least",
        help: "Min score of a label, from 0 to 1.",
        get: |c| Value::Float(c.images.score_min),
        set: |c, v| {
            let least = number(v).filter(|n| (0.0..=1.0).contains(n)).ok_or("expected a number from 0 to 1")?;
            c.images.score_min = least;
            Ok(())
        },
    },
    size!("search.images.bytes_max", "Largest image.", images.bytes_max, KIB, 256 * MIB),
    count!(
        "search.images.pixels_max",
        "Most pixels of an image: at most 16 bytes of memory each, while it is looked at.",
        images.pixels_max,
        1,
        1_000_000_000
    ),
    count!(
        "search.images.at_once",
        "Images fetched at once, or waiting to be looked at after that.",
        images.at_once,
        1,
        1_000
    ),
    count!(
        "search.images.waiting",
        "Results that may wait for their image; more go on without labels.",
        images.waiting,
        1,
        100_000
    ),
    count!(
        "search.images.threads",
        "Threads that all looking is done on, and images looked at at once.",
        images.threads,
        1,
        256
    ),
    duration!(
        "search.images.timeout",
        "Longest wait of a result for its labels, and never over a quarter of what its search has left.",
        images.timeout,
        "1ms",
        "10m"
    ),
];

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).filter(|n| n.is_finite())
}

fn colours(three: [f64; 3]) -> Value {
    Value::Array(three.map(Value::Float).to_vec())
}

fn read_colours(value: &Value) -> Result<[f64; 3], String> {
    let numbers: Option<Vec<f64>> = value.as_array().and_then(|list| list.iter().map(number).collect());
    let three = numbers.and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
    three.ok_or_else(|| "expected three numbers such as [0.485, 0.456, 0.406]".to_owned())
}
