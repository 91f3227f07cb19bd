//! Retained data of many records.

use super::thinned::POINTS_MAX;
use super::time_line::{BARS_MAX, COLUMNS_MAX};
use super::*;

fn record(n: u32, intended: Micros, took: Micros) -> Record {
    let (sent, done) = (Some(intended + 10), Some(intended + took));
    Record { n, intended, sent, done, in_flight: n % 7, results: u64::from(n % 7), ..Record::default() }
}

#[test]
fn nothing_is_lost_when_stretches_are_joined() {
    let mut digest = Digest::new();
    for n in 0..20_000 {
        digest.add(&record(n, Micros::from(n) * 10_000, 1_000 + Micros::from(n % 7) * 500));
    }
    // 200 s, in at most 160 intervals.
    assert!(digest.flow.stretches.len() <= COLUMNS_MAX && digest.flow.width >= 200_000_000 / COLUMNS_MAX as Micros);
    let flow: u64 = digest.flow.stretches.iter().flatten().sum();
    let line = &digest.lines[&(0, 0)];
    let heat: u64 = line.heat.columns.iter().flat_map(|c| c.values()).map(|n| u64::from(*n)).sum();
    assert_eq!((flow, heat, digest.measured()), (20_000, 20_000, 20_000));
    // Each interval has its own.
    let first = digest.flow.stretches[0].iter().sum::<u64>() as Micros;
    assert_eq!(first, digest.flow.width / 10_000);
    let series = &digest.series[&(0, 0)];
    assert!(series.by_concurrency.points.kept.len() <= POINTS_MAX && line.bars.kept.len() <= BARS_MAX);
}

#[test]
fn the_line_is_that_of_all_points_not_of_those_kept() {
    let mut digest = Digest::new();
    (0..50_000).for_each(|n| digest.add(&record(n, Micros::from(n), 1_000 + Micros::from(n % 7) * 500)));
    let line = digest.series[&(0, 0)].by_concurrency.line().unwrap();
    assert!((line.intercept - 1_000.0).abs() < 1e-6 && (line.slope.value - 500.0).abs() < 1e-6, "{line:?}");
}

#[test]
fn a_time_line_is_of_one_trial_and_population_and_what_is_not_sound_stands_apart() {
    let mut digest = Digest::new();
    for n in 0..300 {
        let (trial, population) = (u16::from(n >= 200), (n % 2) as u16);
        let outcome = if n % 10 == 0 { Outcome::Failed } else { Outcome::Sound };
        let took = if population == 0 { 1_100_000 } else { 1_100 };
        digest.add(&Record { trial, population, outcome, ..record(n, Micros::from(n) * 1_000, took) });
    }
    let classes = |heat: &Heat| -> Vec<(u16, u32)> {
        let mut found = BTreeMap::new();
        heat.columns.iter().flatten().for_each(|(class, n)| *found.entry(*class).or_insert(0) += *n);
        found.into_iter().collect()
    };
    let [load, probe] = [0, 1].map(|population| &digest.lines[&(0, population)]);
    // A second is class 48, a millisecond class 24; of the 200 requests of the first trial a tenth failed, all of the
    // load.
    assert_eq!((classes(&load.heat), classes(&load.not_sound)), (vec![(48, 80)], vec![(48, 20)]));
    assert_eq!((classes(&probe.heat), classes(&probe.not_sound)), (vec![(24, 100)], Vec::new()));
    assert_eq!((load.bars.kept.len(), probe.bars.kept.len()), (100, 100));
}

#[test]
fn only_measured_sound_requests_count_as_fast() {
    let mut digest = Digest::new();
    digest.add(&Record { phase: Phase::WarmUp, ..record(1, 0, 5) });
    digest.add(&Record { outcome: Outcome::Unsound, detail: Some("7 results, 8 due".into()), ..record(2, 10, 5) });
    digest.add(&record(3, 20, 50_000));
    assert_eq!((digest.measured(), digest.with(Outcome::Unsound)), (2, 1));
    assert_eq!(digest.series[&(0, 0)].latency.len(), 1);
    assert!(digest.series[&(0, 0)].latency.min() > 40_000);
    assert_eq!(digest.reasons["7 results, 8 due"], 1);
}
