//! Shapes as binary, text and GeoJSON: written shapes read back, and damage is refused.

use super::*;
use crate::wkt;
use geo_types::Polygon;
use meridian_model::geometry::to_wkb;
use proptest::prelude::*;

fn degrees() -> impl Strategy<Value = Coord<f64>> {
    (-180.0..=180.0f64, -90.0..=90.0f64).prop_map(|(x, y)| Coord { x, y })
}

fn line() -> impl Strategy<Value = LineString<f64>> {
    prop::collection::vec(degrees(), 2..6).prop_map(LineString::new)
}

/// Triangles oriented as GeoJSON requires: readers may reverse others.
fn polygon() -> impl Strategy<Value = Polygon<f64>> {
    (-170.0..170.0f64, -80.0..80.0f64, 0.1..5.0f64, 0.1..5.0f64)
        .prop_map(|(x, y, w, h)| Polygon::new(vec![(x, y), (x + w, y), (x, y + h), (x, y)].into(), vec![]))
}

fn geometry() -> impl Strategy<Value = Geometry<f64>> {
    prop_oneof![
        degrees().prop_map(|c| Geometry::Point(Point(c))),
        line().prop_map(Geometry::LineString),
        polygon().prop_map(Geometry::Polygon),
        prop::collection::vec(degrees().prop_map(Point), 1..5).prop_map(|p| Geometry::MultiPoint(MultiPoint(p))),
        prop::collection::vec(line(), 1..4).prop_map(|l| Geometry::MultiLineString(MultiLineString(l))),
        prop::collection::vec(polygon(), 1..4).prop_map(|p| Geometry::MultiPolygon(MultiPolygon(p))),
    ]
}

/// Longitudes and latitudes, interleaved.
fn positions(shape: &Geometry<f64>) -> Vec<f64> {
    let of_line = |line: &LineString<f64>| line.0.iter().flat_map(|c| [c.x, c.y]).collect::<Vec<f64>>();
    match shape {
        Geometry::Point(p) => vec![p.x(), p.y()],
        Geometry::LineString(line) => of_line(line),
        Geometry::Polygon(polygon) => of_line(polygon.exterior()),
        Geometry::MultiPoint(points) => points.iter().flat_map(|p| [p.x(), p.y()]).collect(),
        Geometry::MultiLineString(lines) => lines.iter().flat_map(of_line).collect(),
        Geometry::MultiPolygon(polygons) => polygons.iter().flat_map(|p| of_line(p.exterior())).collect(),
        _ => Vec::new(),
    }
}

fn shape_of(shape: Option<Shape>) -> Option<Geometry<f64>> {
    shape.map(|shape| match shape {
        Shape::Point(c) => Geometry::Point(Point(c)),
        Shape::Other(geometry) => geometry,
    })
}

/// The same in the other byte order, with heights and in the extended form if requested.
fn rewritten(bytes: &[u8], ewkb: bool) -> Vec<u8> {
    let mut cursor = Cursor::new(bytes, Survey::default());
    let mut out = Vec::new();
    rewrite(&mut cursor, ewkb, &mut out);
    out
}

fn rewrite(cursor: &mut Cursor<'_>, ewkb: bool, out: &mut Vec<u8>) {
    let head = cursor.head().unwrap();
    out.push(0);
    out.extend((if ewkb { head.kind | 0x2000_0000 } else { head.kind }).to_be_bytes());
    if ewkb {
        out.extend(4326u32.to_be_bytes());
    }
    let line = |cursor: &mut Cursor<'_>, out: &mut Vec<u8>| {
        let count = cursor.count(head, 16).unwrap();
        out.extend((count as u32).to_be_bytes());
        for _ in 0..2 * count {
            out.extend(cursor.float(head.little).unwrap().to_be_bytes());
        }
    };
    match head.kind {
        1 => (0..2).for_each(|_| out.extend(cursor.float(head.little).unwrap().to_be_bytes())),
        2 => line(cursor, out),
        kind => {
            let count = cursor.count(head, 4).unwrap();
            out.extend((count as u32).to_be_bytes());
            (0..count).for_each(|_| if kind == 3 { line(cursor, out) } else { rewrite(cursor, ewkb, out) });
        }
    }
}

