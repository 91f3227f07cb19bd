//! The simulator: one seed determines a schedule of writes, jobs, crashes, failing disks and damage, which drives the
//! real store over a disk in memory. After each step the store's content is compared with the naive model.
//!
//! Invariants (`docs/simulation.md` describes them):
//! - an acknowledged write is never lost, even in part; a refused one is absent;
//! - a write whose sync failed is, after a restart, present completely or not at all;
//! - errors occur only while the disk fails or holds damage, and name the file;
//! - undamaged data stays served, and once the damage is undone everything is back.
//!
//! Environment: `MERIDIAN_SEEDS=from..to` (seeds to run), `MERIDIAN_KEEP=0-3,7` (only these steps of each),
//! `MERIDIAN_SIM_SECONDS` (as many seeds as fit, starting at a random one).

mod damage;
mod run;
mod steps;
mod takeover;

use run::{Outcome, Run};
use std::time::{Duration, Instant};
use steps::{Step, parse_kept, print_kept, schedule};

/// Number of steps in a schedule.
const STEPS: usize = 60;
/// Max runs to shorten a failing schedule.
const CUTS_MAX: usize = 300;

/// Runs the kept steps of a seed; `Err` has the failed step and the reason.
fn run(seed: u64, kept: &[usize]) -> Outcome {
    let steps = schedule(seed, STEPS);
    let steps: Vec<Step> = kept.iter().filter_map(|at| steps.get(*at)).copied().collect();
    Run::all(seed, &steps)
}

fn all_steps() -> Vec<usize> {
    let kept = std::env::var("MERIDIAN_KEEP").ok();
    kept.map_or_else(|| (0..STEPS).collect(), |text| parse_kept(&text).expect("MERIDIAN_KEEP is like 0-3,7"))
}

/// Shortens a failing schedule: removes steps (in runs of halves, quarters...) while it still fails.
fn cut(seed: u64, failed_at: usize) -> Vec<usize> {
    let mut kept = all_steps();
    kept.truncate(failed_at + 1);
    let (mut width, mut tries) = (kept.len().div_ceil(2), 0);
    while width > 0 && tries < CUTS_MAX {
        let (mut from, mut shorter) = (0, false);
        while from < kept.len() && tries < CUTS_MAX {
            let mut fewer = kept.clone();
            fewer.drain(from..kept.len().min(from + width));
            tries += 1;
            match run(seed, &fewer).failure {
                Some((at, _)) => {
                    fewer.truncate(at + 1);
                    (kept, shorter) = (fewer, true);
                }
                None => from += width,
            }
        }
        width = if shorter && width == 1 { 1 } else { width / 2 };
    }
    kept
}

/// Fails the test with the shortest schedule found.
fn report(seed: u64, outcome: Outcome) {
    let Some((at, what)) = outcome.failure else { return };
    let kept = cut(seed, at);
    let shortest = run(seed, &kept);
    let mut text = format!("seed {seed}: {what}\n(after step {at}; cut down to {} steps:)\n", kept.len());
    shortest.log.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    if let Some((_, what)) = shortest.failure {
        text.push_str(&format!("  {what}\n"));
    }
    text.push_str(&format!(
        "repeat it: MERIDIAN_SEEDS={seed}..{} MERIDIAN_KEEP={} cargo test -p meridian-store --test store sim::seeds",
        seed + 1,
        print_kept(&kept)
    ));
    panic!("{text}");
}

#[test]
fn seeds_agree_with_the_model() {
    if let Some(seconds) = std::env::var("MERIDIAN_SIM_SECONDS").ok().and_then(|s| s.parse().ok()) {
        return as_many_as_fit(Duration::from_secs(seconds));
    }
    let range = std::env::var("MERIDIAN_SEEDS").unwrap_or_else(|_| "0..200".to_owned());
    let parse = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse::<u64>().ok()?..to.parse::<u64>().ok()?)
    };
    let seeds = parse(&range).expect("MERIDIAN_SEEDS is like 0..200");
    repeats(seeds.start);
    for seed in seeds {
        report(seed, run(seed, &all_steps()));
    }
}

/// Checks that one seed always gives the same run: otherwise a failing seed proves nothing.
fn repeats(seed: u64) {
    let (first, second) = (run(seed, &all_steps()), run(seed, &all_steps()));
    for (a, b) in first.log.iter().zip(&second.log) {
        assert_eq!(a, b, "seed {seed} gives two runs");
    }
    assert_eq!((first.trace, first.log), (second.trace, second.log), "seed {seed} gives two runs");
}

fn as_many_as_fit(time: Duration) {
    let (from, start) = (seed_of_the_hour(), Instant::now());
    repeats(from);
    let mut count = 0;
    while start.elapsed() < time {
        let seed = from + count;
        report(seed, run(seed, &all_steps()));
        count += 1;
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{count} seeds from {from} on, {rate:.1} a second: all agree with the model");
}

/// Returns the first seed of a long run, which differs each time.
fn seed_of_the_hour() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |d| d.as_millis() as u64 % 1_000_000_000_000)
}

#[test]
fn one_seed_gives_one_run() {
    let traces = |seed| {
        let outcome = run(seed, &(0..STEPS).collect::<Vec<_>>());
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        (outcome.log, outcome.trace)
    };
    let mut all = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let first = traces(seed);
        let second = traces(seed);
        for (a, b) in first.0.iter().zip(&second.0) {
            assert_eq!(a, b, "seed {seed}");
        }
        assert_eq!(first, second, "seed {seed}");
        all.insert(first.1);
    }
    assert_eq!(all.len(), 20, "different seeds give different runs");
}
