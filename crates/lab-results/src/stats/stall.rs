//! Stalls: periods without any response, though requests wait.
//!
//! A server may stop for two seconds and continue (garbage collection, a disk that hangs, a lock). That leaves few
//! long waits among many short ones. Only the last percentile shows it, and no line through the waits rises. The
//! arrival times of responses reveal it: none for a long time, then those to all requests that waited meanwhile.

use super::timing::RequestTiming;
use crate::record::Micros;
use serde::{Deserialize, Serialize};

/// A period without a response.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// When the last response before it arrived, or the first request that waited in it was due; seconds of the trial.
    pub start_s: f64,
    /// Seconds until the next response.
    pub length_s: f64,
    /// Number of requests that waited at its end.
    pub waited: u32,
}

impl Stall {
    /// Returns when it ended, in seconds of the trial.
    pub fn end_s(&self) -> f64 {
        self.start_s + self.length_s
    }
}

/// Min length: users do not notice shorter stops, and shared machines pause for as long now and then.
const MIN_US: Micros = 200_000;
/// Factor from the usual time between two responses, or from the wait of three quarters of the requests, to a stall.
const TIMES: f64 = 10.0;
/// Factor from the wait of the fastest tenth of the requests to a stall. A response that takes a second is not a stall
/// of a second.
const SERVED: f64 = 3.0;
/// Min requests that waited for at least half of it; fewer are enough if such gaps are rare.
const WAITED: u32 = 3;
const RARE: usize = 3;
/// Max stalls reported, longest first.
const MAX_STALLS: usize = 50;

/// Finds the stalls of a trial from the due and response times of its requests, in order of time.
pub(super) fn of(timings: &[RequestTiming]) -> Vec<Stall> {
    let mut answers: Vec<(Micros, Micros)> =
        timings.iter().filter_map(|one| Some((one.answered?, one.intended))).collect();
    answers.sort_unstable();
    let (Some(usual), Some(first)) = (unusual(timings, &answers), timings.iter().map(|one| one.intended).min()) else {
        return Vec::new();
    };
    let min_gap = usual.max(MIN_US as f64);
    let mut gaps = gaps(&answers, first);
    gaps.retain(|(from, to)| (to - from) as f64 >= min_gap);
    // The longest first, since only the first few are reported.
    gaps.sort_by_key(|(from, to)| from - to);
    gaps.truncate(MAX_STALLS);
    let rare = gaps.len() <= RARE;
    let told = gaps.into_iter().filter_map(|(from, to)| {
        // All requests due before the end and answered after it: those of the first half waited for the rest of it.
        let waited = |until: Micros| answers.iter().filter(|(answer, due)| *answer >= to && *due < until).count();
        let waited = |until: Micros| u32::try_from(waited(until)).unwrap_or(u32::MAX);
        (rare || waited(from + (to - from) / 2) >= WAITED).then(|| Stall {
            start_s: from as f64 / 1e6,
            length_s: (to - from) as f64 / 1e6,
            waited: waited(to),
        })
    });
    let mut out: Vec<Stall> = told.collect();
    out.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    out
}

/// Returns gaps between responses, restricted to times with waiting requests: an idle server does not stall.
fn gaps(answers: &[(Micros, Micros)], first: Micros) -> Vec<(Micros, Micros)> {
    let mut out = Vec::new();
    let mut earliest = Micros::MAX;
    for (at, (answer, due)) in answers.iter().enumerate().rev() {
        // A time without responses is a stall only while a request waits: a gap begins when the first of those
        // answered after it was due.
        earliest = earliest.min(*due);
        let before = at.checked_sub(1).map_or(first, |before| answers[before].0);
        out.push((before.max(earliest), *answer));
    }
    out
}

/// Returns the length from which a gap is unusual. The usual gap is the length up to which gaps make up half of the
/// trial's time. If requests are few, so that gaps are those of their arrivals, it is the wait of three quarters of
/// them. The smaller of both counts, times its factor; `None` if there is too little data.
fn unusual(timings: &[RequestTiming], answers: &[(Micros, Micros)]) -> Option<f64> {
    let mut between: Vec<Micros> = answers.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let mut waits: Vec<Micros> = timings.iter().filter_map(|one| one.wait).collect();
    // This few cannot show what is usual.
    if waits.len() < 10 {
        return None;
    }
    between.sort_unstable();
    waits.sort_unstable();
    let whole: Micros = between.iter().sum();
    let mut passed = 0;
    let half = between.into_iter().find(|gap| {
        passed += gap;
        2 * passed >= whole
    });
    let often = half?.min(waits[waits.len() * 3 / 4]) as f64 * TIMES;
    Some(often.max(waits[waits.len() / 10] as f64 * SERVED))
}

