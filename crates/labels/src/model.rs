//! A loaded model.
#![allow(clippy::disallowed_methods, reason = "the operator's model and its class names are read once, at the start")]

use super::picture;
use super::settings::{ImageSettings, Layout, Scores};
use super::{Label, Labels};
use image::RgbImage;
use rten::{DataType, Dimension, Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueType, ValueView};
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Side of the square if neither the model nor the operator specifies one: that of most ImageNet models.
const SIDE: usize = 224;
/// Max length of a class name, in bytes.
const CLASS_BYTES_MAX: usize = 200;
/// Max size of a file of class names, in bytes.
const CLASSES_BYTES_MAX: u64 = 16 << 20;
/// Max size of a model file, in bytes: the limit of Protocol Buffers.
const MODEL_BYTES_MAX: u64 = 2 << 30;

/// A model with its class names. Several threads can use it at once. It runs on its own threads, whose number is set.
pub struct Classifier {
    settings: ImageSettings,
    name: String,
    classes: Vec<String>,
    model: Model,
    input: NodeId,
    output: NodeId,
    shape: Shape,
    softmax: bool,
    threads: Arc<ThreadPool>,
}

/// The input of a model: one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    layout: Layout,
    height: usize,
    width: usize,
}

impl Classifier {
    /// Loads a model and its class names, and runs it once. `None` if no model is configured. The error begins with
    /// the setting at fault.
    pub fn load(settings: &ImageSettings) -> Result<Option<Arc<Classifier>>, String> {
        if settings.model.as_os_str().is_empty() {
            return match settings.labels.as_os_str().is_empty() {
                true => Ok(None),
                false => Err("labels: there is no model that gives them: expected its file as model".to_owned()),
            };
        }
        if settings.std.contains(&0.0) {
            return Err("std: colours cannot be divided by 0".to_owned());
        }
        let classes = classes(&settings.labels).map_err(|e| format!("labels: {e}"))?;
        let wrong = |e: String| format!("model: {}: {e}", settings.model.display());
        // A malformed file must be an error, even if the parser panics.
        let read = catch_unwind(|| open(settings, classes)).unwrap_or_else(|_| Err("it cannot be read".to_owned()));
        let mut classifier = read.map_err(wrong)?;
        // A model that parses may still lack an operator at run time: it must fail here, not at the first search.
        let tried = catch_unwind(AssertUnwindSafe(|| classifier.try_out()));
        let scores = tried.unwrap_or_else(|_| Err("it fails at its first image".to_owned())).map_err(wrong)?;
        if scores.len() != classifier.classes.len() {
            let (path, names, scores) = (settings.labels.display(), classifier.classes.len(), scores.len());
            return Err(format!("labels: {path}: it names {names} classes, but the model has {scores}"));
        }
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(wrong(
                "it returns no finite scores for a grey image: expected a score for each class".to_owned(),
            ));
        }
        classifier.softmax = match settings.scores {
            Scores::Logits => true,
            Scores::Probabilities => false,
            Scores::Auto => !are_probabilities(&scores),
        };
        Ok(Some(Arc::new(classifier)))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ImageSettings {
        &self.settings
    }

    /// Labels an image. The error is a sentence. Waits for one of the model's threads.
    pub fn labels(&self, image: &[u8]) -> Result<Labels, String> {
        // Runs on the model's threads, so that images never take more processors than configured.
        let scores = self.threads.run(|| {
            let Shape { height, width, .. } = self.shape;
            let image = picture::middle(image, width as u32, height as u32, self.settings.pixels_max)?;
            self.scores(&image)
        })?;
        let mut labels: Vec<Label> = self
            .classes
            .iter()
            .zip(scores)
            .filter(|(_, score)| *score >= self.settings.score_min)
            .map(|(class, score)| Label { label: class.clone(), score: (score * 1_000.0).round() / 1_000.0 })
            .collect();
        labels.sort_by(|a, b| b.score.total_cmp(&a.score));
        // Truncated after sorting, so that the best ones stay.
        labels.truncate(self.settings.top);
        Ok(Labels { model: self.name.clone(), labels })
    }

    /// Runs the model on a grey image as a self-test.
    fn try_out(&self) -> Result<Vec<f32>, String> {
        let Shape { height, width, .. } = self.shape;
        self.raw(&RgbImage::from_pixel(width as u32, height as u32, image::Rgb([128; 3])))
    }

