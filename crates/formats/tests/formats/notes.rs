//! Unused interpretations of a sample are reported with the option that enables them; and the option does enable them.

use crate::common::read_all;
use meridian_formats::{BatchLimits, DateFormat, Epoch, Format, Inference, OnError, ReadOptions, infer};
use meridian_model::{FieldColumn, FieldType, GeometryType, TimeRole};
use std::io::Cursor;
use std::sync::Arc;

fn guess(format: Format, text: &str, options: &ReadOptions) -> Inference {
    infer(format, Box::new(Cursor::new(text.as_bytes().to_vec())), options).unwrap()
}

/// Builds a table of this many rows, whose values `row` returns.
fn table(header: &str, rows: usize, row: impl Fn(usize) -> String) -> String {
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("{header}\n{}\n", rows.join("\n"))
}

/// Start of the note on events without place and time.
const NOWHERE: &str = "no column is taken as the place or the time";

/// Returns the notes on the columns of a table.
fn notes_of(text: &str, options: &ReadOptions) -> Vec<String> {
    let notes = guess(Format::Csv, text, options).notes;
    notes.into_iter().filter(|note| !note.starts_with(NOWHERE)).collect()
}

/// Asserts that the columns of a table have a single note, which contains each of these parts.
fn noted(text: &str, options: &ReadOptions, words: &[&str]) {
    let notes = notes_of(text, options);
    assert_eq!(notes.len(), 1, "{notes:?}");
    for word in words {
        assert!(notes[0].contains(word), "{word}: {}", notes[0]);
    }
}

fn skip() -> ReadOptions {
    ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() }
}

fn kind(guess: &Inference, name: &str) -> FieldType {
    guess.schema.fields[guess.schema.field_index(name).unwrap()].kind
}

#[test]
fn a_bad_cell_does_not_take_the_place_away_in_silence() {
    for at in [0, 1500] {
        let lon = |i: usize| if i == at { "n/a".to_owned() } else { format!("13.{i}") };
        let text = table("name,lon,lat", 2000, |i| format!("a{i},{},52.5", lon(i)));
        let words = ["lon: 1 of 2000 values is no number", "\"n/a\"", "--lon lon --lat lat --invalid skip"];
        noted(&text, &ReadOptions::default(), &words);
        // Both the named option and leaving invalid events out enable them.
        let named = ReadOptions { lon: Some("lon".into()), lat: Some("lat".into()), ..skip() };
        for options in [named, skip()] {
            let guess = guess(Format::Csv, &text, &options);
            assert_eq!((guess.schema.geometry, guess.notes), (Some(GeometryType::Point), Vec::new()));
            let schema = Arc::new(guess.schema);
            let read = read_all(Format::Csv, text.clone().into_bytes(), &schema, &options, &BatchLimits::default());
            assert_eq!(read.unwrap().rows(), 1999);
        }
    }
    // A column with many texts is not a coordinate.
    let text = table("lon,lat", 20, |i| if i < 3 { "n/a,1.5".to_owned() } else { "2.5,1.5".to_owned() });
    assert_eq!(guess(Format::Csv, &text, &skip()).schema.geometry, None);
    assert_eq!(notes_of(&text, &skip()), Vec::<String>::new());
    let text = table("geom", 20, |i| if i == 3 { "none".to_owned() } else { "\"POINT (1 2)\"".to_owned() });
    noted(&text, &ReadOptions::default(), &["1 of 20 values is no geometry", "--geometry geom --invalid skip"]);
    assert_eq!(guess(Format::Csv, &text, &skip()).schema.geometry, Some(GeometryType::Point));
}

