//! A table of measured trials beside a scenario's forecast of each.
//!
//! Nothing is fitted here; the scenario is used unchanged. Trials that its numbers were fitted to are shown but not
//! counted: the accuracy of the forecast is computed from the others alone.

use super::calibrate::{Figures, MeasuredTrial, median};
use meridian_lab_results::picture::{Axis, COLOURS, Marks, Plot, QUIET, Scale, Unit, stacked};
use meridian_lab_results::stats::spearman;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use toml::Table;

/// The trials, and how well the predicted ones agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Source of the measurements.
    pub source: String,
    /// Every trial of the file, in its order.
    pub trials: Vec<Row>,
    /// By figure: the predicted trials only.
    pub agreement: BTreeMap<String, Agreement>,
    /// The figures that the file's `figures` name, which pictures show.
    #[serde(skip)]
    main: BTreeSet<String>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub trial: String,
    /// Whether the scenario's numbers were fitted to it.
    pub fitted: bool,
    /// Measured values, by figure.
    pub measured: BTreeMap<String, f64>,
    /// Medians over the seeds; a figure that never occurred is left out.
    pub forecast: BTreeMap<String, f64>,
}

/// Forecasts of one figure against its measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Number of predicted trials that have the figure, and a measurement above 0.
    pub trials: usize,
    /// Median of their absolute errors, as shares of the measurement.
    pub median_error: f64,
    /// The largest error.
    pub max_error: f64,
    /// The trial that has it.
    pub worst: String,
    /// Spearman's rank correlation of forecast and measurement; `None` for fewer than three trials.
    pub rank_correlation: Option<f64>,
}

impl Row {
    /// Returns forecast over measurement, minus one; `None` if one of them is missing or the measurement is 0.
    pub fn error(&self, figure: &str) -> Option<f64> {
        let measured = self.measured.get(figure).filter(|x| **x > 0.0)?;
        Some(self.forecast.get(figure)? / measured - 1.0)
    }

    fn of(trial: &MeasuredTrial, seeds: u32, scenario: &Table) -> Result<Row, String> {
        let runs = trial.runs(seeds, scenario)?;
        let measured: BTreeMap<String, f64> =
            trial.figures.iter().chain(&trial.also).map(|(name, x)| (name.clone(), *x)).collect();
        let of = |name: &String| {
            let mut values: Vec<f64> = runs.iter().filter_map(|run| run.get(name.as_str()).copied()).collect();
            values.sort_by(f64::total_cmp);
            median(&values).map(|x| (name.clone(), x))
        };
        let forecast = measured.keys().filter_map(of).collect();
        Ok(Row { trial: trial.name.clone(), fitted: trial.fit, measured, forecast })
    }
}

/// Simulates every trial of a file of figures.
///
/// # Errors
///
/// A sentence that names a trial's setting that the scenario does not accept.
pub fn forecast(figures: &Figures, scenario: &Table) -> Result<Forecast, String> {
    let mut trials = Vec::new();
    for trial in &figures.trial {
        let seeds = figures.fit.iter().find(|fit| fit.group == trial.group).map_or(1, |fit| fit.seeds);
        trials.push(Row::of(trial, seeds, scenario).map_err(|e| format!("trial {:?}: {e}", trial.name))?);
    }
    let names: BTreeSet<&String> = trials.iter().flat_map(|row| row.measured.keys()).collect();
    let agreement = names.into_iter().filter_map(|name| Some((name.clone(), Agreement::of(name, &trials)?))).collect();
    let main = figures.trial.iter().flat_map(|trial| trial.figures.keys().cloned()).collect();
    Ok(Forecast { source: figures.source.clone(), trials, agreement, main })
}

impl Agreement {
    fn of(figure: &str, rows: &[Row]) -> Option<Agreement> {
        let predicted = || rows.iter().filter(|row| !row.fitted);
        let errors: Vec<(f64, &str)> =
            predicted().filter_map(|row| Some((row.error(figure)?.abs(), row.trial.as_str()))).collect();
        let (max_error, worst) = errors.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut sorted: Vec<f64> = errors.iter().map(|(error, _)| *error).collect();
        sorted.sort_by(f64::total_cmp);
        let pairs: Vec<(f64, f64)> =
            predicted().filter_map(|row| Some((*row.measured.get(figure)?, *row.forecast.get(figure)?))).collect();
        Some(Agreement {
            trials: errors.len(),
            median_error: median(&sorted)?,
            max_error,
            worst: worst.to_owned(),
            rank_correlation: spearman(&pairs),
        })
    }
}

