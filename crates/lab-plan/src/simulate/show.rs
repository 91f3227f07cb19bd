//! Results and calibrations as plain text tables.

use super::calibrate::Calibration;
use super::{Prediction, closed, pipeline, scan, tenants};
use std::fmt::Write;

impl Prediction {
    /// Returns the result as lines of text.
    pub fn table(&self) -> String {
        match self {
            Prediction::Pipeline(answer) => of_pipeline(answer),
            Prediction::Scan(answer) => of_scan(answer),
            Prediction::Tenants(answer) => of_tenants(answer),
            Prediction::Closed(answer) => of_closed(answer),
        }
    }
}

fn of_pipeline(answer: &pipeline::PipelineOutcome) -> String {
    let most = answer.requests.iter().map(|r| r.packets).max().unwrap_or(0);
    let complete = answer.requests.iter().filter(|r| r.packets == most && most > 0).count();
    let absent = answer.requests.iter().filter(|r| r.packets == 0).count();
    let partial = answer.requests.len() - complete - absent;
    let mut out =
        format!("{} requests: {complete} complete, {partial} partial, {absent} absent\n", answer.requests.len());
    if let Some(growth) = answer.growth_per_request_s {
        let _ = writeln!(out, "time to the first packet grows by {growth:.2} s with each request");
    }
    match answer.first_absent {
        Some(n) => _ = writeln!(out, "request {n} is the first to get nothing"),
        None => out.push_str("every request gets something\n"),
    }
    for burst in &answer.bursts {
        let seconds = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.1} s"));
        let _ = writeln!(
            out,
            "  after request {} ({}) {} get nothing, then {}",
            burst.after_n,
            seconds(burst.before_first_s),
            burst.lost,
            burst.restart_first_s.map_or_else(|| "the trial ends".to_owned(), |s| format!("{s:.1} s")),
        );
    }
    let _ = writeln!(out, "\n{:>8} {:>10} {:>10} {:>10} {:>8}", "request", "start s", "first s", "last s", "packets");
    let step = answer.requests.len().div_ceil(32);
    for request in answer.requests.iter().step_by(step) {
        let cell = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
        let (first, last) = (cell(request.first_s), cell(request.last_s));
        let _ =
            writeln!(out, "{:>8} {:>10.2} {first:>10} {last:>10} {:>8}", request.n, request.start_s, request.packets);
    }
    out
}

fn of_scan(answer: &scan::ScanOutcome) -> String {
    let mut more = String::new();
    if let Some(share) = answer.hedged {
        let _ = writeln!(more, "a second server is asked for {:.1} % of the scans", share * 100.0);
    }
    if let Some(share) = answer.cache_hits {
        let _ = writeln!(more, "servers have {:.1} % of what is read in their caches", share * 100.0);
    }
    format!(
        "a scan takes {:.1} ms on average (standard deviation {:.1}, {:.1} to {:.1})\na probe sees {} busy answers\n{more}",
        answer.mean_ms, answer.sd_ms, answer.min_ms, answer.max_ms, answer.busy_events
    )
}

fn of_closed(answer: &closed::ClosedOutcome) -> String {
    let mut out = format!(
        "{:.0} answers a second\n\n{:<16} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
        answer.per_second, "population", "answers/s", "mean ms", "p50 ms", "p95 ms", "p99 ms"
    );
    for one in &answer.populations {
        let _ = writeln!(
            out,
            "{:<16} {:>10.0} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
            one.name, one.per_second, one.mean_ms, one.p50_ms, one.p95_ms, one.p99_ms
        );
    }
    let _ = writeln!(out, "\n{:<16} {:>10}", "machine", "used");
    for machine in &answer.machines {
        let _ = writeln!(out, "{:<16} {:>9.0} %", machine.name, machine.used * 100.0);
    }
    out
}

fn of_tenants(answer: &tenants::TenantsOutcome) -> String {
    let mut out = format!(
        "{:.1} good answers a second, {:.0} % of the processors used\n\n{:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9}\n",
        answer.good_per_s,
        answer.used * 100.0,
        "tenant",
        "offered",
        "good",
        "good/s",
        "refused",
        "late",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "used s"
    );
    for tenant in &answer.tenants {
        let _ = writeln!(
            out,
            "{:<16} {:>9} {:>9} {:>9.1} {:>9} {:>9} {:>8.1} {:>8.1} {:>8.1} {:>9.2}",
            tenant.name,
            tenant.offered,
            tenant.good,
            tenant.good_per_s,
            tenant.refused,
            tenant.late,
            tenant.p50_ms,
            tenant.p95_ms,
            tenant.p99_ms,
            tenant.used_s
        );
    }
    out
}

impl Calibration {
    /// Formats the numbers found and every figure beside its simulation.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for (key, value) in &self.parameters {
            let _ = writeln!(out, "{key} = {value}");
        }
        let _ = writeln!(
            out,
            "\n{:<18} {:<22} {:>10} {:>10} {:>8} {:>20}",
            "trial", "figure", "measured", "simulated", "off", "10 % .. 90 %"
        );
        for residual in &self.residuals {
            let role = if residual.fit { "  fitted to" } else { "" };
            let _ = write!(out, "{:<14} {:<22} {:>10.2}", residual.trial, residual.figure, residual.measured);
            match residual.simulated {
                Some(found) => {
                    let off = format!("{:+.1} %", (found.median / residual.measured - 1.0) * 100.0);
                    let range = format!("{:.2} .. {:.2}", found.p10, found.p90);
                    let _ = write!(out, " {:>10.2} {off:>8} {range:>20}{role}", found.median);
                    let [seen, of] = found.seeds;
                    let _ = if seen < of { writeln!(out, "  in {seen} of {of} seeds") } else { writeln!(out) };
                }
                None => _ = writeln!(out, " {:>10}{role}", "never"),
            }
        }
        let predicted: Vec<f64> =
            self.residuals.iter().filter(|r| !r.fit).filter_map(|r| Some(r.error()?.abs())).collect();
        if !predicted.is_empty() {
            let worst = predicted.iter().copied().fold(0.0, f64::max) * 100.0;
            let _ = writeln!(out, "{} figures only predicted: at most {worst:.0} % off", predicted.len());
        }
        out
    }
}
