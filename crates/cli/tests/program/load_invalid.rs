//! Loads of inputs with invalid events: refused with a hint, or left out, repaired and reported.

use crate::common::{Server, command, count_in_folder, counted, meridian};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn feature(id: usize, geometry: &str) -> String {
    format!(r#"{{"type":"Feature","id":"f{id}","geometry":{geometry},"properties":{{"n":{id}}}}}"#)
}

fn ring(points: &str) -> String {
    format!(r#"{{"type":"Polygon","coordinates":[[{points}]]}}"#)
}

/// Writes six polygons: a bow tie on line 3, an open ring on line 4, an empty one on line 5.
fn shapes(folder: &Path) -> PathBuf {
    let square = ring("[0,0],[1,0],[1,1],[0,1],[0,0]");
    let bow = ring("[0,0],[2,2],[2,0],[0,2],[0,0]");
    let lines = [&square, &square, &bow, &ring("[0,0],[1,0],[1,1]"), &ring("[0,0],[1,1],[0,0],[0,0]"), &square];
    let lines: Vec<String> = lines.iter().enumerate().map(|(i, shape)| feature(i, shape)).collect();
    let path = folder.join("shapes.ndjson");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn a_closed_standard_error_changes_no_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (shapes(folder.path()), folder.path().join("data"));
    for (file, code) in [(&file, 0), (&folder.path().join("none.ndjson"), 2)] {
        let load = |into: &str| command(&["load", into, text(file), "--invalid", "skip", "--data", text(&data)]);
        let heard = load("heard").output().unwrap();
        assert!(!heard.stderr.is_empty() && heard.status.code() == Some(code), "{heard:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(load("unheard").stderr(writer).output().unwrap().status.code(), Some(code), "{}", file.display());
    }
    assert_eq!(count_in_folder("unheard", &data), 3);
}

#[test]
fn an_invalid_polygon_is_refused_left_out_or_mended_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (file, rejects) = (shapes(folder.path()), folder.path().join("rejects.ndjson"));
    let data = folder.path().join("data");
    let load = |more: &[&str]| meridian(&[&["load", "areas", text(&file), "--data", text(&data)], more].concat());
    // The open ring is found when the schema is inferred, the bow tie when events are read.
    load(&[]).ended(1).says(&["line 4", "--invalid skip", "--invalid repair"]);
    let known = ["--schema", "n:Integer,*geometry:Geometry;meridian.id='given'"];
    load(&known).ended(1).says(&["line 3", "nothing of it is in", "--invalid skip"]);
    // A load that failed at its first batch has created nothing.
    assert!(!data.exists());
    load(&["--rejects", text(&rejects)]).ended(2).says(&["--rejects", "--invalid skip"]);

    let run = load(&["--invalid", "skip", "--rejects", text(&rejects)]).ended(0);
    assert!(run.out.contains("3 events in"), "{}", run.out);
    let run = run.says(&["3 events left out as invalid", "line 3:", "line 4:", "line 5:"]);
    assert!(!run.err.contains("repaired"), "{}", run.err);
    let written = std::fs::read_to_string(&rejects).unwrap();
    let told: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.iter().map(|t| t["line"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!((&told[0]["event"]["id"], told[0]["field"].as_str()), (&Value::from("f2"), Some("geometry")));

    let data = folder.path().join("mended");
    let args = ["load", "areas", text(&file), "--data", text(&data), "--invalid", "repair"];
    let run = meridian(&args).ended(0);
    assert!(run.out.contains("5 events in"), "{}", run.out);
    run.says(&[
        "1 event left out as invalid",
        "line 5:",
        "2 events repaired",
        "line 3:",
        "cut where they meet",
        "closed",
    ]);

    // The same on a server, where a failed first load must leave nothing either.
    let server = Server::start(&folder.path().join("served"));
    let args = |more: &[&str]| meridian(&[&["load", "areas", text(&file), "--url", &server.url], more].concat());
    args(&[]).ended(1).says(&["line 4"]);
    args(&known).ended(1).says(&["line 3", "nothing of it is in"]);
    assert_eq!(server.get("/collections/areas").0, 404);
    args(&["--invalid", "repair"]).ended(0).says(&["2 events repaired"]);
    assert_eq!(counted(&server.json("/collections/areas/aggregate")), 5);
    // Without any valid event, the load fails.
    let none = folder.path().join("none.csv");
    std::fs::write(&none, "lon,lat,n\n200,0,1\n0,100,2\n").unwrap();
    let run = meridian(&[
        "load",
        "none",
        text(&none),
        "--schema",
        "n:Integer,*geometry:Point",
        "--url",
        &server.url,
        "--invalid",
        "skip",
    ]);
    run.ended(1).says(&["none of its events could be loaded", "line 2:", "line 3:"]);
    assert_eq!(server.get("/collections/none").0, 404);
}

#[test]
fn heights_and_ids_that_cannot_be_kept_need_their_option() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("high.geojsonl");
    let lines = [
        feature(1, r#"{"type":"Point","coordinates":[1,2,300]}"#),
        feature(2, r#"{"type":"Point","coordinates":[3,4]}"#),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let load = |name: &str, more: &[&str]| meridian(&[&["load", name, text(&file), "--data", &data], more].concat());
    load("high", &[]).ended(1).says(&["line 1", "height", "--drop-z"]);
    load("high", &["--drop-z"]).ended(0).says(&["1 event loaded without heights"]);
    // The inferred schema keeps the existing ids.
    let run = meridian(&["query", "high", "--data", &data, "--format", "ndjson"]).ended(0);
    assert!(run.out.contains(r#""id":"f1""#) && run.out.contains("[1,2]"), "{}", run.out);
    let made = ["--schema", "n:Integer,*geometry:Point", "--drop-z"];
    load("made", &made).ended(1).says(&["line 1", "id", "x-ogc-role", "--drop-ids"]);
    load("made", &[&made[..], &["--drop-ids"]].concat()).ended(0).says(&["2 events loaded without ids"]);
    assert_eq!(count_in_folder("made", Path::new(&data)), 2);
}

/// Starts a server that accepts bodies of `kib` KiB.
fn limited(folder: &Path, kib: u32) -> Server {
    let config = folder.join(format!("{kib}.toml"));
    std::fs::write(&config, format!("[ingest]\nbatch_bytes = \"{kib}KiB\"\n")).unwrap();
    Server::start_with(&["--data", text(&folder.join("data")), "--config", text(&config)])
}

#[test]
fn a_load_goes_in_pieces_that_the_server_takes_and_is_resumed_under_any_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.csv");
    let rows: String = (0..20_000u32).map(|n| format!("{},{},{n}\n", n % 180, n % 90)).collect();
    std::fs::write(&file, format!("lon,lat,n\n{rows}")).unwrap();
    // Batches sent whole, in halves or in many pieces are recognised under each other limit.
    for limits in [[100, 256, 65_536], [65_536, 100, 400], [400, 65_536, 100]] {
        std::fs::remove_dir_all(folder.path().join("data")).ok();
        for (n, kib) in limits.into_iter().enumerate() {
            let server = limited(folder.path(), kib);
            let run = meridian(&["load", "events", text(&file), "--url", &server.url]).ended(0);
            let again = run.out.contains("20,000 were in already");
            assert_eq!(again, n > 0, "{limits:?} {kib}: {}", run.out);
            let sums = server.json("/collections/events/aggregate?function=count,sum(n)");
            assert_eq!(
                (counted(&sums), sums["groups"][0]["sum(n)"].as_u64()),
                (20_000, Some(199_990_000)),
                "{limits:?}"
            );
            server.stop("TERM");
        }
    }
}

#[test]
fn a_first_load_that_fails_leaves_no_collection() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let file = folder.path().join("twice.csv");
    let rows: String = (0..60_000u32).map(|n| format!("k{},{n}\n", n % 59_000)).collect();
    std::fs::write(&file, format!("id,n\n{rows}")).unwrap();
    // The ids of the sample are all different, so that they count as given; one of them recurs later.
    let first = std::fs::read_to_string(&file).unwrap().replacen("k1,1", "k0,1", 1);
    let spec = ["--schema", "n:Integer;meridian.id='given'"];
    let twin = folder.path().join("twin.csv");
    std::fs::write(&twin, first).unwrap();
    let server = Server::start(&folder.path().join("served"));
    for place in [["--data", &data], ["--url", &server.url]] {
        meridian(&[&["load", "twins", text(&twin)], &spec[..], &place[..]].concat())
            .ended(1)
            .says(&["k0", "nothing of it is in"]);
        let run = meridian(&[&["aggregate", "twins"], &place[..]].concat());
        assert!(run.code != 0, "{}", run.out);
        // One that fails later keeps what is stored.
        let run = meridian(&[&["load", "later", text(&file)], &spec[..], &place[..]].concat());
        run.ended(1).says(&["its first 50,000 events are loaded"]);
        let run = meridian(&[&["aggregate", "later", "--format", "json"], &place[..]].concat()).ended(0);
        assert_eq!(counted(&serde_json::from_str(&run.out).unwrap()), 50_000);
    }
}

#[test]
fn exports_are_what_their_endings_say_and_are_loaded_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let file = folder.path().join("spots.csv");
    std::fs::write(&file, "id,lon,lat,n\na,1.5,2,1\nb,3,4,2\n").unwrap();
    meridian(&["load", "spots", text(&file), "--data", &data]).ended(0);
    for (ending, begins) in [
        ("geojson", "{\"type\":\"FeatureCollection\""),
        ("arrow", "ARROW1"),
        ("arrows", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ("ndjson", "{\"type\":\"Feature\""),
        ("geojsons", "\u{1e}{"),
        ("csv", "id,lon,lat,n"),
        ("parquet", "PAR1"),
    ] {
        let out = folder.path().join(format!("out.{ending}"));
        meridian(&["export", "spots", text(&out), "--data", &data]).ended(0);
        let bytes = std::fs::read(&out).unwrap();
        assert!(String::from_utf8_lossy(&bytes).starts_with(begins), "{ending}: {:?}", &bytes[..20]);
        // Detected by content, whatever the name.
        let (name, renamed) = (format!("from-{ending}"), folder.path().join(format!("{ending}.bin")));
        std::fs::rename(&out, &renamed).unwrap();
        meridian(&["load", &name, text(&renamed), "--data", &data]).ended(0);
        let run = meridian(&["query", &name, "--data", &data, "--format", "csv"]).ended(0);
        assert_eq!(run.out, "id,lon,lat,n\r\na,1.5,2,1\r\nb,3,4,2\r\n", "{ending}");
    }
    let run = meridian(&["export", "spots", "x.xlsx", "--data", &data]).ended(2);
    run.says(&[".geojson", ".arrow", ".parquet"]);
}

#[test]
fn a_hint_names_only_options_that_the_command_has() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    for (args, has_url) in [(["check", "--data", text(&data)], false), (["serve", "--data", text(&data)], false)] {
        let run = meridian(&args);
        assert_eq!((run.code, run.err.contains("--url")), (3, has_url), "{args:?}: {}", run.err);
    }
    let run = meridian(&["aggregate", "x", "--data", text(&data)]).ended(3);
    run.says(&["--url"]);
    drop(server);
    let gone = folder.path().join("gone");
    let run = meridian(&["check", "--data", text(&gone)]).ended(2);
    assert!(!run.err.contains("--url"), "{}", run.err);
}

#[test]
fn a_feature_of_a_document_is_told_by_its_number_and_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (file, rejects) = (folder.path().join("spots.geojson"), folder.path().join("rejects.ndjson"));
    let spot = |lon: usize| feature(lon, &format!(r#"{{"type":"Point","coordinates":[{lon},2]}}"#));
    let document = format!("{{\"type\":\"FeatureCollection\",\n\"features\":[\n{},\n\n{}]}}", spot(1), spot(200));
    std::fs::write(&file, document).unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let load = |more: &[&str]| meridian(&[&["load", "spots", text(&file), "--data", &data], more].concat());
    load(&["--schema", "n:Integer,*geometry:Point;meridian.id='given'"])
        .ended(1)
        .says(&["spots.geojson: feature 2: geometry: ", "(on line 5)"]);
    let run = load(&["--invalid", "skip", "--rejects", text(&rejects)]).ended(0);
    run.says(&["  feature 2: ", "(on line 5)"]);
    let told: Value = serde_json::from_str(std::fs::read_to_string(&rejects).unwrap().trim()).unwrap();
    assert_eq!((&told["feature"], told.get("line")), (&Value::from(2), None));
}

#[test]
fn a_record_of_a_sequence_is_told_by_its_number_and_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (file, rejects) = (folder.path().join("spots.geojsons"), folder.path().join("rejects.ndjson"));
    let spot = |lon: usize| feature(lon, &format!("{{\"type\":\"Point\",\n\"coordinates\":[{lon},2]}}"));
    std::fs::write(&file, format!("\u{1e}{}\n\u{1e}{}\n", spot(1), spot(200))).unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let args = ["load", "spots", text(&file), "--data", &data, "--invalid", "skip", "--rejects", text(&rejects)];
    meridian(&args).ended(0).says(&["  record 2: ", "(on line 3)"]);
    let told: Value = serde_json::from_str(std::fs::read_to_string(&rejects).unwrap().trim()).unwrap();
    assert_eq!((&told["record"], told.get("line")), (&Value::from(2), None));
}

#[test]
fn utf_16_is_refused_with_the_command_that_converts_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path()).to_owned() + "/data";
    let spot = feature(1, r#"{"type":"Point","coordinates":[1,2]}"#);
    for (name, events) in [
        ("spots.csv", "lon,lat\n1,2\n".to_owned()),
        ("spots.ndjson", format!("{spot}\n{spot}\n")),
        ("spots.geojson", format!("{{\"type\":\"FeatureCollection\",\"features\":[{spot}]}}")),
        ("spots.geojsons", format!("\u{1e}{spot}\n")),
    ] {
        let file = folder.path().join(name);
        for (mark, encoding) in [("\u{feff}", "utf-16"), ("", "utf-16le")] {
            let words = format!("{mark}{events}");
            std::fs::write(&file, words.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).unwrap();
            let run = meridian(&["load", "spots", text(&file), "--data", &data]).ended(1);
            let (input, ending) = (text(&file), name.trim_start_matches("spots"));
            let run = run.says(&[&format!("iconv -f {encoding} -t utf-8 {input} > spots-utf8{ending}")]);
            assert!(!run.err.contains("--invalid"), "{}", run.err);
        }
    }
    let packed = folder.path().join("packed.csv.gz");
    let pack = ["-c", r"printf 'a\0,\0b\0' | gzip > $0", text(&packed)];
    assert!(Command::new("sh").args(pack).status().unwrap().success());
    let run = meridian(&["load", "spots", text(&packed), "--data", &data]).ended(1);
    let command = format!("gunzip -c < {} | iconv -f utf-16le -t utf-8 > packed-utf8.csv", text(&packed));
    run.says(&[&command]);
    // The command does what it is for, in the folder that it is copied to.
    let ran = Command::new("sh").args(["-c", &command]).current_dir(&folder).status().unwrap();
    assert!(ran.success());
    assert_eq!(std::fs::read_to_string(folder.path().join("packed-utf8.csv")).unwrap(), "a,b");
}

#[test]
fn an_id_that_occurs_twice_is_named_with_both_events() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("twice.csv");
    std::fs::write(&table, "lon,lat,mmsi\n1,1,5\n2,2,6\n3,3,5\n").unwrap();
    let data = folder.path().join("data");
    let load = ["load", "ships", text(&table), "--id", "mmsi", "--data", text(&data)];
    meridian(&load).ended(1).says(&["the id \"5\" occurs twice in the input: events 1 and 3 of those read"]);
}
