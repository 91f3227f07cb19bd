//! The breakpoint of a simulated server: the search of [`crate::breakpoint`] with a simulation for each trial, so that what is foretold
//! and what is measured mean the same thing.

use super::{Scenario, settings};
use crate::breakpoint::search::{End, Next, Plan, Search};
use crate::stats::Estimate;
use toml::{Table, Value};

/// What has to hold, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// A figure of [`Scenario::figures`], such as `p95_s`.
    pub figure: String,
    /// Its greatest good value.
    pub at_most: f64,
    /// Length of each trial: as long as the measured phase of the run that it foretells.
    pub over_s: f64,
}

/// Most trials: they are cheap.
const TRIALS: usize = 200;
/// Half of the interval over its middle.
const WITHIN: f64 = 0.01;
/// Loads this many times below and above the scenario's own are tried.
const FAR: f64 = 1_000.0;

/// The rate of arrival (requests a second, evenly) up to which the objective holds. The error is a sentence.
pub fn edge(scenario: &Table, objective: &Objective) -> Result<Estimate, String> {
    let interval = settings::number(scenario, "arrival.interval_s")?;
    if interval <= 0.0 {
        return Err(format!("arrival.interval_s = {interval}: expected more than 0, to begin with"));
    }
    let from = 1.0 / interval;
    let bounds = (from / FAR, from * FAR);
    let plan = Plan { from, bounds, factor: 2.0, within: WITHIN, confirm: 2, trials: TRIALS, whole: false };
    let mut search = Search::new(plan);
    for seed in 1.. {
        match search.choose() {
            Next::Try(rate, _) => search.told(rate, holds(scenario, objective, rate, seed)?),
            Next::End(End::Above | End::Below) => break,
            Next::End(_) => return search.estimate(),
        }
    }
    search.estimate()
}

fn holds(scenario: &Table, objective: &Objective, rate: f64, seed: i64) -> Result<bool, String> {
    let mut table = scenario.clone();
    let count = (rate * objective.over_s).ceil().clamp(1.0, 1e7) as i64;
    for (key, value) in [
        ("arrival.kind", Value::String("single".to_owned())),
        ("arrival.count", Value::Integer(count)),
        ("arrival.interval_s", Value::Float(1.0 / rate)),
        ("arrival.submit_s", Value::Float(0.0)),
        ("seed", Value::Integer(seed)),
    ] {
        settings::set(&mut table, key, value)?;
    }
    let scenario = Scenario::of(table)?;
    if !matches!(scenario, Scenario::Pipeline(_)) {
        return Err("expected a scenario of kind \"pipeline\"".to_owned());
    }
    // A figure that does not occur is that of users who wait for ever.
    Ok(scenario.figures().get(objective.figure.as_str()).is_some_and(|figure| *figure <= objective.at_most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(workers: u32, cv: f64) -> Table {
        toml::from_str(&format!(
            "kind = 'pipeline'\nseed = 1\nworkers = {workers}\npoll_s = 0.001\n\
             [arrival]\nkind = 'single'\ncount = 100\ninterval_s = 0.02\n\
             [[stage]]\nname = 'answer'\nqueue = 'quick'\neach = 'source'\ncalls_source = true\nservice = {{ mean_s = 0.0 }}\n\
             [[source]]\nname = 'work'\ncalls = 1\npackets = 1\ncall = {{ mean_s = 0.02, cv = {cv} }}\n"
        ))
        .unwrap()
    }

    #[test]
    fn the_edge_of_a_server_is_where_its_workers_are_full() {
        let objective = Objective { figure: "p95_s".into(), at_most: 0.1, over_s: 10.0 };
        // 4 workers of 20 ms: 200 a second, and 0.08 s of waiting gather over 9.5 s at 0.85 % above.
        let steady = edge(&server(4, 0.0), &objective).unwrap();
        assert!((steady.value / 201.7 - 1.0).abs() < 0.02, "{steady:?}");
        // Chance costs capacity; workers add it.
        let varied = edge(&server(4, 1.0), &objective).unwrap();
        assert!(varied.high < steady.low && varied.value > 120.0, "{varied:?}");
        let more = edge(&server(8, 1.0), &objective).unwrap();
        assert!(more.value > 1.9 * varied.value, "{more:?}");
        let mistake = Objective { figure: "p95_s".into(), at_most: 0.001, over_s: 10.0 };
        assert!(edge(&server(4, 0.0), &mistake).unwrap_err().contains("the breakpoint lies below"));
    }
}
