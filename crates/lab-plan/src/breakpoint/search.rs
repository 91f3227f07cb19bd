//! The search: chooses the next load, and decides when enough is known. Pure: it receives the outcome of each trial.
//!
//! The search begins with steps of a constant factor up (or down, if the first failed) until one holds and one fails.
//! Bisection follows, alternating between the lower and the upper quartile of the breakpoint's estimate from all
//! outcomes so far. Trials at the middle would reveal little about how steep the edge is. When the interval is narrow
//! enough, fresh trials confirm its two ends. An outcome that contradicts the interval widens it, and the bisection
//! continues, so that one lucky outcome does not decide.

use meridian_lab_results::stats::Estimate;
use meridian_lab_results::stats::breakpoint::{self, Outcome, Weights};
use serde::{Deserialize, Serialize};

/// Parameters of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The first load.
    pub from: f64,
    /// The min and max load that may be tried.
    pub bounds: (f64, f64),
    /// The factor of a step up of the load.
    pub factor: f64,
    /// Half of the interval's width over its middle at which it is narrow enough.
    pub within: f64,
    /// Trials at each end of a narrow interval that must agree with it.
    pub confirm: u32,
    /// Max trials.
    pub trials: usize,
    /// Whether loads are integers.
    pub whole: bool,
}

/// Why a load is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To find a load that fails (or one that holds).
    Step,
    /// To narrow the interval.
    Narrow,
    /// To confirm the interval with fresh steps.
    Confirm,
    /// To measure the served rate while a backlog grows.
    Sustain,
}

impl Purpose {
    /// Returns it as one word.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Step => "step",
            Purpose::Narrow => "narrow",
            Purpose::Confirm => "confirm",
            Purpose::Sustain => "sustain",
        }
    }
}

/// Why the search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The interval is narrow enough and was confirmed.
    Found,
    /// The max number of trials was reached.
    Trials,
    /// The largest load held.
    Above,
    /// The smallest load failed.
    Below,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Try this load.
    Try(f64, Purpose),
    /// No further load.
    End(End),
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    plan: Plan,
    outcomes: Vec<Outcome>,
    /// Consecutive confirmations at the lower and at the upper end.
    confirmed: [u32; 2],
    /// The end of the interval that the pending trial confirms.
    out: Option<usize>,
}

impl Search {
    /// Creates a search without trials.
    pub fn new(plan: Plan) -> Search {
        Search { plan, outcomes: Vec::new(), confirmed: [0; 2], out: None }
    }

    /// Returns the breakpoint by all outcomes; the error names the side on which it lies.
    pub fn estimate(&self) -> Result<Estimate, String> {
        breakpoint::of(&self.outcomes)
    }

    /// Returns the next load, or why there is none.
    pub fn choose(&mut self) -> Next {
        self.out = None;
        let plan = &self.plan;
        // Checked first, so that a search of a noisy target always ends.
        if self.outcomes.len() >= plan.trials {
            return Next::End(End::Trials);
        }
        let most_held = self.loads(true).fold(0.0, f64::max);
        let lowest_failed = self.loads(false).fold(f64::INFINITY, f64::min);
        let (min, most) = plan.bounds;
        let step = |load: f64| Next::Try(self.rounded(load.clamp(min, most)), Purpose::Step);
        match (most_held > 0.0, lowest_failed.is_finite()) {
            (false, false) => return step(plan.from),
            (true, false) if most_held >= most => return Next::End(End::Above),
            // At least one more than the last: rounding could otherwise repeat the same load for ever.
            (true, false) => return step(self.rounded(most_held * plan.factor).max(most_held + self.grain())),
            (false, true) if lowest_failed <= min => return Next::End(End::Below),
            (false, true) => return step(self.rounded(lowest_failed / plan.factor).min(lowest_failed - self.grain())),
            (true, true) => {}
        }
        // Both sides are known, so a fit exists; if it fails numerically, no further trial can help.
        let Ok(weights) = Weights::of(&self.outcomes) else { return Next::End(End::Trials) };
        let estimate = weights.estimate();
        // Between two consecutive integers, nothing can be tried: one held, the next failed.
        let neighbours = plan.whole && estimate.high - estimate.low <= 2.0;
        if !neighbours && narrowness(&estimate) > plan.within {
            let quartile = if self.outcomes.len().is_multiple_of(2) { 0.25 } else { 0.75 };
            return Next::Try(self.rounded(weights.at(quartile).clamp(min, most)), Purpose::Narrow);
        }
        let [low, high] = self.confirmed;
        if low >= plan.confirm && high >= plan.confirm {
            return Next::End(End::Found);
        }
        // Alternates, beginning below, so that a search that runs out of trials has confirmed both ends about equally.
        let (end, load) = match (low <= high, plan.whole) {
            (true, false) => (0, estimate.low),
            (true, true) => (0, estimate.low.floor()),
            (false, false) => (1, estimate.high),
            (false, true) => (1, estimate.high.ceil()),
        };
        self.out = Some(end);
        Next::Try(self.rounded(load.clamp(min, most)), Purpose::Confirm)
    }

