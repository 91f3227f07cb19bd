//! A machine that was measured: the Universal Scalability Law through its throughput at several numbers of users, and from it how long a
//! request takes at a rate.
//!
//! Users who wait for answers and ask again at once make, by Little's law, a mean wait of users over throughput. A rate that arrives by itself
//! keeps as many requests in flight as that many users do who make the same throughput. Where the points do not follow the law, the straight
//! lines between them take its place.

use crate::breakpoint::Found;
use crate::error::Result;
use crate::record::{Outcome, Phase};
use crate::results::{self, Group, Results};
use crate::scenario::{Arrival, Scenario};
use crate::stats::usl::{self, Law, Point};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One machine, as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Throughput over users.
    pub law: Law,
    /// The most users at which it was measured: past them the law has no say.
    pub users_most: f64,
    /// Mean bytes of what a request was answered with, where the runs say.
    pub answer_bytes: Option<f64>,
}

/// What runs sent.
#[derive(Default)]
struct Sent {
    bytes: u64,
    requests: u64,
}

impl Sent {
    fn add(&mut self, run: &Results) {
        // A summary that cannot be read says nothing of sizes.
        let groups: Vec<Group> = serde_json::from_value(run.summary.clone()).unwrap_or_default();
        for group in groups.iter().filter(|group| group.phase == Phase::Measured.name()) {
            self.bytes += group.bytes;
            self.requests += group.arrivals;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.bytes as f64 / self.requests as f64)
    }
}

impl Machine {
    /// Fits the law to what lies in a folder: a breakpoint search over users, or results folders of users who wait for answers, one for each
    /// number of them. The error is a sentence.
    pub fn read(dir: &Path) -> Result<Machine, String> {
        if dir.join("breakpoint.json").is_file() {
            let found = Found::open(dir).map_err(|e| e.to_string())?;
            let law =
                found.law.ok_or("the search has no scalability law: expected one over users, of six steps or more")?;
            let steps = || found.steps.iter().filter(|step| step.void.is_empty());
            let mut sent = Sent::default();
            // Steps may have been removed to save room.
            steps().filter_map(|step| results::open(&dir.join(&step.folder)).ok()).for_each(|run| sent.add(&run));
            let users_most = steps().map(|step| step.load).fold(1.0, f64::max);
            return Ok(Machine { law, users_most, answer_bytes: sent.mean() });
        }
        let wrong = |e: std::io::Error| format!("it cannot be read: {e}");
        let entries = std::fs::read_dir(dir).map_err(wrong)?.collect::<std::io::Result<Vec<_>>>().map_err(wrong)?;
        let mut folders: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        folders.retain(|folder| folder.join("run.json").is_file());
        folders.sort();
        let (mut points, mut sent) = (Vec::new(), Sent::default());
        for folder in &folders {
            let run = results::open(folder).map_err(|e| e.to_string())?;
            points.push(point(&run).map_err(|e| format!("{}: {e}", folder.display()))?);
            sent.add(&run);
        }
        Ok(Machine { answer_bytes: sent.mean(), ..Machine::of(&points)? })
    }

    /// Fits the law to throughput at numbers of users.
    pub fn of(points: &[Point]) -> Result<Machine, String> {
        let law = usl::fit(points)?;
        let users_most = points.iter().map(|point| point.n).fold(1.0, f64::max);
        Ok(Machine { law, users_most, answer_bytes: None })
    }

    /// The mean wait at a rate (requests a second), in seconds; `None` where the rate is more than what the machine was seen to hold.
    pub fn wait_s(&self, rate: f64) -> Option<f64> {
        if self.law.fits() { self.by_law(rate) } else { self.by_points(rate) }
    }

    fn by_law(&self, rate: f64) -> Option<f64> {
        let Law { g, a, b, .. } = self.law;
        // The users n that make the rate: rate (1 + a (n - 1) + b n (n - 1)) = g n. Of two roots the smaller; the other lies past the peak.
        let (square, linear, constant) = (rate * b, g - rate * (a - b), rate * (1.0 - a));
        let root = (linear * linear - 4.0 * square * constant).sqrt();
        let users = 2.0 * constant / (linear + root);
        // Below one user on average each has the machine for itself.
        (linear > 0.0 && root >= 0.0 && users <= self.users_most).then(|| (users / rate).max(1.0 / g))
    }

    /// Mean throughput at each number of users, by that number.
    fn points(&self) -> Vec<(f64, f64)> {
        let mut all: Vec<(f64, f64)> = self.law.measured().collect();
        all.sort_by(|p, q| p.0.total_cmp(&q.0));
        let alike = all.chunk_by(|p, q| p.0 == q.0);
        alike.map(|of| (of[0].0, of.iter().map(|p| p.1).sum::<f64>() / of.len() as f64)).collect()
    }

    fn by_points(&self, rate: f64) -> Option<f64> {
        let points = self.points();
        let (fewest, least) = *points.first()?;
        if rate <= least {
            return Some(fewest / least);
        }
        // The first time that throughput comes up to the rate: past a peak it only falls.
        let (from, to) = points.windows(2).map(|pair| (pair[0], pair[1])).find(|(_, to)| to.1 >= rate)?;
        let users = from.0 + (to.0 - from.0) * (rate - from.1) / (to.1 - from.1);
        Some(users / rate)
    }

    /// The most requests a second that the machine was seen to answer, by the law where it fits.
    pub fn most(&self) -> f64 {
        if self.law.fits() {
            let most = self.users_most;
            return self.law.throughput(self.law.peak_n.map_or(most, |n| n.min(most)));
        }
        self.points().iter().map(|p| p.1).fold(0.0, f64::max)
    }
}

/// A run as a point of the law.
fn point(run: &Results) -> Result<Point, String> {
    if let Some(why) = run.run.void.first() {
        return Err(format!("the run is void: {why}"));
    }
    if run.run.targets.len() != 1 {
        return Err(format!("it has {} targets: expected one", run.run.targets.len()));
    }
    let scenario = Scenario::parse(&run.scenario, "scenario.toml", &[]).map_err(|e| e.to_string())?;
    let users = scenario.population.iter().map(|population| match population.arrival {
        Arrival::Closed { users, think_s: 0.0, .. } => Ok(f64::from(users)),
        _ => Err("expected users who ask again at once (arrival kind \"closed\", think_s = 0)".to_owned()),
    });
    let n = users.sum::<Result<f64, String>>()?;
    Ok(Point { n, throughput: throughput(run).map_err(|e| e.to_string())?, sd: None })
}

/// Sound answers a second that came within the measured phase, over all trials.
fn throughput(run: &Results) -> Result<f64> {
    let windows: Vec<[i64; 2]> = run.run.trials.iter().map(|trial| trial.measured_us).collect();
    let mut sound = 0_u64;
    for batch in run.records()? {
        for record in batch?.iter().filter(|record| record.outcome == Outcome::Sound) {
            let window = windows.get(usize::from(record.trial));
            let within = window.zip(record.done).is_some_and(|([from, to], done)| (*from..=*to).contains(&done));
            sound += u64::from(within);
        }
    }
    let span_us: i64 = windows.iter().map(|[from, to]| to - from).sum();
    Ok(sound as f64 * 1e6 / span_us.max(1) as f64)
}
