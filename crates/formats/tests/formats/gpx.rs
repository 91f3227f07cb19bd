//! GPX, element by element.

use crate::common::read_all;
use meridian_formats::{BatchLimits, Format, ReadOptions, infer, reader};
use meridian_model::FieldColumn;
use std::io::Cursor;
use std::sync::Arc;

const POINT: &str = r#"<gpx version="1.1"><metadata><desc>of the file</desc></metadata>
<wpt lat="1" lon="2"><ele>3</ele><magvar>4.5</magvar><geoidheight>-6.5</geoidheight><cmt>a comment</cmt><src>a source</src>
<link href="http://example.com"><text>a text</text><type>image/png</type></link>
<fix>3d</fix><sat>7</sat><hdop>1.5</hdop><vdop>2.5</vdop><pdop>3.5</pdop><ageofdgpsdata>8.5</ageofdgpsdata><dgpsid>9</dgpsid>
<extensions><a:Ext><a:atemp>21.5</a:atemp><a:hr>120</a:hr></a:Ext></extensions></wpt>
<trk><name>t</name><desc>of the track</desc><extensions><c>red</c></extensions></trk></gpx>"#;

#[test]
fn elements_of_the_standard_are_columns_and_others_are_named() {
    let bytes = POINT.as_bytes().to_vec();
    let inferred = infer(Format::Gpx, Box::new(Cursor::new(bytes.clone())), &ReadOptions::default()).unwrap();
    assert_eq!(
        inferred.notes.iter().filter(|note| note.contains("not read")).collect::<Vec<_>>(),
        ["elements that have no column and are not read: atemp, c of trk, desc of trk, link"]
    );
    let schema = Arc::new(inferred.schema);
    let batch = read_all(Format::Gpx, bytes, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    let value = |name: &str| match batch.field(schema.field_index(name).unwrap()).unwrap() {
        FieldColumn::Text(c) => c.iter().next().flatten().map(str::to_owned),
        FieldColumn::Int(c) => c.iter().next().flatten().map(|n| n.to_string()),
        FieldColumn::Float(c) => c.iter().next().flatten().map(|x| x.to_string()),
        _ => None,
    };
    for (name, expected) in [
        ("ele", "3"),
        ("magvar", "4.5"),
        ("geoidheight", "-6.5"),
        ("cmt", "a comment"),
        ("src", "a source"),
        ("fix", "3d"),
        ("sat", "7"),
        ("hdop", "1.5"),
        ("vdop", "2.5"),
        ("pdop", "3.5"),
        ("ageofdgpsdata", "8.5"),
        ("dgpsid", "9"),
        ("hr", "120"),
    ] {
        assert_eq!(value(name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(value("type"), None, "the type of a link is not the point's");
}

/// The sample for a schema ends long before the input may.
#[test]
fn elements_without_a_column_are_counted_to_the_end_of_the_input() {
    let mut text = String::from("<gpx version=\"1.1\"><trk><trkseg>");
    for n in 0..5_000 {
        text += "<trkpt lat=\"1\" lon=\"2\"><time>2026-01-01T00:00:00Z</time>";
        if n >= 3_000 {
            text += "<extensions><power>250</power><hr>120</hr></extensions>";
        }
        text += "</trkpt>";
    }
    text += "<trkpt lat=\"1\" lon=\"2\"><time>2026-01-01T00:00:00Z</time>";
    // More names than are kept.
    (0..100).for_each(|n| text += &format!("<own{n:02}>1</own{n:02}>"));
    text += "</trkpt></trkseg></trk></gpx>";
    let input = || Box::new(Cursor::new(text.clone().into_bytes()));
    let options = ReadOptions { sample_rows: 100, ..ReadOptions::default() };
    let inferred = infer(Format::Gpx, input(), &options).unwrap();
    assert!(!inferred.notes.iter().any(|note| note.contains("power")), "{:?}", inferred.notes);
    let mut events = reader(Format::Gpx, input(), Arc::new(inferred.schema), &options).unwrap();
    let mut rows = 0;
    while let Some(batch) = events.next_batch(&BatchLimits::default()).unwrap() {
        rows += batch.rows();
    }
    assert_eq!(rows, 5_001);
    let unread = events.report().unread;
    assert_eq!((unread.named["power"], unread.named["own00"]), (2_000, 1));
    assert!(!unread.named.contains_key("hr"), "it has a column");
    assert_eq!((unread.named.len(), unread.others), (40, 61));
}

#[test]
fn names_of_elements_give_a_terminal_no_commands() {
    let point = "<trkpt lat=\"1\" lon=\"2\"><a\u{1b}[2Jb>1</a\u{1b}[2Jb><c>1</c></trkpt>";
    let text = format!("<gpx version=\"1.1\"><trk><trkseg>{point}{point}</trkseg></trk></gpx>");
    let input = || Box::new(Cursor::new(text.clone().into_bytes()));
    let inferred = infer(Format::Gpx, input(), &ReadOptions::default()).unwrap();
    let mut events = reader(Format::Gpx, input(), Arc::new(inferred.schema), &ReadOptions::default()).unwrap();
    while events.next_batch(&BatchLimits::default()).unwrap().is_some() {}
    let mut report = events.report();
    // Once more for another file of the same load.
    report.add(events.report());
    let named: Vec<(&str, u64)> = report.unread.named.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(named, [("a\\u{1b}[2Jb", 4), ("c", 4)]);
    assert!(!inferred.notes.iter().any(|note| note.contains('\u{1b}')), "{:?}", inferred.notes);
}
