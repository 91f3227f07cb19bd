//! Draws a plot as SVG.

use super::{Axis, Layer, MARKS_MAX, Marks, Plot};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Style of a label among marks: a white rim, so that it is legible.
const HALO: &str = r##"stroke="#ffffff" stroke-width="3" paint-order="stroke""##;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
const LEGEND_LINE: f64 = 18.0;
/// Number of distinct intensities of a heat map: cells of the same one are one path, which keeps the file small.
const STRENGTHS: f64 = 20.0;
/// Approximate width of a letter of 12 pixels, for laying out the legend.
const LETTER: f64 = 7.0;
/// Size of a title's letters, the min size of a long title, and the width of a letter as a share of it.
const TITLE: f64 = 15.0;
const TITLE_MIN: f64 = 11.0;
const TITLE_LETTER: f64 = 0.6;

/// Position of the axes in the drawing.
struct Frame<'a> {
    plot: &'a Plot,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.plot.x.place(value)?.clamp(-0.02, 1.02) * self.width)
    }

    fn y(&self, value: f64) -> Option<f64> {
        Some(self.top + (1.0 - self.plot.y.place(value)?.clamp(-0.02, 1.02)) * self.height)
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

/// Draws the plot. Writing to a string cannot fail, so the result of `write!` is dropped.
pub(super) fn draw(plot: &Plot) -> String {
    let (width, height) = (f64::from(plot.size.0), height(plot));
    let lines = legend_lines(plot, width);
    let top = TOP + LEGEND_LINE * lines.len() as f64;
    let frame = Frame { plot, left: LEFT, top, width: width - LEFT - RIGHT, height: height - top - BOTTOM };
    let letters = plot.title.chars().count().max(1) as f64;
    let title = ((width - LEFT - RIGHT) / (letters * TITLE_LETTER)).clamp(TITLE_MIN, TITLE);
    let mut out = String::new();
    let _ = write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="'DejaVu Sans', Verdana, sans-serif" font-size="12" fill="#24292f"><rect width="{width}" height="{height}" fill="#ffffff"/><text x="{LEFT}" y="24" font-size="{title:.1}">{}</text>"##,
        escaped(&plot.title)
    );
    legend(&mut out, &lines);
    grid(&mut out, &frame);
    for layer in &plot.layers {
        marks(&mut out, &frame, layer);
    }
    out.push_str("</svg>");
    out
}

/// Returns the height in pixels: a legend of many lines makes a drawing taller, not its plot smaller.
fn height(plot: &Plot) -> f64 {
    let lines = legend_lines(plot, f64::from(plot.size.0)).len().max(1);
    f64::from(plot.size.1) + LEGEND_LINE * (lines - 1) as f64
}

/// Stacks plots vertically in one drawing.
pub fn stacked(plots: &[Plot]) -> String {
    let width = plots.iter().map(|plot| plot.size.0).max().unwrap_or(1);
    let height: f64 = plots.iter().map(height).sum();
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">"#
    );
    let mut top = 0.0;
    for plot in plots {
        let _ = write!(out, r#"<g transform="translate(0 {top})">{}</g>"#, draw(plot));
        top += self::height(plot);
    }
    out.push_str("</svg>");
    out
}

/// Escapes text for XML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Characters that XML cannot represent.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Breaks the names of layers into lines, as many names per line as fit.
fn legend_lines(plot: &Plot, width: f64) -> Vec<Vec<(String, &Layer, f64)>> {
    let mut lines: Vec<Vec<(String, &Layer, f64)>> = Vec::new();
    let mut at = f64::INFINITY;
    for layer in &plot.layers {
        let Some(name) = &layer.name else { continue };
        let step = step_of(&layer.marks);
        let name = if step > 1 { format!("{name} (1 of {step} shown)") } else { name.clone() };
        let name = cut(name, ((width - LEFT - RIGHT - 30.0) / LETTER) as usize);
        let needed = 30.0 + LETTER * name.chars().count() as f64;
        if at + needed > width - RIGHT {
            lines.push(Vec::new());
            at = LEFT;
        }
        if let Some(line) = lines.last_mut() {
            line.push((name, layer, at));
        }
        at += needed;
    }
    lines
}

