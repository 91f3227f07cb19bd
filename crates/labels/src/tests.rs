//! Labels of a small model.
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

use super::samples::*;
use super::*;
use image::ImageFormat;

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
    // Half of red, a third of green: raw scores are 10 and 6.7, so they are not probabilities; after the softmax 0.97
    // and 0.03.
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
        score_min: 0.0,
        ..settings(folder.path(), &colours(&INPUT, false))
    };
    let labels =
        |settings: &ImageSettings| Classifier::load(settings).expect("it loads").expect("a model").labels(&bytes);
    let all = labels(&plain).expect("labels");
    assert_eq!(names(&all), ["red", "green", "blue"]);
    let scores: Vec<f64> = all.labels.iter().map(|label| label.score).collect();
    assert!((scores[0] - 0.966).abs() < 0.02 && (scores[1] - 0.034).abs() < 0.02 && scores[2] < 0.001, "{scores:?}");
    assert_eq!(names(&labels(&ImageSettings { top: 2, ..plain.clone() }).expect("labels")), ["red", "green"]);
    assert_eq!(names(&labels(&ImageSettings { score_min: 0.5, ..plain.clone() }).expect("labels")), ["red"]);
    // Divided by twenty again, the scores are from 0 to 1 and add up to less than 1. They are used unchanged if
    // configured so.
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
        (ImageSettings { model: "/dev/zero".into(), ..settings.clone() }, ["model: /dev/zero", "not a pipe"]),
        (ImageSettings { labels: "/dev/zero".into(), ..settings.clone() }, ["labels: /dev/zero", "not a pipe"]),
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
    // Weights in an existing separate file are refused: a model is one file.
    std::fs::write(folder.path().join("weights"), [0; 36]).expect("written");
    let entry = |key: &str, value: &str| field(13, [field(1, key), field(2, value)].concat());
    let whole = [entry("location", "weights"), number(14, 1)].concat();
    let part = [whole.clone(), entry("offset", "0"), entry("length", "36")].concat();
    for weights in [whole, part] {
        std::fs::write(&settings.model, weighted(&INPUT, false, weights)).expect("written");
        let why = refused(&settings);
        assert!(why.contains("colours.onnx: it has its weights in other files, expected one file"), "{why}");
    }
    // A model that returns no finite numbers for any image.
    std::fs::write(&settings.model, weighted(&INPUT, false, field(9, [255; 36]))).expect("written");
    let why = refused(&settings);
    assert!(why.contains("no finite scores for a grey image"), "{why}");
}

#[test]
fn the_model_that_other_tests_take_from_a_file_is_this_one() {
    let file = include_bytes!("../fixtures/colours.onnx");
    assert_eq!(colours(&["N", "3", "64", "64"], false), file);
}
