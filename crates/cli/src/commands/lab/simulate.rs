//! `meridian lab simulate`: the behaviour of a scenario, without a server.

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab_plan::simulate::calibrate::Figures;
use meridian_lab_plan::simulate::edge::{Objective, edge, with_error};
use meridian_lab_plan::simulate::forecast::{Forecast, forecast};
use meridian_lab_plan::simulate::{Prediction, Scenario, keep, pipeline, spans, table};
use meridian_lab_results::atomic;
use meridian_store::seams::{expect_file, read_named_text};
use std::path::{Path, PathBuf};
use toml::Table;

/// Simulate a pipeline, a scan tier or tenants of one server, or fit its numbers to measured figures
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab simulate bench/studies/search-pipeline.toml --set workers=16
  meridian lab simulate bench/studies/scan-tier.toml --set workload=grep --set servers=23 --json
  meridian lab simulate bench/studies/scan-tier.toml --calibrate bench/studies/scan-tier.figures.toml
  meridian lab simulate bench/studies/scan-forecast.toml --against bench/studies/scan-forecast.figures.toml
  meridian lab simulate bench/studies/tenants.toml --set rule=queue
  meridian lab simulate server.toml --calibrate results/at-50 --fit stage.answer.service.mean_s
  meridian lab simulate server.toml --calibrate results/at-50 --fit stage.answer.service.mean_s --edge p95_s=0.1
  meridian lab simulate pipeline.toml --calibrate spans.jsonl

The same seed gives the same run. docs/simulate.md lists what the models leave out.")]
pub struct SimulateArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Change one of the scenario's numbers, such as workers=16 or arrival.count=128; may repeat
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Simulate every trial of a file of figures, and show how well the measurements are met that the scenario's
    /// numbers were not fitted to. --out takes the answer and a picture
    #[arg(long, value_name = "FIGURES.toml", conflicts_with_all = ["calibrate", "edge"])]
    pub against: Option<PathBuf>,
    /// Write the simulated requests as a results folder (pipelines); with --against: forecast.json, forecast.svg and
    /// forecast.png
    #[arg(long, value_name = "DIR", conflicts_with = "calibrate")]
    pub out: Option<PathBuf>,
    /// Take the scenario's numbers from measurements. A file of figures (.toml) fits the numbers that it names, and
    /// shows how well all figures are met. A results folder fits the numbers of --fit. OTLP spans (JSON lines) set the
    /// stages and sources of the same names
    #[arg(long, value_name = "PATH")]
    pub calibrate: Option<PathBuf>,
    /// A number to fit to a results folder, such as stage.answer.service.mean_s; may repeat
    #[arg(long, value_name = "KEY", requires = "calibrate")]
    pub fit: Vec<String>,
    /// Predict the rate of arrival up to which a figure stays at or below a value, such as p95_s=0.1 (pipelines). With
    /// --calibrate the scenario is fitted first, and the interval includes the error of the calibration
    #[arg(long, value_name = "FIGURE=VALUE", conflicts_with = "out")]
    pub edge: Option<String>,
    /// Length of the trials of --edge, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, requires = "edge")]
    pub over_s: f64,
    /// Max sets of simulations of a fit; 0 shows the scenario as it stands
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
    if let Some(path) = &args.against {
        let scenario = table(&text, &args.set).map_err(blame(&args.scenario))?;
        let figures = Figures::read(&read(path)?, path.parent().unwrap_or(Path::new(""))).map_err(blame(path))?;
        return lay_beside(args, &forecast(&figures, &scenario).map_err(blame(path))?);
    }
    // First, since it uses --calibrate and --json in its own way.
    if let Some(edge) = &args.edge {
        return predict(args, edge, table(&text, &args.set).map_err(blame(&args.scenario))?);
    }
    if args.json && args.calibrate.is_some() {
        return Err(Failure::Usage(
            "--json: a calibration is a table: expected --edge beside it, or no --json".to_owned(),
        ));
    }
    let Some(path) = &args.calibrate else {
        let scenario = Scenario::read(&text, &args.set).map_err(blame(&args.scenario))?;
        let answer = match (&scenario, &args.out) {
            (_, None) => scenario.run(),
            (Scenario::Pipeline(search), Some(dir)) => {
                // A single run for both: the printed result must be that of the stored requests.
                let trial = pipeline::run(search);
                keep(search, &trial, dir).map_err(failure)?;
                Prediction::Pipeline(pipeline::PipelineOutcome::of(&trial))
            }
            (Scenario::Scan(_) | Scenario::Tenants(_) | Scenario::Closed(_), Some(_)) => {
                return Err(Failure::Usage("--out: only a pipeline keeps single requests".to_owned()));
            }
        };
        match args.json {
            true => say(&answer.json().map_err(|e| Failure::Bad(format!("the answer cannot be written: {e}")))?),
            false => say(answer.table().trim_end()),
        }
        return Ok(());
    };
    let scenario = table(&text, &args.set).map_err(blame(&args.scenario))?;
    let Some(figures) = figures(args, path)? else { return from_spans(path, scenario, blame(path)) };
    for fit in &figures.fit {
        let outcome = figures.calibrate(fit, &scenario, args.evaluations).map_err(blame(path))?;
        say(&format!("{}\n{}", fit.group, outcome.table()));
    }
    Ok(())
}

