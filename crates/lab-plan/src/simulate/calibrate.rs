//! Calibration: a few numbers of a scenario are adjusted until the simulation reproduces the measured figures.
//!
//! A file of trials holds the figures, each with the settings under which it was measured. Only trials marked `fit`
//! determine the numbers; the others are predicted, which shows how far the model carries. The loss is the mean square
//! of the logarithm of simulated over measured, in units of each figure's tolerance. Figures are medians over seeds,
//! and every trial of numbers sees the same seeds (common random numbers). That keeps the loss smooth enough for the
//! simplex method (Nelder and Mead 1965) over the logarithms of the numbers.

use super::{Scenario, measured, settings};
use meridian_lab_results::stats::{percentile, simplex, student};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A file of measured figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Source of the figures.
    pub source: String,
    /// Groups that are fitted separately: a scenario's tables, for example. A file without groups is one group.
    pub fit: Vec<Fit>,
    /// The measurements.
    pub trial: Vec<MeasuredTrial>,
}

/// Numbers that are fitted together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The group's name, as trials name it.
    pub group: String,
    /// Dotted keys of the numbers to fit.
    pub parameters: Vec<String>,
    /// Number of seeds over which a figure's median is taken.
    pub seeds: u32,
}

/// One measured trial.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTrial {
    /// Its name in the table of residuals.
    pub name: String,
    /// The group it belongs to.
    pub group: String,
    /// Whether it is used for fitting; otherwise it is only predicted.
    #[serde(default)]
    pub fit: bool,
    /// A results folder (relative to the file of figures) that replaces `figures` and `arrival.…` in `set`.
    #[serde(default)]
    pub results: Option<PathBuf>,
    /// Dotted keys and values under which it was measured.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// The measurements, by the names of [`Scenario::figures`].
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Further measurements, shown beside the simulation and never fitted.
    #[serde(default)]
    pub also: BTreeMap<String, f64>,
    /// Standard deviation of the logarithm of the mean by chance alone, if a results folder shows it.
    #[serde(skip)]
    pub chance: Option<f64>,
    /// Deviation, as a share, that gives a figure the same loss; 0.1 by default. A figure that varies between trials
    /// deserves more.
    #[serde(default)]
    pub tolerance: BTreeMap<String, f64>,
}

/// A figure beside its simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// The trial.
    pub trial: String,
    /// The figure.
    pub figure: String,
    /// Whether it was used for the fit.
    pub fit: bool,
    /// Measured value.
    pub measured: f64,
    /// Deviation, as a share, for a loss of one.
    pub tolerance: f64,
    /// The values over the seeds; none if it never occurred.
    pub simulated: Option<Spread>,
}

/// A figure over seeds: its distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 90th percentile.
    pub p90: f64,
    /// The min.
    pub min: f64,
    /// The max.
    pub max: f64,
    /// Number of seeds in which it occurred, and of all seeds.
    pub seeds: [u32; 2],
}

impl Spread {
    fn of(mut values: Vec<f64>, seeds: u32) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let at = |q| percentile::of_sorted(&values, q);
        let seeds = [u32::try_from(values.len()).unwrap_or(seeds), seeds];
        Some(Spread { median: median(&values)?, p10: at(0.1)?, p90: at(0.9)?, min: at(0.0)?, max: at(1.0)?, seeds })
    }
}

impl Residual {
    /// Returns simulated over measured, minus one.
    pub fn error(&self) -> Option<f64> {
        Some(self.simulated?.median / self.measured - 1.0)
    }
}

/// The outcome of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The numbers found, by key.
    pub parameters: Vec<(String, f64)>,
    /// Every figure of the group, used or only predicted.
    pub residuals: Vec<Residual>,
    /// Chance deviation of the fitted trials, as a standard deviation of logarithms.
    pub chance: f64,
}

impl Calibration {
    /// Returns the error of the calibration, with 95 % confidence, as a share. It includes the error of the simulated
    /// figures against the measured ones (Student's t; each fitted number takes a degree of freedom). It also includes
    /// the chance error of the measured ones. `None` if no degree of freedom is left.
    pub fn error(&self) -> Option<f64> {
        let offs = self
            .residuals
            .iter()
            .map(|residual| residual.simulated.map_or(MISSING, |of| (of.median / residual.measured).ln()));
        // Each fitted number takes one degree of freedom. With none left, a perfect fit proves nothing about the
        // error.
        let degrees = self.residuals.len().checked_sub(self.parameters.len()).filter(|left| *left > 0)?;
        let model = student(degrees) * (offs.map(|off| off * off).sum::<f64>() / degrees as f64).sqrt();
        Some(model.hypot(1.96 * self.chance).exp() - 1.0)
    }

