//! Compares two runs, or the two targets of one: request by request, faster, slower or no difference seen.
//!
//! Repeats decide: trials that took turns, runs, or the trials of one run of each side. Without repeats nothing is
//! decided, and a void run is never judged. In at most [`ALPHA`] of the comparisons of a server with itself some row
//! differs (`tests.rs` counts them).

mod show;
mod sides;

pub use show::write;
pub use sides::{RequestKey, Side, Sides, Waits};

use crate::stats::compare::{Comparison, NoVerdict, REPEATS, Repeats, Verdict, groups, pairs, quantile};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Max share of comparisons of a server with itself in which some row is called faster or slower, split over the rows.
pub const ALPHA: f64 = 0.05;
/// The compared quantiles.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// One request at one quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The request's name, with those of its population and target if there are several.
    pub asked: String,
    /// The quantile.
    pub quantile: f64,
    /// Milliseconds of A and of B.
    pub ms: [f64; 2],
    /// The verdict of the repeats, or why they decide nothing.
    pub comparison: Result<Comparison, NotDecided>,
}

/// Reason for the lack of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDecided {
    /// A run is void: its figures prove nothing about its target.
    Void,
    /// Fewer than ten responses lie above the quantile.
    Answers,
    /// The repeats do not decide.
    Repeats(NoVerdict),
}

impl NotDecided {
    /// Returns the reason as text.
    pub fn words(self) -> &'static str {
        match self {
            NotDecided::Void => "not decided: void",
            NotDecided::Answers => "not decided: too few answers",
            NotDecided::Repeats(NoVerdict::Repeats) => "not decided: no repeats",
            NotDecided::Repeats(NoVerdict::Never) => "not decided: some trials never answered",
            NotDecided::Repeats(NoVerdict::Neither) => "not decided: neither answered enough requests",
        }
    }
}

impl Row {
    /// Returns B over A, and its interval; empty without one.
    fn ratio_in_words(&self) -> (String, String) {
        let of = |x: f64| if x.is_finite() { format!("{x:.3}") } else { "for ever".to_owned() };
        match self.comparison.as_ref().map(|comparison| comparison.ratio) {
            Ok(ratio) => (of(ratio.value), format!("{} .. {}", of(ratio.low), of(ratio.high))),
            // The ratio is shown without an interval: it proves nothing.
            Err(_) if self.ms.iter().all(|ms| ms.is_finite()) => (of(self.ms[1] / self.ms[0]), String::new()),
            Err(_) => (String::new(), String::new()),
        }
    }

    /// Returns the verdict on B as text.
    pub fn words(&self) -> &'static str {
        match &self.comparison {
            Ok(comparison) => comparison.verdict.words(),
            Err(why) => why.words(),
        }
    }

    /// Returns whether B has this verdict here.
    fn is(&self, verdict: Verdict) -> bool {
        self.comparison.as_ref().is_ok_and(|comparison| comparison.verdict == verdict)
    }
}

/// A comparison of A and B.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Names of A and B.
    pub names: [String; 2],
    /// The requests of both, at each quantile.
    pub rows: Vec<Row>,
    /// Caveats about the rows.
    pub warnings: Vec<String>,
    /// Reasons why nothing is judged; empty if rows are.
    pub void: Vec<String>,
}

impl Sides {
    /// Compares B with A.
    pub fn compare(&self) -> Report {
        let names = [&self.a, &self.b].map(|side| side.name.clone());
        let mut report = Report { names, rows: Vec::new(), warnings: self.warnings.clone(), void: self.void.clone() };
        for (letter, side, other) in [("A", &self.a, &self.b), ("B", &self.b, &self.a)] {
            let alone = side.waits.keys().filter(|asked| !other.waits.contains_key(*asked));
            report.warnings.extend(alone.map(|asked| format!("only {letter} has {:?}", self.words(asked))));
        }
        let shared: Vec<(String, [Waits; 2])> =
            self.shared().map(|(asked, a, b)| (self.words(asked), self.repeats(a, b))).collect();
        // Every decidable row takes its part of the chance of a false verdict (Bonferroni).
        let rows = shared.iter().flat_map(|(_, waits)| QUANTILES.iter().filter(|q| enough(waits, **q))).count();
        for (asked, waits) in &shared {
            let all = waits.each_ref().map(|side| side.values().flatten().copied().collect::<Vec<f64>>());
            if all.iter().any(Vec::is_empty) {
                continue;
            }
            let unsound =
                all.each_ref().map(|all| all.iter().filter(|ms| ms.is_infinite()).count() as f64 / all.len() as f64);
            if unsound.iter().any(|share| *share > 0.0) {
                let [a, b] = unsound.map(|share| share * 100.0);
                let text =
                    format!("{asked}: without a sound answer: A {a:.1} %, B {b:.1} %; they count as never answered");
                report.warnings.push(text);
            }
            for q in QUANTILES {
                let comparison = match (self.void.is_empty(), enough(waits, q)) {
                    (false, _) => Err(NotDecided::Void),
                    (_, false) => Err(NotDecided::Answers),
                    (true, true) => self.judged(waits, q, ALPHA / rows as f64).map_err(NotDecided::Repeats),
                };
                let ms = all.each_ref().map(|all| quantile(all.clone(), q));
                report.rows.push(Row { asked: asked.clone(), quantile: q, ms, comparison });
            }
        }
        report
    }

