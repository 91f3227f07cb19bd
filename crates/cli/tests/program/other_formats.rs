//! Files of other programs, in and out, and tables with regional formats.

use crate::common::{self, Run, Server, agent, command, data, meridian, meridian_with_input};
use meridian_formats::decompress;
use serde_json::Value;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::Command;

const SPOTS: &str = "id,lon,lat,time,name,size,open\n\
    a,2.35,48.86,2026-01-01T00:00:00Z,Paris,2.5,true\n\
    b,13.4,52.52,2026-01-02T00:00:00Z,\"Berlin, Mitte\",3.5,false\n\
    c,-80.2,25.77,2026-01-03T00:00:00.25Z,Miami,,\n";

/// A table as written by spreadsheets in half of Europe.
const LOCAL: &str = "when;lon;lat;depth\n31.01.2026 12:05;13,4;52,5;3,5\n01.02.2026 00:00;13,5;52,25;4\n";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn spots(folder: &Path) {
    let args = ["load", "spots", "-", "--format", "csv", "--data", text(folder)];
    meridian_with_input(&args, SPOTS.as_bytes()).ended(0);
}

/// Returns the events of a collection, ordered by id.
fn rows(collection: &str, folder: &Path) -> Vec<Value> {
    let run = meridian(&["query", collection, "--format", "ndjson", "--data", text(folder)]).ended(0);
    let mut rows: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["id"].to_string());
    rows
}

#[test]
fn an_exported_layer_is_loaded_back() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    spots(&from);
    // An image from scratch has no folder for temporary files.
    let no_folder = folder.path().join("none");
    for (ending, built) in [("fgb", cfg!(feature = "flatgeobuf")), ("gpkg", cfg!(feature = "geopackage"))] {
        let file = folder.path().join(format!("spots.{ending}"));
        let args = ["export", "spots", text(&file), "--data", text(&from)];
        let export = Run::from(command(&args).env("TMPDIR", &no_folder).output().unwrap());
        if !built {
            export.ended(2).says(&["feature"]);
            continue;
        }
        export.ended(0);
        // An existing file is replaced.
        meridian(&args).ended(0);
        meridian(&["load", ending, text(&file), "--data", text(&to)]).ended(0);
        assert_eq!(rows(ending, &to), rows("spots", &from), "{ending}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn a_stream_of_flatgeobuf_is_read_by_gdal_and_loaded_back() {
    common::need("ogrinfo", "gdal-bin");
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    spots(&from);
    let server = Server::start(&from);
    let items = format!("{}/collections/spots/items", server.url);
    let mut response = agent().get(format!("{items}?f=flatgeobuf")).call().unwrap();
    let file = folder.path().join("spots.fgb");
    std::fs::write(&file, response.body_mut().read_to_vec().unwrap()).unwrap();
    // A part of the fields, and of the events.
    let mut response = agent().get(format!("{items}?f=flatgeobuf&properties=size&bbox=0,0,90,90")).call().unwrap();
    let part = folder.path().join("part.fgb");
    std::fs::write(&part, response.body_mut().read_to_vec().unwrap()).unwrap();
    // The command passes the same bytes on to a pipe, so its layer has the name too.
    let query = ["query", "spots", "--format", "flatgeobuf", "--url", &server.url];
    let run = command(&query).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(run.stdout == std::fs::read(&file).unwrap(), "{} bytes", run.stdout.len());
    drop(server);
    let told = |file: &Path| {
        let run = Command::new("ogrinfo").args(["-so", "-al", text(file)]).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success() && run.stderr.is_empty(), "{said}");
        said
    };
    let said = told(&file);
    for part in [
        "Layer name: spots",
        "Geometry: Point",
        "Feature Count: 3",
        "WGS 84",
        "time: DateTime",
        "size: Real",
        "name: String",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let said = told(&part);
    assert!(
        said.contains("Feature Count: 2") && said.contains("size: Real") && !said.contains("name: String"),
        "{said}"
    );
    if cfg!(feature = "flatgeobuf") {
        meridian(&["load", "back", text(&file), "--data", text(&to)]).ended(0);
        assert_eq!(rows("back", &to), rows("spots", &from));
    }
}

#[test]
fn a_file_that_other_programs_packed_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path());
    let corpus = common::root().join("fuzz/corpus");
    for (name, kind, events) in [("kml/kmz", "kml", 4), ("gpx/track", "gpx", 4), ("nmea/ships", "nmea", 41)] {
        let run = meridian(&["load", kind, text(&corpus.join(name)), "--data", at]).ended(0);
        assert!(run.out.contains(&format!("{kind}: {events} events in")), "{name}: {}", run.out);
    }
}

