use super::*;
use crate::record::Record;
use crate::results::{Run, Trial, Writer};
use crate::simulate::draw::Dice;
use std::path::{Path, PathBuf};

fn items() -> Asked {
    Asked { population: "users".to_owned(), request: "items".to_owned(), target: String::new() }
}

fn side(n: usize, mean: f64, seed: u64) -> Side {
    let mut dice = Dice::new(seed);
    let waits = (0..n).map(|_| dice.exponential(mean)).collect();
    Side { name: String::new(), waits: [(items(), Waits::from([(0, waits)]))].into() }
}

fn compared(a: &Side, b: &Side) -> Report {
    Sides { a: a.clone(), b: b.clone(), ..Sides::default() }.compare(1)
}

fn every_fifth_unsound(side: &mut Side) {
    for ms in side.waits.values_mut().flat_map(|waits| waits.values_mut()) {
        ms.iter_mut().step_by(5).for_each(|ms| *ms = f64::INFINITY);
    }
}

#[test]
fn requests_are_compared_by_name_and_what_has_no_partner_is_said() {
    let (a, mut b) = (side(2_000, 10.0, 1), side(2_000, 20.0, 2));
    b.waits.insert(Asked { request: "tiles".to_owned(), ..items() }, Waits::from([(0, vec![1.0; 50])]));
    let report = compared(&a, &b);
    assert!(report.slower() && !compared(&b, &a).slower());
    assert_eq!(report.warnings, ["only B has \"tiles\""]);
    let median = report.rows[0].comparison.as_ref().unwrap();
    assert!(median.ratio.holds(2.0), "{median:?}");
    assert!(report.table().contains("slower"));
}

#[test]
fn too_few_answers_tell_nothing_and_unsound_ones_are_never_fast() {
    let (a, mut b) = (side(300, 10.0, 3), side(300, 10.0, 4));
    let report = compared(&a, &b);
    assert_eq!(report.rows[2].comparison, None);
    assert!(report.table().contains("not told by so few"));
    // A p95 that nobody gets is no matter of how many answers there are.
    let (mut neither, mut nor) = (side(2_000, 10.0, 5), side(2_000, 10.0, 6));
    every_fifth_unsound(&mut neither);
    every_fifth_unsound(&mut nor);
    let neither = compared(&neither, &nor);
    assert_eq!(neither.rows[1].words(), "not told: neither answered so many");
    assert!(neither.rows[0].comparison.is_some() && !neither.slower());
    every_fifth_unsound(&mut b);
    let report = compared(&a, &b);
    assert_eq!(report.rows[1].comparison.as_ref().unwrap().verdict, Verdict::Slower);
    assert!(report.warnings[0].contains("B 20.0 %") && report.table().contains("never"));
}

/// A folder of one trial after the other at these targets; `ms` says how long each of 200 questions of a trial, a target and a
/// population takes in the mean. Chance is the same for both trials of a round.
fn folder(dir: &Path, targets: &[&str], turns: &[u16], ms: impl Fn(u16, u16, u16) -> f64) -> PathBuf {
    let mut writer = Writer::create(dir, "").unwrap();
    for (trial, target) in (0..).zip(turns) {
        for population in 0..2 {
            let mut dice = Dice::new(u64::from(trial / 2 * 2 + population));
            let records = (0..200).map(|n| Record {
                trial,
                target: *target,
                population,
                intended: n * 1_000,
                done: Some(n * 1_000 + (ms(trial, *target, population) * 1e3 * (0.5 + dice.fraction())) as i64),
                ..Record::default()
            });
            writer.push(&records.collect::<Vec<_>>()).unwrap();
        }
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let run = Run {
        targets: names(targets),
        populations: names(&["load", "probe"]),
        requests: names(&["items"]),
        trials: turns.iter().map(|target| Trial { target: *target, ..Trial::default() }).collect(),
        ..Run::default()
    };
    writer.finish(&run).unwrap();
    dir.to_owned()
}

fn verdict(report: &Report, asked: &str) -> Option<Verdict> {
    let row = report.rows.iter().find(|row| row.asked == asked && row.quantile == 0.5).unwrap();
    Some(row.comparison.as_ref()?.verdict)
}

#[test]
fn a_probe_is_not_pooled_with_its_load_nor_one_target_with_another() {
    let dir = tempfile::tempdir().unwrap();
    // The load's answers are as they were, the probe's take twice as long; what is slow at one target is fast at the other.
    let before = folder(&dir.path().join("before"), &["near", "far"], &[0, 1], |_, _, _| 20.0);
    let after = folder(&dir.path().join("after"), &["near", "far"], &[0, 1], |_, target, population| {
        match (target, population) {
            (_, 0) => 20.0,
            (0, _) => 40.0,
            (_, _) => 10.0,
        }
    });
    let report = Sides::of_runs(&before, &after).unwrap().compare(1);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    for (asked, expected) in [
        ("items, load, near", Verdict::NoDifferenceSeen),
        ("items, load, far", Verdict::NoDifferenceSeen),
        ("items, probe, near", Verdict::Slower),
        ("items, probe, far", Verdict::Faster),
    ] {
        assert_eq!(verdict(&report, asked), Some(expected), "{asked}: {}", report.table());
    }
}

#[test]
fn the_two_targets_of_a_run_are_held_against_each_other_round_by_round() {
    let dir = tempfile::tempdir().unwrap();
    // The machine slows down from round to round, by far more than B is slower; the last trial of A has no partner.
    let turns = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0];
    let drift = |trial: u16| 10.0 * 1.5_f64.powi(i32::from(trial / 2));
    let run = folder(&dir.path().join("run"), &["one", "other"], &turns, |trial, target, population| {
        drift(trial) * if target == 1 && population == 1 { 1.3 } else { 1.0 }
    });
    let sides = Sides::of_targets(&run).unwrap();
    assert!(sides.paired);
    let report = sides.compare(1);
    assert_eq!(report.names, ["one", "other"]);
    assert_eq!(report.warnings, ["the last trial has no partner: it is left out"]);
    assert_eq!(verdict(&report, "items, load"), Some(Verdict::NoDifferenceSeen), "{}", report.table());
    assert_eq!(verdict(&report, "items, probe"), Some(Verdict::Slower), "{}", report.table());
    // One after the other is no pair; and one target has nobody to be held against.
    let apart = folder(&dir.path().join("apart"), &["one", "other"], &[0, 0, 1, 1], |_, _, _| 10.0);
    assert!(!Sides::of_targets(&apart).unwrap().paired);
    let alone = folder(&dir.path().join("alone"), &["one"], &[0], |_, _, _| 10.0);
    assert!(Sides::of_targets(&alone).unwrap_err().to_string().contains("1 target(s): expected two"));
}
