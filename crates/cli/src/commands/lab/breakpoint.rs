//! `meridian lab breakpoint`: the largest load at which the objectives hold.

use super::failure;
use super::load::LoadArgs;
use crate::failure::Failure;
use crate::output::{remark, say};
use clap::Args;
use meridian_lab_plan::breakpoint::{self, Breakpoint, Options, Step};

/// Find the largest load at which the objectives hold
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab breakpoint first.toml
  meridian lab breakpoint first.toml --from 50 --most 5000 --set phases.measured_s=20 --out results/edge
  meridian lab breakpoint first.toml --at-least 200 --json | jq .breakpoint

Steps up from the scenario's own load, narrows down, and confirms from fresh at both ends of the interval. Of a rate it then measures
what can be sustained: the rate up to which no backlog grows. Objectives of a short step hold above that too. Without objectives in the
scenario it takes p95_ms at most 1000 and sound_share at least 0.99.

Ends with 0 where the breakpoint was found within what --within asks (with --at-least: where both intervals lie at or above that
load), with 1 where not, with 2 where the scenario is wrong, with 3 where the target cannot be reached or results cannot be
written. Ctrl-C ends it with what it has.")]
pub struct BreakpointArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// The population whose load is varied, if there are several
    #[arg(long, value_name = "NAME")]
    pub population: Option<String>,
    /// The first load [default: the scenario's own]
    #[arg(long, value_name = "LOAD")]
    pub from: Option<f64>,
    /// The largest load to try
    #[arg(long, value_name = "LOAD")]
    pub most: Option<f64>,
    /// Factor by which a step raises the load
    #[arg(long, value_name = "X", default_value_t = 2.0)]
    pub factor: f64,
    /// How narrow the interval must be: 0.05 is plus or minus 5 %
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub within: f64,
    /// Max steps
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub steps: usize,
    /// Exit with 0 if the breakpoint is at this load or above, otherwise with 1, for CI
    #[arg(long, value_name = "LOAD")]
    pub at_least: Option<f64>,
}

/// Runs the command. A line per step goes to standard error, the result to standard output.
pub fn run(args: &BreakpointArgs) -> Result<(), Failure> {
    let scenario = args.load.scenario()?;
    let out = args.load.folder(&format!("{}-breakpoint", scenario.name));
    let options = Options {
        out: out.clone(),
        allow_public: args.load.allow_public.clone(),
        interrupt: None,
        population: args.population.clone(),
        from: args.from,
        most: args.most,
        factor: args.factor,
        within: args.within,
        steps: args.steps,
    };
    let found = breakpoint::run(&scenario, &options, &mut |step| remark(&line(step))).map_err(failure)?;
    if args.load.json {
        let json = serde_json::to_string(&found);
        say(&json.map_err(|e| Failure::Bad(format!("the answer cannot be written: {e}")))?);
    } else {
        say(&format!("{}\nresults: {}", found.sentence, out.display()));
    }
    judged(&found, args.at_least)
}

fn line(step: &Step) -> String {
    let held = match (step.void.is_empty(), step.held) {
        (false, _) => "VOID",
        (true, true) => "held",
        (true, false) => "FAILED",
    };
    let p95 = step.p95_ms.map_or_else(|| "for ever".to_owned(), |ms| format!("{ms:.2} ms"));
    let grows = if step.backlog.is_some_and(|backlog| backlog.grows) { "backlog grows  " } else { "" };
    let why = step.void.first().cloned().or_else(|| step.failed.first().map(|failed| failed.objective.clone()));
    format!(
        "{:>3} {:<8} {:>9} {held:<7} {:>9.1} sound/s  p95 {p95:>11}  {:<11} {grows}{}",
        step.n,
        step.purpose.word(),
        step.load,
        step.sound_per_s,
        step.mode.word(),
        why.unwrap_or_default()
    )
}

fn judged(found: &Breakpoint, at_least: Option<f64>) -> Result<(), Failure> {
    match at_least {
        Some(load) if found.holds_at(load) => Ok(()),
        Some(load) => Err(Failure::Bad(format!("it is not shown that the objectives hold at {load} {}", found.unit))),
        None if found.is_good() => Ok(()),
        None => Err(Failure::Bad("the breakpoint was not found as precisely as requested".to_owned())),
    }
}
