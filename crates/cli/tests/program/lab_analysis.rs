//! `meridian lab simulate`, `compare`, `cost`, `report` and `breakpoint` as used by people.

use crate::common::{Mock, meridian, root};
use serde_json::Value;
use std::path::Path;

const SEARCH: &str = "bench/studies/search-pipeline.toml";

fn study(path: &str) -> String {
    root().join(path).to_str().unwrap().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Changes a folder to that of a later version.
fn made_newer(folder: &Path, name: &str) {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"format_version\": 1,"), "{text}");
    std::fs::write(&path, text.replace("\"format_version\": 1,", "\"format_version\": 99,")).unwrap();
}

/// Simulates a trial, with a results folder.
fn simulated(folder: &Path, name: &str, sets: &[&str]) -> String {
    let out = folder.join(name);
    let mut args = vec!["lab", "simulate"];
    let search = study(SEARCH);
    args.extend([search.as_str(), "--out", text(&out), "--set", "arrival.count=30"]);
    sets.iter().for_each(|set| args.extend(["--set", set]));
    meridian(&args).ended(0);
    text(&out).to_owned()
}

#[test]
fn a_simulation_answers_with_the_json_of_the_contract_and_the_same_twice() {
    let args = ["lab", "simulate", &study(SEARCH), "--set", "workers=16", "--set", "arrival.count=128", "--json"];
    let first = meridian(&args).ended(0).out;
    assert_eq!(meridian(&args).ended(0).out, first);
    let json: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(json["requests"].as_array().unwrap().len(), 128);
    for key in ["n", "start_s", "first_s", "last_s", "packets"] {
        assert!(json["requests"][0].get(key).is_some(), "{key}");
    }
    assert!(json["growth_per_request_s"].as_f64().unwrap() > 1.0 && json["first_absent"].as_u64().unwrap() > 20);
    let tier = study("bench/studies/scan-tier.toml");
    let sets = ["--set", "workload=grep", "--set", "threads=16", "--set", "measured_scans=20", "--json"];
    let tier = meridian(&[&["lab", "simulate", &tier], &sets[..]].concat()).ended(0);
    assert!(serde_json::from_str::<Value>(&tier.out).unwrap()["mean_ms"].as_f64().unwrap() > 0.0);
    meridian(&["lab", "simulate", &study(SEARCH), "--set", "workers=0"]).ended(2).says(&["workers = 0"]);
    meridian(&["lab", "simulate", &study(SEARCH), "--edge", "p95_s"]).ended(2).says(&["--edge p95_s", "p95_s=0.1"]);
}

