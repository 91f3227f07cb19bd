//! Bad input on the command line, case by case: each gives a clear error, and nothing is lost or half-written.

use crate::common::{Run, Server, command, count_in_folder, meridian, meridian_with_input};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns a folder with a collection of two events and a fixed schema.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let spec = "name:String,size:Double,n:Long,time:Date,*geometry:Point;meridian.id='given'";
    meridian(&["create", "spots", "--schema", spec, "--data", text(folder.path())]).ended(0);
    load(
        folder.path(),
        "id,lon,lat,time,name,size,n\na,1,2,2026-01-01T00:00:00Z,x,1.5,1\nb,3,4,2026-01-02T00:00:00Z,y,2,2\n",
    )
    .ended(0);
    folder
}

fn load(folder: &Path, csv: &str) -> Run {
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--data", text(folder)], csv.as_bytes())
}

#[test]
fn an_input_that_is_refused_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("events"));
    let load = |format: &str, content: &str| {
        std::fs::write(&file, content).unwrap();
        meridian(&["load", "spots", text(&file), "--format", format, "--data", text(&data)])
    };
    let good = "{\"lon\":1,\"lat\":2}\n";
    for (format, content) in [
        ("ndjson", format!("{good}no JSON\n")),
        ("ndjson", format!("{good}{{\"lon\":1,\"lat\":200}}\n")),
        ("geojson", good.replace('{', "[")),
        ("csv", String::new()),
    ] {
        let run = load(format, &content);
        assert!(run.code != 0 && !data.exists(), "{format} {content:?}: {} {}", run.code, run.err);
    }
    load("ndjson", good).ended(0);
    assert_eq!(count_in_folder("spots", &data), 1);
}

#[test]
fn a_collection_that_is_refused_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("parent/data");
    let csv = b"id,lon,lat,time,name\na,1,2,2026-01-01T00:00:00Z,x\n";
    let latest = "name:String:object=true,time:Date,*geometry:Point;meridian.id='given',meridian.mode='latest'";
    for (name, more, words) in [
        ("con", &[] as &[&str], "name of a device"),
        ("spots.", &[], "ends with a dot"),
        ("spots", &["--partitions", "4", "--schema", latest], "cannot have several partitions"),
    ] {
        let args = [&["load", name, "-", "--format", "csv", "--data", text(&data)], more].concat();
        meridian_with_input(&args, csv).ended(2).says(&[words]);
        assert!(!folder.path().join("parent").exists(), "{name}");
    }
    let args = ["create", "spots", "--schema", "name:String", "--retention", "30d", "--data", text(&data)];
    meridian(&args).ended(2).says(&["retention", "no time"]);
    assert!(!folder.path().join("parent").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_before_the_input_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (link, file) = (folder.path().join("link"), folder.path().join("file"));
    std::os::unix::fs::symlink(folder.path().join("none"), &link).unwrap();
    std::fs::write(&file, "x").unwrap();
    for data in [link.clone(), link.join("data"), file.join("data"), "/proc/meridian".into()] {
        // The input is missing, which would end with 2.
        let run = meridian(&["load", "spots", "/no/such.csv", "--data", text(&data)]).ended(3);
        run.says(&["--data", text(&data), "expected a folder"]);
    }
    assert!(!folder.path().join("none").exists());
}