#[test]
fn a_load_of_gpx_counts_the_elements_that_were_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let point = "<trkpt lat=\"1\" lon=\"2\"><time>2026-01-01T00:00:00Z</time><atemp>21</atemp></trkpt>";
    let gpx = format!("<gpx version=\"1.1\"><trk><trkseg>{}</trkseg></trk></gpx>", point.repeat(3));
    let args = ["load", "hike", "-", "--format", "gpx", "--data", text(folder.path())];
    meridian_with_input(&args, gpx.as_bytes()).ended(0).says(&["were not read: atemp (3)"]);
    // The collection is there now: no schema is derived, and no note of a sample names the element.
    let other = gpx.replace("21</atemp>", "21</atemp><power>250</power>");
    meridian_with_input(&args, other.as_bytes()).ended(0).says(&["were not read: atemp (3), power (3)"]);
    let quiet = meridian_with_input(&[&args[..], &["--again", "--quiet"]].concat(), gpx.as_bytes()).ended(0);
    assert_eq!(quiet.err, "");
}

#[test]
fn an_archive_of_tiles_holds_the_tiles_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--url", &server.url], SPOTS.as_bytes()).ended(0);
    let file = folder.path().join("spots.pmtiles");
    meridian(&["export", "spots", text(&file), "--max-zoom", "3", "--url", &server.url]).ended(0);
    let archive = std::fs::read(&file).unwrap();
    let number = |at: usize| u64::from_le_bytes(archive[at..at + 8].try_into().unwrap()) as usize;
    assert!(archive.starts_with(b"PMTiles\x03"));
    assert_eq!(archive[100..102], [0, 3], "the first and the last zoom level");
    // One tile at zoom 0, and two at 1, 2 and 3 each: the two European cities share theirs.
    assert_eq!(number(72), 7, "tiles");
    let unpacked = |at: usize, bytes: usize| {
        let mut out = Vec::new();
        decompress(Box::new(Cursor::new(archive[at..at + bytes].to_vec()))).unwrap().read_to_end(&mut out).unwrap();
        out
    };
    // Columns of the root directory: tile numbers as differences, runs, lengths, and offsets plus one.
    let root = varints(&unpacked(number(8), number(16)));
    let (length, offset) = (root[1 + 2 * 7], root[1 + 3 * 7] - 1);
    assert_eq!((root[0], root[1]), (7, 0), "the first of seven tiles is that of the world");
    let metadata: Value = serde_json::from_slice(&unpacked(number(24), number(32))).unwrap();
    assert_eq!(metadata["vector_layers"][0]["id"], "spots");
    let fields = &metadata["vector_layers"][0]["fields"];
    let kinds = [&fields["size"], &fields["count"], &fields["density"]];
    assert_eq!(kinds, ["Number", "Number", "Boolean"], "cells of counts have fields of their own");
    let address = format!("{}/collections/spots/tiles/WebMercatorQuad/0/0/0", server.url);
    let mut tile = Vec::new();
    agent().get(&address).call().unwrap().into_body().into_reader().read_to_end(&mut tile).unwrap();
    assert_eq!(unpacked(number(56) + offset, length), tile, "the tile of the world");
}