#[test]
fn a_table_of_measurements_is_laid_beside_its_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let (tier, figures) = (study("bench/studies/scan-forecast.toml"), folder.path().join("some.toml"));
    let row = |name: &str, more: &str, mean: f64| {
        format!(
            "[[trial]]\nname = '{name}'\ngroup = 'tier'\n{more}\nfigures = {{ mean_ms = {mean:?} }}\nalso = {{ busy_events = 0.0 }}\n"
        )
    };
    let set = "set = { workload = 'grep', threads = 16, measured_scans = 10, warm_up_scans = 0 }";
    let fit = "source = 'a test'\n[[fit]]\ngroup = 'tier'\nparameters = ['costs.read_us']\nseeds = 1\n";
    let rows = format!("{fit}{}{}", row("known", &format!("fit = true\n{set}"), 100.0), row("asked", set, 1.0));
    std::fs::write(&figures, rows).unwrap();
    let out = folder.path().join("forecast");
    let args = ["lab", "simulate", &tier, "--against", text(&figures), "--out", text(&out)];
    let ran = meridian(&args).ended(0);
    assert!(ran.out.contains("fitted to") && ran.out.contains("mean_ms: 1 trials predicted"), "{}", ran.out);
    let json = meridian(&[&args[..], &["--json"]].concat()).ended(0);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["trials"][0]["fitted"], &json["trials"][1]["fitted"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(json["agreement"]["mean_ms"]["worst"], "asked");
    for name in ["forecast.json", "forecast.svg", "forecast.png"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let wrong = ["lab", "simulate", &tier, "--against", text(&figures), "--calibrate", text(&figures)];
    meridian(&wrong).ended(2).says(&["--calibrate", "--against"]);
    meridian(&["lab", "simulate", &study(SEARCH), "--against", text(&figures)]).ended(2).says(&["trial \"known\""]);
}

#[test]
fn two_runs_are_held_against_each_other_in_words_pictures_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    // Three runs of each, as one decides nothing.
    for seed in ["1", "2", "3"] {
        for (name, workers) in [("few", "workers=16"), ("many", "workers=48")] {
            simulated(folder.path(), &format!("{name}/{seed}"), &[workers, &format!("seed={seed}")]);
        }
    }
    let [few, many] = ["few", "many"].map(|name| text(&folder.path().join(name)).to_owned());
    let out = folder.path().join("difference");
    let ran = meridian(&["lab", "compare", &many, &few, "--out", text(&out)]).ended(0);
    assert!(ran.out.contains("B is slower: request at p50"), "{}", ran.out);
    assert!(out.join("pictures/request-1.png").is_file());
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("B is slower"));
    meridian(&["lab", "compare", &many, &few, "--fail-if-slower"]).ended(1);
    meridian(&["lab", "compare", &few, &many, "--fail-if-slower"]).ended(0);
    let same = meridian(&["lab", "compare", &few, &few]).ended(0);
    assert!(same.out.starts_with("No difference is seen."), "{}", same.out);
    let [few, many] = [few, many].map(|runs| format!("{runs}/1"));
    let once = meridian(&["lab", "compare", &many, &few]).ended(0);
    assert!(once.out.starts_with("Not decided: without repeats"), "{}", once.out);
    meridian(&["lab", "compare", &many, &few, "--fail-if-slower"]).ended(1).says(&["not decided"]);
    meridian(&["lab", "compare", &few, text(folder.path())]).ended(3).says(&["not a whole results folder"]);
    meridian(&["lab", "compare", &few]).ended(2).says(&["1 target(s): expected two"]);
    let shown = meridian(&["lab", "report", &few]).ended(0);
    assert!(shown.out.contains("The wait grew by"), "{}", shown.out);
    made_newer(Path::new(&few), "run.json");
    for args in [&["lab", "report", &few][..], &["lab", "compare", &many, &few], &["lab", "compare", &few, &many]] {
        meridian(args).ended(3).says(&["format version is 99", "a newer meridian reads it"]);
    }
}

#[test]
fn what_shares_nothing_or_is_void_is_no_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let one = simulated(folder.path(), "one", &[]);
    let other = simulated(folder.path(), "other", &[]);
    let changed = |from: &str, to: &str| {
        let path = Path::new(&other).join("run.json");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    };
    changed("\"void\": []", "\"void\": [\"the host took 20 %\"]");
    for args in [&["lab", "compare", &one, &other][..], &["lab", "compare", &other, &one, "--fail-if-slower"]] {
        let ran = meridian(args).ended(1).says(&["not decided", "is void: the host took 20 %"]);
        assert!(!ran.out.contains("B is slower") && !ran.out.contains("B is faster"), "{}", ran.out);
    }
    changed("\"void\": [\"the host took 20 %\"]", "\"void\": []");
    changed("\"request\"", "\"another\"");
    meridian(&["lab", "compare", &one, &other]).ended(1).says(&["no request in common"]);
}