#[test]
fn each_bad_row_is_named_and_nothing_of_it_is_in() {
    let folder = folder();
    let head = "id,lon,lat,time,name,size,n";
    let good = "g,1,2,2026-01-01T00:00:00Z,x,1,1";
    for (case, row, words) in [
        ("longitude out of range", "c,181,2,2026-01-01T00:00:00Z,x,1,1", &["line 3", "181"][..]),
        ("swapped", "c,2,100,2026-01-01T00:00:00Z,x,1,1", &["line 3", "swapped"]),
        ("NaN", "c,NaN,2,2026-01-01T00:00:00Z,x,1,1", &["line 3", "NaN"]),
        ("infinite", "c,1,inf,2026-01-01T00:00:00Z,x,1,1", &["line 3", "inf"]),
        ("a number that is none", "c,1,2,2026-01-01T00:00:00Z,x,NaN,1", &["line 3", "size"]),
        ("time without zone", "c,1,2,2026-01-01T00:00:00,x,1,1", &["line 3", "time", "zone", "--zone"]),
        ("far future", "c,1,2,+012026-01-01T00:00:00Z,x,1,1", &["line 3", "time"]),
        ("no time", "c,1,2,,x,1,1", &["line 3", "time"]),
        ("wrong type", "c,1,2,2026-01-01T00:00:00Z,x,big,1", &["line 3", "size", "big", "number"]),
        ("integer with decimals", "c,1,2,2026-01-01T00:00:00Z,x,1,1.5", &["line 3", "n", "integer"]),
        ("missing id", ",1,2,2026-01-01T00:00:00Z,x,1,1", &["line 3", "id"]),
        ("row too short", "c,1,2", &["line 3"]),
        ("row too long", "c,1,2,2026-01-01T00:00:00Z,x,1,1,1", &["line 3"]),
        ("unclosed quote", "c,1,2,2026-01-01T00:00:00Z,\"x,1,1", &["line 3"]),
    ] {
        let run = load(folder.path(), &format!("{head}\n{good}\n{row}\n"));
        assert_eq!(run.code, 1, "{case}: {}{}", run.out, run.err);
        for word in words {
            assert!(run.err.contains(word), "{case}: expected {word:?} in:\n{}", run.err);
        }
        assert_eq!(count_in_folder("spots", folder.path()), 2, "{case}: half of a batch is in");
    }
}

#[test]
fn ids_stand_once_in_a_batch_and_once_in_a_collection() {
    let folder = folder();
    let head = "id,lon,lat,time,name,size,n";
    let row = |id: &str| format!("{id},1,2,2026-01-01T00:00:00Z,x,1,1");
    load(folder.path(), &format!("{head}\n{}\n{}\n", row("twin"), row("twin"))).ended(1).says(&["twin"]);
    load(folder.path(), &format!("{head}\n{}\n{}\n", row("new"), row("a"))).ended(1).says(&["\"a\""]);
    assert_eq!(count_in_folder("spots", folder.path()), 2);
}

#[test]
fn unknown_fields_are_refused_unless_they_are_left_out() {
    let folder = folder();
    let csv = "id,lon,lat,time,colour\nc,1,2,2026-01-01T00:00:00Z,red\n";
    load(folder.path(), csv).ended(1).says(&["colour"]);
    let args = ["load", "spots", "-", "--format", "csv", "--ignore-unknown", "--data", text(folder.path())];
    meridian_with_input(&args, csv.as_bytes()).ended(0);
    assert_eq!(count_in_folder("spots", folder.path()), 3);
}

