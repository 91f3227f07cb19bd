//! The report as one self-contained page.

use super::captioned::Picture;
use super::digest::Digest;
use super::words;
use crate::atomic;
use crate::error::{LabError, Result};
use crate::folder::{Group, Quantiles, Results};
use crate::picture::{Unit, escaped, label, png};
use crate::record::{Outcome, Phase};
use std::fmt::Write;
use std::path::Path;

/// The style of the server's pages, inlined because the page works from a disk. Figures of a report are right-aligned.
pub(super) const STYLE: &str = concat!(
    include_str!("../../../../web/src/theme.css"),
    include_str!("../../../../web/src/document.css"),
    ".scroll th,.scroll td{text-align:right;white-space:pre-line}.scroll :is(th,td):first-child{text-align:left}"
);
/// The header of a report and of pages beside it; a file on a disk has no pages to link to.
pub const HEADER: &str = "<header class=\"bar\"><span class=\"brand\"><svg viewBox=\"0 0 32 32\" aria-hidden=\"true\"><circle cx=\"16\" cy=\"16\" r=\"13\"/>\
<ellipse cx=\"16\" cy=\"16\" rx=\"5.5\" ry=\"13\"/><path d=\"M3 16h26\"/><circle class=\"dot\" cx=\"21\" cy=\"11\" r=\"3.4\"/></svg>\
<span>Meridian lab</span></span></header>";

/// Returns the page.
pub(super) fn html(results: &Results, digest: &Digest, pictures: &[Picture]) -> String {
    let run = &results.run;
    let mut out = head(&run.name, &words::first_paragraph(run, digest));
    if !run.void.is_empty() {
        out.push_str("<div class=\"void\"><p><strong>This run is void</strong>:</p><ul>");
        for why in &run.void {
            let _ = write!(out, "<li>{}</li>", escaped(why));
        }
        out.push_str("</ul></div>");
    }
    let (header, rows) = words::table(run, digest);
    table(&mut out, &header, &rows);
    out.push_str(
        "<p>In brackets: the interval of the percentile with 95 % confidence. With several trials it comes from their repeats. With one \
         it comes from the order of the answers, which assumes that neighbours are independent.</p>",
    );
    by_request(&mut out, results);
    reasons(&mut out, digest);
    for picture in pictures {
        figure(&mut out, &picture.plot.svg(), &picture.caption);
    }
    let _ = write!(
        out,
        "<h2>Measurement</h2><p>Begun {}, ended {}, by meridian {}.{} Latency counts from the intended time of a request. \
         The lab itself: {:.0} % of a core in the thread that sends, {:.3} % of sends more than a millisecond late.</p>\
         <details><summary>The scenario, resolved</summary><pre tabindex=\"0\">{}</pre></details></main></html>",
        escaped(&run.started),
        escaped(&run.ended),
        escaped(&run.program),
        start(&results.scenario),
        run.lab.driver_cpu * 100.0,
        run.lab.late_over_1ms_share * 100.0,
        escaped_block(&results.scenario)
    );
    out
}

/// Returns the state of the target at the start, if the scenario names it.
fn start(scenario: &str) -> String {
    let phases = toml::from_str::<toml::Table>(scenario).ok().and_then(|mut table| table.remove("phases"));
    let start = phases.as_ref().and_then(|phases| phases.get("start")?.as_str());
    start.map_or_else(String::new, |start| format!(" The target began {}.", escaped(start)))
}

/// Appends a table of the requests of a mix, from the summary.
fn by_request(out: &mut String, results: &Results) {
    let run = &results.run;
    if run.requests.len() < 2 {
        return;
    }
    // An unreadable summary omits its table, not the report.
    let groups: Vec<Group> = serde_json::from_value(results.summary.clone()).unwrap_or_default();
    let rows: Vec<Vec<String>> = groups
        .iter()
        .filter(|group| group.phase == Phase::Measured.name())
        .map(|group| {
            let mut name = vec![group.request.as_str()];
            name.extend((run.populations.len() > 1).then_some(group.population.as_str()));
            name.extend((run.targets.len() > 1).then_some(group.target.as_str()));
            let sound = group.outcomes.get(Outcome::Sound.name()).copied().unwrap_or(0);
            let ms = |ms: f64| if sound > 0 { label(ms * 1e3, Unit::Micros) } else { "–".to_owned() };
            let Quantiles { p50, p95, p99, max, .. } = group.latency_ms;
            vec![
                name.join(", "),
                words::count(group.arrivals),
                words::count(sound),
                format!("{:.1}", group.sound_per_s),
                ms(p50),
                ms(p95),
                ms(p99),
                ms(max),
                words::count(group.results),
                label(group.bytes as f64, Unit::Bytes),
            ]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str("<h2>By request</h2>");
        let header =
            ["", "requests", "sound", "sound a second", "p50", "p95", "p99", "most", "results in all", "bytes in all"];
        table(out, &header, &rows);
    }
}

/// Lists the reasons for unsound responses, the most frequent first.
pub(super) fn reasons(out: &mut String, digest: &Digest) {
    if digest.reasons.is_empty() {
        return;
    }
    out.push_str("<h2>Failures</h2>");
    let mut reasons: Vec<_> = digest.reasons.iter().collect();
    reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let rows: Vec<_> = reasons.into_iter().take(20).map(|(why, n)| vec![why.clone(), words::count(*n)]).collect();
    table(out, &["reason", "requests"], &rows);
}

/// Returns the beginning of a page: its title and a summary.
pub fn head(title: &str, first_paragraph: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}: report</title><style>{STYLE}</style>{HEADER}<main><h1>{title}</h1><p class=\"lead\">{}</p>",
        escaped(first_paragraph)
    )
}

/// Appends a drawing and its caption.
pub fn figure(out: &mut String, svg: &str, caption: &str) {
    let _ = write!(out, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(caption));
}

/// Appends a paragraph.
pub fn paragraph(out: &mut String, text: &str) {
    let _ = write!(out, "<p>{}</p>", escaped(text));
}

/// Appends the end of a page.
pub fn tail(out: &mut String, title: &str, text: &str) {
    let _ = write!(out, "<h2>{}</h2><p>{}</p></main></html>", escaped(title), escaped(text));
}

/// Writes a picture as `NAME.svg` and `NAME.png` into a folder, which it creates.
pub fn picture(folder: &Path, name: &str, svg: &str) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))?;
    let bytes = png(svg).map_err(|e| unwritten(&folder.join(name), &e))?;
    for (extension, content) in [("svg", svg.as_bytes()), ("png", &bytes)] {
        let file = folder.join(format!("{name}.{extension}"));
        atomic::write(&file, content).map_err(|e| unwritten(&file, &e))?;
    }
    Ok(())
}

/// Writes a page.
pub fn write(page: &Path, html: &str) -> Result<()> {
    atomic::write(page, html.as_bytes()).map_err(|e| unwritten(page, &e))
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> LabError {
    LabError::results(format!("{}: cannot be written: {error}", path.display()))
}

/// Appends a table of rows under a header.
pub fn table(out: &mut String, header: &[&str], rows: &[Vec<String>]) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\"><table><tr>");
    for cell in header {
        // A column of names needs no header, and an empty header would be read out.
        let kind = if cell.is_empty() { "td" } else { "th" };
        let _ = write!(out, "<{kind}>{}</{kind}>", escaped(cell));
    }
    out.push_str("</tr>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escaped(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
}

/// Like [`escaped`], with its lines kept.
fn escaped_block(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join("\n")
}