/// Returns for each request, in order of number, whether a stall delayed it. A delayed one was due before the end and
/// answered after it, or arrived while the backlog was processed. Processing the backlog lasts at most as long as the
/// stall.
pub(super) fn caught(timings: &[RequestTiming], stalls: &[Stall]) -> Vec<bool> {
    let mut out = vec![false; timings.len()];
    let mut waits: Vec<Micros> = timings.iter().filter_map(|one| one.wait).collect();
    waits.sort_unstable();
    // Longer than twice the median is not usual.
    let usual = waits.get(waits.len() / 2).map_or(0, |median| 2 * median);
    let us = |s: f64| (s * 1e6).round() as Micros;
    for stall in stalls {
        let (from, to) = (us(stall.start_s), us(stall.end_s()));
        let held = |one: &RequestTiming| one.intended >= from - usual && one.intended < to && one.answered >= Some(to);
        let Some(first) = timings.iter().position(held) else { continue };
        let end = first + timings[first..].iter().take_while(|one| one.intended < to).count();
        let late = |one: &&RequestTiming| one.intended < to + (to - from) && one.wait.is_none_or(|wait| wait > usual);
        let end = end + timings[end..].iter().take_while(late).count();
        // Requests without results are left out: they are a separate failure, which the line of the stall must not
        // hide.
        out[first..end].iter_mut().zip(&timings[first..end]).for_each(|(caught, one)| *caught = one.wait.is_some());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::mode::{self, Mode};
    use crate::random::SeededRng;
    use crate::record::{Outcome, Record};

    /// Simulates a server of `workers` with log-normal services around `median` seconds (sigma). It stops from 4 s on
    /// for `stop` seconds, and gets requests at a rate for ten seconds.
    fn trial(rate: f64, (workers, median, sigma): (usize, f64, f64), stop: f64, seed: u64) -> mode::TrialModes {
        let mut rng = SeededRng::new(seed);
        let mut free = vec![0.0_f64; workers];
        let mut records = Vec::new();
        for n in 0..(rate * 10.0) as u32 {
            let due = f64::from(n) / rate;
            let noise = (0..12).map(|_| rng.fraction()).sum::<f64>() - 6.0;
            let worker = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            let begun = worker.max(due);
            let mut end = begun + median * (sigma * noise).exp();
            if end > 4.0 && begun < 4.0 + stop {
                end += if begun < 4.0 { stop } else { 4.0 + stop - begun };
            }
            *worker = end;
            let us = |s: f64| (s * 1e6) as i64;
            records.push(Record { n, intended: us(due), done: Some(us(end)), ..Record::default() });
        }
        mode::of(&records)
    }

    #[test]
    fn a_server_that_stops_for_two_seconds_is_named_with_its_time_and_length() {
        for (rate, server) in
            [(100.0, (64, 0.005, 0.3)), (1_000.0, (64, 0.005, 0.3)), (100.0, (4, 0.02, 0.5)), (5.0, (8, 0.005, 0.3))]
        {
            let course = trial(rate, server, 2.0, 1);
            assert_eq!(course.mode, Mode::Stall, "{rate}: {:?}", course.stretches);
            let [stall] = course.stalls[..] else { panic!("{rate}: {:?}", course.stalls) };
            assert!((3.8..=4.2).contains(&stall.start_s) && (1.75..=2.25).contains(&stall.length_s), "{stall:?}");
            assert!(f64::from(stall.waited) >= rate * 1.7, "{stall:?}");
            let modes: Vec<Mode> = course.stretches.iter().map(|stretch| stretch.mode).collect();
            assert_eq!(modes, [Mode::Flat, Mode::Stall, Mode::Flat], "{rate}: {:?}", course.stretches);
        }
    }

    #[test]
    fn a_server_that_only_varies_does_not_stall() {
        for seed in 0..20 {
            for (rate, server) in [
                (100.0, (64, 0.02, 0.8)),
                (150.0, (4, 0.02, 0.5)),
                (2.0, (8, 0.1, 0.5)),
                (20.0, (1, 0.02, 0.5)),
                (240.0, (4, 0.02, 0.1)),
            ] {
                let course = trial(rate, server, 0.0, seed);
                assert!(course.stalls.is_empty(), "{rate}: {:?}", course.stalls);
            }
        }
    }

    #[test]
    fn one_user_who_waits_two_seconds_once_met_a_stall_and_slow_kinds_of_answers_are_none() {
        let closed = |slow: &dyn Fn(u32) -> bool| {
            let mut now = 0;
            let mut record = |n: u32| {
                let wait = if slow(n) { 2_000_000 } else { 10_000 };
                let intended = now;
                now += wait;
                Record { n, intended, done: Some(now), outcome: Outcome::Sound, ..Record::default() }
            };
            mode::of(&(0..500).map(&mut record).collect::<Vec<_>>())
        };
        let once = closed(&|n| n == 200);
        assert_eq!((once.mode, once.stalls.len()), (Mode::Stall, 1));
        assert_eq!((once.stalls[0].start_s, once.stalls[0].length_s), (2.0, 2.0));
        assert!(closed(&|n| n % 20 == 7).stalls.is_empty());
    }

    #[test]
    fn a_stall_does_not_pass_for_growth_and_growth_is_seen_beside_it() {
        // It stops near the end, where a line through all waits would rise.
        let late = |growth_us: i64| {
            let record = |n: u32| {
                let due = i64::from(n) * 10_000;
                let wait = 5_000 + growth_us * i64::from(n);
                let done = if (8_000_000..10_000_000).contains(&(due + wait)) { 10_000_000 + wait } else { due + wait };
                Record { n, intended: due, done: Some(done), ..Record::default() }
            };
            mode::of(&(0..1_200).map(record).collect::<Vec<_>>())
        };
        assert_eq!(late(0).mode, Mode::Stall);
        let growing = late(100);
        assert_eq!((growing.mode, growing.stalls.len()), (Mode::Growing, 1));
    }
}
