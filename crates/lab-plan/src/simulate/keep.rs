//! Writes a simulated trial as a results folder, so that analysis, comparison and report read it like a real run.

use super::pipeline::{Pipeline, SimulatedTrial};
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder::{Run, Trial, Writer};
use std::path::Path;

/// A constant date: the same seed gives the same folder.
const NO_DATE: &str = "1970-01-01T00:00:00Z";
/// Rows passed on at a time.
const ROWS: usize = 8_192;

/// Writes the folder; `dir` must not exist yet.
pub fn keep(pipeline: &Pipeline, trial: &SimulatedTrial, dir: &Path) -> Result<()> {
    let scenario = toml::to_string(pipeline).map_err(|e| LabError::results(format!("the scenario: {e}")))?;
    let mut writer = Writer::create(dir, &scenario)?;
    for rows in trial.records(pipeline.packets()).chunks(ROWS) {
        writer.push(rows)?;
    }
    let end = i64::try_from(trial.end).unwrap_or(i64::MAX);
    let run = Run {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        name: "pipeline".to_owned(),
        source: "simulate".to_owned(),
        started: NO_DATE.to_owned(),
        ended: NO_DATE.to_owned(),
        targets: vec!["simulation".to_owned()],
        populations: vec!["users".to_owned()],
        requests: vec!["request".to_owned()],
        trials: vec![Trial { target: 0, started: NO_DATE.to_owned(), measured_us: [0, end] }],
        ..Run::default()
    };
    writer.finish(&run).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Scenario, pipeline};

    const SEARCH: &str = include_str!("../../../../bench/studies/search-pipeline.toml");

    #[test]
    fn a_simulated_trial_is_read_back_as_a_run_and_its_scenario_runs_again() {
        let sets = ["workers=16".to_owned(), "arrival.count=60".to_owned()];
        let Scenario::Pipeline(search) = Scenario::read(SEARCH, &sets).unwrap() else { panic!("no pipeline") };
        let trial = pipeline::run(&search);
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("simulated");
        keep(&search, &trial, &dir).unwrap();
        let folder = meridian_lab_results::folder::open(&dir).unwrap();
        let rows: Vec<_> = folder.records().unwrap().flat_map(Result::unwrap).collect();
        assert_eq!(rows, trial.records(93));
        assert_eq!(Scenario::read(&folder.scenario, &[]).unwrap(), Scenario::Pipeline(search.clone()));
        // An existing folder is not overwritten.
        assert!(keep(&search, &trial, &dir).unwrap_err().to_string().contains("is there already"));
        // Comparison of the folder with itself finds no difference.
        let sides = meridian_lab_results::compare::Sides::of_runs(&dir, &dir).unwrap();
        let report = sides.compare();
        let asked: Vec<_> =
            sides.a.waits.iter().map(|(asked, waits)| (asked.request.as_str(), waits[&0].len())).collect();
        assert_eq!(asked, [("request", 60)]);
        assert!(!report.slower());
    }
}
