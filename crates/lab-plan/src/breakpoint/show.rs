//! A search as pictures and a page.

use super::result::{Breakpoint, short};
use super::{Conclusion, Step};
use meridian_lab_results::error::Result;
use meridian_lab_results::picture::{Axis, BAD, COLOURS, GOOD, Marks, Plot, QUIET, Scale, Unit, stacked};
use meridian_lab_results::report::Report;
use meridian_lab_results::report::page;
use std::path::Path;

/// Writes `report.html` and `pictures/` into a search's folder.
pub fn report(dir: &Path) -> Result<Report> {
    let found = Breakpoint::open(dir)?;
    let pictures = dir.join("pictures");
    let svg = stacked(&plots(&found));
    page::picture(&pictures, "breakpoint", &svg)?;
    let page = dir.join("report.html");
    page::write(&page, &html(&found, &svg))?;
    Ok(Report { page, pictures, words: found.sentence })
}

fn html(found: &Breakpoint, svg: &str) -> String {
    let mut out = page::head(&format!("{}: breakpoint", found.name), &found.sentence);
    let caption = match found.conclusion {
        Conclusion::Above | Conclusion::Below => {
            "Each dot is a step: green where every objective held, red where one failed."
        }
        _ => {
            "Each dot is a step: green where every objective held, red where one failed. The band is where the breakpoint lies \
              with 95 % confidence."
        }
    };
    page::figure(&mut out, svg, caption);
    let rows: Vec<Vec<String>> = found.steps.iter().map(row).collect();
    page::table(
        &mut out,
        &["step", &found.unit, "", "sound a second", "95 % within", "backlog", "mode", "what failed"],
        &rows,
    );
    let text = format!(
        "Begun {}, ended {}, by meridian {}. Each step is a separate run, with its own seed, from an idle target; its results \
         folder lies in steps/. A step fails by chance with a probability that rises with the load as a logistic curve; \
         the interval holds where that probability is a half.",
        found.started, found.ended, found.program
    );
    page::tail(&mut out, "Measurement", &text);
    out
}

fn row(step: &Step) -> Vec<String> {
    let held = match (step.void.is_empty(), step.held) {
        (false, _) => "void",
        (_, true) => "held",
        (_, false) => "failed",
    };
    let failed = step.failed.iter().map(|failed| match failed.value {
        Some(value) => format!("{} (measured {})", failed.objective, short(value)),
        None => format!("{} (without end)", failed.objective),
    });
    let why: Vec<String> = if step.void.is_empty() { failed.collect() } else { step.void.clone() };
    vec![
        format!("{} {}", step.n, step.purpose.word()),
        step.load.to_string(),
        held.to_owned(),
        format!("{:.1}", step.sound_per_s),
        step.p95_ms.map_or_else(|| "for ever".to_owned(), |ms| format!("{} ms", short(ms))),
        step.backlog.map_or("", |backlog| if backlog.grows { "grows" } else { "holds" }).to_owned(),
        step.mode.word().to_owned(),
        why.join("; "),
    ]
}

/// Plots throughput and waits over the load.
fn plots(found: &Breakpoint) -> Vec<Plot> {
    let loads = || found.steps.iter().map(|step| step.load);
    let x = Axis::over(&found.unit, Unit::Count, Scale::Linear, loads());
    let most = x.range.1;
    let mut out_axis = Axis::over(
        "sound answers a second",
        Unit::Count,
        Scale::Linear,
        found.steps.iter().map(|step| step.sound_per_s).chain(found.law.iter().map(|law| law.throughput(most))),
    );
    // Dots gather at the top, where the breakpoint's label is: this leaves room for it.
    out_axis.range.1 *= 1.15;
    let mut out = Plot::new(format!("{}: throughput", found.name), x.clone(), out_axis);
    if found.is_rate {
        let end = most.min(out.y.range.1);
        out = out.with("offered load", QUIET, Marks::Line(vec![(0.0, 0.0), (end, end)], true));
    }
    if let Some(law) = &found.law {
        let curve = (0..=200).map(|i| 1.0 + (most - 1.0) * f64::from(i) / 200.0).map(|n| (n, law.throughput(n)));
        out = out.with(law.name(), COLOURS[0], Marks::Line(curve.collect(), !law.fits()));
    }
    let mut out = dots(band(out, found), found, |step| Some(step.sound_per_s));
    if let Some(edge) = found.sustainable {
        out = out.and(COLOURS[0], Marks::Upright(edge.value, format!("sustained {}", short(edge.value))));
    }
    let waits = found.steps.iter().filter_map(|step| step.p95_ms).map(|ms| ms * 1e3);
    let wait = Axis::over("95 % wait at most", Unit::Micros, Scale::Log, waits);
    let ever = wait.range.1;
    let mut wait = Plot::new("How long it takes", x, wait);
    let failed = found.steps.iter().flat_map(|step| &step.failed);
    if let Some(bound) = failed.filter_map(|failed| bound_ms(&failed.objective)).next() {
        wait = wait.and(QUIET, Marks::Level(bound * 1e3, format!("objective: {} ms", short(bound))));
    }
    let wait = dots(band(wait, found), found, |step| step.p95_ms.map(|ms| ms * 1e3));
    let never: Vec<(f64, f64)> = found
        .steps
        .iter()
        .filter(|step| step.p95_ms.is_none() && step.void.is_empty())
        .map(|step| (step.load, ever))
        .collect();
    let wait = if never.is_empty() { wait } else { wait.with("for ever", "#000000", Marks::Points(never)) };
    vec![out, wait]
}

fn bound_ms(objective: &str) -> Option<f64> {
    objective.strip_prefix("p95_ms")?.rsplit_once("at most ")?.1.parse().ok()
}

fn band(plot: Plot, found: &Breakpoint) -> Plot {
    let Some(at) = found.breakpoint else { return plot };
    let (low, high) = plot.y.range;
    let word = format!("{} ({} to {})", short(at.value), short(at.low), short(at.high));
    plot.and("#e69f00", Marks::Heat(vec![(at.low, low, at.high, high, 0.35)]))
        .and("#8a5a00", Marks::Upright(at.value, word))
}

fn dots(plot: Plot, found: &Breakpoint, of: fn(&Step) -> Option<f64>) -> Plot {
    let kind = |keep: fn(&Step) -> bool| -> Vec<(f64, f64)> {
        found.steps.iter().filter(|step| keep(step)).filter_map(|step| Some((step.load, of(step)?))).collect()
    };
    let kinds = [
        ("held", GOOD, kind(|step| step.held && step.void.is_empty())),
        ("failed", BAD, kind(|step| !step.held && step.void.is_empty())),
        ("void", QUIET, kind(|step| !step.void.is_empty())),
    ];
    let some = kinds.into_iter().filter(|(_, _, points)| !points.is_empty());
    some.fold(plot, |plot, (name, colour, points)| plot.with(name, colour, Marks::Points(points)))
}
