//! Estimates the max load at which an objective holds, from trials that passed or failed, some of them by chance.
//!
//! The chance that a trial fails is a logistic curve of the logarithm of its load. It is one half at the breakpoint,
//! and steeper for a steady server. Over a grid of breakpoints and steepnesses each pair is weighted by how well it
//! explains the outcomes. The interval holds the middle 95 % of the weight (the estimate of Watson and Pelli's QUEST,
//! 1983, with an unknown slope). Trials on one side only give no interval, since one end is then unknown.

use super::Estimate;

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Load of the trial.
    pub load: f64,
    /// Whether the objective held.
    pub held: bool,
}

/// Share of the weight in an interval, which exceeds the promised 95 %. A search that ends as soon as its interval is
/// narrow ends slightly too often by chance.
const LEVEL: f64 = 0.97;
/// Points of the grid: of the first pass, and of the second, over the range in which the first found weight.
const GRID: [usize; 2] = [80, 120];
/// Range of the search for weight beyond the outcomes that contradict each other, or beyond the last that held and the
/// first that failed. A difference of logarithms.
const BEYOND: f64 = 0.5;
/// Points lighter than this share of the heaviest are omitted from the second pass.
const LIGHT: f64 = 1e-5;
/// Assumed widths of the curve, as shares of the load. From a server that breaks within 0.5 % to one within 30 %.
const WIDTHS: [f64; 7] = [0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3];

/// Possible breakpoints by all outcomes: positions (logarithms of the load) and their weights.
#[derive(Debug, Clone)]
pub struct Weights(Vec<(f64, f64)>);

/// Estimates the breakpoint. The error names the missing side.
pub fn of(outcomes: &[Outcome]) -> Result<Estimate, String> {
    Ok(Weights::of(outcomes)?.estimate())
}

impl Weights {
    /// Weights all points. The error names the missing side.
    pub fn of(outcomes: &[Outcome]) -> Result<Weights, String> {
        if let Some(bad) = outcomes.iter().find(|o| !(o.load.is_finite() && o.load > 0.0)) {
            return Err(format!("a load of {}: expected more than 0", bad.load));
        }
        let of_kind = |held: bool| outcomes.iter().filter(move |o| o.held == held).map(|o| o.load);
        let most_held = of_kind(true).fold(0.0, f64::max);
        let lowest_failed = of_kind(false).fold(f64::INFINITY, f64::min);
        match (most_held > 0.0, lowest_failed.is_finite()) {
            (true, true) => {}
            (true, false) => return Err(format!("every trial held, up to {most_held}: the breakpoint lies above")),
            (false, true) => {
                return Err(format!("every trial failed, down to {lowest_failed}: the breakpoint lies below"));
            }
            (false, false) => return Err("there is no trial".to_owned()),
        }
        let (one, other) = (most_held.ln(), lowest_failed.ln());
        // In two passes: a coarse grid finds the weight, and the fine one spends its points there.
        let coarse = weighed(outcomes, one.min(other) - BEYOND, one.max(other) + BEYOND, GRID[0]);
        let heaviest = coarse.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let heavy = |(_, weight): &(f64, f64)| *weight > heaviest * LIGHT;
        let first = coarse.iter().position(heavy).unwrap_or(0).saturating_sub(1);
        let last = (coarse.iter().rposition(heavy).unwrap_or(GRID[0]) + 1).min(GRID[0] - 1);
        Ok(Weights(weighed(outcomes, coarse[first].0, coarse[last].0, GRID[1])))
    }

    /// Returns the middle, and the interval that holds [`LEVEL`] of the weight.
    pub fn estimate(&self) -> Estimate {
        let tail = (1.0 - LEVEL) / 2.0;
        Estimate { value: self.at(0.5), low: self.at(tail), high: self.at(1.0 - tail) }
    }

    /// Returns the load below which this share of the weight lies.
    pub fn at(&self, share: f64) -> f64 {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let reached = self.0.iter().find(|(_, weight)| {
            sum += weight;
            sum >= share * total
        });
        reached.or(self.0.last()).map_or(0.0, |(place, _)| place.exp())
    }
}

/// Returns logarithms of loads from `from` to `to`, and how well a breakpoint there explains the outcomes.
fn weighed(outcomes: &[Outcome], from: f64, to: f64, points: usize) -> Vec<(f64, f64)> {
    let seen: Vec<(f64, f64)> = outcomes.iter().map(|o| (o.load.ln(), if o.held { 1.0 } else { -1.0 })).collect();
    let weight = |place: f64| -> f64 {
        // The product of 1 / (1 + e^x), x positive if the outcome is unlikely; nearly certain outcomes change nothing.
        let explained = |width: &f64| {
            seen.iter().fold(1.0, |explained, (load, sign)| match sign * (load - place) / width {
                x if x < -14.0 => explained,
                x => explained / (1.0 + x.min(14.0).exp()),
            })
        };
        // Summed over all widths, as none is known to be right: the interval then allows for every steepness.
        WIDTHS.iter().map(explained).sum()
    };
    let places = (0..points).map(|i| from + (to - from) * i as f64 / (points - 1) as f64);
    places.map(|place| (place, weight(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_outcomes_say_on_which_side_the_breakpoint_lies() {
        let held = Outcome { load: 5.0, held: true };
        assert!(of(&[held]).unwrap_err().contains("up to 5: the breakpoint lies above"));
        assert!(of(&[Outcome { held: false, ..held }]).unwrap_err().contains("down to 5"));
        assert!(of(&[]).unwrap_err().contains("no trial"));
        assert!(of(&[Outcome { load: f64::NAN, held: true }]).unwrap_err().contains("expected more than 0"));
    }

    #[test]
    fn more_trials_on_both_sides_narrow_the_interval_and_a_contradiction_widens_it() {
        let near = |n: usize| -> Vec<Outcome> {
            (0..n).flat_map(|_| [(98.0, true), (102.0, false)]).map(|(load, held)| Outcome { load, held }).collect()
        };
        let width = |outcomes: &[Outcome]| {
            let estimate = of(outcomes).unwrap();
            assert!(estimate.holds(100.0), "{estimate:?}");
            estimate.high - estimate.low
        };
        let (few, many) = (width(&near(1)), width(&near(6)));
        let contradicted = [near(6), vec![Outcome { load: 95.0, held: false }]].concat();
        assert!(many < few && many < 10.0, "{few} {many}");
        assert!(width(&contradicted) > many);
    }
}