#[test]
fn shapes_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path());
    meridian(&["create", "areas", "--schema", "name:String,*geometry:Polygon", "--data", at]).ended(0);
    let feature = |geometry: &str| format!(r#"{{"type":"Feature","geometry":{geometry},"properties":{{"name":"x"}}}}"#);
    let ring = |points: &str| feature(&format!(r#"{{"type":"Polygon","coordinates":[[{points}]]}}"#));
    let good = ring("[0,0],[1,0],[1,1],[0,0]");
    for (case, bad, word) in [
        ("unclosed ring", ring("[0,0],[1,0],[1,1],[0,1]"), "close"),
        ("self-crossing ring", ring("[0,0],[2,2],[2,0],[0,2],[0,0]"), "not valid"),
        ("too few positions", ring("[0,0],[1,1],[0,0]"), "geometry"),
        ("wrong kind", feature(r#"{"type":"Point","coordinates":[1,2]}"#), "Polygon"),
        ("a collection", feature(r#"{"type":"GeometryCollection","geometries":[]}"#), "GeometryCollection"),
        ("out of range", ring("[0,0],[190,0],[1,1],[0,0]"), "190"),
        ("not JSON", "{\"type\":\"Feature\",".to_owned(), "line 2"),
    ] {
        let run = meridian_with_input(
            &["load", "areas", "-", "--format", "ndjson", "--data", at],
            format!("{good}\n{bad}\n{good}\n").as_bytes(),
        );
        assert_eq!(run.code, 1, "{case}: {}{}", run.out, run.err);
        assert!(run.err.contains(word) && run.err.contains("line 2"), "{case}: expected {word:?} in:\n{}", run.err);
        assert_eq!(count_in_folder("areas", folder.path()), 0, "{case}");
    }
}

#[test]
fn files_that_are_cut_off_or_are_none_are_named() {
    let folder = folder();
    let at = text(folder.path());
    let head = "id,lon,lat,time,name,size,n\n";
    let rows: String = (0..5_000).map(|n| format!("r{n},1,2,2026-01-01T00:00:00Z,x,1,{n}\n")).collect();
    let whole = format!("{head}{rows}");
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("input");

    let zipped = |bytes: &[u8]| {
        let mut child =
            std::process::Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    let gzip = zipped(whole.as_bytes());
    let check = |bytes: &[u8], format: &str, words: &[&str]| {
        std::fs::write(&file, bytes).unwrap();
        let run = meridian(&["load", "spots", text(&file), "--format", format, "--data", at]).ended(1).says(words);
        assert_eq!(count_in_folder("spots", folder.path()), 2, "{}", run.err);
    };
    check(&gzip[..gzip.len() / 2], "csv", &["gzip", "cut off"]);
    check(b"", "csv", &["empty"]);
    check(b"", "geojson", &["empty"]);
    check(
        format!("{head}c,1,2,2026-01-01T00:00:00Z,\u{e4},1,1\n")
            .replace('\u{e4}', "?")
            .replace('?', "\u{1}")
            .as_bytes(),
        "arrow",
        &["rrow"],
    );
    let mut latin = format!("{head}c,1,2,2026-01-01T00:00:00Z,").into_bytes();
    latin.extend_from_slice(b"\xe4,1,1\n");
    check(&latin, "csv", &["line 2", "UTF-8"]);
    check(b"{\"type\":\"FeatureCollection\",\"features\":[", "geojson", &["ends"]);
    check(b"PAR1 and then nothing", "geoparquet", &["arquet"]);

    // A Parquet file that lost its footer.
    let parquet = files.path().join("spots.parquet");
    meridian(&["export", "spots", text(&parquet), "--data", at]).ended(0);
    let bytes = std::fs::read(&parquet).unwrap();
    check(&bytes[..bytes.len() - 20], "geoparquet", &["arquet"]);

    // And input in no format at all.
    std::fs::write(&file, "hello world").unwrap();
    meridian(&["load", "spots", text(&file), "--data", at]).ended(2).says(&["--format"]);
    meridian(&["load", "spots", at, "--data", at]).ended(2).says(&["folder"]);
}

#[test]
fn a_line_of_two_gigabytes_is_refused_without_being_held() {
    let folder = folder();
    let mut child = command(&["load", "spots", "-", "--format", "csv", "--data", text(folder.path())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let mut sent = 0u64;
        let piece = vec![b'x'; 1 << 20];
        let _ = input.write_all(b"id,lon,lat,time,name,size,n\n");
        while sent < 2 << 30 && input.write_all(&piece).is_ok() {
            sent += piece.len() as u64;
        }
        sent
    });
    let run: Run = child.wait_with_output().unwrap().into();
    let sent = writer.join().unwrap();
    run.ended(1).says(&["line 2", "bytes"]);
    assert!(sent < 256 << 20, "{sent} bytes were taken before it was refused");
    assert_eq!(count_in_folder("spots", folder.path()), 2);
}

#[test]
fn a_folder_in_use_is_refused_and_says_so() {
    let folder = folder();
    let at = text(folder.path());
    let server = Server::start(folder.path());
    for args in [
        &["query", "spots", "--data", at][..],
        &["check", "--data", at],
        &["serve", "--listen", "127.0.0.1:0", "--data", at],
    ] {
        meridian(args).ended(3).says(&["in use", at]);
    }
    assert_eq!(server.get("/collections/spots").0, 200);
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["query", "spots", "--data", at]).ended(0);
}

#[test]
fn a_folder_that_is_no_folder_or_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let run = meridian(&["create", "c", "--schema", "name:String", "--data", text(&file)]);
    assert!(run.code == 2 || run.code == 3, "{}: {}", run.code, run.err);
    assert!(run.err.contains(text(&file)), "{}", run.err);
    // No user can create folders in /proc: the one place that is read-only even for root.
    let run = meridian(&["create", "c", "--schema", "name:String", "--data", "/proc/meridian"]).ended(3);
    assert!(run.err.contains("/proc/meridian"), "{}", run.err);
}

#[test]
fn a_folder_of_a_newer_version_is_refused_and_left_alone() {
    let folder = folder();
    let at = text(folder.path());
    let marker = folder.path().join("meridian.json");
    let mine = std::fs::read_to_string(&marker).unwrap();
    // As written by a newer version, with a valid checksum; otherwise it would count as damage.
    let body = mine.strip_prefix("{\"format\":").unwrap().split_once(",\"crc32c\"").unwrap().0;
    let body = format!("99,{}", body.split_once(',').unwrap().1);
    let newer = format!("{{\"format\":{body},\"crc32c\":{}}}\n", crc32c::crc32c(body.as_bytes()));
    std::fs::write(&marker, &newer).unwrap();
    meridian(&["query", "spots", "--data", at]).ended(3).says(&["version 99", "newer"]);
    meridian(&["serve", "--listen", "127.0.0.1:0", "--data", at]).ended(3).says(&["version 99", "newer"]);
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), newer);
    std::fs::write(&marker, &mine).unwrap();
    assert_eq!(count_in_folder("spots", folder.path()), 2);
}

#[test]
fn check_names_the_damaged_file() {
    let folder = folder();
    let at = text(folder.path());
    meridian(&["check", "--data", at]).ended(0);
    let segments = folder.path().join("tenants/default/spots/p0/segments");
    let file = std::fs::read_dir(&segments)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "segment"));
    let file = file.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, bytes).unwrap();
    let run = meridian(&["check", "--data", at]).ended(1);
    assert!(run.out.contains(file.file_name().unwrap().to_str().unwrap()), "{}{}", run.out, run.err);
}