    /// Returns a score from 0 to 1 for each class.
    fn scores(&self, image: &RgbImage) -> Result<Vec<f64>, String> {
        let raw = self.raw(image)?;
        if raw.len() != self.classes.len() || raw.iter().any(|score| !score.is_finite()) {
            return Err("the model returned no finite scores".to_owned());
        }
        let raw = raw.into_iter().map(f64::from);
        if !self.softmax {
            return Ok(raw.collect());
        }
        let max = raw.clone().fold(f64::NEG_INFINITY, f64::max);
        // Minus the max, so that no power overflows; the quotients are the same.
        let powers: Vec<f64> = raw.map(|score| (score - max).exp()).collect();
        let sum: f64 = powers.iter().sum();
        Ok(powers.into_iter().map(|power| power / sum).collect())
    }

    /// Returns the raw output for an image of the input size.
    fn raw(&self, image: &RgbImage) -> Result<Vec<f32>, String> {
        let numbers = picture::numbers(image, self.shape.layout, self.settings.mean, self.settings.std);
        let view = ValueView::from_shape(self.shape.dimensions(), numbers.as_slice()).map_err(|e| e.to_string())?;
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let outputs = self.model.run_n(vec![(self.input, view.into())], [self.output], Some(options));
        let [scores] = outputs.map_err(|e| format!("it does not run on one image: {e}"))?;
        match scores {
            Value::FloatTensor(scores) => Ok(scores.into_data()),
            other => Err(format!("its output is {}: expected a number for each class", other.dtype())),
        }
    }
}

impl std::fmt::Debug for Classifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classifier").field("name", &self.name).field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// Reads a model file and checks that it has one image input and one output.
fn open(settings: &ImageSettings, classes: Vec<String>) -> Result<Classifier, String> {
    let path = &settings.model;
    let bytes = read(path, MODEL_BYTES_MAX)?;
    // The operator may choose any classifier, so the build includes all operators.
    let model = ModelOptions::with_all_ops().load(bytes).map_err(|e| match e.to_string() {
        why if why.contains("external data") => format!("it has its weights in other files, expected one file: {why}"),
        why => format!("it is not an ONNX model that runs here: {why}"),
    })?;
    let (Some(input), [output]) = (model.input_ids().first().copied(), model.output_ids()) else {
        let (inputs, outputs) = (model.input_ids().len(), model.output_ids().len());
        return Err(format!(
            "it has {inputs} inputs and {outputs} outputs: expected an image, and a score for each class"
        ));
    };
    let info = model.node_info(input);
    if let Some(kind) = info.as_ref().and_then(|info| info.dtype())
        && kind != ValueType::Tensor(DataType::Float)
    {
        return Err(format!("its input is {kind}: expected 32 bit floating point"));
    }
    let declared: Option<Vec<Option<usize>>> = info.and_then(|info| info.shape()).map(|dimensions| {
        let size = |dimension| match dimension {
            Dimension::Fixed(size) => Some(size),
            Dimension::Symbolic(_) => None,
        };
        dimensions.into_iter().map(size).collect()
    });
    let shape = Shape::fit(declared.as_deref(), settings)?;
    let output = *output;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let threads = Arc::new(ThreadPool::with_num_threads(settings.threads.max(1)));
    Ok(Classifier { settings: settings.clone(), name, classes, model, input, output, shape, softmax: true, threads })
}

impl Shape {
    /// Returns the shape that fits the declared input, as far as it is declared.
    fn fit(declared: Option<&[Option<usize>]>, settings: &ImageSettings) -> Result<Shape, String> {
        let open = [None; 4];
        let shown = || {
            let size = |size: &Option<usize>| size.map_or("?".to_owned(), |size| size.to_string());
            declared.unwrap_or(&open).iter().map(size).collect::<Vec<_>>().join(",")
        };
        let expected = "expected one image in three colours, [N,3,H,W] or [N,H,W,3]";
        let &[batch, second, third, fourth] = declared.unwrap_or(&open) else {
            return Err(format!("its input is [{}]: {expected}", shown()));
        };
        let three = |size: Option<usize>| size.is_none_or(|size| size == 3);
        let layout = match settings.layout {
            Layout::Auto if second == Some(3) || fourth != Some(3) => Layout::Nchw,
            Layout::Auto => Layout::Nhwc,
            named => named,
        };
        let (colours, height, width) = match layout {
            Layout::Nhwc => (fourth, second, third),
            Layout::Auto | Layout::Nchw => (second, third, fourth),
        };
        if !three(colours) || batch.is_some_and(|batch| batch != 1) {
            return Err(format!("its input is [{}]: {expected} ({})", shown(), layout.word()));
        }
        let side = |declared: Option<usize>| match (declared, settings.size) {
            (None, 0) => Ok(SIDE),
            (None, size) => Ok(size),
            (Some(size), wanted) if wanted == 0 || wanted == size => Ok(size),
            (Some(_), wanted) => Err(format!("its input is [{}]: images of size {wanted} do not fit", shown())),
        };
        let shape = Shape { layout, height: side(height)?, width: side(width)? };
        // Far more than any model takes. This bounds the cost of an image.
        let most = ImageSettings::SIZE_MAX;
        match [shape.height, shape.width].iter().all(|side| (1..=most).contains(side)) {
            true => Ok(shape),
            false => Err(format!("its input is [{}]: expected sides of 1 to {most} pixels", shown())),
        }
    }

