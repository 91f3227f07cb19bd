//! Pictures: plots as SVG, and the same as PNG.
//!
//! A [`Plot`] is two axes and layers of marks; [`Plot::svg`] draws it. [`png()`] rasterises the drawing with the lab's
//! own font, so a picture looks alike on every machine. Colours are those of Okabe and Ito ("Color universal design",
//! 2008), distinguishable with any colour vision.

mod axis;
mod png;
mod svg;

pub use axis::{Axis, Scale, Unit, label};
pub use png::{PictureError, png};
pub use svg::escaped;
pub use svg::stacked;

/// The colours of series, in order of use.
pub const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b"];
/// Colours of good, bad and background marks.
pub const GOOD: &str = "#009e73";
/// See [`GOOD`].
pub const BAD: &str = "#d55e00";
/// See [`GOOD`].
pub const QUIET: &str = "#9aa0a6";

/// Max marks drawn of one layer. Of more, every n-th is drawn, since they could not be distinguished and only enlarge
/// the file.
pub const MARKS_MAX: usize = 4_000;

/// A plot: axes, and layers drawn in order.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Title: the message of the plot in words.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Layers to draw.
    pub layers: Vec<Layer>,
    /// Width and height in pixels; further legend lines increase the height.
    pub size: (u32, u32),
}

/// Marks of one style.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Name in the legend; unnamed layers are not in it.
    pub name: Option<String>,
    /// Its colour, in CSS notation.
    pub colour: String,
    /// Marks to draw.
    pub marks: Marks,
}

/// Marks of a layer, in values of the axes.
#[derive(Debug, Clone)]
pub enum Marks {
    /// Dots.
    Points(Vec<(f64, f64)>),
    /// One line through all points, dashed or not.
    Line(Vec<(f64, f64)>, bool),
    /// A band between two lines: (x, low, high).
    Band(Vec<(f64, f64, f64)>),
    /// Rectangles from (x, y) to (x, y).
    Boxes(Vec<(f64, f64, f64, f64)>),
    /// Rectangles as above with an intensity from 0 to 1, for heat maps.
    Heat(Vec<(f64, f64, f64, f64, f64)>),
    /// A line across the plot at an x, with a label beside it.
    Upright(f64, String),
    /// A line across the plot at a y, with a label above it.
    Level(f64, String),
}

impl Plot {
    /// Creates an empty plot of the usual size.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot { title: title.into(), x, y, layers: Vec::new(), size: (860, 360) }
    }

    /// Adds a layer, which the legend names.
    pub fn with(mut self, name: impl Into<String>, colour: &str, marks: Marks) -> Plot {
        self.layers.push(Layer { name: Some(name.into()), colour: colour.to_owned(), marks });
        self
    }

    /// Adds a layer that needs no name.
    pub fn and(mut self, colour: &str, marks: Marks) -> Plot {
        self.layers.push(Layer { name: None, colour: colour.to_owned(), marks });
        self
    }

    /// Returns the drawing: a complete SVG document without external resources.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let points: Vec<(f64, f64)> = (1..50).map(|i| (f64::from(i) * 1e6, 2_000.0 * f64::from(i))).collect();
        let x = Axis::over("time", Unit::Micros, Scale::Linear, points.iter().map(|p| p.0));
        let y = Axis::over("latency", Unit::Micros, Scale::Log, points.iter().map(|p| p.1));
        Plot::new("Latency grows <3 & stays>", x, y)
            .with("a \"quoted\" name", COLOURS[0], Marks::Points(points.clone()))
            .with("fit", COLOURS[1], Marks::Line(points, true))
            .and(QUIET, Marks::Upright(2e7, "load ends".into()))
    }

    #[test]
    fn a_drawing_is_well_formed_whatever_its_words() {
        let svg = plot().svg();
        assert!(svg.contains("Latency grows &lt;3 &amp; stays&gt;"), "{svg}");
        // A strict parser reads it, and finds every mark.
        let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).unwrap();
        assert_eq!(tree.size().width(), 860.0);
        assert_eq!(svg.matches("<circle").count(), 49 + 1, "49 points and one in the legend");
    }

    #[test]
    fn the_picture_has_ink_where_the_words_are() {
        let bytes = png(&plot().svg()).unwrap();
        let pixels = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (1720, 720), "twice the size, for sharp screens");
        // The title is in the upper left corner: without a font it would be missing.
        let dark = (0..60).flat_map(|y| (0..600).map(move |x| (x, y)));
        let ink = dark.filter(|&(x, y)| pixels.pixel(x, y).is_some_and(|p| p.alpha() > 0 && p.red() < 128)).count();
        assert!(ink > 300, "{ink} dark pixels");
    }

    #[test]
    fn many_and_long_names_make_the_drawing_taller_and_stay_within_it() {
        let plain = plot();
        let mut many = plot();
        for (n, colour) in COLOURS.iter().enumerate() {
            many = many.with(format!("{n} {}", "a long name ".repeat(n * 4)), colour, Marks::Points(vec![(1e6, 2e3)]));
        }
        let height = |plot: &Plot| {
            let svg = plot.svg();
            let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).unwrap();
            f64::from(tree.size().height())
        };
        assert_eq!(height(&plain), 360.0);
        assert!(height(&many) > 400.0);
        assert!(many.svg().contains('…'));
        let both = stacked(&[plain.clone(), many.clone()]);
        let tree = resvg::usvg::Tree::from_str(&both, &resvg::usvg::Options::default()).unwrap();
        assert_eq!(f64::from(tree.size().height()), height(&plain) + height(&many));
    }

    #[test]
    fn a_heat_map_of_many_cells_is_a_small_file_with_ink_in_it() {
        let axis = |title: &str| Axis::over(title, Unit::Count, Scale::Linear, [0.0, 50.0].into_iter());
        let cell = |i: u32| {
            let (x, y) = (f64::from(i % 50), f64::from(i / 50));
            (x, y, x + 1.0, y + 1.0, f64::from(i % 7) / 6.0)
        };
        let plot = |cells: u32| {
            Plot::new("heat", axis("x"), axis("y")).with("n", COLOURS[1], Marks::Heat((0..cells).map(cell).collect()))
        };
        let (full, none) = (plot(2_500).svg(), plot(0).svg());
        assert!(full.len() - none.len() < 2_500 * 40, "{}", full.len() - none.len());
        // Seven intensities. The weakest one is visible too.
        assert_eq!(full.matches("fill-opacity").count(), 7);
        let orange = |svg: &str| {
            let pixels = resvg::tiny_skia::Pixmap::decode_png(&png(svg).unwrap()).unwrap();
            pixels.pixels().iter().filter(|p| p.alpha() > 0 && p.red() > p.blue().saturating_add(8)).count()
        };
        assert!(orange(&full) > 400_000 && orange(&none) < 1_000, "{} {}", orange(&full), orange(&none));
    }

    #[test]
    fn a_heavy_layer_is_thinned_and_says_so() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 1.0)).collect();
        let axis = |title: &str| Axis::over(title, Unit::Count, Scale::Linear, [0.0, 100_000.0].into_iter());
        let svg = Plot::new("many", axis("n"), axis("m")).with("dots", COLOURS[0], Marks::Points(points)).svg();
        assert!(svg.matches("<circle").count() <= MARKS_MAX + 1);
        assert!(svg.contains("dots (1 of 25 shown)"), "{}", &svg[..2_000.min(svg.len())]);
    }
}
