//! Compares files that other programs wrote with what those programs say of them. The files are GPX, KML, AIS messages
//! that pyais decodes, and feeds that Google's bindings decode.

use crate::common::shown::value;
use crate::common::{self, read_all};
use meridian_formats::{BatchLimits, Format, OnError, ReadOptions, infer};
use meridian_model::{FieldType, TimeRole};
use serde_json::Value as Json;
use std::io::Cursor;
use std::sync::Arc;

#[test]
fn the_points_of_gpx_are_events_in_order() {
    let track = include_bytes!("../../../../fuzz/corpus/gpx/track").to_vec();
    let schema =
        Arc::new(infer(Format::Gpx, Box::new(Cursor::new(track.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::Gpx, track, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    let seen: Vec<String> = (0..batch.rows())
        .map(|row| {
            let at: geo_types::Point<f64> = batch.geometry(row).unwrap().try_into().unwrap();
            let values: Vec<String> = ["kind", "track", "segment", "time", "ele", "hr", "name"]
                .iter()
                .map(|n| value(&batch, n, row))
                .collect();
            format!("{} {} {}", at.x(), at.y(), values.join(" "))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "13.4 52.5 \"trkpt\" \"Morning & run\" 1 1767261600000000 34.5 120 null",
            "13.5 52.6 \"trkpt\" \"Morning & run\" 1 1767261605250000 null null null",
            "13.6 52.7 \"trkpt\" \"Morning & run\" 2 null null null null",
            "2 1 \"rtept\" \"2\" null null null null \"a <b>\"",
        ]
    );
}

#[test]
fn waypoints_of_ogr2ogr_come_back() {
    let points = include_bytes!("../../../../fuzz/corpus/gpx/waypoints").to_vec();
    let schema =
        Arc::new(infer(Format::Gpx, Box::new(Cursor::new(points.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::Gpx, points, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    assert_eq!(batch.rows(), 3);
    assert_eq!(batch.geometry(1), Some(common::point(-20.25, -7.25)));
    assert_eq!((value(&batch, "name", 0), value(&batch, "kind", 0)), ("\"Zürich\"".to_owned(), "\"wpt\"".to_owned()));
    assert_eq!(schema.time, TimeRole::Instant(schema.field_index("time").unwrap()));
}

#[test]
fn kml_has_tracks_times_and_fields_with_their_types() {
    let text = include_bytes!("../../../../fuzz/corpus/kml/track").to_vec();
    let packed = include_bytes!("../../../../fuzz/corpus/kml/kmz").to_vec();
    for bytes in [text, packed] {
        let schema =
            Arc::new(infer(Format::Kml, Box::new(Cursor::new(bytes.clone())), &ReadOptions::default()).unwrap().schema);
        let batch = read_all(Format::Kml, bytes, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
        assert_eq!(batch.rows(), 4);
        assert_eq!(batch.geometry(1), Some(common::point(13.5, 52.6)));
        assert_eq!(batch.geometry(2), Some(common::multi_point(&[(1.0, 2.0), (3.0, 4.0)])));
        let kind = |name: &str| schema.fields[schema.field_index(name).unwrap()].kind;
        assert_eq!((kind("n"), kind("x"), kind("note")), (FieldType::Int, FieldType::Float, FieldType::Text));
        assert_eq!((value(&batch, "n", 2), value(&batch, "folder", 0)), ("7".to_owned(), "\"Ships\"".to_owned()));
        assert_eq!(
            (value(&batch, "name", 2), value(&batch, "name", 0)),
            ("\"A & B\"".to_owned(), "\"Anna\"".to_owned())
        );
        assert_eq!(
            (value(&batch, "time", 1), value(&batch, "begin", 3)),
            ("\"2026-01-01T10:05:00Z\"".to_owned(), "\"2025-01-01\"".to_owned())
        );
    }
}

#[test]
fn a_bad_placemark_is_left_out_and_the_next_ones_are_read() {
    let points = |middle: &str| {
        let mark = |at: &str| format!("<Placemark><name>{at}</name>{middle}</Placemark>").replace("AT", at);
        format!("<kml><Document>{}{}{}</Document></kml>", mark("1,2"), mark("1x,\n2"), mark("3,4")).into_bytes()
    };
    let text = points("<Point><coordinates>AT</coordinates></Point>");
    let skip = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
    let schema = Arc::new(infer(Format::Kml, Box::new(Cursor::new(text.clone())), &skip).unwrap().schema);
    let batch = read_all(Format::Kml, text.clone(), &schema, &skip, &BatchLimits::default()).unwrap();
    let names: Vec<String> = (0..batch.rows()).map(|row| value(&batch, "name", row)).collect();
    assert_eq!(names, ["\"1,2\"", "\"3,4\""]);
    let refusal = read_all(Format::Kml, text, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "line 2: coordinates: \"1x,\" where lon,lat was expected");
}

#[test]
fn ships_are_what_pyais_decodes() {
    let log = include_bytes!("files/ais.nmea").to_vec();
    let expected: Vec<Json> = serde_json::from_str(include_str!("files/ais.json")).unwrap();
    let schema =
        Arc::new(infer(Format::Nmea, Box::new(Cursor::new(log.clone())), &ReadOptions::default()).unwrap().schema);
    let time = TimeRole::Instant(schema.field_index("time").unwrap());
    assert_eq!(schema.time, time);
    let batch = read_all(Format::Nmea, log, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    // The last one is the receiver's own.
    assert_eq!(batch.rows(), expected.len() + 1);
    for (row, message) in expected.iter().enumerate() {
        let kind = message["msg_type"].as_i64().unwrap();
        let got = |name: &str| value(&batch, name, row);
        assert_eq!(got("message"), format!("{:?}", kind.to_string()), "{message}");
        assert_eq!(got("mmsi"), message["mmsi"].to_string());
        assert_eq!(got("time"), (message["_t"].as_i64().unwrap() * 1_000_000).to_string(), "{message}");
        let place = batch.geometry(row).map(|shape| geo_types::Point::<f64>::try_from(shape).unwrap());
        match (message["lon"].as_f64(), place) {
            (Some(lon), Some(at)) => {
                let lat = message["lat"].as_f64().unwrap();
                assert!((at.x() - lon).abs() < 1e-4 && (at.y() - lat).abs() < 1e-4, "{message}: {at:?}");
            }
            (None, None) => {}
            (_, place) => panic!("{message}: {place:?}"),
        }
        for (name, key) in [("speed", "speed"), ("course", "course"), ("heading", "heading"), ("draught", "draught")] {
            if let Some(number) = message[key].as_f64() {
                assert_eq!(got(name).parse::<f64>().ok(), Some(number), "{name} of {message}");
            }
        }
        for (name, key) in
            [("name", "shipname"), ("name", "name"), ("callsign", "callsign"), ("destination", "destination")]
        {
            if let Some(text) = message[key].as_str().filter(|text| !text.is_empty()) {
                assert_eq!(got(name), format!("{text:?}"), "{message}");
            }
        }
    }
    let own = expected.len();
    assert_eq!(value(&batch, "time", own), "905674716000000");
    assert_eq!(
        (value(&batch, "altitude", own), value(&batch, "satellites", own)),
        ("545.4".to_owned(), "8".to_owned())
    );
    let at: geo_types::Point<f64> = batch.geometry(own).unwrap().try_into().unwrap();
    assert!((at.y() + 37.860_833_333).abs() < 1e-8 && (at.x() - 145.122_666_667).abs() < 1e-8, "{at:?}");
}

#[test]
fn a_wrong_checksum_is_an_error_of_its_line() {
    let log = b"!AIVDM,1,1,,A,139>Jh0P3g39JAPGQA2==rJ1P000,0*68\r\n!AIVDM,1,1,,A,139>Jh0P3g39JAPGQA2==rJ1P000,0*69\r\n"
        .to_vec();
    let schema = Arc::new(
        infer(Format::Nmea, Box::new(Cursor::new(log[..45].to_vec())), &ReadOptions::default()).unwrap().schema,
    );
    let mistake = read_all(Format::Nmea, log, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap_err();
    assert_eq!(mistake.to_string(), "line 2: the checksum is 69: expected 68");
}

#[test]
fn vehicles_are_what_the_feed_says() {
    let feed = include_bytes!("files/vehicles.pb").to_vec();
    let schema =
        Arc::new(infer(Format::GtfsRt, Box::new(Cursor::new(feed.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::GtfsRt, feed, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    // Of five entities, one is a trip update and one is deleted.
    assert_eq!(batch.rows(), 3);
    assert_eq!(batch.geometry(0), Some(common::point(-13.25, 52.1)));
    let got: Vec<String> = [
        "entity",
        "time",
        "trip",
        "route",
        "direction",
        "start_date",
        "start_time",
        "bearing",
        "odometer",
        "speed",
        "stop",
        "stop_sequence",
        "status",
        "congestion",
        "occupancy",
        "vehicle",
        "label",
        "license_plate",
    ]
    .iter()
    .map(|name| value(&batch, name, 0).replace('"', ""))
    .collect();
    assert_eq!(
        got,
        [
            "e0",
            "1767225000000000",
            "trip 1",
            "U2",
            "1",
            "20260101",
            "25:10:00",
            "90.5",
            "1234.5",
            "12.25",
            "s1",
            "3",
            "STOPPED_AT",
            "STOP_AND_GO",
            "FULL",
            "v1",
            "Bus 1",
            "B-XY 1",
        ]
    );
    // A position without a time of its own has that of the feed.
    assert_eq!(value(&batch, "time", 2), "1767225600000000");
}
