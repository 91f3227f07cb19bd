//! The command line as a user and a script see it.

use crate::common::spots::{SPOTS, spots, text};
use crate::common::{Server, command, count_in_folder, data, meridian, meridian_with_input};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

#[test]
fn help_has_examples_for_every_command() {
    for name in [
        "serve",
        "create",
        "load",
        "query",
        "search",
        "provider",
        "aggregate",
        "export",
        "files",
        "check",
        "cluster",
        "backup",
        "restore",
        "list",
        "describe",
        "delete",
        "rename",
        "drop",
        "health",
        "completions",
        "manual",
    ] {
        let run = meridian(&[name, "--help"]).ended(0);
        assert!(run.out.contains("Examples:"), "{name}:\n{}", run.out);
        assert!(run.out.contains(&format!("meridian {name}")), "{name}:\n{}", run.out);
    }
    assert!(meridian(&["--version"]).ended(0).out.starts_with("meridian "));
    meridian(&["no-such-command"]).ended(2);
    meridian(&[] as &[&str]).ended(2);
}

#[test]
fn collections_are_listed_described_emptied_and_dropped_in_a_folder_and_on_a_server() {
    for served in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        spots(folder.path());
        let server = served.then(|| Server::start(folder.path()));
        let place = server.as_ref().map_or(["--data", text(folder.path())], |server| ["--url", &server.url]);
        let on = |args: &[&str]| meridian(&[args, &place].concat());

        let listed = on(&["list"]).ended(0).out;
        let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..2], ["spots", "3"], "{listed}");
        let times = ["2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", "history", "local"];
        assert!(row.ends_with(&times), "{listed}");
        let document: Value = serde_json::from_str(&on(&["list", "--json"]).ended(0).out).unwrap();
        assert_eq!(document["collections"][0]["itemCount"], 3);

        let shown = |args: &[&str], words: &[&str]| {
            let out = on(args).ended(0).out;
            words.iter().for_each(|words| assert!(out.contains(words), "{args:?}: {words}: {out}"));
        };
        shown(&["describe", "spots"], &["bbox        -74.0,40.71,13.4,52.52", "Point", "date-time"]);
        let document: Value = serde_json::from_str(&on(&["describe", "spots", "--json"]).ended(0).out).unwrap();
        assert_eq!(document["schema"]["properties"]["size"]["type"], "number");
        on(&["describe", "nowhere"]).ended(3).says(&["nowhere"]);

        // A forgotten condition must not empty a collection.
        on(&["delete", "spots"]).ended(2).says(&["--filter TRUE"]);
        shown(&["delete", "spots", "--filter", "size > 2", "--dry-run"], &["2 events match"]);
        shown(&["delete", "spots", "--filter", "size > 3"], &["1 event deleted"]);
        on(&["delete", "spots", "--filter", "size >"]).ended(2);
        shown(&["delete", "spots", "--filter", "size > 2", "--dry-run"], &["1 event matches"]);

        on(&["rename", "nowhere", "places"]).ended(3).says(&["nowhere"]);
        on(&["rename", "spots"]).ended(2);
        on(&["rename", "spots", "../up"]).ended(3).says(&["../up"]);
        shown(&["rename", "spots", "places"], &["spots is now places, 2 events"]);
        on(&["describe", "spots"]).ended(3);
        shown(&["delete", "places", "--filter", "TRUE", "--dry-run"], &["2 events match"]);
        on(&["create", "spots", "--schema", "size:Double"]).ended(0);
        on(&["rename", "places", "spots"]).ended(3).says(&["spots"]);
        on(&["drop", "spots"]).ended(0);
        shown(&["rename", "places", "spots"], &["places is now spots"]);

        on(&["drop", "spots"]).ended(3).says(&["2 events", "--yes"]);
        on(&["describe", "spots"]).ended(0);
        on(&["drop", "spots", "--yes"]).ended(0);
        on(&["drop", "spots", "--yes"]).ended(3).says(&["spots"]);
        on(&["list"]).ended(0).says(&["no collection"]);
    }
}

#[test]
fn the_health_of_a_server_is_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let url = server.url.clone();
    for (ready, says) in [(&[][..], "alive"), (&["--ready"][..], "ready")] {
        let run = meridian(&[&["health", "--url", &url], ready].concat()).ended(0);
        assert_eq!(run.out.trim(), says);
    }
    drop(server);
    meridian(&["health", "--url", &url]).ended(3).says(&[&url]);
}