    /// Returns the scenario with the numbers found.
    pub fn laid(&self, scenario: &Table) -> Result<Table, String> {
        let mut table = scenario.clone();
        for (key, value) in &self.parameters {
            settings::set(&mut table, key, Value::Float(*value))?;
        }
        Ok(table)
    }
}

/// Penalty for a figure that never occurred in the simulation: wrong by a factor of e.
const MISSING: f64 = 1.0;
/// Default number of seeds for figures.
const SEEDS: u32 = 5;
/// The default tolerance of a figure.
const TOLERANCE: f64 = 0.1;

impl Figures {
    /// Reads a file of figures and the results folders that it names, relative to `place`. The error is a sentence.
    pub fn read(text: &str, place: &Path) -> Result<Figures, String> {
        let mut figures: Figures = toml::from_str(text).map_err(super::sentence)?;
        for trial in &mut figures.trial {
            let Some(results) = &trial.results else { continue };
            let seen = measured::read(&place.join(results)).map_err(|e| format!("trial {:?}: {e}", trial.name))?;
            trial.chance = seen.chance;
            for (key, value) in seen.set {
                // The file takes precedence over the folder, which the reader meant to correct.
                trial.set.entry(key).or_insert(value);
            }
            for (name, value) in seen.figures {
                trial.figures.entry(name).or_insert(value);
            }
        }
        for trial in &figures.trial {
            if !figures.fit.iter().any(|fit| fit.group == trial.group) {
                return Err(format!("trial {:?}: no [[fit]] has the group {:?}", trial.name, trial.group));
            }
            let positive = |values: &BTreeMap<String, f64>| values.values().all(|x| x.is_finite() && *x > 0.0);
            if trial.figures.is_empty() {
                return Err(format!(
                    "trial {:?}: expected figures, or the results folder that they are taken from",
                    trial.name
                ));
            }
            if !(positive(&trial.figures) && positive(&trial.tolerance)) {
                return Err(format!("trial {:?}: expected figures and tolerances above 0", trial.name));
            }
            if !trial.also.values().all(|x| x.is_finite() && *x >= 0.0) {
                return Err(format!("trial {:?}: expected numbers of at least 0 in also", trial.name));
            }
        }
        match figures.fit.iter().find(|fit| fit.seeds == 0 || fit.parameters.is_empty()) {
            Some(fit) => Err(format!("fit {:?}: expected at least one seed and one parameter", fit.group)),
            None => Ok(figures),
        }
    }

    /// Returns one results folder as a separate group, to which `parameters` are fitted.
    pub fn of_folder(dir: &Path, parameters: &[String]) -> Result<Figures, String> {
        if parameters.is_empty() {
            return Err(
                "expected --fit with a number of the scenario to move, such as --fit stage.answer.service.mean_s"
                    .to_owned(),
            );
        }
        let seen = measured::read(dir).map_err(|e| e.to_string())?;
        let name = dir.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
        let fit = Fit { group: "run".to_owned(), parameters: parameters.to_vec(), seeds: SEEDS };
        let trial = MeasuredTrial {
            name,
            group: "run".to_owned(),
            fit: true,
            results: None,
            set: seen.set,
            figures: seen.figures,
            also: BTreeMap::new(),
            chance: seen.chance,
            tolerance: BTreeMap::new(),
        };
        Ok(Figures { source: dir.display().to_string(), fit: vec![fit], trial: vec![trial] })
    }

    /// Returns every figure of a group beside its simulation by the unchanged scenario.
    pub fn residuals(&self, fit: &Fit, scenario: &Table) -> Result<Vec<Residual>, String> {
        self.compare(fit, scenario, false)
    }

