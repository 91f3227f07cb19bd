//! A model small enough to write by hand, and images to show it.

use super::*;
use image::{ImageFormat, Rgb, RgbImage};
use std::io::Cursor;
use std::path::Path;

/// A PNG with this colour at each place.
pub(crate) fn png(width: u32, height: u32, colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    encoded(width, height, ImageFormat::Png, colour)
}

fn encoded(width: u32, height: u32, format: ImageFormat, colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::from_fn(width, height, |x, y| Rgb(colour(x, y))).write_to(&mut bytes, format).expect("an image");
    bytes.into_inner()
}

/// Just enough of the encoding of Protocol Buffers to write a model: a number by its field, and bytes by theirs.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

fn field(field: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A `ValueInfoProto`: a tensor of 32 bit floating point. Dimensions that are no numbers are names.
fn value(name: &str, dimensions: &[&str]) -> Vec<u8> {
    let dimension = |size: &&str| field(1, size.parse().map_or_else(|_| field(2, size), |size| number(1, size)));
    let shape: Vec<u8> = dimensions.iter().flat_map(dimension).collect();
    let tensor = [number(1, 1), field(2, shape)].concat();
    [field(1, name), field(2, field(1, tensor))].concat()
}

/// A `NodeProto`.
fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name)).collect();
    let attributes: Vec<u8> = attributes.iter().flat_map(|attribute| field(5, attribute)).collect();
    [inputs, field(2, output), field(4, kind), attributes].concat()
}

/// A `ModelProto` (version 8 of the format, operators of version 13) that tells red, green and blue: the mean of each colour,
/// twentyfold. `input` is its declared shape; where that has the colours last they are brought to the front; `softmax` puts
/// one at its end.
pub(crate) fn colours(input: &[&str], softmax: bool) -> Vec<u8> {
    let weight = |n: usize| if n.is_multiple_of(4) { 20.0_f32 } else { 0.0 };
    let weights: Vec<u8> = (0..9).flat_map(|n| weight(n).to_le_bytes()).collect();
    weighted(input, softmax, field(9, weights))
}

/// The same with its weights as they are given here.
fn weighted(input: &[&str], softmax: bool, weights: Vec<u8>) -> Vec<u8> {
    let permutation = [field(1, "perm"), [0, 3, 1, 2].map(|axis| number(8, axis)).concat(), number(20, 7)].concat();
    let axis = [field(1, "axis"), number(3, 1), number(20, 2)].concat();
    let mut nodes = vec![
        node("GlobalAveragePool", &["planes"], "means", &[]),
        node("Flatten", &["means"], "row", &[]),
        node("MatMul", &["row", "twenty"], if softmax { "logits" } else { "scores" }, &[]),
    ];
    match input.last() {
        Some(&"3") => nodes.insert(0, node("Transpose", &["image"], "planes", &[permutation])),
        _ => nodes.insert(0, node("Identity", &["image"], "planes", &[])),
    }
    if softmax {
        nodes.push(node("Softmax", &["logits"], "scores", &[axis]));
    }
    let twenty = [number(1, 3), number(1, 3), number(2, 1), field(8, "twenty"), weights].concat();
    let nodes: Vec<u8> = nodes.iter().flat_map(|node| field(1, node)).collect();
    let graph = [
        nodes,
        field(2, "colours"),
        field(5, twenty),
        field(11, value("image", input)),
        field(12, value("scores", &["N", "3"])),
    ]
    .concat();
    let operators = number(2, 13);
    [number(1, 8), field(2, "meridian"), field(7, graph), field(8, operators)].concat()
}

/// Settings that name this model, written to a folder with the labels `red`, `green`, `blue`.
pub(crate) fn settings(folder: &Path, model: &[u8]) -> ImageSettings {
    let settings = ImageSettings {
        model: folder.join("colours.onnx"),
        labels: folder.join("labels.txt"),
        ..ImageSettings::default()
    };
    std::fs::write(&settings.model, model).expect("written");
    std::fs::write(&settings.labels, "red\ngreen\nblue\n").expect("written");
    settings
}

const INPUT: [&str; 4] = ["N", "3", "224", "224"];

fn names(labels: &Labels) -> Vec<&str> {
    labels.labels.iter().map(|label| label.label.as_str()).collect()
}

#[test]
fn an_image_gets_the_labels_of_what_it_shows_in_whatever_dress() {
    let folder = tempfile::tempdir().expect("a folder");
    let [red, green] = [[250, 5, 5], [5, 250, 5]];
    for (input, softmax) in [
        (INPUT, false),
        (INPUT, true),
        (["1", "96", "64", "3"], false),
        (["batch", "height", "width", "3"], true),
        (["1", "3", "height", "width"], true),
    ] {
        let classifier = Classifier::load(&settings(folder.path(), &colours(&input, softmax)));
        let classifier = classifier.expect("it loads").expect("a model");
        for (colour, name) in [(red, "red"), (green, "green")] {
            for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
                let labels = classifier.labels(&encoded(40, 30, format, |_, _| colour)).expect("labels");
                assert_eq!((names(&labels), labels.model.as_str()), (vec![name], "colours"), "{input:?} {format:?}");
                assert!(labels.labels[0].score > 0.99, "{labels:?}");
            }
        }
    }
}

