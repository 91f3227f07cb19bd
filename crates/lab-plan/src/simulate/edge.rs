//! The breakpoint of a simulated server. It is the search of [`crate::breakpoint`] with a simulation for each
//! trial, so the predicted and the measured value mean the same.

use super::{Scenario, settings};
use crate::breakpoint::search::{End, Next, Plan, Search};
use meridian_lab_results::stats::Estimate;
use toml::{Table, Value};

/// The condition, and for how long it must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// A figure of [`Scenario::figures`], such as `p95_s`.
    pub figure: String,
    /// Its max acceptable value.
    pub at_most: f64,
    /// Length of each trial, equal to the measured phase of the run that it predicts.
    pub over_s: f64,
}

/// Max trials, which are cheap.
const TRIALS: usize = 200;
/// Half of the interval over its middle at which the search stops.
const WITHIN: f64 = 0.01;
/// Range of loads to try, as a factor below and above the scenario's own.
const FAR: f64 = 1_000.0;

/// Returns the rate of arrival (requests per second, evenly) up to which the objective holds. The error is a sentence.
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
            Next::Try(rate, _) => search.record(rate, holds(scenario, objective, rate, seed)?),
            Next::End(End::Above | End::Below) => break,
            Next::End(_) => return search.estimate(),
        }
    }
    search.estimate()
}

/// Widens an edge by the error of its scenario's calibration
/// ([`Calibration::error`](super::calibrate::Calibration::error)). A server whose times are longer by a share holds a
/// rate lower by the same share. So the interval grows by that on both sides.
pub fn with_error(edge: Estimate, error: f64) -> Estimate {
    let reach = |ratio: f64| (ratio.ln().hypot((1.0 + error).ln())).exp();
    let (up, down) = (reach(edge.high / edge.value), reach(edge.value / edge.low));
    Estimate { value: edge.value, low: edge.value / down, high: edge.value * up }
}

fn holds(scenario: &Table, objective: &Objective, rate: f64, seed: i64) -> Result<bool, String> {
    let mut table = scenario.clone();
    let count = (rate * objective.over_s).ceil().clamp(1.0, 1e7) as i64;
    for (key, value) in [
        ("arrival.kind", Value::String("single".to_owned())),
        ("arrival.count", Value::Integer(count)),
        ("arrival.interval_s", Value::Float(1.0 / rate)),
        // Time to submit would delay each request beyond its due time, unlike in the lab's own arrivals.
        ("arrival.submit_s", Value::Float(0.0)),
        ("seed", Value::Integer(seed)),
    ] {
        settings::set(&mut table, key, value)?;
    }
    let scenario = Scenario::of(table)?;
    if !matches!(scenario, Scenario::Pipeline(_)) {
        return Err("expected a scenario of kind \"pipeline\"".to_owned());
    }
    // A figure that does not occur means that users wait for ever.
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

    /// Ten runs of a server of known edge, each of 400 requests at a low rate. The model is fitted to each and
    /// predicts the edge.
    #[test]
    fn a_forecast_from_a_short_run_holds_the_edge_because_it_carries_the_error_of_its_calibration() {
        use super::super::calibrate::Figures;
        use super::super::{keep, pipeline};
        let objective = Objective { figure: "p95_s".into(), at_most: 0.2, over_s: 5.0 };
        let due = edge(&server(4, 1.0), &objective).unwrap().value;
        let dir = tempfile::tempdir().unwrap();
        let (mut bare, mut held) = (0, 0);
        for seed in 101..111 {
            let mut table = server(4, 1.0);
            for (key, value) in [("seed", Value::Integer(seed)), ("arrival.count", Value::Integer(400))] {
                settings::set(&mut table, key, value).unwrap();
            }
            let Scenario::Pipeline(of) = Scenario::of(table).unwrap() else { panic!("no pipeline") };
            let run = dir.path().join(seed.to_string());
            keep(&of, &pipeline::run(&of), &run).unwrap();
            let figures = Figures::of_folder(&run, &["source.work.call.mean_s".to_owned()]).unwrap();
            let away = {
                let mut table = server(4, 1.0);
                settings::set(&mut table, "source.work.call.mean_s", Value::Float(0.03)).unwrap();
                table
            };
            let fitted = figures.calibrate(&figures.fit[0], &away, 25).unwrap();
            let found = edge(&fitted.laid(&away).unwrap(), &objective).unwrap();
            bare += u32::from(found.holds(due));
            held += u32::from(with_error(found, fitted.error().unwrap()).holds(due));
        }
        println!("of 10 forecasts {bare} hold the edge by their search alone, {held} with the error of calibration");
        assert!(held >= 9 && bare < held, "{held} {bare}");
    }

    #[test]
    fn the_edge_of_a_server_is_where_its_workers_are_full() {
        let objective = Objective { figure: "p95_s".into(), at_most: 0.1, over_s: 10.0 };
        // 4 workers of 20 ms: 200 a second, and 0.08 s of waiting gather over 9.5 s at 0.85 % above.
        let steady = edge(&server(4, 0.0), &objective).unwrap();
        assert!((steady.value / 201.7 - 1.0).abs() < 0.02, "{steady:?}");
        // Random arrivals cost capacity; workers add it.
        let varied = edge(&server(4, 1.0), &objective).unwrap();
        assert!(varied.high < steady.low && varied.value > 120.0, "{varied:?}");
        let more = edge(&server(8, 1.0), &objective).unwrap();
        assert!(more.value > 1.9 * varied.value, "{more:?}");
        let mistake = Objective { figure: "p95_s".into(), at_most: 0.001, over_s: 10.0 };
        assert!(edge(&server(4, 0.0), &mistake).unwrap_err().contains("the breakpoint lies below"));
    }
}
