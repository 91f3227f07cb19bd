//! GeoJSON documents, sequences and lines, through the public API.

use meridian_formats::{
    BatchLimits, FeatureWriter, Format, OnError, ReadError, ReadOptions, Unknown, infer, infer_prefix, reader,
};
use meridian_model::{Batch, GeometryType, IdRole, Invalid, Schema, Seq, TimeRole};
use std::io::Cursor;
use std::sync::Arc;

fn inferred(format: Format, text: &str) -> Schema {
    infer(format, Box::new(Cursor::new(text.to_owned())), &ReadOptions::default()).unwrap().schema
}

fn read(format: Format, text: &str, schema: &Schema) -> Result<Batch, ReadError> {
    let schema = Arc::new(schema.clone());
    let mut events = reader(format, Box::new(Cursor::new(text.to_owned())), schema.clone(), &ReadOptions::default())?;
    let batch = events.next_batch(&BatchLimits::default())?;
    assert!(events.next_batch(&BatchLimits::default())?.is_none());
    Ok(batch.unwrap_or_else(|| Batch::empty(schema)))
}

const TWO: &str = r#"{"features":[
 {"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2.5]},
  "properties":{"time":"2026-01-31T12:00:00Z","name":"é \"x\"","n":1,"tags":["p","q"]}},
 {"properties":{"n":2.5,"time":"2026-01-31T13:00:00.5+01:00"},"geometry":{"coordinates":[-3,4],"type":"Point"},"id":7,"type":"Feature"}
 ],"type":"FeatureCollection","bbox":[0,0,1,1]}"#;

#[test]
fn a_collection_is_inferred_read_and_written_back() {
    let schema = inferred(Format::GeoJson, TWO);
    assert_eq!(schema.geometry, Some(GeometryType::Point));
    assert_eq!(schema.id, IdRole::Given);
    assert_eq!(schema.time, TimeRole::Instant(0));
    let batch = read(Format::GeoJson, TWO, &schema).unwrap();
    let writer = FeatureWriter::new(&schema, None).unwrap();
    let seqs = [Seq(1), Seq(2)];
    let mut out = Vec::new();
    let rows = writer.rows(&batch, &seqs);
    rows.feature(0, &mut out);
    out.push(b'\n');
    rows.feature(1, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2.5]},"properties":"#,
            r#"{"time":"2026-01-31T12:00:00Z","name":"é \"x\"","n":1.0,"tags":["p","q"]}}"#,
            "\n",
            r#"{"type":"Feature","id":"7","geometry":{"type":"Point","coordinates":[-3,4]},"properties":"#,
            r#"{"time":"2026-01-31T12:00:00.5Z","name":null,"n":2.5,"tags":null}}"#,
        )
    );
    assert_eq!(read(Format::NdJson, &text, &schema).unwrap().columns(), batch.columns());
    let sequence = format!("\u{1e}{}\n", text.replace('\n', "\n\u{1e}"));
    assert_eq!(read(Format::GeoJsonSeq, &sequence, &schema).unwrap().columns(), batch.columns());
    assert_eq!(read(Format::GeoJsonSeq, &text, &schema).unwrap().columns(), batch.columns());
}

