//! Converts the bytes of an image to the input of a model.

use super::settings::Layout;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits, RgbImage, imageops};
use std::io::Cursor;

/// Memory for decoding, for each allowed pixel: four channels of two bytes, and the decoder's own buffers.
const BYTES_A_PIXEL: u64 = 16;

/// Returns the centre crop of an image with the proportions of `width` to `height`, scaled to these. The error is a
/// sentence. Images above `pixels_max` pixels are not decoded.
pub(super) fn middle(bytes: &[u8], width: u32, height: u32, pixels_max: u64) -> Result<RgbImage, String> {
    let broken = |e: image::ImageError| format!("it cannot be read: {e}");
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| e.to_string())?;
    if reader.format().is_none() {
        return Err("it is not a JPEG, PNG, GIF or WebP".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(pixels_max.saturating_mul(BYTES_A_PIXEL));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (across, down) = decoder.dimensions();
    if u64::from(across) * u64::from(down) > pixels_max {
        return Err(format!("it has {across} x {down} pixels, more than {pixels_max}"));
    }
    let turned = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    image.apply_orientation(turned);
    let image = image.into_rgb8();
    let (across, down) = image.dimensions();
    if across == 0 || down == 0 {
        return Err("it has no pixels".to_owned());
    }
    // Cropped before scaling: a long thin image would otherwise be scaled to a far larger one.
    let part = |of: u32, other: u32, to: u32, other_to: u32| {
        let wanted = u64::from(other) * u64::from(to) / u64::from(other_to.max(1));
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, of)
    };
    let (wide, high) = (part(across, down, width, height), part(down, across, height, width));
    let cut = imageops::crop_imm(&image, (across - wide) / 2, (down - high) / 2, wide, high).to_image();
    Ok(imageops::resize(&cut, width, height, imageops::FilterType::Triangle))
}

/// Returns the channels as the model expects them: from 0 to 1, minus the mean, divided by the standard deviation.
pub(super) fn numbers(image: &RgbImage, layout: Layout, mean: [f64; 3], std: [f64; 3]) -> Vec<f32> {
    let number = |colour: usize, value: u8| ((f64::from(value) / 255.0 - mean[colour]) / std[colour]) as f32;
    match layout {
        Layout::Nhwc => image.as_raw().iter().enumerate().map(|(n, value)| number(n % 3, *value)).collect(),
        Layout::Auto | Layout::Nchw => {
            (0..3).flat_map(|colour| image.pixels().map(move |pixel| number(colour, pixel.0[colour]))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::png;
    use super::*;
    use image::Rgb;

    #[test]
    fn the_middle_is_cut_and_scaled() {
        // Blue, red, blue side by side: the centre is red, however thin the image is.
        for (across, down) in [(300, 100), (3_000, 4), (30, 10)] {
            let bytes = png(across, down, |x, _| if x / (across / 3) == 1 { [255, 0, 0] } else { [0, 0, 255] });
            let seen = middle(&bytes, 4, 4, 1 << 20).expect("an image");
            assert_eq!(seen.dimensions(), (4, 4));
            assert!(seen.pixels().all(|pixel| pixel.0[0] > 250 && pixel.0[2] < 5), "{across}x{down}: {seen:?}");
        }
        let seen = middle(&png(1, 1, |_, _| [1, 2, 3]), 7, 5, 100).expect("an image");
        assert_eq!((seen.dimensions(), seen.get_pixel(6, 4)), ((7, 5), &Rgb([1, 2, 3])));
    }

    #[test]
    fn what_would_unfold_too_far_is_not_unfolded() {
        let bytes = png(2_000, 2_000, |_, _| [0, 0, 0]);
        assert!(bytes.len() < 200_000, "{}", bytes.len());
        let why = middle(&bytes, 4, 4, 1_000_000).expect_err("too many pixels");
        assert!(why.contains("2000 x 2000"), "{why}");
        assert!(middle(&bytes, 4, 4, 4_000_000).is_ok());
        // The size in the header is trusted, and refused before any memory is allocated.
        let mut lie = png(2, 2, |_, _| [0, 0, 0]);
        lie[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        assert!(middle(&lie, 4, 4, 1 << 20).is_err());
        for (bytes, word) in
            [(&b"<html>"[..], "not a JPEG"), (&b""[..], "not a JPEG"), (&bytes[..60], "cannot be read")]
        {
            let why = middle(bytes, 4, 4, 4_000_000).expect_err("no image");
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn colours_stand_where_the_model_has_them() {
        let image = RgbImage::from_fn(2, 1, |x, _| Rgb([255 * x as u8, 0, 255]));
        let half = [0.5; 3];
        assert_eq!(numbers(&image, Layout::Nchw, half, half), [-1.0, 1.0, -1.0, -1.0, 1.0, 1.0]);
        assert_eq!(numbers(&image, Layout::Nhwc, half, half), [-1.0, -1.0, 1.0, 1.0, -1.0, 1.0]);
    }
}