#[test]
fn a_bad_cell_does_not_take_the_time_away_in_silence() {
    for at in [0, 1500] {
        let time = |i: usize| if i == at { "unknown" } else { "2026-01-31T12:00:00Z" };
        let text = table("n,time", 2000, |i| format!("{i},{}", time(i)));
        let words = ["1 of 2000 events has no time in it, such as \"unknown\"", "--time time --invalid skip"];
        noted(&text, &ReadOptions::default(), &words);
        for options in [ReadOptions { time: Some("time".into()), ..skip() }, skip()] {
            let guess = guess(Format::Csv, &text, &options);
            assert_eq!(guess.schema.time, TimeRole::Instant(1));
            assert_eq!((kind(&guess, "time"), guess.notes), (FieldType::Time, Vec::new()));
            let schema = Arc::new(guess.schema);
            let read = read_all(Format::Csv, text.clone().into_bytes(), &schema, &options, &BatchLimits::default());
            assert_eq!(read.unwrap().rows(), 1999);
        }
    }
    // A column without a mistake takes precedence over one with a few.
    let text = table("time,timestamp", 20, |i| {
        format!("{},2026-01-31T12:00:00Z", if i == 3 { "unknown" } else { "2026-01-31T12:00:00Z" })
    });
    assert_eq!(guess(Format::Csv, &text, &skip()).schema.time, TimeRole::Instant(1));
    let days = table("date", 20, |i| if i == 3 { "unknown".to_owned() } else { format!("2026-01-{}", i + 10) });
    noted(&days, &ReadOptions::default(), &["--time date --invalid skip"]);
    assert_eq!(kind(&guess(Format::Csv, &days, &skip()), "date"), FieldType::Date);
}

#[test]
fn a_time_of_kml_or_json_that_is_none_is_said() {
    let mark = |i: usize| {
        let time = if i == 7 { "soon".to_owned() } else { format!("2026-01-{}T00:00:00Z", i + 10) };
        format!(
            "<Placemark><TimeStamp><when>{time}</when></TimeStamp><Point><coordinates>1,2</coordinates></Point></Placemark>"
        )
    };
    let kml = format!("<kml><Document>{}</Document></kml>", (0..20).map(mark).collect::<String>());
    let notes = guess(Format::Kml, &kml, &ReadOptions::default()).notes;
    assert!(notes.len() == 1 && notes[0].contains("\"soon\"") && notes[0].contains("--time time"), "{notes:?}");
    assert!(matches!(guess(Format::Kml, &kml, &skip()).schema.time, TimeRole::Instant(_)));
    let row = |i: usize| format!("{{\"lon\":{},\"lat\":1.5}}\n", if i == 7 { "\"-\"" } else { "2.5" });
    let json: String = (0..20).map(row).collect();
    let notes = guess(Format::NdJson, &json, &ReadOptions::default()).notes;
    assert!(notes.len() == 1 && notes[0].contains("--lon lon --lat lat --invalid skip"), "{notes:?}");
    assert_eq!(guess(Format::NdJson, &json, &skip()).schema.geometry, Some(GeometryType::Point));
}

#[test]
fn few_texts_among_numbers_and_times_are_counted_with_the_option_that_reads_the_others() {
    let plain = ReadOptions::default();
    let mag = table("name,mag", 20, |i| format!("a{i},{}", if i == 4 { "it's none" } else { "1.5" }));
    noted(&mag, &plain, &["column mag: 1 of 20 values is no number", r"--null='it'\''s none'"]);
    let nulls = ReadOptions { nulls: vec!["it's none".into()], ..ReadOptions::default() };
    assert_eq!(kind(&guess(Format::Csv, &mag, &nulls), "mag"), FieldType::Float);
    // Two words, and a word in quotes, cannot be handled by one option.
    let words = ["none", "-"];
    let mag = table("name,mag", 20, |i| format!("a{i},{}", words.get(i).unwrap_or(&"1.5")));
    noted(&mag, &plain, &["2 of 20 values are no numbers", "--schema"]);
    let mag = table("name,mag", 20, |i| format!("a{i},{}", if i == 4 { "\"none\"" } else { "1.5" }));
    noted(&mag, &plain, &["--schema"]);
    // Events are not left out for a field that is neither the place nor the time.
    assert_eq!(kind(&guess(Format::Csv, &mag, &skip()), "mag"), FieldType::Text);
    // Codes are not mistaken numbers.
    let house = table("house", 20, |i| format!("{i}{}", if i == 4 { "a" } else { "" }));
    assert_eq!(notes_of(&house, &plain), Vec::<String>::new());
    let seen = table("time,seen", 20, |i| {
        format!("2026-01-31T12:00:00Z,{}", if i == 4 { "never" } else { "2026-01-31T12:00:00Z" })
    });
    noted(&seen, &plain, &["column seen: 1 of 20 values is no time", "--null='never'"]);
    let epoch = table("time", 20, |i| if i == 4 { "unknown".to_owned() } else { (1_767_225_600 + i).to_string() });
    noted(&epoch, &plain, &["--epoch s --time time --invalid skip", "\"unknown\""]);
    let options = ReadOptions { epoch: Some(Epoch::Seconds), time: Some("time".into()), ..skip() };
    assert_eq!(kind(&guess(Format::Csv, &epoch, &options), "time"), FieldType::Time);
}