/// Prints a forecast, and stores it if `--out` is given.
fn lay_beside(args: &SimulateArgs, found: &Forecast) -> Result<(), Failure> {
    let json = found.json().map_err(|e| Failure::Bad(format!("the answer cannot be written: {e}")))?;
    if let Some(out) = &args.out {
        let svg = found.picture();
        let png = meridian_lab_results::picture::png(&svg).map_err(|e| Failure::Bad(e.to_string()))?;
        let refused = |path: &Path, e: &dyn std::fmt::Display| Failure::Refused(format!("{}: {e}", path.display()));
        std::fs::create_dir_all(out).map_err(|e| refused(out, &e))?;
        for (name, content) in
            [("forecast.json", json.as_bytes()), ("forecast.svg", svg.as_bytes()), ("forecast.png", &png)]
        {
            let path = out.join(name);
            atomic::write(&path, content).map_err(|e| refused(&path, &e))?;
        }
    }
    match args.json {
        true => say(&json),
        false => say(found.table().trim_end()),
    }
    Ok(())
}

/// Returns the figures to calibrate by; `None` if the path holds spans.
fn figures(args: &SimulateArgs, path: &Path) -> Result<Option<Figures>, Failure> {
    let is_figures = path.extension().is_some_and(|extension| extension == "toml");
    let figures = match (path.is_dir(), is_figures) {
        (true, _) => Figures::of_folder(path, &args.fit),
        (false, true) => Figures::read(&read(path)?, path.parent().unwrap_or(Path::new(""))),
        (false, false) => return Ok(None),
    };
    figures.map(Some).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Returns the calibrated scenario, and the error of the calibration.
fn calibrated(args: &SimulateArgs, path: &Path, scenario: &Table) -> Result<(Table, f64), Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let figures = figures(args, path)?;
    let figures =
        figures.ok_or_else(|| wrong("expected a results folder or a file of figures with --edge".to_owned()))?;
    // Several groups would give several scenarios, and so several edges.
    let [fit] = &figures.fit[..] else {
        return Err(wrong(format!("it has {} groups: expected one to predict an edge from", figures.fit.len())));
    };
    let found = figures.calibrate(fit, scenario, args.evaluations).map_err(wrong)?;
    // With as many numbers as figures every fit is exact, which tells nothing about its error.
    let few = || wrong("there are no more figures than numbers to fit, so their error is unknown".to_owned());
    Ok((found.laid(scenario).map_err(wrong)?, found.error().ok_or_else(few)?))
}

fn predict(args: &SimulateArgs, objective: &str, scenario: Table) -> Result<(), Failure> {
    let wrong =
        || Failure::Usage(format!("--edge {objective}: expected a figure and its max value, such as p95_s=0.1"));
    let (figure, value) = objective.split_once('=').ok_or_else(wrong)?;
    let at_most = value.trim().parse::<f64>().ok().filter(|value| *value > 0.0).ok_or_else(wrong)?;
    if !(args.over_s > 0.0 && args.over_s <= 86_400.0) {
        return Err(Failure::Usage(format!("--over-s {}: expected seconds above 0, at most a day", args.over_s)));
    }
    let objective = Objective { figure: figure.trim().to_owned(), at_most, over_s: args.over_s };
    let (scenario, error) = match &args.calibrate {
        Some(path) => calibrated(args, path, &scenario).map(|(scenario, error)| (scenario, Some(error)))?,
        None => (scenario, None),
    };
    let found =
        edge(&scenario, &objective).map_err(|why| Failure::Bad(format!("{}: {why}", args.scenario.display())))?;
    let found = error.map_or(found, |error| with_error(found, error));
    let json = serde_json::json!({
        "breakpoint": found, "objective": args.edge, "over_s": args.over_s, "calibration_error": error
    });
    let of = match error {
        Some(error) => format!("with 95 % confidence, and calibration accounts for ±{:.1} %", error * 100.0),
        None => "by the simulation alone: errors of its numbers are not included, --calibrate includes them".to_owned(),
    };
    match args.json {
        true => say(&json.to_string()),
        false => say(&format!(
            "{} stays at or below {at_most} up to {:.2} requests a second ({:.2} to {:.2} {of})",
            objective.figure, found.value, found.low, found.high
        )),
    }
    Ok(())
}

/// Prints the numbers from spans, in the form that `--set` and a scenario accept.
fn from_spans(path: &Path, mut scenario: Table, blame: impl Fn(String) -> Failure) -> Result<(), Failure> {
    let unread = |e: std::io::Error| Failure::Usage(format!("{}: it cannot be read: {e}", path.display()));
    // Spans of a long run take more than the limit of other files.
    let text = expect_file(path).and_then(|()| std::fs::read_to_string(path)).map_err(unread)?;
    let services = spans::read(&text).map_err(&blame)?;
    for (key, value) in spans::lay(&mut scenario, &services).map_err(&blame)? {
        say(&format!("{key} = {value}"));
    }
    // Checked last, so that numbers the scenario refuses are shown first, then named.
    Scenario::of(scenario).map_err(&blame)?;
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    read_named_text(path).map_err(|e| Failure::Usage(format!("{}: it cannot be read: {e}", path.display())))
}