#[test]
fn a_plan_is_priced_with_its_pictures_and_a_promise_that_no_size_keeps_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |share: f64| {
        let text = format!(
            "scenario = {:?}\nsize = 'workers'\nsizes = [16, 60]\nseeds = 1\nset = {{ 'arrival.count' = 40 }}\n\
             [prices]\ncurrency = 'EUR'\nmachine_hour = 0.5\nsize_per_machine = 16\n\
             [[promise]]\nname = 'soon'\nfirst_s = 4.0\nshare = {share}\n\
             [[pattern]]\nname = 'steady'\n[[pattern.part]]\nhours = 24\n",
            study(SEARCH)
        );
        std::fs::write(folder.path().join("cost.toml"), text).unwrap();
    };
    plan(0.5);
    let ran = meridian(&["lab", "cost", text(folder.path())]).ended(0);
    assert!(ran.out.contains("the cheapest size that keeps \"soon\" is workers = "), "{}", ran.out);
    for name in ["cost.json", "cost.svg", "cost.png"] {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
    // A missing folder is created.
    let new = folder.path().join("new/priced");
    meridian(&["lab", "cost", text(folder.path()), "--out", text(&new)]).ended(0);
    assert!(new.join("cost.json").is_file() && new.join("cost.png").is_file());
    plan(1.0);
    std::fs::write(
        folder.path().join("cost.toml"),
        std::fs::read_to_string(folder.path().join("cost.toml")).unwrap().replace("4.0", "0.1"),
    )
    .unwrap();
    meridian(&["lab", "cost", text(folder.path())]).ended(1).says(&["no size keeps"]);
    meridian(&["lab", "cost", text(&folder.path().join("nowhere"))]).ended(2).says(&["cost.toml"]);
}

#[test]
fn a_full_disk_leaves_no_half_of_a_page_or_picture() {
    let folder = tempfile::tempdir().unwrap();
    let few = simulated(folder.path(), "few", &["workers=16"]);
    let many = simulated(folder.path(), "many", &["workers=48"]);
    let difference = folder.path().join("difference");
    let plan = format!(
        "scenario = {:?}\nsize = 'workers'\nsizes = [60]\nset = {{ 'arrival.count' = 10 }}\n[prices]\ncurrency = 'EUR'\n\
         machine_hour = 0.5\n[[promise]]\nname = 'soon'\nfirst_s = 9.0\nshare = 0.1\n[[pattern]]\nname = 'steady'\n\
         [[pattern.part]]\nhours = 24\n",
        study(SEARCH)
    );
    std::fs::write(folder.path().join("cost.toml"), plan).unwrap();
    let (report, compare) =
        (["lab", "report", few.as_str()], ["lab", "compare", &many, &few, "--out", text(&difference)]);
    for (command, place, files) in [
        (&report[..], Path::new(&few), &["pictures/requests.svg", "pictures/requests.png", "report.html"][..]),
        (&compare, &difference, &["pictures/request-1.svg", "pictures/request-1.png", "report.html"]),
        (&["lab", "cost", text(folder.path())], folder.path(), &["cost.json", "cost.svg", "cost.png"]),
    ] {
        meridian(command).ended(0);
        for name in files {
            // Writing there fails for lack of space.
            let (whole, partial) = (place.join(name), place.join(format!("{name}.partial")));
            let before = std::fs::read(&whole).unwrap();
            std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
            meridian(command).ended(3).says(&[name, "No space left"]);
            assert!(!partial.is_symlink() && std::fs::read(&whole).unwrap() == before, "{name}");
        }
    }
}

