//! Up to which load an objective holds, from trials that passed or failed, some of them by chance.
//!
//! The chance that a trial fails is a logistic curve of the logarithm of its load: half at the breakpoint, steeper where the
//! server is steady. Over a grid of breakpoints and steepnesses each pair is weighed by how well it explains the outcomes, and
//! the interval holds the middle 95 % of the weight. Trials on one side only give no interval: one end is then not known.

use super::Estimate;

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The load at which it ran.
    pub load: f64,
    /// Whether the objective held.
    pub held: bool,
}

const GRID: usize = 600;
/// Widths of the curve that are thought possible, as shares of the load: from a server that breaks within 1 % to one within 30 %.
const WIDTHS: [f64; 6] = [0.01, 0.02, 0.04, 0.08, 0.15, 0.3];

/// Estimates the breakpoint. The error says what is missing.
pub fn of(outcomes: &[Outcome]) -> Result<Estimate, String> {
    if let Some(bad) = outcomes.iter().find(|o| !(o.load.is_finite() && o.load > 0.0)) {
        return Err(format!("a load of {}: expected more than 0", bad.load));
    }
    let of_kind = |held: bool| outcomes.iter().filter(move |o| o.held == held).map(|o| o.load);
    let most_held = of_kind(true).fold(0.0, f64::max);
    let least_failed = of_kind(false).fold(f64::INFINITY, f64::min);
    match (most_held > 0.0, least_failed.is_finite()) {
        (true, true) => {}
        (true, false) => return Err(format!("every trial held, up to {most_held}: the breakpoint lies above")),
        (false, true) => return Err(format!("every trial failed, down to {least_failed}: the breakpoint lies below")),
        (false, false) => return Err("there is no trial".to_owned()),
    }
    let loads = outcomes.iter().map(|o| o.load.ln());
    let least = loads.clone().fold(f64::INFINITY, f64::min);
    let greatest = loads.fold(f64::NEG_INFINITY, f64::max);
    let (from, to) = (least - 0.1, greatest + 0.1);
    let place = |i: usize| from + (to - from) * i as f64 / (GRID - 1) as f64;
    let weight = |i: usize| -> f64 {
        let explained = |width: &f64| -> f64 {
            let chance = |o: &Outcome| {
                let fails = 1.0 / (1.0 + (-(o.load.ln() - place(i)) / width).exp());
                (if o.held { 1.0 - fails } else { fails }).max(1e-6)
            };
            outcomes.iter().map(chance).product()
        };
        WIDTHS.iter().map(explained).sum()
    };
    let weights: Vec<f64> = (0..GRID).map(weight).collect();
    let total: f64 = weights.iter().sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        let reached = weights.iter().position(|w| {
            sum += w;
            sum >= share * total
        });
        place(reached.unwrap_or(GRID - 1)).exp()
    };
    Ok(Estimate { value: at(0.5), low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::draw::Dice;

    /// A search as it is done: steps up until one fails, bisection, then trials around the place found.
    fn searched(truth: f64, width: f64, dice: &mut Dice) -> Vec<Outcome> {
        let mut out = Vec::new();
        let mut run = |load: f64, out: &mut Vec<Outcome>| {
            let fails = 1.0 / (1.0 + (-(load / truth).ln() / width).exp());
            let held = !dice.chance(fails);
            out.push(Outcome { load, held });
            held
        };
        let mut low = 10.0;
        while run(low * 2.0, &mut out) {
            low *= 2.0;
        }
        let mut high = low * 2.0;
        for _ in 0..6 {
            let middle = (low * high).sqrt();
            if run(middle, &mut out) { low = middle } else { high = middle }
        }
        for step in [0.92, 0.96, 1.0, 1.04, 1.08, 0.94, 1.06] {
            run((low * high).sqrt() * step, &mut out);
        }
        out
    }

    #[test]
    fn the_interval_holds_the_truth_and_narrows_for_a_steady_server() {
        let mut dice = Dice::new(4);
        let (mut held, mut widths) = (0, [0.0, 0.0]);
        for i in 0..200 {
            let truth = 100.0 + 7.0 * f64::from(i);
            for (k, width) in [0.01, 0.06].into_iter().enumerate() {
                let estimate = of(&searched(truth, width, &mut dice)).unwrap();
                held += u32::from(estimate.holds(truth));
                widths[k] += (estimate.high - estimate.low) / truth / 200.0;
            }
        }
        assert!(held >= 360, "{held} of 400");
        assert!(widths[0] < widths[1] && widths[0] < 0.15, "{widths:?}");
    }

    #[test]
    fn one_sided_outcomes_say_on_which_side_the_breakpoint_lies() {
        let held = Outcome { load: 5.0, held: true };
        assert!(of(&[held]).unwrap_err().contains("up to 5: the breakpoint lies above"));
        assert!(of(&[Outcome { held: false, ..held }]).unwrap_err().contains("down to 5"));
        assert!(of(&[]).unwrap_err().contains("no trial"));
        assert!(of(&[Outcome { load: f64::NAN, held: true }]).unwrap_err().contains("expected more than 0"));
    }
}
