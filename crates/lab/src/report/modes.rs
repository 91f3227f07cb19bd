//! The mode of a trial over its time: flat, growing, timing out.

use super::digest::{CourseKey, Digest};
use super::pictures::{Picture, series_name, time_axis};
use super::words::first_trials;
use crate::picture::{Axis, BAD, GOOD, Marks, Plot, QUIET, Scale, Unit, label};
use crate::record::Record;
use crate::results::Run;
use crate::stats::mode::{self, Mode};

/// The wait of each request of the first trial of each series, with its growth, and where requests got nothing.
pub(super) fn modes(run: &Run, digest: &Digest) -> Vec<Picture> {
    let courses = first_trials(digest).into_iter();
    courses.filter_map(|(key, records)| mode_of(&series_name(run, (key.1, key.2)), key, records)).collect()
}

fn mode_of(name: &str, key: CourseKey, records: &[Record]) -> Option<Picture> {
    let course = mode::of(records);
    let points: Vec<(f64, f64)> =
        records.iter().filter_map(|record| Some((record.intended as f64, record.to_something()? as f64))).collect();
    if points.len() < 3 {
        return None;
    }
    let x = time_axis(records.iter().map(|record| record.intended as f64));
    let y = Axis::over("wait for the first result", Unit::Micros, Scale::Linear, points.iter().map(|p| p.1));
    let high = y.range.1;
    let due = Due::of(records);
    let spans = course.bursts.iter().map(|burst| {
        let next = burst.after_n.saturating_add(burst.lost).saturating_add(1);
        (burst.start_s * 1e6, 0.0, due.at(next), high, 0.22)
    });
    let colour = match course.mode {
        Mode::Flat => GOOD,
        Mode::Growing => "#e69f00",
        Mode::TimingOut => BAD,
    };
    let mut plot = Plot::new(format!("{name}: {}", course.mode.word()), x, y);
    if !course.bursts.is_empty() {
        plot = plot.with("requests that got nothing", BAD, Marks::Heat(spans.collect()));
    }
    plot = plot.with("wait for the first result", colour, Marks::Points(points));
    let mut caption = match course.mode {
        Mode::Flat => "The wait stays what it is.".to_owned(),
        Mode::Growing => "Each request waits longer than the one before.".to_owned(),
        Mode::TimingOut => format!("Requests get nothing from number {} on.", course.first_failure.unwrap_or_default()),
    };
    if let Some(line) = course.growth.filter(|line| course.mode != Mode::Flat && line.slope.low > 0.0) {
        let ends = [due.first(), course.first_failure.unwrap_or(due.last())];
        let wait = |n: u32| (line.intercept + line.slope.value * f64::from(n)) * 1e6;
        plot = plot.with("growth", QUIET, Marks::Line(ends.map(|n| (due.at(n), wait(n))).to_vec(), true));
        let [value, low, high] =
            [line.slope.value, line.slope.low, line.slope.high].map(|s| label(s * 1e6, Unit::Micros));
        caption += &format!(" It grows by {value} a request ({low} to {high}) before the first that got nothing.");
    }
    for burst in &course.bursts {
        let restart = burst.restart_s.map_or("never came back".to_owned(), |s| {
            format!("came back with a wait of {}", label(s * 1e6, Unit::Micros))
        });
        caption += &format!(" After {}: {} lost, {restart}.", burst.after_n, burst.lost);
    }
    Some(Picture { name: format!("mode-{}-{}", key.1, key.2), caption, plot })
}

/// When each request was due, by its number. The first that is measured need not be number one: some are of the warm-up.
struct Due(Vec<(u32, f64)>);

impl Due {
    fn of(records: &[Record]) -> Due {
        let mut due: Vec<(u32, f64)> = records.iter().map(|record| (record.n, record.intended as f64)).collect();
        due.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Due(due)
    }

    fn first(&self) -> u32 {
        self.0.first().map_or(0, |(n, _)| *n)
    }

    fn last(&self) -> u32 {
        self.0.last().map_or(0, |(n, _)| *n)
    }

    /// When the request was due, or, where it is not there, the one after it.
    fn at(&self, n: u32) -> f64 {
        let at = self.0.partition_point(|(number, _)| *number < n);
        self.0.get(at).or(self.0.last()).map_or(0.0, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Outcome;

    #[test]
    fn a_burst_of_lost_requests_is_shown_where_it_was_though_a_warm_up_came_before() {
        let record = |n: u32| Record {
            n,
            intended: i64::from(n) * 10_000,
            first_result: (n != 150).then_some(i64::from(n) * 10_000 + 5_000),
            done: Some(i64::from(n) * 10_000 + 5_000),
            outcome: if n == 150 { Outcome::Failed } else { Outcome::Sound },
            ..Record::default()
        };
        let records: Vec<Record> = (101..=200).map(record).collect();
        let picture = mode_of("probe", (0, 0, 0), &records).unwrap();
        let heat = picture.plot.layers.iter().find_map(|layer| match &layer.marks {
            Marks::Heat(spans) => Some(spans.clone()),
            _ => None,
        });
        let [(from, _, to, ..)] = heat.unwrap()[..] else { panic!("one burst") };
        assert_eq!((from, to), (1_500_000.0, 1_510_000.0));
    }
}
