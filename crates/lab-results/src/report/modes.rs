//! The modes of each trial over its time: flat, stall, growing, timing out.

use super::captioned::{Picture, time_axis};
use super::digest::{COURSES_MAX, Digest};
use super::words::{count, courses, series_name, summed};
use crate::folder::Run;
use crate::picture::{Axis, BAD, COLOURS, GOOD, Marks, Plot, QUIET, Scale, Unit, label};
use crate::stats::mode::{Mode, RequestTiming, Stretch, TrialModes};

/// Max trials drawn of a series, and points over all of them.
const TRIALS_MAX: usize = 12;
const POINTS_MAX: usize = 1_500;
/// Max bursts reported one by one.
const BURSTS_MAX: usize = 20;
/// Min width of a band, as a share of the time line; shorter stretches do not end it.
const NARROW: f64 = 0.0025;

/// Plots the wait of each request of each trial, coloured by its mode, with its growth.
pub(super) fn modes(run: &Run, digest: &Digest) -> Vec<Picture> {
    let mut out = Vec::new();
    for (key, trials) in courses(digest) {
        let points = POINTS_MAX / trials.len().clamp(1, TRIALS_MAX);
        for (trial, course) in trials.iter().take(TRIALS_MAX) {
            let Some(timings) = digest.courses.get(&(*trial, key.0, key.1)) else { continue };
            let of_trial = if trials.len() > 1 { format!(", trial {}", trial + 1) } else { String::new() };
            let Some((plot, mut caption)) =
                drawn(&format!("{}{of_trial}", series_name(run, key)), course, timings, points)
            else {
                continue;
            };
            if digest.in_courses > COURSES_MAX {
                caption += &format!(" Of the run's first {} requests.", count(COURSES_MAX as u64));
            }
            if trials.len() > TRIALS_MAX && *trial == trials[TRIALS_MAX - 1].0 {
                caption += &format!(" {} more trials are not drawn.", trials.len() - TRIALS_MAX);
            }
            let name = match *trial == trials[0].0 {
                true => format!("mode-{}-{}", key.0, key.1),
                false => format!("mode-{}-{}-trial-{}", key.0, key.1, trial + 1),
            };
            out.push(Picture { name, caption, plot });
        }
    }
    out
}

fn drawn(name: &str, course: &TrialModes, timings: &[RequestTiming], most: usize) -> Option<(Plot, String)> {
    let points: Vec<(f64, f64)> =
        timings.iter().filter_map(|one| Some((one.intended as f64, one.wait? as f64))).collect();
    if points.len() < 3 {
        return None;
    }
    let x = time_axis(timings.iter().map(|one| one.intended as f64));
    let y = Axis::over("wait for the first result", Unit::Micros, Scale::Linear, points.iter().map(|p| p.1));
    let (long, high) = (x.range.1, y.range.1);
    let mut plot = Plot::new(format!("{name}: {}", summed(course)), x, y);
    plot.size.1 = 300;
    let bands = bands(&course.stretches, long * NARROW);
    for (mode, colour) in
        [(Mode::Flat, GOOD), (Mode::Stall, "#cc79a7"), (Mode::Growing, "#e69f00"), (Mode::TimingOut, BAD)]
    {
        let of_mode = bands.iter().filter(|band| band.0 == mode);
        let marks: Vec<_> = of_mode.map(|(_, from, to)| (*from, 0.0, *to, high, 0.22)).collect();
        if !marks.is_empty() {
            plot = plot.with(mode.word(), colour, Marks::Heat(marks));
        }
    }
    let step = points.len().div_ceil(most.max(1)).max(1);
    let shown = if step > 1 { format!(" (1 of {step} shown)") } else { String::new() };
    let kept = points.iter().step_by(step).copied().collect();
    plot = plot.with(format!("wait for the first result{shown}"), COLOURS[0], Marks::Points(kept));
    let due = DueTimes::of(timings);
    let mut caption = String::new();
    for stretch in course.stretches.iter().filter(|stretch| stretch.mode == Mode::Growing).take(BURSTS_MAX) {
        let Some(line) = stretch.growth else { continue };
        let ends = [stretch.from_n, stretch.from_n.saturating_add(stretch.requests).saturating_sub(1)];
        let wait = |n: u32| (line.intercept + line.slope.value * f64::from(n)) * 1e6;
        plot = plot.and(QUIET, Marks::Line(ends.map(|n| (due.at(n), wait(n))).to_vec(), true));
        let [value, low, high] =
            [line.slope.value, line.slope.low, line.slope.high].map(|s| label(s * 1e6, Unit::Micros));
        let from = label(stretch.start_s * 1e6, Unit::Micros);
        caption += &format!("From {from} on the wait grows by {value} a request ({low} to {high}). ");
    }
    for stall in course.stalls.iter().take(BURSTS_MAX) {
        let [from, length] = [stall.start_s, stall.length_s].map(|s| label(s * 1e6, Unit::Micros));
        caption += &format!("A stall at {from}: nothing was answered for {length}, {} requests waited. ", stall.waited);
    }
    if let Some(first) = course.first_failure {
        caption += &format!("Request {first} is the first without an answer. ");
    }
    for burst in course.bursts.iter().take(BURSTS_MAX) {
        let start = label(burst.start_s * 1e6, Unit::Micros);
        let restart = burst.restart_s.map_or("never came back".to_owned(), |s| {
            format!("came back with a wait of {}", label(s * 1e6, Unit::Micros))
        });
        caption += &format!("After {} (at {start}): {} lost, {restart}. ", burst.after_n, burst.lost);
    }
    if course.bursts.len() > BURSTS_MAX {
        caption += &format!("{} more bursts. ", course.bursts.len() - BURSTS_MAX);
    }
    if caption.is_empty() {
        caption = "The wait is constant.".to_owned();
    }
    Some((plot, caption.trim_end().to_owned()))
}

