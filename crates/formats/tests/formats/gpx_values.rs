//! Values of GPX: points written in every customary way are read as they were.

use crate::common::points::{number, place, read_points, text};
use crate::common::shown::value;
use meridian_formats::Format;
use meridian_model::civil::DAY_US;
use meridian_model::{FieldType, time};
use proptest::prelude::*;

const FIELDS: [(&str, FieldType); 7] = [
    ("kind", FieldType::Text),
    ("track", FieldType::Text),
    ("segment", FieldType::Int),
    ("time", FieldType::Time),
    ("ele", FieldType::Float),
    ("sat", FieldType::Int),
    ("name", FieldType::Text),
];

#[derive(Debug, Clone)]
struct Point {
    lon: f64,
    lat: f64,
    /// Microseconds since 1970, and the offset in minutes; without one the time has no letter.
    time: Option<(i64, Option<i64>)>,
    ele: Option<f64>,
    sat: Option<i64>,
    name: String,
    /// The way in which texts are written.
    form: u8,
}

/// Waypoints, a route or a track.
#[derive(Debug, Clone)]
struct Section {
    kind: &'static str,
    name: String,
    segments: Vec<Vec<Point>>,
}

fn escaped(text: &str, form: u8) -> String {
    match form {
        0 => text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect(),
        1 if !text.contains("]]>") => format!("<![CDATA[{text}]]>"),
        _ => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
    }
}

fn instant(micros: i64, offset: Option<i64>) -> String {
    let minutes = offset.unwrap_or(0);
    let wall = time::format_instant(micros + minutes * 60_000_000);
    let bare = wall.trim_end_matches('Z');
    match offset {
        None => bare.to_owned(),
        Some(0) => wall,
        Some(_) => {
            let sign = if minutes < 0 { '-' } else { '+' };
            format!("{bare}{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
    }
}

impl Point {
    fn element(&self, tag: &str) -> String {
        let mut out = match self.form {
            0 => format!("<{tag} lat=\"{}\" lon=\"{}\">", self.lat, self.lon),
            _ => format!("<{tag} lon='{}' lat='{}'>\n", self.lon, self.lat),
        };
        if let Some(ele) = self.ele {
            out += &format!("<ele>{ele}</ele>");
        }
        if let Some((micros, offset)) = self.time {
            out += &format!("<time>{}</time>", instant(micros, offset));
        }
        if let Some(sat) = self.sat {
            out += &format!("<sat> {sat} </sat>");
        }
        out + &format!("<name>{}</name></{tag}>\n", escaped(&self.name, self.form))
    }
}

impl Section {
    fn element(&self) -> String {
        let points = |segment: &Vec<Point>, tag: &str| segment.iter().map(|p| p.element(tag)).collect::<String>();
        let name = format!("<name>{}</name>", escaped(&self.name, 2));
        match self.kind {
            "wpt" => self.segments.iter().map(|segment| points(segment, "wpt")).collect(),
            "rtept" => {
                let points: String = self.segments.iter().map(|segment| points(segment, "rtept")).collect();
                format!("<rte>{name}{points}</rte>")
            }
            _ => {
                let segment = |segment| format!("<trkseg>{}</trkseg>", points(segment, "trkpt"));
                let segments: String = self.segments.iter().map(segment).collect();
                format!("<trk>{name}{segments}</trk>")
            }
        }
    }
}

fn degrees(max: f64) -> impl Strategy<Value = f64> {
    let edges = vec![-max, max, max.next_down(), -max.next_down(), 0.0, -0.0, 1e-9, -1e-9];
    prop_oneof![-max..=max, prop::sample::select(edges)]
}

/// Texts with the signs that XML escapes, without blanks around them, which the reader removes.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~é€]{0,12}", "[<>&\"'\\]]{1,6}"].prop_map(|text| text.trim().to_owned())
}

fn point() -> impl Strategy<Value = Point> {
    // A day from the ends, so that a time with an offset has a year of four digits.
    let micros = prop_oneof![time::TIME_MIN + DAY_US..=time::TIME_MAX - DAY_US, -2_000_000i64..2_000_000];
    let offset = prop_oneof![Just(None), Just(Some(0)), (-1439i64..=1439).prop_map(Some)];
    let ele = prop::option::of(prop_oneof![-500f64..9_000.0, Just(f64::MAX), Just(-0f64)]);
    let sat = prop::option::of(prop_oneof![0i64..40, Just(i64::MIN), Just(i64::MAX)]);
    (degrees(180.0), degrees(90.0), prop::option::of((micros, offset)), ele, sat, texts(), 0..3u8)
        .prop_map(|(lon, lat, time, ele, sat, name, form)| Point { lon, lat, time, ele, sat, name, form })
}

fn section() -> impl Strategy<Value = Section> {
    let segments = prop::collection::vec(prop::collection::vec(point(), 0..4), 0..4);
    (prop::sample::select(vec!["wpt", "rtept", "trkpt"]), texts(), segments)
        .prop_map(|(kind, name, segments)| Section { kind, name, segments })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn points_are_read_as_they_were_written(sections in prop::collection::vec(section(), 0..5)) {
        let elements: String = sections.iter().map(Section::element).collect();
        let document = format!("<?xml version=\"1.0\"?>\n<gpx version=\"1.1\">{elements}</gpx>\n");
        let batch = read_points(Format::Gpx, document.clone().into_bytes(), &FIELDS);
        let batch = batch.map_err(|e| TestCaseError::fail(format!("{e}\n{document}")))?;
        let (mut row, mut tracks) = (0, 0);
        for section in &sections {
            tracks += i32::from(section.kind != "wpt");
            let track = match section.kind {
                "wpt" => String::new(),
                _ if section.name.is_empty() => tracks.to_string(),
                _ => section.name.clone(),
            };
            for (i, segment) in section.segments.iter().enumerate() {
                for point in segment {
                    prop_assert!(row < batch.rows(), "a point is missing in {}", document);
                    prop_assert_eq!(place(&batch, row), Some((point.lon, point.lat)));
                    let expected = [
                        text(section.kind),
                        text(&track),
                        number((section.kind == "trkpt").then_some(i + 1)),
                        number(point.time.map(|(micros, _)| micros)),
                        number(point.ele),
                        number(point.sat),
                        text(&point.name),
                    ];
                    for ((name, _), expected) in FIELDS.iter().zip(expected) {
                        prop_assert_eq!(value(&batch, name, row), expected, "{} in {}", name, document);
                    }
                    row += 1;
                }
            }
        }
        prop_assert_eq!(batch.rows(), row);
    }
}
