//! `meridian lab simulate`: what a scenario would do, without a server.

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab::simulate::calibrate::Figures;
use meridian_lab::simulate::{Answer, Scenario, keep, pipeline, table};
use std::path::{Path, PathBuf};

/// Simulate a pipeline or a scan tier, or fit its numbers to measured figures
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab simulate bench/studies/search-pipeline.toml --set workers=16
  meridian lab simulate bench/studies/scan-tier.toml --set workload=grep --set servers=23 --json
  meridian lab simulate bench/studies/scan-tier.toml --calibrate bench/studies/scan-tier.figures.toml

The same seed gives the same run. docs/simulate.md says what the models leave out.")]
pub struct SimulateArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Change one of the scenario's numbers, such as workers=16 or arrival.count=128; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Leave the simulated requests as a results folder (pipelines)
    #[arg(long, value_name = "DIR", conflicts_with = "calibrate")]
    pub out: Option<PathBuf>,
    /// Fit the numbers that this file of figures names, and show how well all figures are met
    #[arg(long, value_name = "FIGURES.toml", conflicts_with = "json")]
    pub calibrate: Option<PathBuf>,
    /// Sets of simulations that a fit may take; 0 shows the scenario as it stands
    #[arg(long, value_name = "N", default_value_t = 150, requires = "calibrate")]
    pub evaluations: usize,
}

/// Runs the command.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let text = read(&args.scenario)?;
    let blame = |path: &Path| {
        let path = path.display().to_string();
        move |detail: String| Failure::Usage(format!("{path}: {detail}"))
    };
    let Some(path) = &args.calibrate else {
        let scenario = Scenario::read(&text, &args.set).map_err(blame(&args.scenario))?;
        let answer = match (&scenario, &args.out) {
            (_, None) => scenario.run(),
            (Scenario::Pipeline(search), Some(dir)) => {
                let trial = pipeline::run(search);
                keep(search, &trial, dir).map_err(failure)?;
                Answer::Pipeline(pipeline::Answer::of(&trial))
            }
            (Scenario::Scan(_), Some(_)) => {
                return Err(Failure::Usage("--out: a scan tier keeps no single scans: expected a pipeline".to_owned()));
            }
        };
        match args.json {
            true => say(&answer.json().map_err(|e| Failure::Bad(format!("the answer cannot be written: {e}")))?),
            false => say(answer.table().trim_end()),
        }
        return Ok(());
    };
    let scenario = table(&text, &args.set).map_err(blame(&args.scenario))?;
    let figures = Figures::read(&read(path)?).map_err(blame(path))?;
    for fit in &figures.fit {
        let outcome = figures.calibrate(fit, &scenario, args.evaluations).map_err(blame(path))?;
        say(&format!("{}\n{}", fit.group, outcome.table()));
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::Usage(format!("{}: it cannot be read: {e}", path.display())))
}