/// Converts stretches to bands of time, in microseconds. Consecutive short ones become one with the worst of their
/// modes: they could not be distinguished and would enlarge the file.
fn bands(stretches: &[Stretch], narrow: f64) -> Vec<(Mode, f64, f64)> {
    let mut out: Vec<(Mode, f64, f64)> = Vec::new();
    for stretch in stretches {
        let [from, to] = [stretch.start_s, stretch.end_s].map(|s| (s * 1e6).round());
        match out.last_mut() {
            Some(last) if last.2 - last.1 < narrow && to - from < narrow => {
                *last = (last.0.max(stretch.mode), last.1, to);
            }
            _ => out.push((stretch.mode, from, to)),
        }
    }
    out
}

/// Due time of each request, by its number. The first measured one need not be number one: some are of the warm-up.
struct DueTimes(Vec<(u32, f64)>);

impl DueTimes {
    fn of(timings: &[RequestTiming]) -> DueTimes {
        let mut due: Vec<(u32, f64)> = timings.iter().map(|one| (one.n, one.intended as f64)).collect();
        due.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        DueTimes(due)
    }

    /// Returns when the request was due or, if it is missing, the next one.
    fn at(&self, n: u32) -> f64 {
        let at = self.0.partition_point(|(number, _)| *number < n);
        self.0.get(at).or(self.0.last()).map_or(0.0, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, Record};

    /// A hundred requests, 10 ms apart, that wait 5 ms; the listed ones get no results.
    fn trial(digest: &mut Digest, trial: u16, lost: &[u32]) {
        for n in 101..=200_u32 {
            let got = !lost.contains(&n);
            digest.add(&Record {
                trial,
                n,
                intended: i64::from(n) * 10_000,
                first_result: got.then_some(i64::from(n) * 10_000 + 5_000),
                done: Some(i64::from(n) * 10_000 + 5_000),
                outcome: if got { Outcome::Sound } else { Outcome::Failed },
                ..Record::default()
            });
        }
    }

    fn layer(picture: &Picture, name: &str) -> Vec<(f64, f64)> {
        let found = picture.plot.layers.iter().find(|layer| layer.name.as_deref() == Some(name));
        match found.map(|layer| &layer.marks) {
            Some(Marks::Heat(bands)) => bands.iter().map(|(from, _, to, ..)| (*from, *to)).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_trial_is_coloured_by_its_stretches_where_they_were_though_a_warm_up_came_before() {
        let mut digest = Digest::new();
        trial(&mut digest, 0, &[150]);
        trial(&mut digest, 1, &[]);
        let pictures = modes(&Run::default(), &digest);
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["mode-0-0", "mode-0-0-trial-2"]);
        assert_eq!(layer(&pictures[0], "timing out"), [(1_500_000.0, 1_510_000.0)]);
        assert_eq!(layer(&pictures[0], "flat"), [(1_010_000.0, 1_500_000.0), (1_510_000.0, 2_000_000.0)]);
        assert!(pictures[0].caption.contains("After 149 (at 1.5 s): 1 lost, came back with a wait of 5 ms"));
        assert_eq!(layer(&pictures[1], "flat"), [(1_010_000.0, 2_000_000.0)]);
        assert!(layer(&pictures[1], "timing out").is_empty());
        let words = super::super::words::first_paragraph(&Run::default(), &digest);
        for said in [
            "Trial 1: the wait over the trial was: flat up to 1.5 s, timing out up to 1.51 s, flat up to 2 s.",
            "Request 150 was the first without an answer; 1 had none in all, in 1 burst.",
            "Trial 2: flat.",
        ] {
            assert!(words.contains(said), "{said}: {words}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_one_band_of_the_worst_mode() {
        let stretch = |mode: Mode, start_s: f64, end_s: f64| Stretch {
            mode,
            from_n: 0,
            requests: 1,
            start_s,
            end_s,
            growth: None,
        };
        let stretches = [
            stretch(Mode::Flat, 0.0, 5.0),
            stretch(Mode::TimingOut, 5.0, 5.1),
            stretch(Mode::Flat, 5.1, 5.2),
            stretch(Mode::Flat, 5.2, 9.0),
        ];
        let found = bands(&stretches, 0.3e6);
        assert_eq!(found, [(Mode::Flat, 0.0, 5e6), (Mode::TimingOut, 5e6, 5.2e6), (Mode::Flat, 5.2e6, 9e6)]);
    }
}