/// Shortens a name to at most this many letters.
fn cut(name: String, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => name,
    }
}

fn legend(out: &mut String, lines: &[Vec<(String, &Layer, f64)>]) {
    for (i, line) in lines.iter().enumerate() {
        let y = TOP - 4.0 + LEGEND_LINE * i as f64;
        for (name, layer, x) in line {
            let colour = &layer.colour;
            let _ = match &layer.marks {
                Marks::Points(_) => write!(out, r#"<circle cx="{}" cy="{}" r="4" fill="{colour}"/>"#, x + 6.0, y - 4.0),
                Marks::Line(_, dashed) => {
                    let dash = if *dashed { r#" stroke-dasharray="4 3""# } else { "" };
                    let (y, to) = (y - 4.0, x + 13.0);
                    write!(out, r#"<path d="M{x} {y}H{to}" stroke="{colour}" stroke-width="2"{dash}/>"#)
                }
                _ => write!(out, r#"<rect x="{x}" y="{}" width="12" height="9" fill="{colour}"/>"#, y - 9.0),
            };
            let _ = write!(out, r#"<text x="{}" y="{y}">{}</text>"#, x + 18.0, escaped(name));
        }
    }
}

fn grid(out: &mut String, frame: &Frame<'_>) {
    let (x, y): (&Axis, &Axis) = (&frame.plot.x, &frame.plot.y);
    let (left, right, top, bottom) = (frame.left, frame.right(), frame.top, frame.bottom());
    for tick in y.ticks((frame.height / 38.0) as usize) {
        let Some(at) = frame.y(tick) else { continue };
        let _ = write!(
            out,
            r##"<path d="M{left} {at:.1}H{right}" stroke="#e3e6ea"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"##,
            left - 7.0,
            at + 4.0,
            escaped(&y.label(tick))
        );
    }
    for tick in x.ticks((frame.width / 80.0) as usize) {
        let Some(at) = frame.x(tick) else { continue };
        let _ = write!(
            out,
            r##"<path d="M{at:.1} {top}V{bottom}" stroke="#f0f2f4"/><text x="{at:.1}" y="{}" text-anchor="middle">{}</text>"##,
            bottom + 17.0,
            escaped(&x.label(tick))
        );
    }
    let _ = write!(out, r##"<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#57606a"/>"##);
    let _ = write!(
        out,
        r##"<text x="{}" y="{}" text-anchor="middle" fill="#57606a">{}</text>"##,
        (left + right) / 2.0,
        bottom + 40.0,
        escaped(&x.title)
    );
    let middle = (top + bottom) / 2.0;
    let _ = write!(
        out,
        r##"<text x="18" y="{middle}" text-anchor="middle" fill="#57606a" transform="rotate(-90 18 {middle})">{}</text>"##,
        escaped(&y.title)
    );
}

/// Returns the interval n such that every n-th mark of a layer is drawn.
fn step_of(marks: &Marks) -> usize {
    match marks {
        Marks::Points(points) => points.len().div_ceil(MARKS_MAX),
        Marks::Boxes(boxes) => boxes.len().div_ceil(MARKS_MAX),
        _ => 1,
    }
    .max(1)
}

fn marks(out: &mut String, frame: &Frame<'_>, layer: &Layer) {
    let colour = &layer.colour;
    match &layer.marks {
        Marks::Points(points) => {
            let _ = write!(out, r#"<g fill="{colour}" fill-opacity="0.65">"#);
            for (x, y) in points.iter().step_by(step_of(&layer.marks)) {
                if let (Some(x), Some(y)) = (frame.x(*x), frame.y(*y)) {
                    let _ = write!(out, r#"<circle cx="{x:.1}" cy="{y:.1}" r="2.4"/>"#);
                }
            }
            out.push_str("</g>");
        }
        Marks::Line(points, dashed) => {
            let dash = if *dashed { r#" stroke-dasharray="6 4""# } else { "" };
            let path = path(points.iter().filter_map(|(x, y)| Some((frame.x(*x)?, frame.y(*y)?))));
            let _ = write!(out, r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>"#);
        }
        Marks::Band(band) => {
            let upper = band.iter().filter_map(|(x, _, high)| Some((frame.x(*x)?, frame.y(*high)?)));
            let lower = band.iter().rev().filter_map(|(x, low, _)| Some((frame.x(*x)?, frame.y(*low)?)));
            let path = path(upper.chain(lower));
            if !path.is_empty() {
                let _ = write!(out, r#"<path d="{path}Z" fill="{colour}" fill-opacity="0.18"/>"#);
            }
        }
        Marks::Boxes(boxes) => {
            let mut path = String::new();
            for (x, y, to_x, to_y) in boxes.iter().step_by(step_of(&layer.marks)) {
                rectangle(&mut path, frame, (*x, *y, *to_x, *to_y));
            }
            if !path.is_empty() {
                let _ = write!(out, r#"<path fill="{colour}" d="{path}"/>"#);
            }
        }
        Marks::Heat(cells) => {
            let mut paths: BTreeMap<u8, String> = BTreeMap::new();
            for (x, y, to_x, to_y, strength) in cells {
                // At least 1: a cell with one request must be visible beside one with a million.
                let level = (strength.clamp(0.0, 1.0) * STRENGTHS).round().max(1.0) as u8;
                rectangle(paths.entry(level).or_default(), frame, (*x, *y, *to_x, *to_y));
            }
            for (level, path) in paths.iter().filter(|(_, path)| !path.is_empty()) {
                let opacity = f64::from(*level) / STRENGTHS;
                let _ = write!(out, r#"<path fill="{colour}" fill-opacity="{opacity:.2}" d="{path}"/>"#);
            }
        }
        Marks::Upright(at, word) => {
            let Some(x) = frame.x(*at) else { return };
            let (top, bottom) = (frame.top, frame.bottom());
            let _ = write!(out, r#"<path d="M{x:.1} {top}V{bottom}" stroke="{colour}" stroke-dasharray="3 3"/>"#);
            let (anchor, aside) = if x > frame.right() - 120.0 { ("end", -4.0) } else { ("start", 4.0) };
            let _ = write!(
                out,
                r#"<text x="{:.1}" y="{}" text-anchor="{anchor}" fill="{colour}" {HALO}>{}</text>"#,
                x + aside,
                top + 12.0,
                escaped(word)
            );
        }
        Marks::Level(at, word) => {
            let Some(y) = frame.y(*at) else { return };
            let (left, right) = (frame.left, frame.right());
            let _ = write!(out, r#"<path d="M{left} {y:.1}H{right}" stroke="{colour}" stroke-dasharray="3 3"/>"#);
            let _ = write!(
                out,
                r#"<text x="{}" y="{:.1}" text-anchor="end" fill="{colour}" {HALO}>{}</text>"#,
                right - 4.0,
                y - 4.0,
                escaped(word)
            );
        }
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{x:.1} {y:.1}");
    }
    path
}

/// Appends a rectangle between two corners as a piece of a path, with a min width so that every event is visible.
fn rectangle(path: &mut String, frame: &Frame<'_>, (x, y, to_x, to_y): (f64, f64, f64, f64)) {
    let (Some(a), Some(b)) = (frame.x(x), frame.x(to_x)) else { return };
    let (Some(c), Some(d)) = (frame.y(y), frame.y(to_y)) else { return };
    let (left, top) = (a.min(b), c.min(d));
    let (width, height) = ((a - b).abs().max(0.6), (c - d).abs().max(0.6));
    let _ = write!(path, "M{left:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z");
}
