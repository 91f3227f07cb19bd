//! A compared with B, as pictures and a page.

use super::{Report, Row, Sides, Waits};
use crate::error::Result;
use crate::picture::{Axis, COLOURS, Marks, Plot, Scale, Unit};
use crate::report::page;
use std::path::{Path, PathBuf};

/// Max requests that get a picture.
const PICTURES_MAX: usize = 12;
/// Number of points of a curve.
const STEPS: u32 = 160;

/// Writes `report.html` and `pictures/` into a folder; returns the page's path.
pub fn write(dir: &Path, sides: &Sides, report: &Report) -> Result<PathBuf> {
    let pictures = dir.join("pictures");
    let mut out = page::head("A against B", &report.sentence());
    page::paragraph(&mut out, &format!("A is {}, B is {}.", report.names[0], report.names[1]));
    for warning in &report.warnings {
        page::paragraph(&mut out, warning);
    }
    page::table(&mut out, &["request", "", "A", "B", "B over A", "interval", "B is"], &rows(report));
    for (n, (asked, of_a, of_b)) in sides.shared().take(PICTURES_MAX).enumerate() {
        let name = sides.words(asked);
        let svg = curves(&name, of_a, of_b).svg();
        page::picture(&pictures, &format!("request-{}", n + 1), &svg)?;
        let caption = "Where a curve ends before the right edge, the rest of its requests had no sound answer. A curve above the \
             other is slower.";
        page::figure(&mut out, &svg, caption);
    }
    let drawn = match (sides.paired, sides.a.one_run || sides.b.one_run) {
        (true, _) => "pairs of trials that came one after the other",
        (false, false) => "runs",
        (false, true) => "trials, with an allowance for what runs differ by themselves",
    };
    let text = format!(
        "Waits count from the time at which a request was intended; a question without a sound answer counts as never answered. \
         The interval is by Student's t over the logarithms of the quantiles of {drawn}. All intervals together hold the truth with \
         95 % confidence: of comparisons of a server with itself at most 5 % call it different anywhere."
    );
    page::tail(&mut out, "How they were compared", &text);
    let path = dir.join("report.html");
    page::write(&path, &out)?;
    Ok(path)
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let row = |row: &Row| {
        let [a, b] = row.ms.map(|ms| if ms.is_finite() { format!("{ms:.2} ms") } else { "never".to_owned() });
        let (ratio, interval) = row.ratio_in_words();
        let quantile = format!("p{}", row.quantile * 100.0);
        vec![row.asked.clone(), quantile, a, b, ratio, interval, row.words().to_owned()]
    };
    report.rows.iter().map(row).collect()
}

/// Plots percentile curves of both, over all questions: questions without a response are not shown on them.
fn curves(name: &str, a: &Waits, b: &Waits) -> Plot {
    let [a, b] = [a, b].map(|side| side.values().flatten().copied().collect::<Vec<f64>>());
    let finite = a.iter().chain(&b).copied().filter(|ms| ms.is_finite()).map(|ms| ms * 1e3);
    let y = Axis::over("wait for the whole answer", Unit::Micros, Scale::Log, finite);
    let most = a.len().max(b.len()).max(20) as f64;
    let x = Axis {
        title: "percentile of all questions".into(),
        unit: Unit::Share,
        scale: Scale::Tail,
        range: (0.0, 1.0 - 1.0 / most),
    };
    let plot = Plot::new(name, x, y);
    let plot = plot.with("A", COLOURS[0], Marks::Line(curve(&a), false));
    plot.with("B", COLOURS[1], Marks::Line(curve(&b), false))
}

fn curve(waits: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = waits.to_vec();
    sorted.sort_by(f64::total_cmp);
    let depth = (sorted.len().max(2) as f64).log10();
    let share = |i: u32| 1.0 - 10f64.powf(-depth * f64::from(i) / f64::from(STEPS));
    let at = |q: f64| Some((q, crate::stats::percentile::of_sorted(&sorted, q)? * 1e3));
    (0..=STEPS).filter_map(|i| at(share(i))).filter(|(_, us)| us.is_finite() && *us > 0.0).collect()
}