/// Decodes numbers of seven bits per byte; the last byte of each is below 128.
fn varints(bytes: &[u8]) -> Vec<usize> {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

#[test]
fn a_preview_shows_the_events_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let args = ["load", "spots", "-", "--format", "csv", "--preview", "--data", text(&missing)];
    let run = meridian_with_input(&args, SPOTS.as_bytes()).ended(0);
    for words in ["would make the collection spots", "date-time", "Berlin, Mitte", "2026-01-03T00:00:00.25Z"] {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
    assert!(!missing.exists());
    // The lock of a server keeps a preview only from the schema of a collection that exists.
    let server = Server::start(&missing);
    let beside = meridian_with_input(&args, SPOTS.as_bytes()).ended(0).says(&["is in use by another process", "--url"]);
    assert!(!beside.err.contains("127.0.0.1"), "no address is known: {}", beside.err);
    let asked = ["load", "spots", "-", "--format", "csv", "--preview", "--url", &server.url];
    let run = meridian_with_input(&asked, SPOTS.as_bytes()).ended(0);
    assert!(!run.err.contains("in use"), "{}", run.err);
    server.stop("TERM");
    // An event that a load would refuse is refused here.
    let wrong = SPOTS.replace("48.86", "148.86");
    meridian_with_input(&args, wrong.as_bytes()).ended(1).says(&["line 2"]);
}

#[test]
fn a_preview_lists_a_field_called_id_once() {
    let folder = tempfile::tempdir().unwrap();
    let mark = |n: u32| {
        format!(
            "<Placemark><ExtendedData><Data name=\"id\"><value>r{n}</value></Data></ExtendedData>\
             <Point><coordinates>{n},2</coordinates></Point></Placemark>"
        )
    };
    let kml = format!("<kml><Document>{}{}</Document></kml>", mark(1), mark(2));
    let missing = folder.path().join("missing");
    let args = ["load", "spots", "-", "--format", "kml", "--preview", "--data", text(&missing)];
    let run = meridian_with_input(&args, kml.as_bytes()).ended(0);
    let lines = |name: &str| run.out.lines().filter(|line| line.split_whitespace().next() == Some(name)).count();
    assert_eq!((lines("id"), lines("@id")), (1, 1), "{}", run.out);
}

#[test]
fn a_table_of_many_events_tells_that_there_are_more() {
    let folder = tempfile::tempdir().unwrap();
    let at = ["--data", text(folder.path())];
    let mut csv = "id,lon,lat,n\n".to_owned();
    (0..10_001).for_each(|n| csv.push_str(&format!("e{n},1,2,{n}\n")));
    let load = ["load", "many", "-", "--format", "csv"];
    meridian_with_input(&[&load[..], &at].concat(), csv.as_bytes()).ended(0);
    let query = |more: &[&str]| meridian(&[&["query", "many"], more, &at].concat()).ended(0);
    for limit in ["10000", "20000"] {
        let run = query(&["--limit", limit]).says(&["the first 10000", "there are more", "--format csv"]);
        assert_eq!(run.out.lines().count(), 1 + 10_000, "{limit}");
    }
    assert_eq!(query(&["--limit", "20000", "--format", "csv"]).out.lines().count(), 1 + 10_001);
    // As many events as a table shows, and none left out.
    query(&["--filter", "n < 10000", "--limit", "20000"]).says(&["10000 events"]);
    query(&[]).says(&["the first 10; there are more"]);
}

#[test]
fn values_that_were_not_taken_are_named_with_the_option_that_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let load = |more: &[&str]| {
        let args = [&["load", "spots", "-", "--format", "csv", "--data", text(folder.path())], more].concat();
        meridian_with_input(&args, LOCAL.as_bytes())
    };
    load(&["--preview"]).ended(0).says(&["--date-format '%d.%m.%Y %H:%M'", "--decimal-comma"]);
    load(&["--date-format", "%d.%m.%Y %H:%M", "--decimal-comma", "--zone", "Europe/Berlin"]).ended(0);
    let rows = rows("spots", folder.path());
    let mut seen: Vec<_> = rows.iter().map(|row| (&row["properties"], &row["geometry"]["coordinates"])).collect();
    seen.sort_by_key(|(properties, _)| properties["when"].to_string());
    assert_eq!(seen[0].0["when"], "2026-01-31T11:05:00Z");
    assert_eq!(seen[0].0["depth"], 3.5);
    assert_eq!(*seen[0].1, serde_json::json!([13.4, 52.5]));
    assert_eq!(seen[1].0["when"], "2026-01-31T23:00:00Z");
}

#[test]
fn an_array_of_objects_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let array = r#"[{"lon":13.4,"lat":52.5,"time":"2026-01-01T00:00:00Z","name":"a"},
 {"lon":2.35,"lat":48.8,"time":"2026-01-02T00:00:00Z","name":"b"}]"#;
    let run = meridian_with_input(&["load", "spots", "-", "--data", text(folder.path())], array.as_bytes()).ended(0);
    assert!(run.out.contains("Point") && run.out.contains("date-time"), "{}", run.out);
    assert_eq!(common::count_in_folder("spots", folder.path()), 2);
    // Nested objects are refused with a command that takes an array apart.
    let nested = r#"[{"user":{"name":"a"},"n":1},{"user":{"name":"b"},"n":2}]"#;
    let args = ["load", "nested", "-", "--data", text(folder.path())];
    meridian_with_input(&args, nested.as_bytes()).ended(1).says(&["user: an object", "then .[] else"]);
}

