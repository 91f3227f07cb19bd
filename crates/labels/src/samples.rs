//! A minimal model and images, for tests of this crate and its callers.

#![allow(clippy::expect_used, reason = "what tests write to memory and folders of theirs cannot fail")]
#![allow(clippy::disallowed_methods, reason = "tests write the model that they load")]

use super::ImageSettings;
use image::{ImageFormat, Rgb, RgbImage};
use std::io::Cursor;
use std::path::Path;

/// A PNG with the given colour of each pixel.
pub fn png(width: u32, height: u32, colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    encoded(width, height, ImageFormat::Png, colour)
}

pub(crate) fn encoded(width: u32, height: u32, format: ImageFormat, colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::from_fn(width, height, |x, y| Rgb(colour(x, y))).write_to(&mut bytes, format).expect("an image");
    bytes.into_inner()
}

/// Minimal Protocol Buffers encoding to write a model: varint fields and length-delimited fields.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub(crate) fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

pub(crate) fn field(field: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A `ValueInfoProto`: a tensor of 32-bit floats. Non-numeric dimensions are symbolic.
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

/// A `ModelProto` (IR version 8, opset 13) that recognises red, green and blue: the mean of each colour, times twenty.
/// `input` is its declared shape; channels-last input is transposed. `softmax` appends one.
pub fn colours(input: &[&str], softmax: bool) -> Vec<u8> {
    // The diagonal of a 3 by 3 matrix: each class gets its own colour alone.
    let weight = |n: usize| if n.is_multiple_of(4) { 20.0_f32 } else { 0.0 };
    let weights: Vec<u8> = (0..9).flat_map(|n| weight(n).to_le_bytes()).collect();
    weighted(input, softmax, field(9, weights))
}

/// The same with the given weights.
pub(crate) fn weighted(input: &[&str], softmax: bool, weights: Vec<u8>) -> Vec<u8> {
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

/// Settings for this model, written to a folder with the labels `red`, `green`, `blue`.
pub fn settings(folder: &Path, model: &[u8]) -> ImageSettings {
    let settings = ImageSettings {
        model: folder.join("colours.onnx"),
        labels: folder.join("labels.txt"),
        ..ImageSettings::default()
    };
    std::fs::write(&settings.model, model).expect("written");
    std::fs::write(&settings.labels, "red\ngreen\nblue\n").expect("written");
    settings
}
