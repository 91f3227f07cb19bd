//! Values of KML placemarks and tracks.

use crate::common::shown::value;
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, infer, reader};
use meridian_model::Batch;
use std::io::Cursor;

/// Reads a document of these elements with the schema that it suggests.
fn read(elements: &str) -> Result<Batch, ReadError> {
    let text = format!("<kml xmlns:gx=\"http://www.google.com/kml/ext/2.2\"><Document>{elements}</Document></kml>");
    read_bytes(text.as_bytes())
}

fn read_bytes(document: &[u8]) -> Result<Batch, ReadError> {
    let options = ReadOptions::default();
    let input = || Box::new(Cursor::new(document.to_vec()));
    let schema = infer(Format::Kml, input(), &options)?.schema;
    let mut events = reader(Format::Kml, input(), schema.into(), &options)?;
    Ok(events.next_batch(&BatchLimits::default())?.unwrap())
}

const POINT: &str = "<Point><coordinates>13,52</coordinates></Point>";

#[test]
fn the_time_of_a_view_is_none_of_its_placemark() {
    let view = |name: &str, when: &str| format!("<{name}><gx:TimeStamp><when>{when}</when></gx:TimeStamp></{name}>");
    let stamp = "<TimeStamp><when>1970-01-01T00:00:01Z</when></TimeStamp>";
    for name in ["LookAt", "Camera"] {
        let view = view(name, "2011-03-11T00:00:00Z");
        let batch = read(&format!("<Placemark>{view}{stamp}{POINT}</Placemark>")).unwrap();
        assert_eq!(value(&batch, "time", 0), "1000000", "{name}");
        let batch = read(&format!("<Placemark><name>a</name>{view}{POINT}</Placemark>")).unwrap();
        assert_eq!(value(&batch, "time", 0), "no such field", "{name}");
    }
}

#[test]
fn positions_of_a_track_have_the_values_beside_them() {
    let schema = "<Schema id=\"s\"><gx:SimpleArrayField name=\"hr\" type=\"int\"/></Schema>";
    let places = "<when>1970-01-01T00:00:01Z</when><when>1970-01-01T00:00:02Z</when>\
                  <gx:coord>13 52 0</gx:coord><gx:coord>13 53 0</gx:coord>";
    let track = |values: &str| {
        let array = format!("<gx:SimpleArrayData name=\"hr\">{values}</gx:SimpleArrayData>");
        let beside = format!("<ExtendedData><SchemaData schemaUrl=\"#s\">{array}</SchemaData></ExtendedData>");
        format!("{schema}<Placemark><name>run</name><gx:Track>{places}{beside}</gx:Track></Placemark>")
    };
    let batch = read(&track("<gx:value>86</gx:value><gx:value>103</gx:value>")).unwrap();
    assert_eq!(batch.rows(), 2);
    for (row, at, rate) in [(0, "1000000", "86"), (1, "2000000", "103")] {
        assert_eq!([value(&batch, "time", row), value(&batch, "hr", row)], [at, rate]);
    }
    let batch = read(&track("<gx:value></gx:value><gx:value>103</gx:value>")).unwrap();
    assert_eq!([value(&batch, "hr", 0), value(&batch, "hr", 1)], ["null", "103"]);
    let refusal = read(&track("<gx:value>86</gx:value>")).unwrap_err().to_string();
    assert!(refusal.contains("hr") && refusal.contains("2 times and 1 values"), "{refusal}");
    assert_eq!(read(&track("")).unwrap().rows(), 2);
}

#[test]
fn texts_are_read_in_the_encoding_that_is_declared_or_marked() {
    // Longer than what is decoded at a time.
    let name = "é".repeat(50_000);
    let document =
        |declaration: &str| format!("{declaration}<kml><Placemark><name>{name}</name>{POINT}</Placemark></kml>");
    let latin1 = |text: &str| text.chars().map(|sign| sign as u8).collect::<Vec<u8>>();
    let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let declared = document("<?xml version=\"1.0\" encoding = 'ISO-8859-1'?>");
    let marked = document("\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?>");
    for bytes in [
        marked.clone().into_bytes(),
        document("<?xml version=\"1.0\" encoding=\"UTF-16\"?>").into_bytes(),
        latin1(&declared),
        utf16(&marked, u16::to_le_bytes),
        utf16(&marked, u16::to_be_bytes),
        utf16(&document(""), u16::to_le_bytes),
        utf16(&document("<?xml version=\"1.0\"?>"), u16::to_le_bytes),
        utf16(&document("<?xml version=\"1.0\"?>"), u16::to_be_bytes),
    ] {
        let batch = read_bytes(&bytes).unwrap_or_else(|e| panic!("{:x?}: {e}", &bytes[..40]));
        assert!(value(&batch, "name", 0).contains(&name), "{:x?}", &bytes[..40]);
    }
    // With a byte order mark and without, the content tells the format, as in UTF-8.
    for document in [marked.clone(), document("<?xml version=\"1.0\"?>"), document("")] {
        for (text, format) in [(document.clone(), Format::Kml), (document.replace("kml>", "gpx>"), Format::Gpx)] {
            for bytes in [utf16(&text, u16::to_le_bytes), utf16(&text, u16::to_be_bytes)] {
                assert_eq!((Format::foreign("a", &bytes), Format::detect("a", &bytes)), (None, Some(format)));
            }
        }
    }
    for (bytes, said) in [
        (latin1(&document("")), "is not UTF-8"),
        (latin1(&declared.replace("ISO-8859-1", "EBCDIC-CP-BE")), "the encoding \"EBCDIC-CP-BE\" is not read"),
        (utf16(&marked, u16::to_le_bytes)[..99].to_vec(), "the text is not UTF-16LE"),
    ] {
        let refusal = read_bytes(&bytes).unwrap_err().to_string();
        assert!(refusal.contains(said), "{said}: {refusal}");
    }
}

#[test]
fn places_and_times_that_are_not_taken_are_counted() {
    let span = "<TimeSpan><begin>2011-03-11</begin></TimeSpan>";
    let view = "<LookAt><gx:TimeStamp><when>2011-03-11</when></gx:TimeStamp></LookAt>";
    let model = "<Model><Link><href>b.dae</href></Link></Model>";
    let overlays = "<GroundOverlay><TimeSpan/></GroundOverlay><ScreenOverlay/><ScreenOverlay/>";
    let text = format!(
        "<kml><Document>{overlays}<Folder>{span}{view}<Placemark><name>a</name>{span}{POINT}</Placemark>\
         <Placemark><name>b</name>{span}{model}</Placemark></Folder></Document></kml>"
    );
    let options = ReadOptions::default();
    let schema = infer(Format::Kml, Box::new(Cursor::new(text.clone())), &options).unwrap().schema;
    let mut events = reader(Format::Kml, Box::new(Cursor::new(text)), schema.into(), &options).unwrap();
    assert_eq!(events.next_batch(&BatchLimits::default()).unwrap().unwrap().rows(), 2);
    let named: Vec<(String, u64)> = events.report().unread.named.into_iter().collect();
    let expected = [("GroundOverlay", 1), ("Model", 1), ("ScreenOverlay", 2), ("TimeSpan of Folder", 1)];
    assert_eq!(named, expected.map(|(name, elements)| (name.to_owned(), elements)));
}