#[test]
fn numbers_are_taken_from_a_run_and_from_spans() {
    let folder = tempfile::tempdir().unwrap();
    let server = study("bench/studies/forecast/server.toml");
    // A fit to a run of the same model, started from another service time, finds the true one.
    let run = folder.path().join("run");
    let sets = [
        "--set",
        "source.work.call.mean_s=0.02",
        "--set",
        "source.work.call.cv=0.3",
        "--set",
        "arrival.interval_s=0.01",
    ];
    meridian(&[&["lab", "simulate", &server, "--out", text(&run)], &sets[..]].concat()).ended(0);
    let args = ["lab", "simulate", &server, "--calibrate", text(&run), "--fit", "source.work.call.mean_s"];
    let ran = meridian(&args).ended(0);
    let found = ran.out.lines().find_map(|line| line.strip_prefix("source.work.call.mean_s = ")).unwrap();
    assert!((found.parse::<f64>().unwrap() / 0.02 - 1.0).abs() < 0.02, "{}", ran.out);
    meridian(&args[..5]).ended(2).says(&["--fit"]);
    let spans = folder.path().join("spans.jsonl");
    let span = r#"{"spanId":"a","name":"work","startTimeUnixNano":"0","endTimeUnixNano":"25000000"}"#;
    std::fs::write(&spans, format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{span}]}}]}}]}}\n")).unwrap();
    let ran = meridian(&["lab", "simulate", &server, "--calibrate", text(&spans)]).ended(0);
    assert!(ran.out.contains("source.work.call.mean_s = 0.025"), "{}", ran.out);
    // And it predicts the rate the model sustains: 4 workers of 20 ms sustain less than 200 a second.
    let ran = meridian(&[&["lab", "simulate", &server, "--edge", "p95_s=0.1", "--json"], &sets[..]].concat()).ended(0);
    let edge = serde_json::from_str::<Value>(&ran.out).unwrap()["breakpoint"]["value"].as_f64().unwrap();
    assert!((170.0..205.0).contains(&edge), "{edge}");
    // If fitted to the run first, the forecast includes the error of the fit.
    let both = [&args[..], &["--edge", "p95_s=0.1", "--json", "--set", "source.work.call.cv=0.3"]].concat();
    let json: Value = serde_json::from_str(&meridian(&both).ended(0).out).unwrap();
    let of = |key: &str| json["breakpoint"][key].as_f64().unwrap();
    let error = json["calibration_error"].as_f64().unwrap();
    assert!(error > 0.0 && of("high") / of("low") > (1.0 + error).powi(2) * 0.999, "{json}");
    assert!(of("low") < edge && edge < of("high"), "{edge}: {json}");
}

#[test]
fn two_targets_that_took_turns_are_held_against_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("turns.toml"), folder.path().join("turns"));
    let mock = |ms: u32| {
        let sources = folder.path().join(format!("{ms}.toml"));
        let source = format!("[[source]]\nname = \"a\"\nitems = 1\ndelay = {{ kind = \"fixed\", ms = {ms} }}\n");
        std::fs::write(&sources, source).unwrap();
        Mock::start(&[text(&sources)])
    };
    let (quick, slow) = (mock(1), mock(200));
    let target = |name: &str, url: &str| format!("[[target]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let scenario = format!(
        "{}{}[arrival]\nkind = \"constant\"\nrate = 50\n[request]\npath = \"/a\"\n[trials]\nrepeats = 3\n\
         [phases]\nmeasured_s = 0.6\n[limits]\nlate_ms = 1e6\nother_load = 1e3\n",
        target("quick", &quick.1),
        target("slow", &slow.1)
    );
    std::fs::write(&path, scenario).unwrap();
    meridian(&["lab", "run", text(&path), "--out", text(&out)]).ended(0);
    let ran = meridian(&["lab", "compare", text(&out), "--fail-if-slower"]).ended(1);
    assert!(ran.out.contains("B is slower: ") && ran.out.contains("A is quick, B is slow"), "{}", ran.out);
    assert!(ran.err.contains("slow is slower than quick"), "{}", ran.err);
}