#[test]
fn a_file_of_another_kind_is_refused_with_the_command_that_converts_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old roads.gml");
    std::fs::write(&file, "<?xml version=\"1.0\"?>\n<gml:FeatureCollection xmlns:gml=\"http://www.opengis.net/gml\"/>")
        .unwrap();
    let kept = folder.path().join("kept");
    let run = meridian(&["load", "roads", text(&file), "--data", text(&kept)]).ended(2);
    run.says(&["GML", "ogr2ogr -t_srs EPSG:4326 converted.", &format!("'{}'", text(&file))]);
    let gml = std::fs::read(&file).unwrap();
    meridian_with_input(&["load", "roads", "-", "--data", text(&kept)], &gml).ended(2).says(&["/vsistdin/"]);
    // What looks like a table, or like a line of JSON, is refused as well, and so is a folder of another program.
    let geodatabase = folder.path().join("roads.gdb");
    std::fs::create_dir(&geodatabase).unwrap();
    meridian(&["load", "roads", text(&geodatabase), "--data", text(&kept)]).ended(2).says(&["a file geodatabase"]);
    assert!(Command::new("gzip").arg("-k").arg(&file).status().unwrap().success());
    let packed = folder.path().join("old roads.gml.gz");
    meridian(&["load", "roads", text(&packed), "--data", text(&kept)]).ended(2).says(&[
        "GML",
        &format!("gunzip -k '{}' && ogr2ogr -t_srs ", text(&packed)),
        &format!("'{}'\n", text(&file)),
    ]);
    for (name, content, words) in [
        ("roads.tab", &b"!table\n!version 300\n!charset Neutral\n\nDefinition Table\n"[..], "MapInfo"),
        ("roads.topojson", b"{\"type\":\"Topology\"}\n", "ogr2ogr -a_srs EPSG:4326 converted."),
        ("esri.json", b"{\"geometryType\":\"esriGeometryPoint\",\"spatialReference\":{\"wkid\":4326}}", "Esri JSON"),
        ("roads.dbf", b"\x03\x7e\x0b\x1d\x02\0\0\0\xa1\0\x57\0\0\0\0\0,", "ogr2ogr converted.csv"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        meridian(&["load", "roads", text(&file), "--data", text(&kept)]).ended(2).says(&[words, "ogr2ogr "]);
    }
    // What ogr2ogr does not read has another command.
    for (name, content, words) in [
        ("cells.nc", &b"\x89HDF\r\n\x1a\n\0"[..], ["NetCDF", "with xarray for Python: python3 -c"]),
        ("cells.h5", b"\x89HDF\r\n\x1a\n\0", ["HDF5", "with xarray for Python: python3 -c"]),
        ("rows.orc", b"ORC\x0a\0", ["ORC", "with pyarrow for Python: python3 -c"]),
        ("rows.avro", b"Obj\x01\x04\x14avro.codec", ["Avro", "with polars for Python: python3 -c"]),
        ("tiles.pmtiles", b"PMTiles\x03\x7f\0", ["PMTiles", "GDAL 3.8 or newer: ogr2ogr -t_srs EPSG:4326"]),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        meridian(&["load", "roads", text(&file), "--data", text(&kept)]).ended(2).says(&words);
    }
    // The command of a file of shapes makes a table that is loaded.
    let shapes = folder.path().join("old shapes.txt");
    std::fs::write(&shapes, "POLYGON ((0 0, 1 1, 1 0, 0 0))\n\nPOLYGON ((5 5, 6 6, 6 5, 5 5))\n").unwrap();
    let refusal = meridian(&["load", "shapes", text(&shapes), "--data", text(&kept)]).ended(2).says(&["WKT"]);
    let command = &refusal.err[refusal.err.find("(echo").unwrap()..];
    let made = Command::new("sh").args(["-c", command.trim_end()]).current_dir(folder.path()).status().unwrap();
    assert!(made.success(), "{command}");
    let table = folder.path().join("converted.csv");
    meridian(&["load", "shapes", text(&table), "--data", text(&kept)]).ended(0);
    assert_eq!(common::count_in_folder("shapes", &kept), 2);
    // The project's own page is not in any format of events.
    let page = data("README.md");
    meridian(&["load", "page", text(&page), "--format", "flatgeobuf", "--data", text(&kept)]).ended(1);
}
