//! Two runs held against each other: request by request, faster, slower or no difference seen.

mod show;

pub use show::write;

use crate::error::Result;
use crate::record::{Outcome, Phase, Record};
use crate::results;
use crate::stats::compare::{Comparison, Verdict, durations, quantile};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Durations of one request that are kept of a run; of more, every n-th is.
const KEPT_MAX: usize = 10_000;
/// What is compared.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// One run, as far as a comparison needs it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Why its figures say nothing; empty where they do.
    pub void: Vec<String>,
    /// Milliseconds of every measured question in order of its intended time, by the request's name; infinite without a sound answer.
    pub waits: BTreeMap<String, Vec<f64>>,
}

/// One request at one quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The request's name.
    pub request: String,
    /// The quantile.
    pub quantile: f64,
    /// Milliseconds of A and of B.
    pub ms: [f64; 2],
    /// What the samples say; none where they are too small or neither side has sound answers there.
    pub comparison: Option<Comparison>,
}

impl Row {
    /// B over A, and its interval; empty where there is none.
    fn ratio_in_words(&self) -> (String, String) {
        let of = |x: f64| if x.is_finite() { format!("{x:.3}") } else { "for ever".to_owned() };
        match self.comparison.as_ref().map(|comparison| comparison.ratio) {
            Some(ratio) => (of(ratio.value), format!("{} .. {}", of(ratio.low), of(ratio.high))),
            None => (String::new(), String::new()),
        }
    }

    /// What there is to say of B.
    pub fn words(&self) -> &'static str {
        match (&self.comparison, self.ms.map(f64::is_finite)) {
            (Some(comparison), _) => comparison.verdict.words(),
            (None, [false, false]) => "not told: neither answered so many",
            (None, _) => "not told by so few answers",
        }
    }
}

/// Two runs held against each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Requests that both runs have, at each quantile.
    pub rows: Vec<Row>,
    /// What the reader has to know before believing them.
    pub warnings: Vec<String>,
}

impl Side {
    /// Reads a results folder.
    pub fn open(dir: &Path) -> Result<Side> {
        let folder = results::open(dir)?;
        let mut records = Vec::new();
        for batch in folder.records()? {
            records.extend(batch?.into_iter().filter_map(|r| wait(&r).map(|ms| (r.request, r.trial, r.intended, ms))));
        }
        records.sort_by_key(|r| (r.0, r.1, r.2));
        let mut waits: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (request, _, _, ms) in records {
            let name = folder.run.requests.get(usize::from(request)).cloned().unwrap_or_else(|| request.to_string());
            waits.entry(name).or_default().push(ms);
        }
        Ok(Side { void: folder.run.void.clone(), waits })
    }
}

/// How long a measured question waited; none where the record is no question of the measured phase.
fn wait(record: &Record) -> Option<f64> {
    if record.phase != Phase::Measured || record.attempt > 0 {
        return None;
    }
    match (record.outcome, record.latency()) {
        (Outcome::Sound, Some(us)) => Some(us as f64 / 1e3),
        _ => Some(f64::INFINITY),
    }
}

/// Compares B with A. The same seed gives the same intervals.
pub fn runs(a: &Side, b: &Side, seed: u64) -> Report {
    let mut report = Report { rows: Vec::new(), warnings: Vec::new() };
    for (name, side) in [("A", a), ("B", b)] {
        report.warnings.extend(side.void.iter().map(|why| format!("{name} is void: {why}")));
    }
    for (name, side, other) in [("A", a, b), ("B", b, a)] {
        let alone = side.waits.keys().filter(|request| !other.waits.contains_key(*request));
        report.warnings.extend(alone.map(|request| format!("only {name} has the request {request:?}")));
    }
    for (request, of_a) in &a.waits {
        let Some(of_b) = b.waits.get(request) else { continue };
        let unsound = |waits: &[f64]| waits.iter().filter(|ms| ms.is_infinite()).count() as f64 / waits.len() as f64;
        let (unsound_a, unsound_b) = (unsound(of_a), unsound(of_b));
        if unsound_a > 0.0 || unsound_b > 0.0 {
            let (a, b) = (unsound_a * 100.0, unsound_b * 100.0);
            let text =
                format!("{request}: without a sound answer: A {a:.1} %, B {b:.1} %; they count as never answered");
            report.warnings.push(text);
        }
        let (of_a, of_b) = (thinned(of_a), thinned(of_b));
        for q in QUANTILES {
            let ms = [quantile(of_a.clone(), q), quantile(of_b.clone(), q)];
            // A quantile of which fewer than ten values lie above says little.
            let enough = (of_a.len().min(of_b.len()) as f64) * (1.0 - q) >= 10.0;
            let comparison = if enough { durations(&of_a, &of_b, q, seed) } else { None };
            report.rows.push(Row { request: request.clone(), quantile: q, ms, comparison });
        }
    }
    report
}

fn thinned(values: &[f64]) -> Vec<f64> {
    values.iter().step_by(values.len().div_ceil(KEPT_MAX).max(1)).copied().collect()
}

