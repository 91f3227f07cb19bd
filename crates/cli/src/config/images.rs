//! The settings of `[search.images]`: the model that labels images of results, and its limits.

use super::setting::{KIB, MIB, Setting, size, text, within};
use crate::units;
use meridian_federation::{ImageSettings, Layout, Scores};
use std::path::PathBuf;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "search.images.model",
        help: "ONNX file of a model that classifies images, to label images of results; empty: none.",
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
        "Side in pixels of its square input; 0: as it declares, else 224.",
        images.size,
        0,
        ImageSettings::SIZE_MAX as u64
    ),
    Setting {
        key: "search.images.layout",
        help: "Order of its input's dimensions: \"nchw\", \"nhwc\", or \"auto\": as it declares.",
        get: |c| Value::String(c.images.layout.word().to_owned()),
        set: |c, v| Layout::read(&text(v)?).map(|layout| c.images.layout = layout),
    },
    Setting {
        key: "search.images.mean",
        help: "Mean that is subtracted from red, green and blue (0 to 1).",
        get: |c| colours(c.images.mean),
        set: |c, v| read_colours(v).map(|mean| c.images.mean = mean),
    },
    Setting {
        key: "search.images.std",
        help: "Standard deviation by which they are then divided.",
        get: |c| colours(c.images.std),
        set: |c, v| read_colours(v).map(|std| c.images.std = std),
    },
    Setting {
        key: "search.images.scores",
        help: "Its output: \"logits\", \"probabilities\", or \"auto\": detected by running it.",
        get: |c| Value::String(c.images.scores.word().to_owned()),
        set: |c, v| Scores::read(&text(v)?).map(|scores| c.images.scores = scores),
    },
    count!("search.images.top", "Max labels of an image.", images.top, 1, 20),
    Setting {
        key: "search.images.at_least",
        help: "Min score of a label, from 0 to 1.",
        get: |c| Value::Float(c.images.score_min),
        set: |c, v| {
            let min = number(v).filter(|n| (0.0..=1.0).contains(n)).ok_or("expected a number from 0 to 1")?;
            c.images.score_min = min;
            Ok(())
        },
    },
    size!("search.images.bytes_max", "Max size of an image.", images.bytes_max, KIB, 256 * MIB),
    count!(
        "search.images.pixels_max",
        "Max pixels of an image: each takes at most 16 bytes of memory while it is classified.",
        images.pixels_max,
        1,
        1_000_000_000
    ),
    count!(
        "search.images.at_once",
        "Max images fetched, or waiting to be classified, at once.",
        images.at_once,
        1,
        1_000
    ),
    count!(
        "search.images.waiting",
        "Max results that wait for their image; further ones are delivered without labels.",
        images.waiting,
        1,
        100_000
    ),
    count!("search.images.threads", "Threads that classify images, one image each.", images.threads, 1, 256),
    duration!(
        "search.images.timeout",
        "Max wait of a result for its labels, and never over a quarter of its search's remaining time.",
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
