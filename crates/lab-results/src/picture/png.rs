//! Rasterises a drawing.

use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// The lab's font: DejaVu Sans, reduced to the glyphs of labels (licence beside it).
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-labels.ttf");
/// Pixels per unit of the drawing.
const SHARPNESS: f32 = 2.0;

/// Error for a drawing that could not be rasterised.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct PictureError(String);

/// Rasterises an SVG drawing at twice its size.
pub fn png(svg: &str) -> Result<Vec<u8>, PictureError> {
    let mut fonts = usvg::fontdb::Database::new();
    // Only this font: with the system's fonts a picture would look different on each machine.
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options =
        usvg::Options { font_family: "DejaVu Sans".into(), fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| PictureError(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SHARPNESS).ok_or_else(|| PictureError("it has no size".into()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| PictureError(format!("{} x {} pixels are too many", size.width(), size.height())))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SHARPNESS, SHARPNESS), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| PictureError(e.to_string()))
}
