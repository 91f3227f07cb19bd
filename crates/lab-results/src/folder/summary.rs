//! Counts and percentiles, updated as records arrive.

use super::Run;
use crate::record::{Micros, Outcome, Phase, Record};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of a group: phase, target, population, request.
pub(super) type Key = (Phase, u16, u16, u16);

/// Groups of records by phase, target, population and request.
#[derive(Debug, Default)]
pub struct Summary {
    groups: BTreeMap<Key, Tally>,
}

/// Histograms of one group, in microseconds with three significant digits.
#[derive(Debug, Clone)]
struct Tally {
    outcomes: [u64; Outcome::ALL.len()],
    retries: u64,
    resends: u64,
    bytes: u64,
    results: u64,
    packets: u64,
    without_results: u64,
    /// First intended time and last end by trial, as each trial has its own clock.
    spans: BTreeMap<u16, (Micros, Micros)>,
    latency: Histogram<u64>,
    naive: Histogram<u64>,
    first_byte: Histogram<u64>,
    first_result: Histogram<u64>,
    last_result: Histogram<u64>,
    in_flight_most: u32,
    details: BTreeMap<String, u64>,
}

/// Percentiles of a time, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Quantiles {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// One group of `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Part of the trial.
    pub phase: String,
    /// Name of the target.
    pub target: String,
    /// Name of the population.
    pub population: String,
    /// Name of the request.
    pub request: String,
    /// Questions: first attempts, sent or not.
    pub arrivals: u64,
    /// Number of retries.
    pub retries: u64,
    /// Requests that the driver sent again because a reused connection was lost before any response. The target may
    /// have received both: it saw the number of requests sent, including these.
    #[serde(default)]
    pub resends: u64,
    /// Records by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// The most frequent reasons for not being sound, and skipped checks.
    pub reasons: BTreeMap<String, u64>,
    /// Sound responses per second of a trial, from its first intended time to its last end; the mean over trials,
    /// weighted by length.
    pub sound_per_s: f64,
    /// Wait for the whole response from the intended time of the question's first attempt, for sound responses.
    pub latency_ms: Quantiles,
    /// The same from the real send, as a client without a schedule would report.
    pub naive_ms: Quantiles,
    /// Wait for the first byte of sound responses.
    pub first_byte_ms: Quantiles,
    /// Wait for the first result of sound responses, or for the end of responses without results.
    pub first_result_ms: Quantiles,
    /// Wait for the last result of sound responses.
    pub last_result_ms: Quantiles,
    /// 95th percentile over all questions, with an infinite wait for those without a sound response; `null` if it is
    /// infinite.
    pub p95_of_all_ms: Option<f64>,
    /// Results in all responses.
    pub results: u64,
    /// Sound responses without a result: a rate of empty responses is no useful rate.
    pub without_results: u64,
    /// Packets in all responses.
    pub packets: u64,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Max requests in flight at a send.
    pub in_flight_most: u32,
}

/// Max reasons that a group lists.
const REASONS: usize = 20;

impl Summary {
    /// Counts one record.
    pub fn add(&mut self, record: &Record) {
        let key = (record.phase, record.target, record.population, record.request);
        self.groups.entry(key).or_insert_with(Tally::new).add(record);
    }

    /// Returns the records so far, and how many did not end with a sound response.
    pub fn progress(&self) -> (u64, u64) {
        let all: u64 = self.groups.values().map(|tally| tally.outcomes.iter().sum::<u64>()).sum();
        let sound: u64 = self.groups.values().map(|tally| tally.outcomes[0]).sum();
        (all, all - sound)
    }

    /// Returns the groups with their names, for `summary.json`.
    pub(super) fn named(&self, names: &Names<'_>) -> Vec<Group> {
        self.groups.iter().map(|(key, tally)| tally.group(names, *key)).collect()
    }

    /// Returns the groups with the names of a run.
    pub fn groups(&self, run: &Run) -> Vec<Group> {
        self.named(&Names::of(run))
    }

    /// Returns all measurements of the groups that `keep` selects (by target, population, request), as one group.
    pub fn measured(&self, run: &Run, keep: impl Fn(u16, u16, u16) -> bool) -> Option<Group> {
        let mut group = self.joined(keep)?.group(&Names::of(run), (Phase::Measured, u16::MAX, u16::MAX, u16::MAX));
        for name in [&mut group.target, &mut group.population, &mut group.request] {
            *name = "all".to_owned();
        }
        Some(group)
    }

    /// Returns a percentile of the wait over all measured questions that `keep` selects, with an infinite wait for
    /// those without a sound response. `None` if it is infinite or there are no questions.
    pub fn percentile_of_all(&self, share: f64, first: bool, keep: impl Fn(u16, u16, u16) -> bool) -> Option<f64> {
        self.joined(keep)?.of_all(share, first)
    }

    fn joined(&self, keep: impl Fn(u16, u16, u16) -> bool) -> Option<Tally> {
        let mut measured = self.groups.iter().filter(|((phase, target, population, request), _)| {
            *phase == Phase::Measured && keep(*target, *population, *request)
        });
        let mut whole = measured.next()?.1.clone();
        measured.for_each(|(_, tally)| whole.join(tally));
        Some(whole)
    }
}

/// The names for the indices.
#[derive(Debug)]
pub(super) struct Names<'a>(&'a Run);

impl<'a> Names<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        Names(run)
    }
}

fn name(names: &[String], index: u16) -> String {
    names.get(usize::from(index)).cloned().unwrap_or_else(|| index.to_string())
}