#[test]
fn types_that_are_not_stored_are_named_with_the_line_that_converts_them() {
    for (code, name, option) in [
        (8u32, "CircularString", "-nlt CONVERT_TO_LINEAR"),
        (1010, "CurvePolygon", "-nlt CONVERT_TO_LINEAR"),
        (12, "MultiSurface", "-nlt CONVERT_TO_LINEAR"),
        (0x8000_0010, "TIN", "-nlt MULTIPOLYGON"),
        (17, "Triangle", "-nlt CONVERT_TO_LINEAR"),
    ] {
        let bytes = [&[1][..], &code.to_le_bytes(), &[0; 4]].concat();
        let refusal = read(&bytes, &mut Survey::default()).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("a geometry {name} is not supported: ogr2ogr {option} ")), "{refusal}");
    }
    let unknown = read(&[1, 18, 0, 0, 0], &mut Survey::default()).unwrap_err().to_string();
    assert!(unknown.contains("unknown type"), "{unknown}");
}

#[test]
fn a_point_with_a_height_on_wgs_84_has_a_code_of_its_own() {
    let point = |srid: u32| {
        let position = [13f64, 52.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let bytes = [vec![1], 0x2000_0001u32.to_le_bytes().to_vec(), srid.to_le_bytes().to_vec(), position].concat();
        read(&bytes, &mut Survey::default()).is_ok()
    };
    assert!(point(4326) && point(4979) && !point(25832));
}

proptest! {
    #[test]
    fn every_form_of_binary_and_text_reads_back(shape in geometry(), ewkb: bool) {
        let bytes = to_wkb(&shape);
        let read = |bytes: &[u8]| read(bytes, &mut Survey::default()).map(shape_of);
        prop_assert_eq!(read(&bytes), Ok(Some(shape.clone())));
        prop_assert_eq!(read(&rewritten(&bytes, ewkb)), Ok(Some(shape.clone())));
        let mut text = Vec::new();
        write_wkt(&bytes, &mut text);
        let text = String::from_utf8(text).unwrap();
        prop_assert!(wkt::looks_like(&text), "{}", &text);
        for text in [text.clone(), text.to_lowercase(), format!("SRID=4326;{text}")] {
            let again = wkt::read(&text, &mut Survey::default()).map(shape_of);
            prop_assert_eq!(again, Ok(Some(shape.clone())), "{}", text);
        }
    }

    #[test]
    fn binary_as_geojson_has_the_same_positions(shape in geometry()) {
        let mut json = Vec::new();
        write_geojson(&to_wkb(&shape), &mut json);
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        fn flat(value: &serde_json::Value, out: &mut Vec<f64>) {
            match value {
                serde_json::Value::Array(items) => items.iter().for_each(|item| flat(item, out)),
                number => out.push(number.as_f64().unwrap()),
            }
        }
        let mut numbers = Vec::new();
        flat(&json["coordinates"], &mut numbers);
        prop_assert_eq!(numbers, positions(&shape));
    }

    #[test]
    fn damaged_shapes_are_read_or_refused(
        shape in geometry(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        text in "\\PC{0,20}",
    ) {
        let mut bytes = to_wkb(&shape);
        prop_assert!(read(&bytes[..cut.index(bytes.len())], &mut Survey::default()).is_err());
        let mut out = Vec::new();
        write_wkt(&bytes, &mut out);
        let mut letters = String::from_utf8(out).unwrap();
        letters.insert_str(cut.index(letters.len()), &text);
        let _ = (wkt::looks_like(&letters), wkt::read(&letters, &mut Survey::default()));
        for (at, put) in changes {
            let at = at.index(bytes.len());
            bytes[at] = put;
        }
        let _ = read(&bytes, &mut Survey::default());
        let mut out = Vec::new();
        write_geojson(&bytes, &mut out);
        let is_whole = out == b"null" || out.ends_with(b"}");
        prop_assert!(is_whole);
        write_wkt(&bytes, &mut out);
    }
}