    /// Compares one quantile of both sides, repeat by repeat.
    fn judged(&self, waits: &[Waits; 2], q: f64, alpha: f64) -> Result<Comparison, NoVerdict> {
        // Waits below a microsecond cannot be distinguished from it.
        let of = |side: &Waits| side.values().map(|ms| quantile(ms.clone(), q).max(1e-3)).collect::<Vec<f64>>();
        let [a, b] = waits.each_ref().map(of);
        if self.paired {
            let both: Vec<[f64; 2]> = a.into_iter().zip(b).map(|(a, b)| [a, b]).collect();
            // Effects common to both trials of a round cancel in their ratio, so pairs detect smaller differences than
            // groups do.
            return pairs(&both, alpha);
        }
        let side = |quantiles, one_run| Repeats { quantiles, one_run };
        groups(side(&a, self.a.one_run), side(&b, self.b.one_run), alpha)
    }

    /// Returns the requests of both sides.
    fn shared(&self) -> impl Iterator<Item = (&RequestKey, &Waits, &Waits)> {
        self.a.waits.iter().filter_map(move |(asked, of_a)| Some((asked, of_a, self.b.waits.get(asked)?)))
    }

    /// Returns the waits of each repeat: of rounds that both sides have, if they took turns. A trial without a wait is
    /// not a repeat.
    fn repeats(&self, a: &Waits, b: &Waits) -> [Waits; 2] {
        let has = |waits: &Waits, round: &u16| waits.get(round).is_some_and(|ms| !ms.is_empty());
        let kept = |mine: &Waits, other: &Waits| -> Waits {
            // A round of only one side would be paired with the other side's next round.
            let kept = mine.iter().filter(|(round, ms)| !ms.is_empty() && (!self.paired || has(other, round)));
            kept.map(|(round, ms)| (*round, ms.clone())).collect()
        };
        [kept(a, b), kept(b, a)]
    }

    /// Returns population and request, abbreviated as long as they are distinct.
    fn words(&self, asked: &RequestKey) -> String {
        let all = || self.a.waits.keys().chain(self.b.waits.keys());
        let populations: BTreeSet<&str> = all().map(|asked| asked.population.as_str()).collect();
        let mut words = vec![asked.request.as_str()];
        words.extend((populations.len() > 1).then_some(asked.population.as_str()));
        words.extend((!asked.target.is_empty()).then_some(asked.target.as_str()));
        words.join(", ")
    }
}

/// Returns whether there are enough responses for a quantile: ten above it on each side in total, and one in each
/// repeat.
fn enough(waits: &[Waits; 2], q: f64) -> bool {
    waits.iter().all(|side| {
        let all: usize = side.values().map(Vec::len).sum();
        let fewest = side.values().map(Vec::len).min().unwrap_or(0);
        // A quantile with fewer responses above it is one of the largest waits, which predict little about the next
        // run.
        all as f64 * (1.0 - q) >= 10.0 && fewest as f64 * (1.0 - q) >= 1.0 - 1e-9
    })
}

impl Report {
    /// Returns whether B is slower in any row.
    pub fn slower(&self) -> bool {
        self.rows.iter().any(|row| row.is(Verdict::Slower))
    }

    /// Returns why there is no verdict at all; `None` if some row has one.
    pub fn not_decided(&self) -> Option<String> {
        if !self.void.is_empty() {
            return Some(self.void.join("; "));
        }
        if self.rows.is_empty() {
            return Some("A and B have no request in common".to_owned());
        }
        let whys: Vec<NotDecided> = self.rows.iter().map_while(|row| row.comparison.as_ref().err().copied()).collect();
        (whys.len() == self.rows.len()).then(|| match whys.contains(&NotDecided::Repeats(NoVerdict::Repeats)) {
            true => format!(
                "without repeats it cannot be told how much trials differ by themselves: {REPEATS} or more of each side \
                 (trials.repeats) can"
            ),
            false => whys[0].words().trim_start_matches("not decided: ").to_owned(),
        })
    }

    /// Returns the result in one paragraph.
    pub fn sentence(&self) -> String {
        if let Some(why) = self.not_decided() {
            return format!("Not decided: {why}.");
        }
        let with = |verdict: Verdict| -> Vec<String> {
            let rows = self.rows.iter().filter(|row| row.is(verdict));
            rows.map(|row| format!("{} at p{}", row.asked, row.quantile * 100.0)).collect()
        };
        let (faster, slower) = (with(Verdict::Faster), with(Verdict::Slower));
        let mut said = Vec::new();
        for (how, which) in [("slower", &slower), ("faster", &faster)] {
            if !which.is_empty() {
                said.push(format!("B is {how}: {}.", which.join(", ")));
            }
        }
        let told = self.rows.iter().filter(|row| row.comparison.is_ok()).count();
        let same = told - faster.len() - slower.len();
        said.push(match (told, same) {
            (_, 0) => String::new(),
            (told, same) if told == same => "No difference is seen.".to_owned(),
            _ => "Elsewhere no difference is seen.".to_owned(),
        });
        said.join(" ").trim_end().to_owned()
    }

    /// Returns the report as lines of text.
    pub fn table(&self) -> String {
        let mut out = format!("A is {}, B is {}\n", self.names[0], self.names[1]);
        for warning in &self.warnings {
            let _ = writeln!(out, "{warning}");
        }
        let wide = self.rows.iter().map(|row| row.asked.chars().count()).fold(24, usize::max);
        let _ = writeln!(
            out,
            "{:<wide$} {:>5} {:>11} {:>11} {:>8} {:>17}  B is",
            "request", "", "A ms", "B ms", "B / A", "interval"
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