#[test]
fn a_collection_with_two_lists_of_features_is_refused() {
    let schema = inferred(Format::GeoJson, TWO);
    let one = TWO.trim_end_matches('}');
    for text in [
        format!(r#"{one},"features":[]}}"#),
        format!(r#"{one},"featur\u0065s":null}}"#),
        TWO.replacen('{', r#"{"features":null,"#, 1),
        TWO.replacen('{', r#"{"features":[],"#, 1),
    ] {
        let why = read(Format::GeoJson, &text, &schema).unwrap_err().to_string();
        assert!(why.contains("two members named features"), "{text}: {why}");
    }
    let why = read(Format::GeoJson, &TWO.replacen('{', r#"{"type":5,"#, 1), &schema).unwrap_err().to_string();
    assert!(why.contains("type: expected a text"), "{why}");
    assert_eq!(read(Format::GeoJson, &TWO.replacen('{', r#"{"x":1,"x":2,"#, 1), &schema).unwrap().rows(), 2);
}

#[test]
fn an_array_is_read_as_its_elements_on_a_line_each() {
    let flat = [
        "{\"lon\":1,\"lat\":2.5,\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"a}, [b]\"}",
        "{ \"lon\": 3,\n  \"lat\": 4,\n  \"time\": \"2026-01-31T13:00:00Z\", \"name\": null }",
    ];
    let features = [
        r#"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2.5]},"properties":{"time":"2026-01-31T12:00:00Z"}}"#,
        r#"{"type":"Feature","id":"b","geometry":null,"properties":{"time":"2026-01-31T13:00:00Z"}}"#,
    ];
    for elements in [flat, features] {
        let array = format!("[\n{}\n]\n", elements.join(" ,\n"));
        let lines = elements.map(|element| element.replace('\n', " ")).join("\n");
        assert_eq!(Format::detect("", array.as_bytes()), Some(Format::GeoJson));
        let schema = inferred(Format::GeoJson, &array);
        assert_eq!(schema, inferred(Format::NdJson, &lines));
        assert!(schema.geometry == Some(GeometryType::Point) && schema.time != TimeRole::None, "{schema:?}");
        let batch = read(Format::GeoJson, &array, &schema).unwrap();
        assert_eq!(batch.rows(), 2);
        assert_eq!(batch.columns(), read(Format::NdJson, &lines, &schema).unwrap().columns());
        // Cut off after the first element, a sample gives the schema of that element.
        let first =
            infer_prefix(Format::GeoJson, &array.as_bytes()[..array.len() - 10], &ReadOptions::default()).unwrap();
        assert_eq!(first.schema.geometry, Some(GeometryType::Point));
    }
    let schema = inferred(Format::NdJson, flat[0]);
    let bad = format!("[{},{{\"lon\":\"x\"}},{}]", flat[0], flat[1]);
    let Err(ReadError::Invalid(mistakes)) = read(Format::GeoJson, &bad, &schema) else { panic!("expected mistakes") };
    let lines: Vec<_> = mistakes.iter().map(|m| (m.line, m.field.as_deref())).collect();
    assert_eq!(lines, [(Some(2), Some("lon"))]);
}

#[test]
fn a_geometry_of_a_flat_object_is_its_place_and_a_wrong_one_is_named_with_its_line() {
    let good = r#"{"n":1,"geom":{"type":"Point","coordinates":[4,45]}}"#;
    let schema = inferred(Format::NdJson, good);
    let batch = read(Format::NdJson, good, &schema).unwrap();
    assert_eq!(batch.geometry(0), Some(geo_types::Point::new(4.0, 45.0).into()));
    for (wrong, words) in [
        (r#"{"type":"Point"}"#, "the geometry has no coordinates"),
        (r#"{"type":"Circle","coordinates":[4,45]}"#, "is not a type of geometry"),
        (r#"{"type":"Point","coordinates":["4",45]}"#, "a number was expected"),
    ] {
        let text = format!("{good}\n{}\n", r#"{"n":2,"geom":WRONG}"#.replace("WRONG", wrong));
        let sampled = infer(Format::NdJson, Box::new(Cursor::new(text.clone())), &ReadOptions::default()).unwrap_err();
        for mistake in [sampled.to_string(), read(Format::NdJson, &text, &schema).unwrap_err().to_string()] {
            assert!(mistake.starts_with("line 2: geom: ") && mistake.contains(words), "{mistake}");
        }
    }
}

#[test]
fn mistakes_are_collected_or_stop_the_reading() {
    let schema = inferred(Format::GeoJson, TWO);
    let good = r#"{"type":"Feature","id":"a","geometry":null,"properties":{"time":"2026-01-31T12:00:00Z"}}"#;
    let bad = r#"{"type":"Feature","id":"a","geometry":null,"properties":{"time":"2026-01-31T12:00:00"}}"#;
    let text = format!("{good}\n{bad}\n{good}\n\n{bad}\n");
    let Err(ReadError::Invalid(mistakes)) = read(Format::NdJson, &text, &schema) else { panic!("expected mistakes") };
    let lines: Vec<_> = mistakes.iter().map(|m| (m.line, m.field.as_deref())).collect();
    assert_eq!(lines, [(Some(2), Some("time")), (Some(5), Some("time"))]);
    let options = ReadOptions { on_error: OnError::First, ..ReadOptions::default() };
    let mut events = reader(Format::NdJson, Box::new(Cursor::new(text)), Arc::new(schema), &options).unwrap();
    let one = BatchLimits { rows: 1, ..BatchLimits::default() };
    assert_eq!(events.next_batch(&one).unwrap().unwrap().rows(), 1);
    let error = events.next_batch(&one).unwrap_err();
    assert_eq!(error.first().and_then(|m: &Invalid| m.line), Some(2));
    assert!(events.next_batch(&one).unwrap().is_none());
}

#[test]
fn mistakes_in_a_sequence_are_counted_by_records_and_have_their_lines() {
    let good = r#"{"type":"Feature","geometry":null,"properties":{"n":1}}"#;
    let schema = inferred(Format::GeoJsonSeq, good);
    let tall = good.replace(',', ",\n");
    let (wrong, broken) = (tall.replace('1', "\"x\""), tall.replace('1', "?"));
    let separated = format!("\u{1e}{tall}\n\u{1e}\u{1e}\n{wrong}\n\u{1e}{broken}\n");
    // Without separators a record is a line.
    let lines = format!("{good}\n\n{}\n{}\n", good.replace('1', "\"x\""), good.replace('1', "?"));
    for (text, at) in
        [(separated, [(2, "(on line 5)"), (3, "(on line 10)")]), (lines, [(2, "(on line 3)"), (3, "(on line 4)")])]
    {
        let Err(ReadError::Invalid(mistakes)) = read(Format::GeoJsonSeq, &text, &schema) else { panic!("{text}") };
        let found: Vec<_> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(found, at.map(|(record, _)| Some(record)), "{text}");
        for (mistake, (_, line)) in mistakes.iter().zip(at) {
            assert!(mistake.detail.ends_with(line), "{mistake}");
        }
        let guess = infer(Format::GeoJsonSeq, Box::new(Cursor::new(text)), &ReadOptions::default());
        let error = guess.unwrap_err().to_string();
        assert!(error.contains(at[1].1), "{error}");
    }
}

#[test]
fn a_sample_cut_off_anywhere_gives_the_same_schema() {
    let feature = |i: usize| {
        format!(
            r#"{{"type":"Feature","id":"e{i}","geometry":{{"type":"Point","coordinates":[{i}.5,2]}},"properties":{{"time":"2026-01-31T12:00:0{i}Z","n":{i},"x":{i}.25}}}}"#
        )
    };
    let features: Vec<_> = (0..6).map(feature).collect();
    let rows: String = (0..6).map(|i| format!("e{i},{i}.5,2,2026-01-31T12:00:0{i}Z,{i},{i}.25\n")).collect();
    for (format, text, whole) in [
        (Format::NdJson, features.join("\n"), 2 * features[0].len() + 2),
        (Format::GeoJsonSeq, format!("\u{1e}{}", features.join("\n\u{1e}")), 2 * features[0].len() + 8),
        (
            Format::GeoJson,
            format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, features.join(",")),
            2 * features[0].len() + 60,
        ),
        (Format::Csv, format!("id,lon,lat,time,n,x\n{rows}"), 100),
    ] {
        let expected = inferred(format, &text);
        assert_eq!(expected.id, IdRole::Given);
        for cut in whole..text.len() {
            let found = infer_prefix(format, &text.as_bytes()[..cut], &ReadOptions::default()).unwrap().schema;
            assert_eq!(found, expected, "{format} cut at {cut}");
        }
    }
}

#[test]
fn a_property_that_an_option_names_is_the_id() {
    let features = [
        r#"{"type":"Feature","id":"x","geometry":null,"properties":{"mmsi":7,"n":1}}"#,
        r#"{"type":"Feature","id":"y","geometry":null,"properties":{"n":2,"mmsi":"8"}}"#,
    ];
    let text = format!("{{\"type\":\"FeatureCollection\",\"features\":[{}]}}", features.join(","));
    let options = ReadOptions { id: Some("mmsi".to_owned()), ..ReadOptions::default() };
    let schema = Arc::new(infer(Format::GeoJson, Box::new(Cursor::new(text.clone())), &options).unwrap().schema);
    assert_eq!((schema.id, schema.id_name.as_str()), (IdRole::Given, "mmsi"));
    assert_eq!(schema.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["n", "feature_id"]);
    let read_with = |text: &str, options: &ReadOptions| {
        reader(Format::GeoJson, Box::new(Cursor::new(text.to_owned())), schema.clone(), options)
            .and_then(|mut events| events.next_batch(&BatchLimits::default()))
            .map(Option::unwrap)
    };
    let batch = read_with(&text, &options).unwrap();
    let seqs = [Seq(1), Seq(2)];
    assert_eq!(batch.ids().unwrap().iter().flatten().collect::<Vec<_>>(), ["7", "8"]);
    let mut out = Vec::new();
    FeatureWriter::new(&schema, None).unwrap().rows(&batch, &seqs).feature(1, &mut out);
    let written = r#"{"type":"Feature","id":"8","geometry":null,"properties":{"n":2,"feature_id":"y"}}"#;
    assert_eq!(String::from_utf8_lossy(&out), written);
    // Written features have their id where GeoJSON has it, so that no option is needed.
    assert_eq!(read_with(written, &ReadOptions::default()).unwrap().ids().unwrap().value(0), "8");
    // Without an id of its own there is no second one to keep.
    let bare = features[0].replace("\"id\":\"x\",", "");
    assert_eq!(inferred_with(&bare, &options).fields.len(), 1);
    // A collection without the field does not lose such an id silently.
    let narrow = Arc::new(Schema { fields: schema.fields[..1].to_vec(), ..Schema::clone(&schema) });
    let read_narrow = |options: &ReadOptions| {
        let mut events = reader(Format::GeoJson, Box::new(Cursor::new(text.clone())), narrow.clone(), options).unwrap();
        let batch = events.next_batch(&BatchLimits::default());
        batch.map(|batch| (batch.unwrap().rows(), events.report().ids_dropped))
    };
    assert!(read_narrow(&options).unwrap_err().to_string().contains("feature_id"));
    assert_eq!(read_narrow(&ReadOptions { ids: Unknown::Ignore, ..options.clone() }).unwrap(), (2, 2));
}

#[test]
fn the_id_of_a_placemark_may_be_a_value_of_it() {
    let mark = |n: u32| {
        format!("<Placemark><ExtendedData><Data name=\"ref\"><value>r{n}</value></Data></ExtendedData></Placemark>")
    };
    let text = format!("<kml><Document>{}{}</Document></kml>", mark(1), mark(2));
    let options = ReadOptions { id: Some("ref".to_owned()), ..ReadOptions::default() };
    let schema = Arc::new(infer(Format::Kml, Box::new(Cursor::new(text.clone())), &options).unwrap().schema);
    let mut events = reader(Format::Kml, Box::new(Cursor::new(text)), schema, &options).unwrap();
    let batch = events.next_batch(&BatchLimits::default()).unwrap().unwrap();
    assert_eq!(batch.ids().unwrap().iter().flatten().collect::<Vec<_>>(), ["r1", "r2"]);
}

fn inferred_with(text: &str, options: &ReadOptions) -> Schema {
    infer(Format::GeoJson, Box::new(Cursor::new(text.to_owned())), options).unwrap().schema
}