#[test]
fn times_in_other_forms_are_known_beside_a_few_texts() {
    let when =
        table("when", 40, |i| if i == 4 { "unknown".to_owned() } else { format!("{}.01.2026 12:05", i % 20 + 10) });
    let words = [
        "but not 1 of 40 texts looked at: \"unknown\"",
        "--date-format '%d.%m.%Y %H:%M' and --zone with --invalid skip",
    ];
    noted(&when, &ReadOptions::default(), &words);
    let options = ReadOptions { date_format: Some(DateFormat::new("%d.%m.%Y %H:%M").unwrap()), ..skip() };
    assert_eq!(guess(Format::Csv, &when, &options).schema.time, TimeRole::Instant(0));
}

#[test]
fn numbers_with_separators_and_projected_positions_are_said() {
    let plain = ReadOptions::default();
    let comma = ReadOptions { decimal_comma: true, ..ReadOptions::default() };
    let depth = "depth;n\n1.234,56;1\n12,5;2\n";
    noted(depth, &comma, &["column depth", "separators of thousands such as 1.234,56"]);
    noted(depth, &plain, &["separators of thousands such as 1.234,56"]);
    // Integers among numbers with a comma.
    noted("depth;n\n4;1\n12,5;2\n", &plain, &["--decimal-comma"]);
    noted("depth;n\n12,5;2\n4;1\n", &plain, &["--decimal-comma"]);
    // What the option reads is said, and read: the guessed schema takes each value.
    let bare = "depth;n\n,5;1\n4,;2\n-,5;3\n";
    noted(bare, &plain, &["numbers with a decimal comma such as ,5, kept as text: --decimal-comma reads them"]);
    let guessed = guess(Format::Csv, bare, &comma);
    assert_eq!(kind(&guessed, "depth"), FieldType::Float);
    let schema = Arc::new(guessed.schema);
    let read = read_all(Format::Csv, bare.as_bytes().to_vec(), &schema, &comma, &BatchLimits::default()).unwrap();
    let Some(FieldColumn::Float(depths)) = read.field(0) else { panic!("{:?}", schema.fields) };
    assert_eq!(depths.iter().flatten().collect::<Vec<_>>(), [0.5, 4.0, -0.5]);
    let text = "easting,northing\n392000.5,5820000\n392001.5,5820001\n";
    noted(text, &plain, &["projected", "X_POSSIBLE_NAMES=easting -oo Y_POSSIBLE_NAMES=northing"]);
    // GDAL makes places of the columns of text tables only.
    let notes = guess(Format::NdJson, r#"{"easting":392000.5,"northing":5820000}"#, &plain).notes;
    assert!(notes.iter().any(|note| note.contains("positions of a projected system")), "{notes:?}");
    assert!(notes.iter().all(|note| !note.contains("ogr2ogr")), "{notes:?}");
}

#[test]
fn the_times_of_gdal_are_known_and_read() {
    let plain = ReadOptions::default();
    for (zone, pattern) in [("+00", "%Y/%m/%d %H:%M:%S%z"), ("+0530", "%Y/%m/%d %H:%M:%S%z"), ("", "%Y/%m/%d %H:%M:%S")]
    {
        let text = table("time,lon,lat", 20, |i| format!("1984/09/{} 00:00:00{zone},1.5,2.5", i + 10));
        let reads = if zone.is_empty() { " and --zone reads them" } else { " reads them" };
        noted(&text, &plain, &[&format!("--date-format '{pattern}'{reads}")]);
        let options = ReadOptions {
            date_format: Some(DateFormat::new(pattern).unwrap()),
            zone: Some(meridian_model::time::zone("UTC").unwrap()),
            ..ReadOptions::default()
        };
        let guess = guess(Format::Csv, &text, &options);
        assert_eq!((guess.schema.time, guess.notes), (TimeRole::Instant(0), Vec::new()));
        let schema = Arc::new(guess.schema);
        let read = read_all(Format::Csv, text.clone().into_bytes(), &schema, &options, &BatchLimits::default());
        assert_eq!(read.unwrap().rows(), 20);
    }
}

#[test]
fn a_time_with_an_unusual_name_is_said_with_the_option_that_names_it() {
    let plain = ReadOptions::default();
    let days = table("lon,lat,datum", 20, |i| format!("1.5,2.5,2026-01-{}", i + 10));
    noted(&days, &plain, &["column datum: dates, kept as text: --time datum takes them as the time"]);
    let named = |name: &str| ReadOptions { time: Some(name.into()), ..ReadOptions::default() };
    let guessed = guess(Format::Csv, &days, &named("datum"));
    assert_eq!((guessed.schema.time, kind(&guessed, "datum")), (TimeRole::Instant(0), FieldType::Date));
    let local = table("lon,lat,am um", 20, |i| format!("1.5,2.5,2026-01-{} 12:00", i + 10));
    noted(&local, &plain, &["--time 'am um' and --zone UTC"]);
    let dotted = table("lon,lat,datum", 20, |i| format!("1.5,2.5,{}.01.2026", i + 10));
    noted(&dotted, &plain, &["--date-format '%d.%m.%Y' and --time datum reads them"]);
    // Events that have a time keep their other days as fields.
    let both = table("time,datum", 20, |i| format!("2026-01-31T12:00:00Z,2026-01-{}", i + 10));
    noted(&both, &plain, &["a schema with the format date keeps them as days"]);
    // The option would be refused for a column that some events lack.
    let some = table("lon,lat,datum", 20, |i| {
        format!("1.5,2.5,{}", if i < 5 { String::new() } else { format!("{}.01.2026", i + 10) })
    });
    noted(&some, &plain, &["--date-format '%d.%m.%Y' reads them"]);
}

#[test]
fn events_without_place_and_time_are_said() {
    let notes = guess(Format::Csv, "name,size\na,1\nb,2\n", &ReadOptions::default()).notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    for word in [NOWHERE, "--lon and --lat", "--geometry", "--time"] {
        assert!(notes[0].contains(word), "{word}: {}", notes[0]);
    }
    let feature = r#"{"type":"Feature","geometry":null,"properties":{"lat":1,"lon":2}}"#;
    let notes = guess(Format::GeoJson, feature, &ReadOptions::default()).notes;
    assert!(notes.len() == 1 && notes[0].contains("--time") && !notes[0].contains("--lon"), "{notes:?}");
    // A place or a time is enough.
    for text in ["lon,lat\n1.5,2.5\n", "time,n\n2026-01-31T12:00:00Z,1\n"] {
        assert_eq!(guess(Format::Csv, text, &ReadOptions::default()).notes, Vec::<String>::new());
    }
}

#[test]
fn numbers_that_are_dates_are_said_with_what_reads_them() {
    let plain = ReadOptions::default();
    let days = table("date,n", 20, |i| format!("202601{},{i}", i + 10));
    let reads = "--date-format '%Y%m%d' --time date reads them";
    noted(&days, &plain, &[&format!("column date: looks like dates such as 20260110, kept as integers: {reads}")]);
    let format = Some(DateFormat::new("%Y%m%d").unwrap());
    let options = ReadOptions { time: Some("date".into()), date_format: format, ..ReadOptions::default() };
    let guessed = guess(Format::Csv, &days, &options);
    assert_eq!((guessed.schema.time, kind(&guessed, "date")), (TimeRole::Instant(0), FieldType::Date));
    assert_eq!(guessed.notes, Vec::<String>::new());
    // One that is none, and times of day.
    let few = table("lon,lat,tag", 20, |i| format!("1.5,2.5,{}", if i == 4 { 0 } else { 20_260_110 + i }));
    noted(&few, &plain, &["column tag: looks like dates", "--time tag"]);
    let clock = table("date", 20, |i| format!("202601{}1205", i + 10));
    noted(&clock, &plain, &["--date-format '%Y%m%d%H%M' --zone UTC --time date reads them"]);
    // Beside another time they stay fields.
    let both = table("time,date", 20, |i| format!("2026-01-31T12:00:00Z,202601{}", i + 10));
    noted(&both, &plain, &["column date: ", "--date-format '%Y%m%d' and a schema with the format date read them"]);
    // A pattern reads no numbers of JSON, and texts there.
    let forms = [("", "kept as integers: written as text, --date-format"), ("\"", "kept as text: --date-format")];
    for (quote, reads) in forms {
        let json: String = (0..20).map(|i| format!("{{\"date\":{quote}202601{}{quote}}}\n", i + 10)).collect();
        let notes = guess(Format::NdJson, &json, &plain).notes;
        assert!(notes.len() == 2 && notes[0].contains(reads), "{notes:?}");
    }
}

#[test]
fn days_of_a_spreadsheet_and_decimals_since_1970_are_said() {
    let plain = ReadOptions::default();
    let sheet = table("time,lon,lat", 20, |i| format!("{}.25,1.5,2.5", 45_123 + i));
    let start = "column time: looks like days of a spreadsheet such as 45123.25, kept as numbers";
    noted(&sheet, &plain, &[start, "--epoch s --time time reads them"]);
    let whole = table("time,order date", 20, |i| format!("2026-01-31T12:00:00Z,{}", 45_123 + i));
    noted(&whole, &plain, &["column order date: ", "kept as integers", "--epoch s and a schema"]);
    let epoch = table("time", 20, |i| format!("{}.5", 1_767_225_600 + i));
    noted(&epoch, &plain, &["column time: ", "kept as numbers: rounded to integers, --epoch s reads them"]);
}

#[test]
fn numbers_that_are_no_dates_have_no_note() {
    let plain = ReadOptions::default();
    for (header, first) in [("price", 45_123.25), ("runtime", 45_123.25), ("time", 45_123.0), ("date", 20_269_901.0)] {
        let text = table(&format!("lon,lat,{header}"), 20, |i| format!("1.5,2.5,{}", first + i as f64));
        assert_eq!(notes_of(&text, &plain), Vec::<String>::new(), "{header}");
    }
    // A fifth of the values are no days.
    let text = table("lon,lat,date", 20, |i| format!("1.5,2.5,{}", if i % 5 == 0 { 7 } else { 20_260_110 }));
    assert_eq!(notes_of(&text, &plain), Vec::<String>::new());
}

#[test]
fn coordinates_in_degrees_and_minutes_are_said_each_by_name() {
    let rows = |header: &str| table(header, 20, |i| format!("\"48°{}'30\"\"N\",\"16°22'00\"\"E\",1.5,2.5", i + 10));
    // Also beside a place that is taken.
    for header in ["a,b,c,d", "a,b,lon,lat"] {
        let notes = notes_of(&rows(header), &ReadOptions::default());
        assert_eq!(notes.len(), 2, "{notes:?}");
        for (note, (name, example)) in notes.iter().zip([("a", "48°10'30\"N"), ("b", "16°22'00\"E")]) {
            let start = format!("column {name}: looks like coordinates in degrees such as {example}, kept as text");
            assert!(note.starts_with(&start), "{note}");
        }
    }
    // Angles without a letter are none.
    let angles = table("lon,lat,turn", 20, |i| format!("1.5,2.5,12°{}'", i + 10));
    assert_eq!(notes_of(&angles, &ReadOptions::default()), Vec::<String>::new());
}

#[test]
fn geometries_beside_a_place_that_is_taken_are_said() {
    let plain = ReadOptions::default();
    let beside = |cell: &str| table("lon,lat,way", 20, |_| format!("13.5,52.5,{cell}"));
    let point = "0101000020E61000000000000000002A400000000000004A40";
    let command = "-oo GEOM_POSSIBLE_NAMES=way -oo KEEP_GEOM_COLUMNS=NO";
    let start = "column way: looks like geometries in hexadecimal WKB such as 0101000020E6";
    noted(&beside(point), &plain, &[start, command, "-s_srs EPSG:CODE -t_srs EPSG:4326 converted.fgb INPUT"]);
    let json = r#""{""type"":""Point"",""coordinates"":[13,52]}""#;
    noted(&beside(json), &plain, &["geometries in GeoJSON", command, "-a_srs EPSG:4326 converted.fgb INPUT"]);
    let line = format!("{{\"lon\":13.5,\"lat\":52.5,\"way\":\"{point}\"}}\n");
    let notes = guess(Format::NdJson, &line, &plain).notes;
    assert!(notes.len() == 1 && notes[0].contains("objects of GeoJSON in JSON"), "{notes:?}");
    // A second column of WKT, which its option takes.
    let text = beside("POINT (13 52)");
    noted(&text, &plain, &["column way: looks like geometries, kept as text: --geometry way takes them"]);
    let named = guess(Format::Csv, &text, &ReadOptions { geometry: Some("way".into()), ..ReadOptions::default() });
    assert_eq!((named.schema.geometry_name.as_str(), named.notes), ("way", Vec::new()));
    // Hashes and other objects are none.
    let hashes = table("lon,lat,hash", 20, |i| format!("13.5,52.5,01{:062x}", i * 7_919));
    assert_eq!(notes_of(&hashes, &plain), Vec::<String>::new());
    assert_eq!(notes_of(&beside(r#""{""type"":""Point of sale""}""#), &plain), Vec::<String>::new());
}

#[test]
fn fractions_beside_an_integer_of_too_many_digits_are_kept_as_text() {
    let plain = ReadOptions::default();
    let text = "lon,lat,key\n1,2,1.50\n1,3,9007199254740993\n";
    let words = ["column key: fractions beside integers", "9007199254740993 on line 3", "--schema with numbers"];
    noted(text, &plain, &words);
    let schema = Arc::new(guess(Format::Csv, text, &plain).schema);
    let read = read_all(Format::Csv, text.into(), &schema, &plain, &BatchLimits::default()).unwrap();
    let Some(FieldColumn::Text(keys)) = read.field(0) else { panic!("{:?}", schema.fields) };
    assert_eq!(keys.iter().flatten().collect::<Vec<_>>(), ["1.50", "9007199254740993"]);
    noted(&text.replace("0993", "0993000"), &plain, &["9007199254740993000 on line 3"]);
    noted(&text.replace("0993", "0993000000"), &plain, &["9007199254740993000000 on line 3"]);
    // Floats keep the first, and integers alone, or beside codes, have nothing to tell.
    for (other, expected) in [
        (text.replace("0993", "0994"), FieldType::Float),
        (text.replace("1.50", "150"), FieldType::Int),
        (text.replace("1.50", "007"), FieldType::Text),
    ] {
        assert_eq!(notes_of(&other, &plain), Vec::<String>::new(), "{other}");
        assert_eq!(kind(&guess(Format::Csv, &other, &plain), "key"), expected, "{other}");
    }
}

#[test]
fn a_column_of_times_without_a_zone_and_without_a_value_is_no_column_of_dates() {
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable([
        ("x", Arc::new(arrow_array::Float64Array::from(vec![2.5])) as arrow_array::ArrayRef, true),
        ("start", Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![None::<i64>])), true),
    ])
    .unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let bytes = Cursor::new(stream.into_inner().unwrap());
    let notes = infer(Format::Arrow, Box::new(bytes), &ReadOptions::default()).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("column start: times without a zone, kept as text")), "{notes:?}");
}