#[test]
fn options_that_make_no_sense_name_themselves() {
    let folder = folder();
    let at = text(folder.path());
    for (args, words) in [
        (&["load", "spots", "-", "--delimiter", "ab", "--data", at][..], &["--delimiter", "ab"][..]),
        (&["load", "spots", "-", "--epoch", "days", "--data", at], &["--epoch", "days"]),
        (&["load", "spots", "-", "--zone", "Mars/Base", "--data", at], &["--zone", "Mars/Base"]),
        (&["load", "spots", "-", "--format", "xls", "--data", at], &["--format", "xls"]),
        (&["create", "c", "--schema", "a:Date:srid=1", "--data", at], &["--schema", "character"]),
        (&["create", "c", "--schema", "a:String", "--retention", "ages", "--data", at], &["--retention", "ages"]),
        (&["create", "c", "--schema", "a:String", "--durability", "steel", "--data", at], &["--durability", "steel"]),
        (&["create", "../c", "--schema", "a:String", "--data", at], &["collection", "../c"]),
        (&["query", "spots", "--filter", "size = = 2", "--data", at], &["--filter", "character"]),
        (&["query", "spots", "--near", "1,2", "--data", at], &["--near"]),
    ] {
        meridian(args).ended(2).says(words);
    }
    for option in [["--schema", "name:String"], ["--object", "name"], ["--track", "name"]] {
        let args = [&["load", "spots", "-", "--format", "csv", "--data", at][..], &option[..]].concat();
        meridian_with_input(&args, b"lon,lat,name\n1,2,x\n").ended(2).says(&["is there already"]);
    }
    let args = ["load", "fresh", "-", "--format", "csv", "--object", "ship", "--data", at];
    meridian_with_input(&args, b"lon,lat,boat\n1,2,x\n").ended(2).says(&["--object", "ship", "boat"]);
    let args = ["load", "fresh", "-", "--format", "csv", "--track", "ship", "--data", at];
    meridian_with_input(&args, b"lon,lat,boat\n1,2,x\n").ended(2).says(&["--track", "ship", "boat"]);
}
