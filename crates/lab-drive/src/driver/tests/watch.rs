//! The lab as its own limit: interference with its thread is detected, and makes the run void. Tests of descriptors
//! are in `crates/cli/tests/program/lab.rs`, because their limit applies to the whole process.

use super::*;
use meridian_lab_results::folder::RunMetrics;

/// Returns why a run was void whose thread was blocked at each progress report, and the lab's observations.
fn hindered(arrival: &str, limits: &str, hinder: fn()) -> (Vec<String>, RunMetrics) {
    let server = serve(|_, _, stream| ok(stream));
    let dir = tempfile::tempdir().expect("a folder");
    let text = scenario(&server.url, arrival, &format!("[phases]\nmeasured_s = 2\n[limits]\n{limits}\n"));
    let parsed = Scenario::parse(&text, "t", &[]).expect("a scenario");
    let options = Options { out: dir.path().join("run"), ..Options::default() };
    let outcome = run(&parsed, &options, &mut |_| hinder()).expect("runs");
    (outcome.run.void, outcome.run.lab)
}

const OPEN: &str = "kind = \"constant\"\nrate = 200";
const CLOSED: &str = "kind = \"closed\"\nusers = 2\nthink_s = 0.01";
/// Limits other than the watched ones.
const CALM: &str = "other_load = 1e3";

#[test]
fn a_loop_that_is_held_up_is_late_whether_arrivals_have_a_schedule_or_not() {
    for arrival in [OPEN, CLOSED] {
        let (void, seen) = hindered(arrival, CALM, || std::thread::sleep(Duration::from_millis(300)));
        assert_eq!(void.len(), 1, "{void:?}");
        assert!(void[0].starts_with("the lab was late"), "{void:?}");
        // Blocked for 300 of every 500 ms: the longest wait has that length.
        assert!(seen.late_max_ms > 250.0 && seen.late_p99_ms > 100.0, "{seen:?}");
        let (void, _) = hindered(arrival, &format!("late_ms = 1e6\n{CALM}"), || ());
        assert!(void.is_empty(), "{void:?}");
    }
}

#[test]
fn a_thread_that_has_no_time_left_is_the_limit() {
    let spin = || {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(495) {
            std::hint::spin_loop();
        }
    };
    let (void, seen) = hindered(CLOSED, "late_ms = 1e6\nother_load = 0.01", spin);
    // All of its time is either worked or, on a busy machine, spent waiting or taken by the host.
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    assert!(seen.driver_cpu + seen.driver_starved + seen.steal * cores > 0.9, "{seen:?}");
    let own = ["the lab's own core was the limit", "the lab waited for a processor", "the host took"];
    assert!(void.iter().any(|why| own.iter().any(|own| why.starts_with(own))), "{void:?} {seen:?}");
    // Open arrivals wait busily for their time: that is not a limit.
    let (void, seen) = hindered(OPEN, &format!("late_ms = 1e6\n{CALM}"), || ());
    assert!(void.is_empty() && seen.arrivals == 400, "{void:?} {seen:?}");
}