    /// Fits the group's numbers with at most `evaluations` sets of simulations.
    pub fn calibrate(&self, fit: &Fit, scenario: &Table, evaluations: usize) -> Result<Calibration, String> {
        let start: Vec<f64> = fit
            .parameters
            .iter()
            .map(|key| match settings::number(scenario, key)? {
                // Over logarithms: numbers stay positive without a constraint, and a step is a ratio for seconds and
                // counts alike.
                x if x > 0.0 => Ok(x.ln()),
                x => Err(format!("{key} = {x}: a number to be fitted starts above 0")),
            })
            .collect::<Result<_, String>>()?;
        let mut failure = None;
        let mut loss = |point: &[f64]| match self.loss(fit, scenario, point) {
            Ok(loss) => loss,
            Err(error) => {
                // The simplex method cannot be stopped, so an error makes the point infinitely bad and is returned
                // afterwards.
                failure.get_or_insert(error);
                f64::INFINITY
            }
        };
        let best = if evaluations == 0 { start } else { simplex::minimize(&start, 0.15, evaluations, &mut loss) };
        if let Some(error) = failure {
            return Err(error);
        }
        let found = moved(fit, scenario, &best)?;
        let parameters = fit.parameters.iter().cloned().zip(best.iter().map(|x| rounded(x.exp()))).collect();
        // Trials are independent, so their variances add up.
        let chances = self.trial.iter().filter(|trial| trial.fit && trial.group == fit.group).map(|trial| trial.chance);
        let chances: Vec<f64> = chances.flatten().collect();
        let chance = chances.iter().map(|sd| sd * sd).sum::<f64>().sqrt() / chances.len().max(1) as f64;
        Ok(Calibration { parameters, residuals: self.compare(fit, &found, false)?, chance })
    }

    fn loss(&self, fit: &Fit, scenario: &Table, point: &[f64]) -> Result<f64, String> {
        let residuals = self.compare(fit, &moved(fit, scenario, point)?, true)?;
        let squares = residuals.iter().map(|residual| {
            let off = residual.simulated.map_or(MISSING, |found| (found.median / residual.measured).ln());
            (off / residual.tolerance).powi(2)
        });
        Ok(squares.sum::<f64>() / residuals.len().max(1) as f64)
    }

    fn compare(&self, fit: &Fit, scenario: &Table, only_fit: bool) -> Result<Vec<Residual>, String> {
        let mut out = Vec::new();
        for trial in self.trial.iter().filter(|trial| trial.group == fit.group && (trial.fit || !only_fit)) {
            let runs = trial.runs(fit.seeds, scenario)?;
            for (figure, measured) in &trial.figures {
                let values = runs.iter().filter_map(|run| run.get(figure.as_str()).copied()).collect();
                let simulated = Spread::of(values, fit.seeds);
                let tolerance = trial.tolerance.get(figure).copied().unwrap_or(TOLERANCE);
                let (trial, figure, fit) = (trial.name.clone(), figure.clone(), trial.fit);
                out.push(Residual { trial, figure, fit, measured: *measured, tolerance, simulated });
            }
        }
        Ok(out)
    }
}

impl MeasuredTrial {
    /// Returns the figures of each seed's simulation under the trial's settings.
    pub(super) fn runs(&self, seeds: u32, scenario: &Table) -> Result<Vec<BTreeMap<&'static str, f64>>, String> {
        let run = |seed: u32| {
            let mut table = scenario.clone();
            for (key, value) in &self.set {
                settings::set(&mut table, key, value.clone())?;
            }
            settings::set(&mut table, "seed", Value::Integer(i64::from(seed)))?;
            Ok(Scenario::of(table)?.figures())
        };
        // The same seeds at every point: differences in the loss then come from the numbers, not from chance.
        (1..=seeds).map(run).collect()
    }
}

/// Returns the median of sorted values.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    Some((sorted.get(n.checked_sub(1)? / 2)? + sorted.get(n / 2)?) / 2.0)
}

fn moved(fit: &Fit, scenario: &Table, point: &[f64]) -> Result<Table, String> {
    let mut table = scenario.clone();
    for (key, x) in fit.parameters.iter().zip(point) {
        settings::set(&mut table, key, Value::Float(rounded(x.exp())))?;
    }
    Ok(table)
}

/// Rounds to four digits, so that the printed number is the simulated one.
pub(super) fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let scale = 10f64.powi(3 - x.abs().log10().floor() as i32);
    (x * scale).round() / scale
}
