//! `meridian lab run`: a scenario against its targets.

use super::failure;
use super::load::LoadArgs;
use crate::failure::Failure;
use crate::output::{remark, say};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use meridian_lab_drive::driver::live::Server;
use meridian_lab_drive::driver::{self, Options, Outcome, Progress};
use meridian_lab_results::folder::{Group, Quantiles};
use std::io::IsTerminal;
use std::path::Path;

/// Drive a target with the load of a scenario, and write a results folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab run first.toml
  meridian lab run first.toml --set arrival.rate=200 --set phases.measured_s=60 --out results/at-200
  meridian lab run first.toml --json | jq '.groups[0].latency_ms.p99'

Ends with 0 where every objective holds, with 1 where one does not (or the run is void and has objectives), with 2 where the
scenario is wrong, with 3 where a target cannot be reached or results cannot be written. Ctrl-C ends it with what it has.")]
pub struct RunArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Serve the report on loopback during the run; its address is printed first
    #[arg(long)]
    pub live: bool,
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let scenario = args.load.scenario()?;
    let out = args.load.folder(&scenario.name);
    let live = if args.live { Some(Server::start(&scenario.name).map_err(failure)?) } else { None };
    if let Some(live) = &live {
        // On standard error, apart from the results that programs read.
        remark(&format!("live: {}", live.url()));
    }
    let options = Options {
        out: out.clone(),
        allow_public: args.load.allow_public.clone(),
        interrupt: None,
        live: live.as_ref().map(Server::live),
    };
    let bar = bar();
    let outcome = driver::run(&scenario, &options, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let outcome = outcome.map_err(failure)?;
    if args.load.json {
        say(&json(&outcome, &out).to_string());
    } else {
        table(&outcome, &out);
    }
    judged(&outcome)
}

fn bar() -> ProgressBar {
    // Control characters would spoil a log file.
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
        bar.set_style(style);
    }
    bar
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run")]
fn show(bar: &ProgressBar, progress: &Progress) {
    let (trial, trials) = progress.trial;
    let end = progress.end_s.map_or_else(String::new, |end| format!(" of {end:.0}"));
    bar.set_length(progress.end_s.unwrap_or(progress.elapsed_s) as u64);
    bar.set_position(progress.elapsed_s as u64);
    bar.set_message(format!(
        "trial {} of {trials} · {:.0}{end} s · {} answered · {} in flight · {} not sound",
        trial + 1,
        progress.elapsed_s,
        progress.done,
        progress.in_flight,
        progress.not_sound
    ));
}

fn json(outcome: &Outcome, out: &Path) -> serde_json::Value {
    serde_json::json!({
        "results": out,
        "run": outcome.run,
        "groups": outcome.groups,
        "objectives": outcome.verdicts,
    })
}

fn table(outcome: &Outcome, out: &Path) {
    let many = outcome.run.targets.len() > 1;
    let width = outcome.groups.iter().map(|group| name(group, many).chars().count()).max().unwrap_or(0).max(28);
    say(&format!(
        "{:<10} {:<width$} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "phase", "population · request", "sound", "not sound", "per s", "p50 ms", "p95 ms", "p99 ms", "naive99"
    ));
    for group in &outcome.groups {
        row(group, &name(group, many), width);
    }
    let lab = &outcome.run.lab;
    say("");
    say(&format!(
        "latency counts from the intended time, over sound answers; naive99 is the figure that a client without a schedule would report\n\
         the lab: {:.2} cores, {:.1} us a request; {:.2} % of sends over 1 ms late, 99th percentile {:.2} ms, max {:.1} ms",
        lab.cpu,
        lab.cpu_us_per_request,
        lab.late_over_1ms_share * 100.0,
        lab.late_p99_ms,
        lab.late_max_ms
    ));
    if let Some(why) = &outcome.run.cut_short {
        say(&format!("ended early: {why}"));
    }
    for why in &outcome.run.void {
        say(&format!("VOID: {why}"));
    }
    for verdict in &outcome.verdicts {
        let value = verdict.value.map_or_else(|| "without end".to_owned(), |value| format!("{value:.3}"));
        say(&format!("{}: {} (measured {value})", if verdict.holds { "holds" } else { "FAILS" }, verdict.objective));
    }
    say(&format!("results: {}", out.display()));
}

fn name(group: &Group, many_targets: bool) -> String {
    let target = if many_targets { format!("{} · ", group.target) } else { String::new() };
    format!("{target}{} · {}", group.population, group.request)
}

fn row(group: &Group, name: &str, width: usize) {
    let sound = group.outcomes.get("sound").copied().unwrap_or(0);
    let others: u64 = group.outcomes.values().sum::<u64>() - sound;
    let Quantiles { p50, p95, p99, .. } = group.latency_ms;
    say(&format!(
        "{:<10} {name:<width$} {sound:>9} {others:>9} {:>8.1} {p50:>8.2} {p95:>8.2} {p99:>8.2} {:>8.2}",
        group.phase, group.sound_per_s, group.naive_ms.p99
    ));
    for (reason, count) in &group.reasons {
        say(&format!("{:<10}   {count} × {reason}", ""));
    }
    if group.resends > 0 {
        say(&format!(
            "{:<10}   {} × sent again: the target closed a reused connection before an answer",
            "", group.resends
        ));
    }
    if sound > 0 && group.without_results * 2 > sound {
        say(&format!("{:<10}   {} of the sound answers held no result", "", group.without_results));
    }
}

fn judged(outcome: &Outcome) -> Result<(), Failure> {
    // Without objectives there is no verdict, and the reasons are on the screen.
    if !outcome.verdicts.is_empty() && !outcome.run.void.is_empty() {
        return Err(Failure::Bad("the run is void: its objectives cannot be judged".to_owned()));
    }
    match outcome.verdicts.iter().filter(|verdict| !verdict.holds).count() {
        0 => Ok(()),
        1 => Err(Failure::Bad("an objective does not hold".to_owned())),
        n => Err(Failure::Bad(format!("{n} objectives do not hold"))),
    }
}
