//! The report as text: what a reader should know after ten seconds.

use super::digest::{Again, Digest, Series};
use crate::folder::Run;
use crate::picture::{Unit, label};
use crate::record::Outcome;
use crate::stats::mode::{self, Mode, TrialModes};
use crate::stats::percentile::within_histogram;
use crate::stats::{drift, shape};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Share of the wait below which a change is imperceptible.
const FELT: f64 = 0.05;

/// Returns the first paragraph.
pub(super) fn first_paragraph(run: &Run, digest: &Digest) -> String {
    let measured = digest.measured();
    if measured == 0 {
        return "Nothing was measured: the run ended before its measured phase.".to_owned();
    }
    let sound = digest.with(Outcome::Sound);
    let mut said = Vec::new();
    if let Some(why) = run.void.first() {
        said.push(format!("This run is void, and its figures say nothing about the target: {why}."));
    }
    said.push(match run.source.as_str() {
        "simulate" => "These figures are simulated, not measured.".to_owned(),
        _ => format!("{} against {}.", run.name, run.targets.join(" and ")),
    });
    said.push(if sound == measured {
        format!("All {} measured requests had a sound answer.", count(measured))
    } else {
        let rest: Vec<String> = Outcome::ALL[1..]
            .iter()
            .filter(|outcome| digest.with(**outcome) > 0)
            .map(|outcome| format!("{} {}", count(digest.with(*outcome)), outcome.name()))
            .collect();
        format!("{} of {} measured requests had a sound answer ({}).", count(sound), count(measured), rest.join(", "))
    });
    said.extend(empty_in_words(digest));
    said.extend(resends_in_words(digest));
    // A sentence about one of several populations begins with its name.
    let of = |key, words: &str| match digest.series.len() > 1 {
        true => begun(&format!("{}: {}", series_name(run, key), with_first(words, char::to_lowercase))),
        false => begun(words),
    };
    for (key, series) in &digest.series {
        if series.latency.is_empty() {
            continue;
        }
        let at = |q: f64| label(series.latency.value_at_quantile(q) as f64, Unit::Micros);
        let mut sentence = format!("half took at most {}, 95 % {}, 99 % {}", at(0.5), at(0.95), at(0.99));
        let naive = series.naive.value_at_quantile(0.99) as f64;
        let real = series.latency.value_at_quantile(0.99) as f64;
        // Worth a sentence only if it hid a wait that a user would notice.
        if real > naive * 1.25 + 500.0 {
            let naive = label(naive, Unit::Micros);
            sentence +=
                &format!(" (a client that waits for an answer before it asks again would have reported {naive})");
        }
        said.push(of(*key, &format!("{sentence}.")));
    }
    for (key, trials) in courses(digest) {
        said.push(of(key, &modes_in_words(&trials)));
    }
    for (key, series) in &digest.series {
        let more = [shape_in_words(&series.over_time.kept), drift_in_words(&series.over_time.kept)];
        let again = digest.again.get(key).map(|again| again_in_words(again, series));
        said.extend(more.into_iter().chain([again]).flatten().map(|words| of(*key, &words)));
    }
    if let Some(why) = &run.cut_short {
        said.push(format!("The run was cut short: {why}."));
    }
    said.join(" ")
}

/// Returns a note if more than a tenth of the sound responses are empty: a rate of empty responses is no useful rate.
fn empty_in_words(digest: &Digest) -> Option<String> {
    let (mut sound, mut empty) = (0.0, 0.0);
    for series in digest.series.values() {
        // A long run keeps only a sample of the requests.
        let kept = &series.by_results.points.kept;
        let without = kept.iter().filter(|(results, _)| *results == 0.0).count() as f64;
        sound += series.sound as f64;
        empty += series.sound as f64 * without / kept.len().max(1) as f64;
    }
    (empty > 0.1 * sound).then(|| format!("{:.0} % of the sound answers held no result.", empty / sound * 100.0))
}

/// Returns a note if requests were resent: the target may count more than the report does.
fn resends_in_words(digest: &Digest) -> Option<String> {
    let again = digest.resends;
    (again > 0).then(|| {
        format!(
            "{} requests went out again on a new connection, because the target closed a reused one: it may have taken up to {} \
             for the {} measured.",
            count(again),
            count(digest.measured() + again),
            count(digest.measured())
        )
    })
}