#[test]
fn completions_are_shell_scripts_and_every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("meridian.bash");
    std::fs::write(&script, meridian(&["completions", "bash"]).ended(0).out).unwrap();
    // What a shell offers for `meridian des` and Tab.
    let line =
        ". \"$0\"; COMP_WORDS=(meridian des); COMP_CWORD=1; _meridian meridian des meridian; echo \"${COMPREPLY[@]}\"";
    let offered = std::process::Command::new("bash").args(["-c", line, text(&script)]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&offered.stdout).trim(), "describe", "{offered:?}");

    let pages = folder.path().join("man1");
    meridian(&["manual", text(&pages)]).ended(0);
    for (page, words) in
        [("meridian", "search server"), ("meridian-load", "--invalid"), ("meridian-token-create", "--role")]
    {
        let page = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap().replace('\\', "");
        assert!(page.starts_with(".ie") && page.contains(words), "{page}");
    }
}

#[test]
fn an_inferred_collection_is_shown_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path());
    let args = ["load", "spots", "-", "--format", "csv", "--data", at];
    let run = meridian_with_input(&args, SPOTS.as_bytes()).ended(0);
    for words in ["made collection spots", "id, given", "Point", "date-time", "when", "number", "3 events in"] {
        assert!(run.out.contains(words), "{words:?} in:\n{}", run.out);
    }

    let run = meridian(&["query", "spots", "--data", at]).ended(0).says(&["3 events"]);
    assert!(run.out.lines().count() == 4 && run.out.contains("Berlin, Mitte"), "{}", run.out);
    let run = meridian(&["query", "spots", "--limit", "1", "--data", at]).ended(0).says(&["there are more"]);
    assert_eq!(run.out.lines().count(), 2, "{}", run.out);
    let run = meridian(&["query", "spots", "--filter", "size > 3", "--format", "csv", "--data", at]).ended(0);
    assert!(run.out.lines().count() == 2 && run.out.contains("Berlin"), "{}", run.out);
    let run = meridian(&["query", "spots", "--bbox", "-80,30,10,60", "--format", "ndjson", "--data", at]).ended(0);
    assert_eq!(run.out.lines().count(), 2, "{}", run.out);
    let run =
        meridian(&["query", "spots", "--datetime", "2026-01-02/..", "--format", "geojson", "--data", at]).ended(0);
    let whole: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(whole["features"].as_array().unwrap().len(), 2);
    let run = meridian(&["query", "spots", "--near", "2,48,2000000", "--format", "ndjson", "--data", at]).ended(0);
    let first: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    assert_eq!((first["id"].as_str(), run.out.lines().count()), (Some("a"), 2));
    let run = meridian(&["query", "spots", "--sortby=-size", "--limit", "2", "--format", "csv", "--data", at]).ended(0);
    assert!(run.out.lines().nth(1).unwrap().contains("Berlin"), "{}", run.out);
    meridian(&["query", "spots", "--filter", "size > 99", "--data", at]).ended(0).says(&["no event matches"]);

    let run =
        meridian(&["aggregate", "spots", "--function", "count,avg(size)", "--format", "json", "--data", at]).ended(0);
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (answer["groups"][0]["count"].as_u64(), answer["groups"][0]["avg(size)"].as_f64()),
        (Some(3), Some(3.0))
    );
    let run = meridian(&["aggregate", "spots", "--by", "name", "--format", "csv", "--data", at]).ended(0);
    assert_eq!(run.out.lines().count(), 4, "{}", run.out);
    let run = meridian(&["aggregate", "spots", "--window", "P1D", "--data", at]).ended(0);
    assert_eq!(run.out.lines().count(), 4, "{}", run.out);
    meridian(&["check", "--data", at]).ended(0);
}

#[test]
fn what_is_exported_is_loaded_back() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    spots(&from);
    for ending in ["parquet", "csv", "ndjson", "arrow", "geojsons"] {
        let file = folder.path().join(format!("spots.{ending}"));
        meridian(&["export", "spots", text(&file), "--data", text(&from)]).ended(0);
        meridian(&["load", ending, text(&file), "--data", text(&to)]).ended(0);
        let rows = |collection: &str, data: &Path| {
            let run = meridian(&["query", collection, "--format", "ndjson", "--data", text(data)]).ended(0);
            let mut rows: Vec<Value> = run.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            rows.sort_by_key(|r| r["id"].to_string());
            rows
        };
        assert_eq!(rows(ending, &to), rows("spots", &from), "{ending}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| !n.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn storms_become_lines_and_ships_objects() {
    let folder = tempfile::tempdir().unwrap();
    let (at, storms) = (text(folder.path()), data("atlantic-storms/storms.csv.zst"));
    meridian(&["load", "storms", text(&storms), "--track", "storm_id", "--data", at, "--quiet"]).ended(0);
    assert_eq!(count_in_folder("storms", folder.path()), 692);
    let filter = ["--filter", "wind_kt_max > 155", "--format", "geojson", "--data", at];
    let run = meridian(&[&["query", "storms"][..], &filter[..]].concat()).ended(0);
    let whole: Value = serde_json::from_str(&run.out).unwrap();
    let lines = whole["features"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line["geometry"]["type"].as_str().unwrap().ends_with("LineString"), "{line}");
        assert!(line["properties"]["start"].as_str() < line["properties"]["end"].as_str(), "{line}");
    }
    let ships = data("us-ais-20220103/ais.csv.zst");
    let run = meridian(&["load", "ships", text(&ships), "--object", "vessel", "--data", at]).ended(0);
    assert!(run.out.contains("object"), "{}", run.out);
    assert_eq!(count_in_folder("ships", folder.path()), 99_999);
}