    fn dimensions(self) -> [usize; 4] {
        match self.layout {
            Layout::Nhwc => [1, self.height, self.width, 3],
            Layout::Auto | Layout::Nchw => [1, 3, self.height, self.width],
        }
    }
}

/// Returns whether scores are from 0 to 1 and add up to 1, like the output of a softmax.
fn are_probabilities(scores: &[f32]) -> bool {
    let sum: f64 = scores.iter().copied().map(f64::from).sum();
    scores.iter().all(|score| (0.0..=1.0).contains(score)) && (sum - 1.0).abs() < 0.01
}

/// Reads the names of classes.
fn classes(path: &Path) -> Result<Vec<String>, String> {
    if path.as_os_str().is_empty() {
        return Err("expected a file with the names of the model's classes, one a line".to_owned());
    }
    let of_path = |e: String| format!("{}: {e}", path.display());
    let text = read(path, CLASSES_BYTES_MAX).map_err(of_path)?;
    let text = String::from_utf8(text).map_err(|e| of_path(format!("it is no text in UTF-8: {e}")))?;
    let mut classes = Vec::new();
    for (line, name) in text.trim_end().lines().map(str::trim).enumerate() {
        if name.is_empty() || name.len() > CLASS_BYTES_MAX {
            let (path, line) = (path.display(), line + 1);
            return Err(format!("{path}, line {line}: expected the name of a class, of 1 to {CLASS_BYTES_MAX} bytes"));
        }
        classes.push(name.to_owned());
    }
    match classes.is_empty() {
        true => Err(format!("{}: it names no class", path.display())),
        false => Ok(classes),
    }
}

/// Reads a file of at most `most` bytes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let broken = |e: std::io::Error| format!("it cannot be read: {e}");
    let mut bytes = Vec::new();
    // An open of a pipe waits for a writer, and one of a device may never end.
    if !std::fs::metadata(path).map_err(broken)?.is_file() {
        return Err("expected a file, and not a pipe, a socket, a folder or a device".to_owned());
    }
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(broken)?;
    match bytes.len() as u64 > most {
        true => Err(format!("it is longer than {most} bytes")),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_input_is_fitted_or_refused() {
        let with = |size: usize, layout: Layout| ImageSettings { size, layout, ..ImageSettings::default() };
        let fit = |declared: &[Option<usize>], size, layout| Shape::fit(Some(declared), &with(size, layout));
        let shape = |layout, height, width| Ok(Shape { layout, height, width });
        let (auto, nchw, nhwc) = (Layout::Auto, Layout::Nchw, Layout::Nhwc);
        assert_eq!(Shape::fit(None, &with(0, auto)), shape(nchw, 224, 224));
        assert_eq!(fit(&[None, Some(3), Some(96), Some(128)], 0, auto), shape(nchw, 96, 128));
        assert_eq!(fit(&[Some(1), Some(160), Some(160), Some(3)], 160, auto), shape(nhwc, 160, 160));
        assert_eq!(fit(&[Some(1), None, None, None], 64, nhwc), shape(nhwc, 64, 64));
        let refused: [(&[Option<usize>], usize, Layout, &str); 7] = [
            (&[Some(1), Some(1_000)], 0, auto, "[1,1000]"),
            (&[Some(8), Some(3), None, None], 0, auto, "[8,3,?,?]"),
            (&[None, Some(1), Some(28), Some(28)], 0, auto, "three colours"),
            (&[None, Some(3), Some(224), Some(224)], 0, nhwc, "nhwc"),
            (&[None, Some(3), Some(224), Some(224)], 256, auto, "size 256"),
            (&[None, Some(3), Some(0), Some(224)], 0, auto, "pixels"),
            (&[None, Some(3), Some(100_000), Some(224)], 0, auto, "pixels"),
        ];
        for (declared, size, layout, word) in refused {
            let why = fit(declared, size, layout).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
    }
}