impl Tally {
    fn new() -> Tally {
        // Resizes itself: a time above the first bucket is rare, but an hour is possible. Three digits are always
        // allowed.
        let empty = || {
            #[expect(clippy::expect_used, reason = "the bounds are constants")]
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << 24, 3).expect("constant bounds are sound");
            histogram.auto(true);
            histogram
        };
        Tally {
            outcomes: [0; Outcome::ALL.len()],
            retries: 0,
            resends: 0,
            bytes: 0,
            results: 0,
            packets: 0,
            without_results: 0,
            spans: BTreeMap::new(),
            latency: empty(),
            naive: empty(),
            first_byte: empty(),
            first_result: empty(),
            last_result: empty(),
            in_flight_most: 0,
            details: BTreeMap::new(),
        }
    }

    fn add(&mut self, record: &Record) {
        self.outcomes[usize::from(record.outcome.code())] += 1;
        self.retries += u64::from(record.attempt > 0);
        self.resends += u64::from(record.resends);
        self.bytes += record.bytes;
        self.results += record.results;
        self.packets += u64::from(record.packets);
        self.span(record.trial, (record.intended, record.done.unwrap_or(record.intended)));
        self.in_flight_most = self.in_flight_most.max(record.in_flight);
        if record.outcome == Outcome::Sound {
            put(&mut self.latency, record.latency());
            put(&mut self.naive, record.naive_latency());
            put(&mut self.first_byte, record.to_first_byte());
            // For a response without results, its end is the time that the user waited for; otherwise such responses
            // would have no time at all.
            put(&mut self.first_result, record.to_something());
            put(&mut self.last_result, record.to_last_result());
            self.without_results += u64::from(record.results == 0);
        }
        if let Some(detail) = &record.detail {
            // Bounded: a target may put a number into each of its error texts.
            let known = self.details.contains_key(detail) || self.details.len() < REASONS;
            let reason = if known { detail } else { "other reasons" };
            match self.details.get_mut(reason) {
                Some(count) => *count += 1,
                None => drop(self.details.insert(reason.to_owned(), 1)),
            }
        }
    }

    /// Widens the span of a trial.
    fn span(&mut self, trial: u16, (from, to): (Micros, Micros)) {
        let (first, last) = self.spans.entry(trial).or_insert((from, to));
        (*first, *last) = ((*first).min(from), (*last).max(to));
    }

    /// Returns the seconds of all trials together. Trials run in sequence, so a rate over them is not a sum of their
    /// rates.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
    fn seconds(&self) -> f64 {
        self.spans.values().map(|(first, last)| (last - first).max(0) as f64 / 1e6).sum()
    }

    fn join(&mut self, other: &Tally) {
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        self.retries += other.retries;
        self.resends += other.resends;
        self.bytes += other.bytes;
        self.results += other.results;
        self.packets += other.packets;
        self.without_results += other.without_results;
        other.spans.iter().for_each(|(trial, span)| self.span(*trial, *span));
        self.in_flight_most = self.in_flight_most.max(other.in_flight_most);
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.naive, &other.naive),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.first_result, &other.first_result),
            (&mut self.last_result, &other.last_result),
        ] {
            // Both resize themselves, so that adding cannot fail.
            let _ = mine.add(theirs);
        }
        for (detail, count) in &other.details {
            *self.details.entry(detail.clone()).or_default() += count;
        }
    }

    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
    fn of_all(&self, share: f64, first: bool) -> Option<f64> {
        // Over all first attempts, answered or not: a percentile of only the sound ones would improve as a server
        // fails more.
        let all: u64 = self.outcomes.iter().sum::<u64>() - self.retries;
        let times = if first { &self.first_result } else { &self.latency };
        // By rank over all: those without a sound response are last, as infinite waits.
        let rank = ((all as f64) * share).ceil().max(1.0) as u64;
        (rank <= times.len()).then(|| ms(times.value_at_quantile(rank as f64 / times.len() as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and microseconds of a run")]
    fn group(&self, names: &Names<'_>, (phase, target, population, request): Key) -> Group {
        let run = names.0;
        let seconds = self.seconds();
        let outcomes = Outcome::ALL.iter().filter(|outcome| self.outcomes[usize::from(outcome.code())] > 0);
        Group {
            phase: phase.name().to_owned(),
            target: name(&run.targets, target),
            population: name(&run.populations, population),
            request: name(&run.requests, request),
            arrivals: self.outcomes.iter().sum::<u64>() - self.retries,
            retries: self.retries,
            resends: self.resends,
            outcomes: outcomes.map(|o| (o.name().to_owned(), self.outcomes[usize::from(o.code())])).collect(),
            reasons: self.details.clone(),
            sound_per_s: if seconds > 0.0 { self.outcomes[0] as f64 / seconds } else { 0.0 },
            latency_ms: quantiles(&self.latency),
            naive_ms: quantiles(&self.naive),
            first_byte_ms: quantiles(&self.first_byte),
            first_result_ms: quantiles(&self.first_result),
            last_result_ms: quantiles(&self.last_result),
            p95_of_all_ms: self.of_all(0.95, false),
            results: self.results,
            without_results: self.without_results,
            packets: self.packets,
            bytes: self.bytes,
            in_flight_most: self.in_flight_most,
        }
    }
}

fn put(times: &mut Histogram<u64>, time: Option<Micros>) {
    if let Some(time) = time {
        // It resizes itself, so that recording cannot fail; its saturating form would cut what is beyond the first
        // size.
        let _ = times.record(u64::try_from(time).unwrap_or(0));
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

fn quantiles(times: &Histogram<u64>) -> Quantiles {
    if times.is_empty() {
        return Quantiles::default();
    }
    let at = |q: f64| ms(times.value_at_quantile(q));
    Quantiles {
        count: times.len(),
        min: ms(times.min()),
        mean: times.mean() / 1_000.0,
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: ms(times.max()),
    }
}
