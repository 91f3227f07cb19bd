//! Messages of `meridian load` about inferred schemas: long first events, nested objects, other encodings, existing
//! collections.
use crate::common::{Run, meridian, meridian_with_input};
use std::fmt::Write;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn load(folder: &Path, format: &str, input: &[u8], more: &[&str]) -> Run {
    let args = [&["load", "spots", "-", "--format", format, "--data", text(folder)], more].concat();
    meridian_with_input(&args, input)
}

/// Returns a feature with this many bytes besides its point.
fn feature(bytes: usize) -> String {
    let long = "x".repeat(bytes);
    format!(
        r#"{{"type":"Feature","long":"{long}","geometry":{{"type":"Point","coordinates":[13,52]}},"properties":{{"n":1}}}}"#
    )
}

#[test]
fn a_first_event_longer_than_the_sample_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = feature(10 << 20);
    let document = format!(r#"{{"type":"FeatureCollection","features":[{long},{}]}}"#, feature(1));
    load(folder.path(), "geojson", document.as_bytes(), &[]).ended(0);
    let lines = format!("{long}\n{}\n", feature(1));
    load(&folder.path().join("lines"), "ndjson", lines.as_bytes(), &[]).ended(0);
    // One that is too long is refused for that reason.
    let longer = format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, feature(17 << 20));
    let mut places = String::from("<kml><Document><Placemark><LineString><coordinates>");
    (0..2 << 20).for_each(|i| writeln!(places, "{}.5,52.5", i % 180).unwrap());
    places += "</coordinates></LineString></Placemark></Document></kml>";
    let name = "n".repeat(17 << 20);
    let kml = format!("<kml><Placemark><name>{name}</name></Placemark></kml>");
    for (format, input) in [("geojson", longer), ("kml", places), ("kml", kml)] {
        let run = load(&folder.path().join("none"), format, input.as_bytes(), &[]).ended(1);
        let run = run.says(&["more than 16777216 bytes without an end"]);
        assert!(!run.err.contains("cut off"), "{}", run.err);
    }
}

#[test]
fn nested_objects_are_refused_with_the_line_that_makes_them_flat() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nested lines.ndjson");
    std::fs::write(&file, "{\"user\":{\"name\":\"a\",\"on\":false},\"n\":1}\n").unwrap();
    for more in [&[][..], &["--invalid", "skip"]] {
        let data = folder.path().join("data");
        let args = [&["load", "spots", text(&file), "--data", text(&data)], more].concat();
        let run = meridian(&args).ended(1);
        let run = run.says(&["line 1", "user: an object", "jq -c", &format!(" '{}' > flat.ndjson", text(&file))]);
        assert!(!run.err.contains("--invalid skip"), "{}", run.err);
    }
}

#[test]
fn a_table_in_latin_1_is_refused_with_its_line_and_the_command_that_converts_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = load(folder.path(), "csv", b"name,lon,lat\nBerlin,13,52\nM\xfcnchen,11,48\n", &[]).ended(1);
    run.says(&["line 3", "not UTF-8", "iconv -f latin1 -t utf-8 > "]);
}

#[test]
fn options_of_the_guess_for_a_collection_that_exists_say_that_they_change_nothing_of_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "a,b,when\n13,52,31.01.2026\n14,53,01.02.2026\n";
    load(folder.path(), "csv", rows.as_bytes(), &[]).ended(0);
    let options = ["--lon", "a", "--lat", "b", "--date-format", "%d.%m.%Y"];
    let run = load(folder.path(), "csv", rows.as_bytes(), &options).ended(0);
    run.says(&["note: ", "is there already", "--lon, --lat, --date-format", "meridian drop spots"]);
    let run = load(folder.path(), "csv", rows.as_bytes(), &[&["--preview"], &options[..]].concat()).ended(0);
    run.says(&["meridian drop spots"]);
    // If they read the input as the collection has it, nothing is printed.
    let other = folder.path().join("other");
    load(&other, "csv", rows.as_bytes(), &options).ended(0);
    let run = load(&other, "csv", rows.as_bytes(), &options).ended(0);
    assert!(!run.err.contains("note:"), "{}", run.err);
}