#[test]
fn an_objective_is_of_the_population_or_request_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources.toml");
    let source = |name: &str, ms: u32| {
        format!("[[source]]\nname = \"{name}\"\nitems = 1\ndelay = {{ kind = \"fixed\", ms = {ms} }}\n")
    };
    std::fs::write(&sources, source("quick", 1) + &source("slow", 900)).unwrap();
    let mock = Mock::start(&[text(&sources)]);
    let path = folder.path().join("two.toml");
    let population = |name: &str, request: &str| {
        format!(
            "[[population]]\nname = \"{name}\"\nrequests = [\"{request}\"]\n\
             arrival = {{ kind = \"constant\", rate = 20 }}\n[[request]]\nname = \"{request}\"\npath = \"/{request}\"\n"
        )
    };
    let scenario = format!(
        "[target]\nurl = \"{}\"\n{}{}[phases]\nmeasured_s = 0.5\n[limits]\nlate_ms = 1e6\nother_load = 1e3\n\
         [[objective]]\nmetric = \"p50_ms\"\nat_most = 700\n",
        mock.1,
        population("load", "slow"),
        population("probe", "quick")
    );
    for (n, (narrowed, code)) in [
        ("population = \"probe\"", 0),
        ("population = \"load\"", 1),
        ("request = \"quick\"", 0),
        ("request = \"slow\"", 1),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(&path, format!("{scenario}{narrowed}\n")).unwrap();
        let out = folder.path().join(n.to_string());
        meridian(&["lab", "run", text(&path), "--out", text(&out)]).ended(code);
    }
}

/// Returns a scenario against a mock, with limits that no busy machine exceeds.
fn scenario(folder: &Path, url: &str) -> String {
    let path = folder.join("first.toml");
    let text = format!(
        "[target]\nurl = \"{url}\"\n[arrival]\nkind = \"constant\"\nrate = 50\n[request]\npath = \"/a\"\n[trials]\npause_s = 0.1\n\
         [phases]\nmeasured_s = 0.5\n[limits]\nlate_ms = 1e6\nother_load = 1e3\n[[objective]]\nmetric = \"p95_ms\"\nat_most = 100\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_breakpoint_is_found_shown_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources.toml");
    std::fs::write(
        &sources,
        "[[source]]\nname = \"a\"\nitems = 1\nworkers = 4\ndelay = { kind = \"fixed\", ms = 20 }\n",
    )
    .unwrap();
    let mock = Mock::start(&[text(&sources)]);
    let path = scenario(folder.path(), &mock.1);
    let out = folder.path().join("edge");
    let args = ["lab", "breakpoint", &path, "--out", text(&out), "--within", "0.2"];
    let ran = meridian(&[&args[..], &["--json"]].concat()).ended(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["conclusion"], &json["objective"]), (&"found".into(), &"p95_ms at most 100".into()), "{json}");
    // 4 workers of 20 ms sustain 200 a second; half a second at 240 builds a queue of over 100 ms.
    assert!((150.0..270.0).contains(&json["breakpoint"]["value"].as_f64().unwrap()), "{json}");
    // A line for each step.
    assert_eq!(ran.err.lines().count(), json["steps"].as_array().unwrap().len(), "{}", ran.err);
    assert!(ran.err.contains("FAILED") && ran.err.contains("confirm"), "{}", ran.err);
    let shown = meridian(&["lab", "report", text(&out)]).ended(0);
    assert!(shown.out.contains("The breakpoint lies at") && out.join("pictures/breakpoint.svg").is_file());
    meridian(&args).ended(2).says(&["is there already"]);
    made_newer(&out, "breakpoint.json");
    meridian(&["lab", "report", text(&out)]).ended(3).says(&["format version is 99", "a newer meridian reads it"]);
    let second = folder.path().join("second");
    let bounded = |least: &str| {
        let _ = std::fs::remove_dir_all(&second);
        let more = ["--out", text(&second), "--most", "60", "--at-least", least];
        meridian(&[&["lab", "breakpoint", path.as_str()], &more[..]].concat())
    };
    assert!(bounded("60").ended(0).out.contains("the breakpoint lies above"));
    bounded("80").ended(1).says(&["it is not shown that the objectives hold at 80"]);
    let third = folder.path().join("third");
    let nowhere = ["--set", "target.url=http://127.0.0.1:1", "--out", text(&third)];
    meridian(&[&["lab", "breakpoint", path.as_str()], &nowhere[..]].concat()).ended(3).says(&["cannot be reached"]);
    assert!(!folder.path().join("third.partial").exists());
}