    /// Records the outcome of a trial.
    pub fn record(&mut self, load: f64, held: bool) {
        self.outcomes.push(Outcome { load, held });
        if let Some(end) = self.out.take() {
            let agrees = held == (end == 0);
            // A contradiction restarts both ends, since it changes the interval that they confirmed.
            if agrees { self.confirmed[end] += 1 } else { self.confirmed = [0; 2] }
        }
    }

    fn loads(&self, held: bool) -> impl Iterator<Item = f64> {
        self.outcomes.iter().filter(move |outcome| outcome.held == held).map(|outcome| outcome.load)
    }

    /// Returns the smallest difference between two loads.
    fn grain(&self) -> f64 {
        if self.plan.whole { 1.0 } else { 0.0 }
    }

    /// Rounds to an integer, or to four digits, so that the recorded load is the tried one.
    fn rounded(&self, load: f64) -> f64 {
        if self.plan.whole {
            return load.round().max(1.0);
        }
        // Four digits: more would be noise.
        let scale = 10f64.powf(3.0 - load.log10().floor());
        (load * scale).round() / scale
    }
}

/// Returns half of an interval's width over its middle: its "plus or minus".
pub fn narrowness(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.low) / (estimate.high + estimate.low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_lab_results::random::SeededRng;

    fn plan(from: f64) -> Plan {
        let bounds = (from / 1e3, from * 1e6);
        Plan { from, bounds, factor: 2.0, within: 0.05, confirm: 2, trials: 60, whole: false }
    }

    fn searched(plan: Plan, mut holds: impl FnMut(f64) -> bool) -> (Search, End, usize) {
        let mut search = Search::new(plan);
        for trials in 0.. {
            match search.choose() {
                Next::Try(load, _) => search.record(load, holds(load)),
                Next::End(end) => return (search, end, trials),
            }
        }
        unreachable!("a search ends")
    }

    /// Simulates a trial that fails by a logistic curve of the logarithm of the load.
    fn noisy(truth: f64, width: f64, rng: &mut SeededRng) -> impl FnMut(f64) -> bool {
        move |load| !rng.chance(1.0 / (1.0 + (-(load / truth).ln() / width).exp()))
    }

    #[test]
    fn a_known_edge_lies_in_the_interval_in_95_of_100_searches() {
        let mut rng = SeededRng::new(4);
        let mut in_all = 0;
        for width in [0.002, 0.01, 0.03, 0.06] {
            let (mut held, mut found, mut narrow) = (0, 0, 0.0);
            for i in 0..100 {
                let truth = 100.0 * (1.0 + 0.37 * f64::from(i));
                let (search, end, _) = searched(plan(90.0), noisy(truth, width, &mut rng));
                let estimate = search.estimate().unwrap();
                held += u32::from(estimate.holds(truth));
                found += u32::from(end == End::Found);
                narrow += narrowness(&estimate) / 100.0;
            }
            println!("width {width}: {held} of 100 hold the edge, {found} found, within {narrow:.4} in the mean");
            in_all += held;
            // 95 of 100 are expected. Chance takes a few of these, but averages out over all 400.
            assert!(held >= 92, "width {width}: {held} of 100 hold the edge");
            // This few trials cannot locate the breakpoint of a gradual edge within five percent.
            assert!(width > 0.01 || (found >= 90 && narrow <= 0.05), "width {width}: {found} found, within {narrow}");
        }
        assert!(in_all >= 380, "{in_all} of 400 hold the edge");
    }

    /// Simulates a realistic trial: a queue before four workers, and the 95th percentile of the waits of ten seconds.
    /// The edge is the load at which half of the trials fail, determined from very many.
    #[test]
    fn the_edge_of_a_simulated_queue_lies_in_the_interval() {
        let mut rng = SeededRng::new(9);
        let trial = |rate: f64, rng: &mut SeededRng| {
            let mut free = [0.0f64; 4];
            let (mut now, mut waits) = (0.0, Vec::new());
            while now < 10.0 {
                now += -(1.0 - rng.fraction()).ln() / rate;
                let worker = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
                *worker = worker.max(now) - 0.02 * (1.0 - rng.fraction()).ln();
                waits.push(*worker - now);
            }
            meridian_lab_results::stats::compare::quantile(waits, 0.95) <= 0.2
        };
        let fails = |rate: f64, rng: &mut SeededRng| (0..200).filter(|_| !trial(rate, rng)).count();
        let (mut low, mut high): (f64, f64) = (100.0, 300.0);
        while high / low > 1.002 {
            let middle = (low * high).sqrt();
            if fails(middle, &mut rng) < 100 { low = middle } else { high = middle }
        }
        let held = (0..100).filter(|_| {
            let (search, ..) = searched(plan(25.0), |load| trial(load, &mut rng));
            search.estimate().unwrap().holds((low * high).sqrt())
        });
        let held = held.count();
        println!("a queue: {held} of 100 hold the edge");
        assert!(held >= 95, "{held} of 100 hold the edge at {low}");
    }

    #[test]
    fn a_steady_server_is_found_in_few_trials_and_every_end_was_seen_again() {
        let mut tried = Vec::new();
        let (search, end, trials) = searched(plan(10.0), |load| {
            tried.push(load);
            load <= 1_234.0
        });
        let estimate = search.estimate().unwrap();
        assert_eq!(end, End::Found);
        assert!(trials <= 25 && estimate.holds(1_234.0), "{trials} {estimate:?}");
        let near = |held: bool| {
            tried.iter().filter(move |load| (**load <= 1_234.0) == held && (**load / 1_234.0 - 1.0).abs() < 0.1)
        };
        assert!(near(true).count() >= 3 && near(false).count() >= 3, "{tried:?}");
    }

    #[test]
    fn a_search_says_where_the_edge_lies_that_it_cannot_reach() {
        let bounded = Plan { bounds: (1.0, 400.0), ..plan(10.0) };
        assert_eq!(searched(bounded.clone(), |_| true).1, End::Above);
        assert_eq!(searched(bounded.clone(), |_| false).1, End::Below);
        let (search, end, trials) = searched(Plan { trials: 5, ..bounded }, |load| load <= 41.0);
        assert_eq!((end, trials), (End::Trials, 5));
        assert!(search.estimate().unwrap().holds(41.0));
    }

    #[test]
    fn users_are_whole() {
        for edge in 1..40 {
            let whole = Plan { whole: true, bounds: (1.0, 1e5), ..plan(4.0) };
            let (search, end, trials) = searched(whole, |users| {
                assert_eq!(users.fract(), 0.0);
                users <= f64::from(edge) + 0.5
            });
            let estimate = search.estimate().unwrap();
            assert_eq!(end, End::Found, "{edge}: {estimate:?}");
            assert!(
                trials <= 40 && estimate.low <= f64::from(edge) + 1.0 && estimate.high >= f64::from(edge),
                "{estimate:?}"
            );
        }
    }
}
