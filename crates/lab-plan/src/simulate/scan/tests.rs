use super::*;
use crate::simulate::calibrate::{Figures, Residual};
use crate::simulate::forecast::forecast;
use crate::simulate::{Scenario, settings, table};
use std::path::Path;

const TIER: &str = include_str!("../../../../../bench/studies/scan-tier.toml");
const FORECAST: &str = include_str!("../../../../../bench/studies/scan-forecast.toml");
const FORECAST_FIGURES: &str = include_str!("../../../../../bench/studies/scan-forecast.figures.toml");
const FIGURES: &str = include_str!("../../../../../bench/studies/scan-tier.figures.toml");

fn tier(sets: &[&str]) -> Tier {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match Scenario::read(TIER, &sets).unwrap() {
        Scenario::Scan(tier) => *tier,
        other => panic!("expected a scan tier, found {other:?}"),
    }
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another() {
    let sets = ["workload=grep", "servers=6", "tablets=3", "data_cache=true"];
    let one = run(&tier(&sets));
    assert_eq!(one, run(&tier(&sets)));
    assert_ne!(one, run(&tier(&[&sets[..], &["seed=2"]].concat())));
}

#[test]
fn a_client_alone_waits_for_its_own_work_only() {
    let answer = run(&tier(&["workload=grep", "threads=1", "measured_scans=4000"]));
    // The client's time to start, then processor, storage and turnaround of a scan of mean size; no other client
    // delays it.
    let expected = 1.0 + 108.4 + 0.5 + 0.3;
    assert!((answer.mean_ms / expected - 1.0).abs() < 0.05, "{answer:?}");
    assert_eq!(answer.busy_events, 0);
}

#[test]
fn keeping_data_takes_the_load_off_storage() {
    let small = ["workload=small", "servers=23", "initial=23", "threads=721", "measured_scans=20"];
    let cold = run(&tier(&small));
    let kept = run(&tier(&[&small[..], &["data_cache=true"]].concat()));
    assert!(kept.mean_ms < cold.mean_ms * 0.9, "{kept:?} {cold:?}");
}

#[test]
fn tablets_lie_on_the_tablet_servers_that_hold_them() {
    let mean = |sets: &[&str]| {
        let more = ["workload=grep", "threads=193", "warm_up_scans=4", "measured_scans=8", "immediate=true"];
        run(&tier(&[&more[..], sets].concat())).mean_ms
    };
    // Five tablets on three servers. Two servers have two tablets each, so each does two fifths of the work. The tier's
    // throughput is two and a half times one server's.
    let [one, three, five] = ["1", "3", "5"].map(|n| mean(&["tablets=5", &format!("tablet_servers={n}")]));
    assert!((one / three / 2.5 - 1.0).abs() < 0.15, "{one} {three}");
    assert!((one / five / 5.0 - 1.0).abs() < 0.15, "{one} {five}");
    // One tablet is on one server, however many there are.
    let [alone, many] = ["1", "3"].map(|n| mean(&["tablets=1", &format!("tablet_servers={n}")]));
    assert_eq!(alone, many);
}

#[test]
fn clients_send_no_more_than_their_machines_can() {
    let answer = |sets: &[&str]| {
        let more =
            ["workload=small", "servers=23", "initial=23", "threads=721", "measured_scans=20", "data_cache=true"];
        run(&tier(&[&more[..], sets].concat()))
    };
    // One machine of four cores. A core takes 2 ms to begin a scan and 0.3 ms to take its batch in. So at most 4 / 2.3
    // ms can be sent.
    let few = answer(&["clients.nodes=1", "clients.cores=4", "clients.scan_ms=2.0"]);
    assert!((few.mean_ms / (721.0 * 2.3 / 4.0) - 1.0).abs() < 0.1, "{few:?}");
    let many = answer(&[]);
    assert!(many.mean_ms < few.mean_ms / 5.0, "{many:?}");
    // A client alone waits for no core.
    let alone = run(&tier(&["workload=grep", "threads=1", "measured_scans=4000", "clients.scan_ms=0.0"]));
    assert!((alone.mean_ms / (108.4 + 0.5 + 0.3) - 1.0).abs() < 0.05, "{alone:?}");
}

#[test]
fn what_a_cache_holds_is_neither_read_nor_unpacked() {
    let mean = |sets: &[&str]| {
        let more =
            ["workload=grep", "threads=1", "measured_scans=2000", "clients.scan_ms=0.0", "workloads.grep.unpack=0.5"];
        run(&tier(&[&more[..], sets].concat())).mean_ms
    };
    // 2,000 measured scans and 15 before them. All but the first few of them find the tablet in the one server's cache.
    let hits = |sets: &[&str]| {
        let more = ["workload=grep", "threads=1", "servers=1", "initial=1", "measured_scans=2000"];
        run(&tier(&[&more[..], sets].concat())).cache_hits
    };
    assert!(hits(&["data_cache=true"]).is_some_and(|hits| hits > 0.99 && hits < 1.0));
    assert_eq!(hits(&[]), None);
    assert!(hits(&["data_cache=true", "machine.cache_bytes=1.0"]).is_some_and(|hits| hits < 0.001));
    let (cold, warm) = (mean(&[]), mean(&["data_cache=true"]));
    assert!((cold / (108.4 + 0.5 + 0.3) - 1.0).abs() < 0.05, "{cold}");
    assert!((warm / (54.2 + 0.3) - 1.0).abs() < 0.05, "{warm}");
    // A cache of zero bytes saves nothing.
    let tiny = mean(&["data_cache=true", "machine.cache_bytes=1.0"]);
    assert!((tiny / cold - 1.0).abs() < 0.01, "{tiny} {cold}");
}

/// Chance sends many scans to one server while another has few. A waiting scan is also sent to a second server.
#[test]
fn second_attempts_shorten_the_tail_within_their_budget() {
    let sets = ["workload=grep", "threads=40", "servers=6", "initial=6", "busy_ms=5000", "measured_scans=100"];
    let p99 = |more: &[&str]| {
        let mut seen = Vec::new();
        let answer =
            each(&tier(&[&sets[..], &["machine.executor_threads=4", "machine.cores=4"], more].concat()), &mut |ms| {
                seen.push(ms)
            });
        seen.sort_by(f64::total_cmp);
        (seen[seen.len() * 99 / 100], answer)
    };
    let hedge = |share: f64| format!("hedge={{ after_ms = 30.0, share = {share:?}, burst = 1.0 }}");
    let (without, plain) = p99(&[]);
    let (with, hedged) = p99(&[&hedge(1.0)]);
    let (_, few) = p99(&[&hedge(0.05)]);
    let (none, budgeted) = p99(&[&hedge(0.0)]);
    assert!(with < without && hedged.mean_ms < plain.mean_ms, "{hedged:?} {plain:?}");
    assert!(few.hedged.unwrap() > 0.03 && few.hedged.unwrap() <= 0.055, "{few:?}");
    assert_eq!((none, budgeted.hedged, plain.hedged), (without, Some(0.0), None));
}

#[test]
fn a_profile_list_replaces_the_short_form() {
    let json = r#"[{"isDefault":true,"maxBusyTimeout":"5m","busyTimeoutMultiplier":8,"attemptPlans":[{"servers":"3","busyTimeout":"33ms"},{"servers":"12","busyTimeout":"33ms"}]}]"#;
    let mut given = tier(&["workload=grep", "measured_scans=10"]);
    let short = run(&given);
    given.profiles = Some(json.to_owned());
    assert_eq!(run(&given), short);
    given.profiles = Some("[]".to_owned());
    assert!(given.check().unwrap_err().contains("profiles: isDefault: 0 profiles"));
}

#[test]
fn mistakes_are_sentences_that_name_the_key() {
    for (set, expected) in [
        ("workload=huge", "expected one of grep, large, small"),
        ("servers=0", "servers = 0: expected 1"),
        ("busy_ms=0", "busy_ms = 0: expected 1"),
        ("workloads.large.cpu_ms=-1", "workloads.large: cpu_ms = -1"),
        ("workloads.large.entries.mean=1e9", "expected min < mean < max"),
        ("machine.cpus=3", "unknown field `cpus`"),
        ("tablet_servers=0", "tablet_servers = 0: expected 1"),
        ("clients.cores=0", "clients.cores = 0: expected 1"),
        ("hedge={ after_ms = 5.0, share = 1.5, burst = 1.0 }", "hedge: hedge_share: 1.5: expected 0 to 1"),
        ("hedge={ after_ms = -1.0, share = 0.1, burst = 1.0 }", "hedge.after_ms = -1"),
        ("workloads.large.unpack=2.0", "unpack = 2: expected 0 to 1"),
    ] {
        let error = Scenario::read(TIER, &[set.to_owned()]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
}

/// Issue 21: three immediate rows are given, one of each workload; every row with scan servers is forecast.
#[test]
fn the_tables_of_scan_servers_are_forecast_from_their_immediate_rows() {
    // Fewer scans than the file specifies, as above.
    let scenario = table(FORECAST, &["warm_up_scans=8".to_owned(), "measured_scans=16".to_owned()]).unwrap();
    let figures = Figures::read(FORECAST_FIGURES, Path::new("")).unwrap();
    let fitted: Vec<&str> = figures.trial.iter().filter(|t| t.fit).map(|t| t.name.as_str()).collect();
    assert_eq!(fitted, ["D806", "D816", "D824"]);
    let found = forecast(&figures, &scenario).unwrap();
    let means = &found.agreement["mean_ms"];
    assert_eq!(means.trials, 20);
    assert!(means.median_error <= 0.2 && means.rank_correlation.unwrap() >= 0.8, "{means:?}");
    // No mean should be off by more than 50 %. That does not hold for large scans: their results cost the
    // tablet server more than a scan server. An immediate row cannot tell how much (docs/simulate.md).
    for (trial, row) in figures.trial.iter().zip(&found.trials).filter(|(trial, _)| !trial.fit) {
        let most = if trial.set["workload"].as_str() == Some("large") { 1.0 } else { 0.5 };
        let error = row.error("mean_ms").unwrap();
        assert!(error.abs() <= most, "{}: {error}", row.trial);
    }
    let fitted = found.trials.iter().filter(|row| row.fitted);
    fitted.for_each(|row| assert!(row.error("mean_ms").unwrap().abs() <= 0.1, "{row:?}"));
    // Nothing was fitted to deviations and busy counts at all.
    let [deviations, busy] = ["sd_ms", "busy_events"].map(|figure| &found.agreement[figure]);
    assert!(deviations.median_error <= 0.25 && deviations.rank_correlation.unwrap() >= 0.8, "{deviations:?}");
    assert!(busy.median_error <= 0.25 && busy.rank_correlation.unwrap() >= 0.8, "{busy:?}");
}

/// With shared costs a scan pays for entries read and returned and for its batches; at a tablet server also for the
/// storage node.
#[test]
fn shared_costs_add_up() {
    let mean = |sets: &[&str]| {
        let more = ["threads=1", "measured_scans=2000", "clients.scan_ms=0.0", "workload=small"];
        let sets: Vec<String> = [&more[..], sets].concat().iter().map(|s| (*s).to_owned()).collect();
        match Scenario::read(FORECAST, &sets).unwrap() {
            Scenario::Scan(tier) => run(&tier).mean_ms,
            other => panic!("expected a scan tier, found {other:?}"),
        }
    };
    let round = ["costs.read_us=10.0", "costs.return_us=20.0", "costs.request_ms=8.0", "costs.storage_share=0.25"];
    // 184 entries of 30 us, 6 ms of the server, 2 ms of the storage node, 0.3 ms of the client.
    let at_tablet_server = mean(&[&round[..], &["immediate=true"]].concat());
    assert!((at_tablet_server / (5.52 + 8.0 + 0.3) - 1.0).abs() < 0.03, "{at_tablet_server}");
    // A scan server's cores are twice as fast here; the storage node's eight work on one read at a time.
    let elsewhere = mean(&[&round[..], &["costs.scan_server_speed=2.0"]].concat());
    assert!((elsewhere / ((5.52 + 6.0) / 2.0 + 2.0 / 8.0 + 0.3) - 1.0).abs() < 0.03, "{elsewhere}");
}

#[test]
fn costs_are_shared_or_of_each_workload() {
    for (text, set, expected) in [
        (FORECAST, "workloads.large.cpu_ms=3.0", "workloads.large: cpu_ms: expected it or [costs], not both"),
        (FORECAST, "costs.storage_share=2.0", "costs.storage_share = 2: expected 0 to 1"),
        (FORECAST, "costs.storage_cores=0", "costs.storage_cores = 0: expected 1"),
        (FORECAST, "costs.scan_server_speed=0.0", "costs.scan_server_speed = 0"),
        (FORECAST, "costs.read_us=nan", "costs.read_us = NaN"),
    ] {
        let error = Scenario::read(text, &[set.to_owned()]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
    let without: String =
        TIER.lines().filter(|line| !line.starts_with("storage_ms")).map(|line| format!("{line}\n")).collect();
    let error = Scenario::read(&without, &[]).unwrap_err();
    assert!(error.contains("storage_ms is missing: expected it, or a table [costs]"), "{error}");
}

/// Issue 4: for each table one immediate and two eventual rows are given, the others are predicted.
#[test]
fn the_published_tables_of_scan_servers_are_foretold() {
    // Fewer scans than the file specifies: the means move by a few per cent, and the test stays short.
    let scenario = table(TIER, &["warm_up_scans=8".to_owned(), "measured_scans=16".to_owned()]).unwrap();
    let figures = Figures::read(FIGURES, Path::new("")).unwrap();
    for fit in &figures.fit {
        let rows = figures.trial.iter().filter(|t| t.group == fit.group && t.fit);
        let (immediate, eventual): (Vec<_>, Vec<_>) = rows.partition(|t| t.set.contains_key("immediate"));
        assert_eq!((immediate.len(), eventual.len()), (1, 2), "{}", fit.group);
        let residuals = figures.residuals(fit, &scenario).unwrap();
        let mut errors: Vec<f64> = residuals.iter().filter(|r| !r.fit).map(|r| r.error().unwrap().abs()).collect();
        errors.sort_by(f64::total_cmp);
        assert!(errors.len() >= 3 && errors[errors.len() / 2] <= 0.25, "{}: {errors:?}", fit.group);
        assert!(errors.iter().all(|error| *error <= 0.5), "{}: {errors:?}", fit.group);
        let means = |r: &Residual| (r.measured, r.simulated.unwrap().median);
        for (measured_a, simulated_a) in residuals.iter().map(means) {
            for (measured_b, simulated_b) in residuals.iter().map(means) {
                if measured_a > measured_b * 1.3 {
                    assert!(simulated_a > simulated_b, "{}: {measured_a} and {measured_b} change places", fit.group);
                }
            }
        }
    }
}

/// The calibration itself: from other start values, the fit of the middle table returns to the stored ones, and
/// predicts its other rows.
#[test]
fn a_table_of_scan_servers_is_fitted_again_and_its_other_rows_foretold() {
    let stored = table(TIER, &["warm_up_scans=4".to_owned(), "measured_scans=8".to_owned()]).unwrap();
    let mut away = stored.clone();
    for (key, value) in [("workloads.grep.cpu_ms", 90.0), ("workloads.grep.tablet_server_factor", 1.5)] {
        settings::set(&mut away, key, toml::Value::Float(value)).unwrap();
    }
    let figures = Figures::read(FIGURES, Path::new("")).unwrap();
    let fit = figures.fit.iter().find(|fit| fit.group == "grep").unwrap();
    let found = figures.calibrate(fit, &away, 12).unwrap();
    for (key, value) in &found.parameters {
        let ratio = value / settings::number(&stored, key).unwrap();
        assert!((0.85..=1.15).contains(&ratio), "{key} = {value}");
    }
    let foretold: Vec<f64> = found.residuals.iter().filter(|r| !r.fit).map(|r| r.error().unwrap().abs()).collect();
    assert!(foretold.len() == 3 && foretold.iter().all(|error| *error <= 0.25), "{foretold:?}");
}