impl Report {
    /// Whether B is slower anywhere.
    pub fn slower(&self) -> bool {
        self.rows.iter().any(|row| row.comparison.as_ref().is_some_and(|c| c.verdict == Verdict::Slower))
    }

    /// The answer in one paragraph.
    pub fn sentence(&self) -> String {
        let with = |verdict: Verdict| -> Vec<String> {
            let rows = self.rows.iter().filter(|row| row.comparison.as_ref().is_some_and(|c| c.verdict == verdict));
            rows.map(|row| format!("{} at p{}", row.request, row.quantile * 100.0)).collect()
        };
        let (faster, slower) = (with(Verdict::Faster), with(Verdict::Slower));
        let mut said = Vec::new();
        for (how, which) in [("slower", &slower), ("faster", &faster)] {
            if !which.is_empty() {
                said.push(format!("B is {how}: {}.", which.join(", ")));
            }
        }
        let told = self.rows.iter().filter(|row| row.comparison.is_some()).count();
        let same = told - faster.len() - slower.len();
        said.push(match (told, same) {
            (0, _) => "There is nothing that can be compared.".to_owned(),
            (_, 0) => String::new(),
            (told, same) if told == same => "No difference is seen.".to_owned(),
            _ => "Elsewhere no difference is seen.".to_owned(),
        });
        said.join(" ").trim_end().to_owned()
    }

    /// The report as lines of text.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for warning in &self.warnings {
            let _ = writeln!(out, "{warning}");
        }
        let _ = writeln!(
            out,
            "{:<24} {:>5} {:>11} {:>11} {:>8} {:>17}  B is",
            "request", "", "A ms", "B ms", "B / A", "95 % interval"
        );
        for row in &self.rows {
            let percentile = format!("p{}", row.quantile * 100.0);
            let ms = |ms: f64| if ms.is_finite() { format!("{ms:.2}") } else { "never".to_owned() };
            let (a, b) = (ms(row.ms[0]), ms(row.ms[1]));
            let _ = write!(out, "{:<24} {percentile:>5} {a:>11} {b:>11} ", row.request);
            let (ratio, interval) = row.ratio_in_words();
            let _ = writeln!(out, "{ratio:>8} {interval:>17}  {}", row.words());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::draw::Dice;

    fn side(n: usize, mean: f64, seed: u64) -> Side {
        let mut dice = Dice::new(seed);
        let waits = (0..n).map(|_| -mean * (1.0 - dice.fraction()).ln()).collect();
        Side { waits: BTreeMap::from([("items".to_owned(), waits)]), ..Side::default() }
    }

    #[test]
    fn requests_are_compared_by_name_and_what_has_no_partner_is_said() {
        let (a, mut b) = (side(2_000, 10.0, 1), side(2_000, 20.0, 2));
        b.waits.insert("tiles".to_owned(), vec![1.0; 50]);
        b.void.push("the generator was late".to_owned());
        let report = runs(&a, &b, 1);
        assert!(report.slower() && !runs(&b, &a, 1).slower());
        assert_eq!(report.warnings, ["B is void: the generator was late", "only B has the request \"tiles\""]);
        let median = report.rows[0].comparison.as_ref().unwrap();
        assert!(median.ratio.holds(2.0), "{median:?}");
        assert!(report.table().contains("slower"));
    }

    #[test]
    fn too_few_answers_tell_nothing_and_unsound_ones_are_never_fast() {
        let (a, mut b) = (side(300, 10.0, 3), side(300, 10.0, 4));
        let report = runs(&a, &b, 1);
        assert_eq!(report.rows[2].comparison, None);
        assert!(report.table().contains("not told by so few"));
        // A p95 that nobody gets is no matter of how many answers there are.
        let (mut neither, mut nor) = (side(2_000, 10.0, 5), side(2_000, 10.0, 6));
        for side in [&mut neither, &mut nor] {
            side.waits.get_mut("items").unwrap().iter_mut().step_by(5).for_each(|ms| *ms = f64::INFINITY);
        }
        let neither = runs(&neither, &nor, 1);
        assert_eq!(neither.rows[1].words(), "not told: neither answered so many");
        assert!(neither.rows[0].comparison.is_some() && !neither.slower());
        for ms in b.waits.get_mut("items").unwrap().iter_mut().step_by(5) {
            *ms = f64::INFINITY;
        }
        let report = runs(&a, &b, 1);
        assert_eq!(report.rows[1].comparison.as_ref().unwrap().verdict, Verdict::Slower);
        assert!(report.warnings[0].contains("B 20.0 %") && report.table().contains("never"));
    }

    #[test]
    fn questions_of_the_measured_phase_wait_from_their_intended_time() {
        let sound = Record { intended: 1_000, sent: Some(5_000), done: Some(9_000), ..Record::default() };
        assert_eq!(wait(&sound), Some(8.0));
        assert_eq!(wait(&Record { outcome: Outcome::NotSent, ..Record::default() }), Some(f64::INFINITY));
        assert_eq!(wait(&Record { phase: Phase::WarmUp, ..sound.clone() }), None);
        assert_eq!(wait(&Record { attempt: 1, ..sound }), None);
    }
}