impl Forecast {
    /// Formats a table: measured and forecast side by side, and the errors of the main figures.
    pub fn table(&self) -> String {
        let names: Vec<&String> = self.agreement.keys().filter(|name| !self.main.contains(*name)).collect();
        let names: Vec<&String> = self.main.iter().chain(names).collect();
        let mut out = format!("{}\nmeasured -> forecast\n\n{:<10}", self.source, "trial");
        names.iter().for_each(|name| _ = write!(out, " {name:>18}"));
        out.push_str("    error\n");
        for row in &self.trials {
            let _ = write!(out, "{:<10}", row.trial);
            for name in &names {
                let number = |map: &BTreeMap<String, f64>| map.get(*name).map_or_else(|| "-".to_owned(), |x| plain(*x));
                let _ = write!(out, " {:>18}", format!("{} -> {}", number(&row.measured), number(&row.forecast)));
            }
            let errors: Vec<String> = self.main.iter().filter_map(|name| row.error(name)).map(percent).collect();
            let _ = writeln!(out, "  {:>7}{}", errors.join(" "), if row.fitted { "  fitted to" } else { "" });
        }
        out.push('\n');
        for name in names {
            let Some(found) = self.agreement.get(name) else { continue };
            let _ = write!(
                out,
                "{name}: {} trials predicted, median error {:.0} %, max {:.0} % ({})",
                found.trials,
                found.median_error * 100.0,
                found.max_error * 100.0,
                found.worst
            );
            match found.rank_correlation {
                Some(rank) => _ = writeln!(out, ", rank correlation {rank:.2}"),
                None => out.push('\n'),
            }
        }
        out
    }

    /// Returns the result as JSON.
    ///
    /// # Errors
    ///
    /// A number that JSON cannot hold.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Plots forecast over measurement, one plot per main figure: on the line they are equal.
    pub fn picture(&self) -> String {
        stacked(&self.main.iter().map(|figure| self.plot(figure)).collect::<Vec<Plot>>())
    }

    fn plot(&self, figure: &str) -> Plot {
        // Axes of time count microseconds.
        let (unit, factor) = match figure.rsplit('_').next() {
            Some("ms") => (Unit::Micros, 1e3),
            Some("s") => (Unit::Micros, 1e6),
            _ => (Unit::Count, 1.0),
        };
        let points = |fitted: bool| -> Vec<(f64, f64)> {
            let of = |row: &Row| Some((row.measured.get(figure)? * factor, row.forecast.get(figure)? * factor));
            let rows = self.trials.iter().filter(|row| row.fitted == fitted);
            rows.filter_map(of).filter(|(a, b)| *a > 0.0 && *b > 0.0).collect()
        };
        let (fitted, predicted) = (points(true), points(false));
        let all = || fitted.iter().chain(&predicted).flat_map(|(a, b)| [*a, *b]);
        let axis = |title: &str| Axis::over(title, unit, Scale::Log, all());
        let (x, y) = (axis("measured"), axis("forecast"));
        let (low, high) = x.range;
        // Only within the plot.
        let line = |share: f64| {
            let (from, to) = (low.max(low / share), high.min(high / share));
            Marks::Line(vec![(from, from * share), (to, to * share)], true)
        };
        Plot::new(format!("Forecast and measurement: {figure}"), x, y)
            .with("equal", QUIET, Marks::Line(vec![(low, low), (high, high)], false))
            .with("50 % off", QUIET, line(1.5))
            .and(QUIET, line(0.5))
            .with("predicted", COLOURS[0], Marks::Points(predicted))
            .with("fitted to", COLOURS[1], Marks::Points(fitted))
    }
}

fn percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

fn plain(x: f64) -> String {
    if x < 10.0 && x.fract() != 0.0 { format!("{x:.1}") } else { format!("{x:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(trial: &str, fitted: bool, measured: f64, forecast: f64) -> Row {
        let map = |x| BTreeMap::from([("mean_ms".to_owned(), x)]);
        Row { trial: trial.to_owned(), fitted, measured: map(measured), forecast: map(forecast) }
    }

    #[test]
    fn trials_that_were_fitted_to_do_not_count() {
        let rows = [
            row("a", true, 100.0, 900.0),
            row("b", false, 100.0, 110.0),
            row("c", false, 200.0, 100.0),
            row("d", false, 400.0, 480.0),
        ];
        let found = Agreement::of("mean_ms", &rows).unwrap();
        assert_eq!((found.trials, found.worst.as_str(), found.max_error), (3, "c", 0.5));
        assert!((found.median_error - 0.2).abs() < 1e-9);
        assert_eq!(found.rank_correlation, Some(0.5), "b and c change places");
        assert_eq!(Agreement::of("sd_ms", &rows), None);
    }

    #[test]
    fn the_answer_shows_every_trial_in_words_numbers_and_a_picture() {
        let trials = vec![row("a", true, 100.0, 101.0), row("b", false, 50.0, 75.0), row("c", false, 8.25, 0.0)];
        let agreement = BTreeMap::from([("mean_ms".to_owned(), Agreement::of("mean_ms", &trials).unwrap())]);
        let main = BTreeSet::from(["mean_ms".to_owned()]);
        let forecast = Forecast { source: "a test".to_owned(), trials, agreement, main };
        let table = forecast.table();
        for expected in
            ["100 -> 101", "+1 %  fitted to", "50 -> 75", "+50 %", "8.2 -> 0", "median error 75 %, max 100 % (c)"]
        {
            assert!(table.contains(expected), "{expected} is not in {table}");
        }
        let json: serde_json::Value = serde_json::from_str(&forecast.json().unwrap()).unwrap();
        assert_eq!(json["trials"][1]["forecast"]["mean_ms"], 75.0);
        assert_eq!(json["agreement"]["mean_ms"]["rank_correlation"], serde_json::Value::Null);
        let svg = forecast.picture();
        // One of each in the legend; a forecast of 0 has no place on a logarithmic scale.
        assert_eq!(svg.matches("<circle").count(), 2 + 2, "{svg}");
    }
}