#[test]
fn the_same_commands_work_on_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let load = ["load", "spots", "-", "--format", "csv", "--url", &server.url];
    meridian_with_input(&load, SPOTS.as_bytes()).ended(0);
    for format in ["table", "csv", "ndjson", "geojson", "geojsonseq"] {
        let run = meridian(&["query", "spots", "--format", format, "--url", &server.url]).ended(0);
        assert!(run.out.contains("Berlin"), "{format}: {}", run.out);
    }
    // A limit is one of events, in every format.
    for (format, lines) in [("csv", 3), ("ndjson", 2), ("geojsonseq", 2), ("geojson", 4)] {
        let limited = ["query", "spots", "--limit", "2", "--format", format, "--url", &server.url];
        let run = meridian(&limited).ended(0);
        assert_eq!(run.out.lines().count(), lines, "{format}: {}", run.out);
        assert_eq!(run.out.matches('\u{1e}').count(), if format == "geojsonseq" { 2 } else { 0 }, "{format}");
    }
    meridian(&["aggregate", "spots", "--by", "name", "--url", &server.url]).ended(0);
    let file = folder.path().join("out.parquet");
    meridian(&["export", "spots", text(&file), "--url", &server.url]).ended(0);
    assert!(std::fs::read(&file).unwrap().starts_with(b"PAR1"));
    // The environment names the server if the command line does not.
    let by_environment = command(&["query", "spots"]).env("MERIDIAN_URL", &server.url).output().unwrap();
    assert!(by_environment.status.success());
    let empty = tempfile::tempdir().unwrap();
    let elsewhere = text(empty.path());
    let by_data = command(&["query", "spots", "--data", elsewhere]).env("MERIDIAN_URL", &server.url).output().unwrap();
    assert_eq!(by_data.status.code(), Some(3), "--data goes before MERIDIAN_URL");
    // --url takes precedence over --data.
    meridian(&["query", "spots", "--data", elsewhere, "--url", &server.url]).ended(0);
}

#[test]
fn exit_codes_say_who_is_to_blame() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path());
    spots(folder.path());
    // 2: the command line is wrong.
    for args in [
        &["query", "spots", "--filter", "size >", "--data", at][..],
        &["query", "spots", "--bbox", "1,2,3,4,5", "--data", at],
        &["query", "spots", "--datetime", "yesterday", "--data", at],
        &["query", "spots", "--limit", "0", "--data", at],
        &["query", "spots", "--limit", "x", "--data", at],
        &["query", "spots", "--format", "xml", "--data", at],
        &["query", "spots", "--sortby", "size", "--format", "csv", "--data", at],
        &["query", "spots", "--data", "/no/such/folder"],
        &["query", "spots", "--url", "ftp://x"],
        &["load", "spots", "/no/such/file", "--data", at],
        &["load", "spots", "x", "--zone", "Nowhere/Town", "--data", at],
        &["load", "spots", "x", "--format", "docx", "--data", at],
        &["create", "new", "--schema", "name:Strin", "--data", at],
        &["create", "new", "--schema", "at:Date", "--retention-bytes", "much", "--data", at],
        &["create", "new", "--schema", "at:Date", "--retention-bytes", "0", "--data", at],
        &["create", "no/good", "--schema", "name:String", "--data", at],
        &["export", "spots", "spots.xlsx", "--data", at],
        &["serve", "--role", "gateway"],
        &["serve", "--role", "king"],
        &["serve", "--listen", "nowhere:99999"],
    ] {
        let run = meridian(args).ended(2);
        assert!(!run.err.is_empty(), "{args:?}");
    }
    // 3: the server or the store refused, or cannot be reached.
    for args in [
        &["query", "no-such-collection", "--data", at][..],
        &["query", "spots", "--filter", "no_such_field = 1", "--data", at],
        &["create", "spots", "--schema", "name:String", "--data", at],
        &["query", "spots", "--url", "http://127.0.0.1:9"],
        &["load", "spots", text(&data("README.md")), "--format", "csv", "--url", "http://127.0.0.1:9"],
    ] {
        let run = meridian(args).ended(3);
        assert!(!run.err.is_empty(), "{args:?}");
    }
    // 1: it ran and the result is bad, wherever the events were to go.
    let server = Server::start_with(&["--ephemeral"]);
    let other = tempfile::tempdir().unwrap();
    for place in [["--data", text(other.path())], ["--url", &server.url]] {
        let load = |more: &[&str]| {
            let args =
                [&["load", "named", "-", "--format", "csv", "--schema", "n:Integer;meridian.id='given'"], more, &place];
            meridian_with_input(&args.concat(), b"id,n\na,1\n")
        };
        load(&[]).ended(0);
        load(&["--again"]).ended(1).says(&["in the collection already"]);
    }
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--data", at], b"lon,lat\n1,x\n").ended(1);
}

