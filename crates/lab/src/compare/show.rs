//! A against B as pictures and a page.

use super::{Report, Row, Side};
use crate::error::{LabError, Result};
use crate::picture::{Axis, COLOURS, Marks, Plot, Scale, Unit, png};
use crate::report::page;
use crate::whole;
use std::path::{Path, PathBuf};

/// Most requests that get a picture.
const PICTURES_MAX: usize = 12;
/// Points of a curve.
const STEPS: u32 = 160;

/// Writes `report.html` and `pictures/` into a folder; the page's path.
pub fn write(dir: &Path, a: &Side, b: &Side, report: &Report) -> Result<PathBuf> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| {
        LabError::results(format!("{}: cannot be written: {e}", path.display()))
    };
    let pictures = dir.join("pictures");
    std::fs::create_dir_all(&pictures).map_err(|e| failed(&pictures, &e))?;
    let mut out = page::head("A against B", &report.sentence());
    for warning in &report.warnings {
        page::paragraph(&mut out, warning);
    }
    page::table(&mut out, &["request", "", "A", "B", "B over A", "95 % interval", "B is"], &rows(report));
    let requests = a.waits.iter().filter_map(|(request, of_a)| Some((request, of_a, b.waits.get(request)?)));
    for (n, (request, of_a, of_b)) in requests.take(PICTURES_MAX).enumerate() {
        let svg = curves(request, of_a, of_b).svg();
        let bytes = png(&svg).map_err(|e| LabError::results(format!("{request}: {e}")))?;
        for (extension, content) in [("svg", svg.as_bytes()), ("png", &bytes)] {
            let path = pictures.join(format!("request-{}.{extension}", n + 1));
            whole::write(&path, content).map_err(|e| failed(&path, &e))?;
        }
        let caption = "Where a curve ends before the right edge, the rest of its requests had no sound answer. A curve above the \
             other is slower.";
        page::figure(&mut out, &svg, caption);
    }
    let text = "Waits count from the time at which a request was intended; a question without a sound answer counts as never \
                answered. The interval is a bootstrap of blocks of neighbouring requests.";
    page::tail(&mut out, "How they were compared", text);
    let path = dir.join("report.html");
    page::write(&path, &out)?;
    Ok(path)
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let row = |row: &Row| {
        let [a, b] = row.ms.map(|ms| if ms.is_finite() { format!("{ms:.2} ms") } else { "never".to_owned() });
        let (ratio, interval) = row.ratio_in_words();
        let quantile = format!("p{}", row.quantile * 100.0);
        vec![row.request.clone(), quantile, a, b, ratio, interval, row.words().to_owned()]
    };
    report.rows.iter().map(row).collect()
}

/// Percentile curves of both, over all questions: what was never answered has no place on them.
fn curves(request: &str, a: &[f64], b: &[f64]) -> Plot {
    let finite = a.iter().chain(b).copied().filter(|ms| ms.is_finite()).map(|ms| ms * 1e3);
    let y = Axis::over("wait for the whole answer", Unit::Micros, Scale::Log, finite);
    let most = a.len().max(b.len()).max(20) as f64;
    let x = Axis {
        title: "percentile of all questions".into(),
        unit: Unit::Share,
        scale: Scale::Tail,
        range: (0.0, 1.0 - 1.0 / most),
    };
    let plot = Plot::new(request, x, y);
    let plot = plot.with("A", COLOURS[0], Marks::Line(curve(a), false));
    plot.with("B", COLOURS[1], Marks::Line(curve(b), false))
}

fn curve(waits: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = waits.to_vec();
    sorted.sort_by(f64::total_cmp);
    let depth = (sorted.len().max(2) as f64).log10();
    let share = |i: u32| 1.0 - 10f64.powf(-depth * f64::from(i) / f64::from(STEPS));
    let at = |q: f64| Some((q, crate::stats::percentile::of_sorted(&sorted, q)? * 1e3));
    (0..=STEPS).filter_map(|i| at(share(i))).filter(|(_, us)| us.is_finite() && *us > 0.0).collect()
}
