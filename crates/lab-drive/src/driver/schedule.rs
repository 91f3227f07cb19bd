//! Due times of requests: the windows of a trial's phases, and the times of open arrivals.

use crate::clock::micros;
use crate::scenario::{Arrival, Phases};
use meridian_lab_results::record::{Micros, Phase};
use rand::RngExt;
use rand_pcg::Pcg64;

/// The phases of one stretch of load on the trial's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Start of the load.
    pub start: Micros,
    /// Start of the measured part.
    pub measured: Micros,
    /// End of the measured part.
    pub cool_down: Micros,
    /// End of the load.
    pub end: Micros,
    /// Name of the measured part.
    pub phase: Phase,
}

impl Plan {
    /// Returns the main load, from `start`.
    pub fn main(phases: &Phases, start: Micros) -> Plan {
        let measured = start + micros(phases.warm_up_s);
        let cool_down = measured + micros(phases.measured_s);
        Plan { start, measured, cool_down, end: cool_down + micros(phases.cool_down_s), phase: Phase::Measured }
    }

    /// Returns the repeat of the measurement, from `start`.
    pub fn again(phases: &Phases, start: Micros) -> Plan {
        let end = start + micros(phases.again_s);
        Plan { start, measured: start, cool_down: end, end, phase: Phase::Again }
    }

    /// Returns the phase of a request by its intended time. All requests of an arrival that ends by itself are
    /// measured.
    pub fn phase_of(&self, intended: Micros, ends_by_itself: bool) -> Phase {
        match intended {
            _ if ends_by_itself => self.phase,
            t if t < self.measured => Phase::WarmUp,
            t if t < self.cool_down => self.phase,
            _ => Phase::CoolDown,
        }
    }
}

/// Returns the due times of an open arrival's requests, never decreasing. Empty for closed and on/off arrivals, whose
/// times depend on responses, and for replay, whose times are in the log.
pub fn times<'a>(arrival: &'a Arrival, plan: &Plan, mut random: Pcg64) -> Box<dyn Iterator<Item = Micros> + 'a> {
    let (start, length) = (plan.start, seconds(plan.end - plan.start));
    // Each time is computed from its number, so that rounding does not add up over a soak.
    let from_start = move |times: Box<dyn Iterator<Item = f64> + 'a>| -> Box<dyn Iterator<Item = Micros> + 'a> {
        Box::new(times.take_while(move |at| *at < length).map(move |at| start + micros(at)))
    };
    let numbers = || (0_u64..).map(count);
    match arrival {
        Arrival::Constant { rate } => from_start(Box::new(numbers().map(move |n| n / rate))),
        Arrival::Poisson { rate } => {
            let mut at = 0.0;
            from_start(Box::new(std::iter::repeat_with(move || {
                at += -(1.0 - random.random::<f64>()).ln() / rate;
                at
            })))
        }
        Arrival::Ramp { from, to } => {
            // Arrivals up to t: from*t + (to-from)*t^2/(2*length). Solved for t in the form that is stable for equal
            // rates.
            let slope = (to - from) / length;
            from_start(Box::new(numbers().map_while(move |n| {
                let root = from * from + 2.0 * slope * n;
                (root >= 0.0).then(|| if n == 0.0 { 0.0 } else { 2.0 * n / (from + root.sqrt()) })
            })))
        }
        Arrival::Steps { rates, each_s } => {
            from_start(Box::new(rates.iter().enumerate().flat_map(move |(step, rate)| {
                #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
                let begin = step as f64 * each_s;
                (0_u64..).map(move |n| count(n) / rate).take_while(move |at| at < each_s).map(move |at| begin + at)
            })))
        }
        Arrival::Burst { count: all, interval_s } => {
            let start = plan.measured;
            Box::new((0..*all).map(move |n| start + micros(f64::from(n) * interval_s)))
        }
        Arrival::Closed { .. } | Arrival::Onoff { .. } | Arrival::Replay { .. } => Box::new(std::iter::empty()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "arrivals of a run stay far under 2^53")]
fn count(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a run stay far under 2^53")]
fn seconds(time: Micros) -> f64 {
    time as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::stream;
    use proptest::prelude::*;

    fn plan(seconds: f64) -> Plan {
        Plan::main(&Phases { measured_s: seconds, ..Phases::default() }, 0)
    }

    fn drawn(arrival: &Arrival, seconds: f64, seed: u64) -> Vec<Micros> {
        times(arrival, &plan(seconds), stream(seed, &[])).collect()
    }

    #[test]
    fn a_ramp_sends_its_integral_and_steps_send_theirs() {
        let ramp = drawn(&Arrival::Ramp { from: 100.0, to: 300.0 }, 10.0, 1);
        assert!((1_999..=2_001).contains(&ramp.len()), "{}", ramp.len());
        // Rate about the middle: 200 a second.
        let middle = ramp.iter().filter(|t| (4_500_000..5_500_000).contains(*t)).count();
        assert!((199..=201).contains(&middle), "{middle}");
        let down = drawn(&Arrival::Ramp { from: 300.0, to: 0.0 }, 10.0, 1);
        assert!((1_499..=1_501).contains(&down.len()), "{}", down.len());
        let steps = drawn(&Arrival::Steps { rates: vec![10.0, 40.0], each_s: 2.0 }, 60.0, 1);
        assert_eq!((steps.len(), steps[20], steps.last().copied()), (100, 2_000_000, Some(3_975_000)));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = drawn(&Arrival::Poisson { rate: 1_000.0 }, 60.0, 5);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1e3 - 1.0).abs() < 0.02 && (variance.sqrt() / mean - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn phases_split_the_load_and_a_burst_begins_with_the_measured_one() {
        let phases = Phases { warm_up_s: 1.0, measured_s: 2.0, cool_down_s: 1.0, ..Phases::default() };
        let plan = Plan::main(&phases, 0);
        let of = |second: f64| plan.phase_of(micros(second), false);
        assert_eq!(
            [of(0.5), of(1.0), of(2.9), of(3.0)],
            [Phase::WarmUp, Phase::Measured, Phase::Measured, Phase::CoolDown]
        );
        let burst = Arrival::Burst { count: 3, interval_s: 2.0 };
        assert_eq!(times(&burst, &plan, stream(1, &[])).collect::<Vec<_>>(), [1_000_000, 3_000_000, 5_000_000]);
    }

    proptest! {
        #[test]
        fn times_never_decrease_and_end_in_time(rate in 0.1..5_000.0_f64, to in 0.0..5_000.0_f64, length in 0.1..3.0_f64, seed: u64) {
            for arrival in [Arrival::Constant { rate }, Arrival::Poisson { rate }, Arrival::Ramp { from: rate, to }] {
                let times = drawn(&arrival, length, seed);
                prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
                prop_assert!(times.last().is_none_or(|last| *last <= micros(length)));
                if let Arrival::Constant { rate } = arrival {
                    // The length is rounded to microseconds, in which less than a hundredth of an arrival falls.
                    prop_assert!((times.len() as f64 - rate * length).abs() <= 1.01);
                }
            }
        }
    }
}