#[test]
fn a_collection_is_made_with_its_retention() {
    let folder = tempfile::tempdir().unwrap();
    let kept = ["--schema", "at:Date", "--retention", "30d", "--retention-bytes", "20GiB"];
    meridian(&[&["create", "cold", "--data", text(folder.path())][..], &kept[..]].concat()).ended(0);
    let server = Server::start(folder.path());
    meridian(&[&["create", "warm", "--url", &server.url][..], &kept[..]].concat()).ended(0);
    for name in ["cold", "warm"] {
        let found = server.json(&format!("/collections/{name}?f=json"));
        assert_eq!(found["retention_bytes"], 20u64 << 30, "{found}");
        assert_eq!(found["retention"], "P30D", "{found}");
    }
}

#[test]
fn a_retention_that_removes_events_is_refused_with_their_number_unless_yes_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path()).to_owned();
    let spec = "n:Integer,at:Date";
    let steps = |name: &str, place: [&str; 2]| {
        let create = |more: &[&str]| meridian(&[&["create", name][..], more, &place[..]].concat());
        create(&["--schema", spec]).ended(0);
        create(&["--schema", spec]).ended(3).says(&["is there already"]);
        // Nothing was written yet, so the types may change.
        let retyped = create(&["--schema", "n:Double,at:Date"]).ended(0);
        assert!(retyped.out.contains("has this schema now"), "{}", retyped.out);
        create(&["--schema", spec]).ended(0);
        let csv = b"n,at\n1,2020-01-01T00:00:00Z\n2,2020-01-02T00:00:00Z\n3,2020-01-03T00:00:00Z\n";
        meridian_with_input(&[&["load", name, "-", "--format", "csv"][..], &place[..]].concat(), csv).ended(0);
        create(&["--schema", "n:Double,at:Date", "--retention", "30d"]).ended(3).says(&["another schema"]);
        create(&["--schema", spec, "--retention", "30d"]).ended(3).says(&["removes 3 events", "--yes"]);
        create(&["--durability", "ephemeral"]).ended(3).says(&["cannot be changed"]);
        // A change that removes nothing needs no confirmation.
        create(&["--retention", "36500d", "--retention-bytes", "20GiB"]).ended(0);
        create(&["--retention", "30d"]).ended(3).says(&["removes 3 events"]);
        create(&["--schema", spec, "--retention-bytes", "none", "--durability", "local"]).ended(0);
        create(&["--retention", "30d", "--yes"]).ended(0);
    };
    meridian(&["create", "cold", "--retention", "30d", "--data", &at]).ended(2).says(&["--schema"]);
    steps("cold", ["--data", &at]);
    let server = Server::start(folder.path());
    steps("warm", ["--url", &server.url]);
    for name in ["cold", "warm"] {
        let found = server.json(&format!("/collections/{name}?f=json"));
        assert_eq!((&found["retention"], found.get("retention_bytes")), (&"P30D".into(), None), "{found}");
    }
}

#[test]
fn a_filter_of_60_kib_goes_over_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--url", &server.url], SPOTS.as_bytes()).ended(0);
    let filter = |values: usize| format!("name = 'Paris' OR size IN ({}1)", "1, ".repeat(values));
    let ask = |filter: &str| meridian(&["query", "spots", "--filter", filter, "--format", "csv", "--url", &server.url]);
    let run = ask(&filter(20_480)).ended(0);
    assert!(run.out.lines().count() == 2 && run.out.contains("Paris"), "{}", run.out);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = text(folder.path());
    let mut csv = "lon,lat,name\n".to_owned();
    (0..50_000).for_each(|n| csv.push_str(&format!("1,2,some name that is a little longer {n}\n")));
    meridian_with_input(&["load", "many", "-", "--format", "csv", "--data", at], csv.as_bytes()).ended(0);
    let mut child = command(&["query", "many", "--format", "csv", "--data", at])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.len()),
        (Some(0), 0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