/// Describes the measurement repeated after the load, compared with the one before.
fn again_in_words(again: &Again, before: &Series) -> String {
    if again.sound == 0 {
        return "Asked again after the load, it gave no sound answer.".to_owned();
    }
    let half = |latency: &Histogram<u64>| latency.value_at_quantile(0.5) as f64;
    let (now, then) = (half(&again.latency), half(&before.latency));
    let change = match (within_histogram(&again.latency, 0.5), within_histogram(&before.latency, 0.5)) {
        _ if before.latency.is_empty() => String::new(),
        // A difference that is imperceptible, or due to chance, counts as none.
        (Some(a), Some(b)) if a.low > b.high && now > then * (1.0 + FELT) => {
            format!(", {} before: it stayed slower", label(then, Unit::Micros))
        }
        (Some(a), Some(b)) if a.high < b.low && now < then * (1.0 - FELT) => {
            format!(", {} before: it is faster now", label(then, Unit::Micros))
        }
        (Some(_), Some(_)) => ", as before".to_owned(),
        _ => format!(", {} before, too few to distinguish", label(then, Unit::Micros)),
    };
    let sound = match again.sound == again.count {
        true => String::new(),
        false => format!(" {} of {} then had a sound answer.", count(again.sound), count(again.count)),
    };
    format!("Asked again after the load, half took at most {}{change}.{sound}", label(now, Unit::Micros))
}

fn begun(words: &str) -> String {
    with_first(words, char::to_uppercase)
}

/// Capitalises the first letter.
fn with_first<C: Iterator<Item = char>>(words: &str, change: fn(char) -> C) -> String {
    let mut letters = words.chars();
    letters.next().map(change).into_iter().flatten().chain(letters).collect()
}

/// Max stretches reported one by one, and max trials.
const TOLD_MAX: usize = 6;

/// Describes the course of each trial, by target and population.
pub(super) fn courses(digest: &Digest) -> BTreeMap<(u16, u16), Vec<(u16, TrialModes)>> {
    let mut out: BTreeMap<(u16, u16), Vec<(u16, TrialModes)>> = BTreeMap::new();
    for ((trial, target, population), felt) in &digest.courses {
        out.entry((*target, *population)).or_default().push((*trial, mode::course(felt.clone())));
    }
    out
}

/// Describes each trial.
fn modes_in_words(trials: &[(u16, TrialModes)]) -> String {
    let Some(((first, course), others)) = trials.split_first() else { return String::new() };
    let words = mode_in_words(course);
    let modes = |course: &TrialModes| course.stretches.iter().map(|stretch| stretch.mode).collect::<Vec<_>>();
    let unlike: Vec<_> = others.iter().filter(|(_, other)| modes(other) != modes(course)).collect();
    if unlike.is_empty() {
        return match others.len() {
            0 => words,
            1 => format!("{words} The other trial was similar."),
            n => format!("{words} The other {n} trials were similar."),
        };
    }
    let mut said = vec![format!("Trial {}: {}", first + 1, with_first(&words, char::to_lowercase))];
    said.extend(
        unlike.iter().take(TOLD_MAX).map(|(trial, course)| format!("Trial {}: {}.", trial + 1, summed(course))),
    );
    let rest = others.len() - unlike.len().min(TOLD_MAX);
    if rest > 0 {
        let how = if unlike.len() > TOLD_MAX { "are in the pictures" } else { "went like the first" };
        said.push(format!("{rest} more {how}."));
    }
    said.join(" ")
}

/// Lists the consecutive modes of a trial.
pub(super) fn summed(course: &TrialModes) -> String {
    let mut words: Vec<&str> = course.stretches.iter().take(TOLD_MAX).map(|stretch| stretch.mode.word()).collect();
    if course.stretches.len() > TOLD_MAX {
        words.push("and so on");
    }
    words.join(", ")
}

fn mode_in_words(course: &TrialModes) -> String {
    let lost: u32 = course.bursts.iter().map(|burst| burst.lost).sum();
    let mut said = match course.stretches.as_slice() {
        [] => "No request had a wait.".to_owned(),
        [one] if one.mode == Mode::Flat => "The wait stayed flat.".to_owned(),
        [one] if one.mode == Mode::Growing => {
            let growth = one.growth.map_or(0.0, |line| line.slope.value);
            format!("The wait grew by {} with each request.", label(growth * 1e6, Unit::Micros))
        }
        [_] => String::new(),
        many => {
            let told = many.iter().take(TOLD_MAX).map(|stretch| {
                let growth = stretch.growth.map_or_else(String::new, |line| {
                    format!(" by {} a request", label(line.slope.value * 1e6, Unit::Micros))
                });
                format!("{}{growth} up to {}", stretch.mode.word(), label(stretch.end_s * 1e6, Unit::Micros))
            });
            let mut told: Vec<String> = told.collect();
            if many.len() > TOLD_MAX {
                told.push(format!("and so on, {} stretches in all", many.len()));
            }
            format!("The wait over the trial was: {}.", told.join(", "))
        }
    };
    said += &stalls_in_words(course);
    if let Some(first) = course.first_failure {
        let bursts = course.bursts.len();
        said += &format!(
            " Request {first} was the first without an answer; {} had none in all, in {bursts} burst{}.",
            count(u64::from(lost)),
            if bursts == 1 { "" } else { "s" }
        );
    }
    said.trim_start().to_owned()
}