#[test]
fn scores_are_what_the_settings_take_them_for_and_the_surest_come_first() {
    let folder = tempfile::tempdir().expect("a folder");
    // Half of red, a third of green: as they come they are 10 and 6.7 (and so no probabilities), as such 0.97 and 0.03.
    let bytes = png(60, 60, |x, _| {
        if x < 30 {
            [255, 0, 0]
        } else if x < 50 {
            [0, 255, 0]
        } else {
            [0; 3]
        }
    });
    let plain = ImageSettings {
        mean: [0.0; 3],
        std: [1.0; 3],
        at_least: 0.0,
        ..settings(folder.path(), &colours(&INPUT, false))
    };
    let labels =
        |settings: &ImageSettings| Classifier::load(settings).expect("it loads").expect("a model").labels(&bytes);
    let all = labels(&plain).expect("labels");
    assert_eq!(names(&all), ["red", "green", "blue"]);
    let scores: Vec<f64> = all.labels.iter().map(|label| label.score).collect();
    assert!((scores[0] - 0.966).abs() < 0.02 && (scores[1] - 0.034).abs() < 0.02 && scores[2] < 0.001, "{scores:?}");
    assert_eq!(names(&labels(&ImageSettings { top: 2, ..plain.clone() }).expect("labels")), ["red", "green"]);
    assert_eq!(names(&labels(&ImageSettings { at_least: 0.5, ..plain.clone() }).expect("labels")), ["red"]);
    // With the twenty taken out again they are numbers from 0 to 1 that add up to less: taken as they are where that is said.
    let tamed = ImageSettings { std: [20.0; 3], scores: Scores::Probabilities, ..plain };
    let scores: Vec<f64> = labels(&tamed).expect("labels").labels.iter().map(|label| label.score).collect();
    assert!((scores[0] - 0.5).abs() < 0.01 && (scores[1] - 0.333).abs() < 0.01 && scores[2] == 0.0, "{scores:?}");
}

#[test]
fn what_does_not_fit_is_refused_at_start_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = colours(&INPUT, false);
    let refused = |settings: &ImageSettings| Classifier::load(settings).expect_err("it does not fit");
    assert!(Classifier::load(&ImageSettings::default()).expect("off").is_none());
    let settings = settings(folder.path(), &good);
    for (wrong, words) in [
        (
            ImageSettings { model: "/nowhere/a.onnx".into(), ..settings.clone() },
            ["model: /nowhere/a.onnx", "No such file"],
        ),
        (
            ImageSettings { labels: "/nowhere/a.txt".into(), ..settings.clone() },
            ["labels: /nowhere/a.txt", "No such file"],
        ),
        (ImageSettings { labels: "".into(), ..settings.clone() }, ["labels:", "one a line"]),
        (ImageSettings { model: "".into(), ..settings.clone() }, ["labels:", "no model"]),
        (ImageSettings { size: 96, ..settings.clone() }, ["model:", "size 96"]),
        (ImageSettings { layout: Layout::Nhwc, ..settings.clone() }, ["model:", "[?,3,224,224]"]),
        (ImageSettings { std: [0.2, 0.0, 0.2], ..settings.clone() }, ["std:", "divided by 0"]),
    ] {
        let why = refused(&wrong);
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
    for (labels, words) in [
        ("red\ngreen\n", ["labels:", "2 classes, but the model has 3"]),
        ("red\n\ngreen", ["labels:", "line 2"]),
        (" \n", ["labels:", "no class"]),
    ] {
        std::fs::write(&settings.labels, labels).expect("written");
        let why = refused(&settings);
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
    std::fs::write(&settings.labels, "red\ngreen\nblue").expect("written");
    let half = &good[..good.len() / 2];
    let others: [&[u8]; 5] =
        [b"", b"<html>no model</html>", half, &colours(&["N", "3"], false), &colours(&["N", "1", "28", "28"], true)];
    for model in others {
        std::fs::write(&settings.model, model).expect("written");
        let why = refused(&settings);
        assert!(why.starts_with("model:") && why.contains("colours.onnx"), "{why}");
    }
    // Weights in a file of their own, which is there: a model is one file.
    std::fs::write(folder.path().join("weights"), [0; 36]).expect("written");
    let entry = |key: &str, value: &str| field(13, [field(1, key), field(2, value)].concat());
    let whole = [entry("location", "weights"), number(14, 1)].concat();
    let part = [whole.clone(), entry("offset", "0"), entry("length", "36")].concat();
    for weights in [whole, part] {
        std::fs::write(&settings.model, weighted(&INPUT, false, weights)).expect("written");
        let why = refused(&settings);
        assert!(why.contains("colours.onnx: it has its weights in other files, expected one file"), "{why}");
    }
    // One that gives no numbers, and would not for any image.
    std::fs::write(&settings.model, weighted(&INPUT, false, field(9, [255; 36]))).expect("written");
    let why = refused(&settings);
    assert!(why.contains("no numbers for a grey image"), "{why}");
}

#[test]
fn the_model_that_other_tests_take_from_a_file_is_this_one() {
    let file = include_bytes!("../../fixtures/colours.onnx");
    assert_eq!(colours(&["N", "3", "64", "64"], false), file);
}
