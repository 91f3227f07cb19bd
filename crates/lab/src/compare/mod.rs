//! Two runs, or the two targets of one, held against each other: request by request, faster, slower or no difference seen.

mod show;
mod sides;

pub use show::write;
pub use sides::{Asked, Side, Sides, Waits};

use crate::stats::compare::{Comparison, Verdict, paired, quantile};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Durations of one request that are kept of a side; of more, every n-th is.
const KEPT_MAX: usize = 10_000;
/// What is compared.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// One request at one quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The request's name, with those of its population and target where there are several.
    pub asked: String,
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

/// A and B held against each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What A and B are.
    pub names: [String; 2],
    /// What both were asked, at each quantile.
    pub rows: Vec<Row>,
    /// What the reader has to know before believing them.
    pub warnings: Vec<String>,
}

impl Sides {
    /// Compares B with A. The same seed gives the same intervals.
    pub fn compare(&self, seed: u64) -> Report {
        let names = [&self.a, &self.b].map(|side| side.name.clone());
        let mut report = Report { names, rows: Vec::new(), warnings: self.warnings.clone() };
        for (letter, side, other) in [("A", &self.a, &self.b), ("B", &self.b, &self.a)] {
            let alone = side.waits.keys().filter(|asked| !other.waits.contains_key(*asked));
            report.warnings.extend(alone.map(|asked| format!("only {letter} has {:?}", self.words(asked))));
        }
        for (asked, of_a, of_b) in self.shared() {
            let asked = self.words(asked);
            let pairs = self.pairs(of_a, of_b);
            let all = |side: usize| pairs.iter().flat_map(move |pair| pair[side].iter().copied());
            let unsound =
                [0, 1].map(|side| all(side).filter(|ms| ms.is_infinite()).count() as f64 / all(side).count() as f64);
            if unsound.iter().any(|share| *share > 0.0) {
                let [a, b] = unsound.map(|share| share * 100.0);
                let text =
                    format!("{asked}: without a sound answer: A {a:.1} %, B {b:.1} %; they count as never answered");
                report.warnings.push(text);
            }
            let most = KEPT_MAX.div_ceil(pairs.len().max(1));
            let pairs: Vec<[Vec<f64>; 2]> =
                pairs.iter().map(|pair| pair.each_ref().map(|ms| thinned(ms, most))).collect();
            let sides: Vec<[&[f64]; 2]> = pairs.iter().map(|pair| pair.each_ref().map(Vec::as_slice)).collect();
            let [a, b] = [0, 1].map(|side| pairs.iter().flat_map(|pair| &pair[side]).copied().collect::<Vec<f64>>());
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let fewest = a.len().min(b.len()) as f64;
            for q in QUANTILES {
                let ms = [quantile(a.clone(), q), quantile(b.clone(), q)];
                // A quantile of which fewer than ten values lie above says little.
                let comparison = if fewest * (1.0 - q) >= 10.0 { paired(&sides, q, seed) } else { None };
                report.rows.push(Row { asked: asked.clone(), quantile: q, ms, comparison });
            }
        }
        report
    }

    /// What both sides were asked.
    fn shared(&self) -> impl Iterator<Item = (&Asked, &Waits, &Waits)> {
        self.a.waits.iter().filter_map(move |(asked, of_a)| Some((asked, of_a, self.b.waits.get(asked)?)))
    }

    /// The waits round by round, or as one pair of all where no trial has a partner.
    fn pairs(&self, a: &Waits, b: &Waits) -> Vec<[Vec<f64>; 2]> {
        match self.paired {
            true => a.iter().filter_map(|(round, a)| Some([a.clone(), b.get(round)?.clone()])).collect(),
            false => vec![[a, b].map(|side| side.values().flatten().copied().collect())],
        }
    }

    /// Who asked what, with no more words than it takes to tell it from the others.
    fn words(&self, asked: &Asked) -> String {
        let all = || self.a.waits.keys().chain(self.b.waits.keys());
        let populations: BTreeSet<&str> = all().map(|asked| asked.population.as_str()).collect();
        let mut words = vec![asked.request.as_str()];
        words.extend((populations.len() > 1).then_some(asked.population.as_str()));
        words.extend((!asked.target.is_empty()).then_some(asked.target.as_str()));
        words.join(", ")
    }
}

fn thinned(values: &[f64], most: usize) -> Vec<f64> {
    values.iter().step_by(values.len().div_ceil(most).max(1)).copied().collect()
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
            rows.map(|row| format!("{} at p{}", row.asked, row.quantile * 100.0)).collect()
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
        let mut out = format!("A is {}, B is {}\n", self.names[0], self.names[1]);
        for warning in &self.warnings {
            let _ = writeln!(out, "{warning}");
        }
        let wide = self.rows.iter().map(|row| row.asked.chars().count()).fold(24, usize::max);
        let _ = writeln!(
            out,
            "{:<wide$} {:>5} {:>11} {:>11} {:>8} {:>17}  B is",
            "request", "", "A ms", "B ms", "B / A", "95 % interval"
        );
        for row in &self.rows {
            let percentile = format!("p{}", row.quantile * 100.0);
            let ms = |ms: f64| if ms.is_finite() { format!("{ms:.2}") } else { "never".to_owned() };
            let (a, b) = (ms(row.ms[0]), ms(row.ms[1]));
            let _ = write!(out, "{:<wide$} {percentile:>5} {a:>11} {b:>11} ", row.asked);
            let (ratio, interval) = row.ratio_in_words();
            let _ = writeln!(out, "{ratio:>8} {interval:>17}  {}", row.words());
        }
        out
    }
}

#[cfg(test)]
mod tests;