/// Lists when it stalled and for how long; if there are many, the longest come first.
fn stalls_in_words(course: &TrialModes) -> String {
    let mut longest: Vec<&mode::Stall> = course.stalls.iter().collect();
    longest.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    let rest = longest.len().saturating_sub(TOLD_MAX);
    longest.truncate(TOLD_MAX);
    longest.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let told = longest.iter().map(|stall| {
        let [at, length] = [stall.start_s, stall.length_s].map(|s| label(s * 1e6, Unit::Micros));
        format!(
            " It stalled at {at}: nothing was answered for {length}, {} requests waited.",
            count(u64::from(stall.waited))
        )
    });
    let more = if rest > 0 { format!(" {rest} more stalls were shorter.") } else { String::new() };
    told.collect::<String>() + &more
}

/// Returns a note if there is more than one kind of response.
fn shape_in_words(over_time: &[(f64, f64)]) -> Option<String> {
    let took: Vec<f64> = over_time.iter().map(|(_, latency)| *latency).collect();
    let (at, below) = shape::of(&took, 1).filter(|shape| shape.humps > 1)?.split?;
    let at = label(at, Unit::Micros);
    Some(format!(
        "There are two kinds of answers: {:.0} % took less than {at}, the others form a separate hump.",
        below * 100.0
    ))
}

/// Returns a note if latency drifted noticeably.
fn drift_in_words(over_time: &[(f64, f64)]) -> Option<String> {
    let seconds: Vec<(f64, f64)> = over_time.iter().map(|(at, latency)| (at / 1e6, *latency)).collect();
    let drift = drift::of(&seconds).filter(|drift| drift.drifts && drift.share.abs() >= FELT)?;
    let (how, share) = (if drift.share > 0.0 { "longer" } else { "shorter" }, drift.share.abs() * 100.0);
    Some(format!("Answers took {how} towards the end of the measured phase, by {share:.0} %."))
}

/// Returns the table of series: header and rows.
pub(super) fn table(run: &Run, digest: &Digest) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let header =
        vec!["", "requests", "sound", "p50", "p95", "p99", "p99.9", "most", "first result p50", "last result p50"];
    let rows = digest.series.iter().map(|(key, series)| {
        let at = |histogram: &hdrhistogram::Histogram<u64>, q: f64| match histogram.is_empty() {
            true => "–".to_owned(),
            false => label(histogram.value_at_quantile(q) as f64, Unit::Micros),
        };
        let latency = |q| {
            let interval = series.interval(q).map(|found| format!("\n({})", span(found.low.max(0.0), found.high)));
            // One line each: they must not be broken.
            format!("{}{}", at(&series.latency, q), interval.unwrap_or_default()).replace(' ', "\u{a0}")
        };
        vec![
            series_name(run, *key),
            count(series.count),
            count(series.sound),
            latency(0.5),
            latency(0.95),
            latency(0.99),
            latency(0.999),
            at(&series.latency, 1.0),
            at(&series.first_result, 0.5),
            at(&series.last_result, 0.5),
        ]
    });
    (header, rows.collect())
}

/// Formats two times, with a common unit once.
fn span(low: f64, high: f64) -> String {
    let (low, high) = (label(low, Unit::Micros), label(high, Unit::Micros));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Returns the name of a series: its population, and its target if there are several.
pub(super) fn series_name(run: &Run, (target, population): (u16, u16)) -> String {
    let name = |names: &[String], at: u16, what: &str| {
        names.get(usize::from(at)).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("{what} {at}"))
    };
    let population = name(&run.populations, population, "population");
    if run.targets.len() < 2 {
        return population;
    }
    format!("{}, {population}", name(&run.targets, target, "target"))
}

/// Formats a number with thousands separators.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
