//! The lab monitors itself: if it was the limit, the run proves nothing about the target.

use super::shared::Counts;
use crate::sample::{Service, proc};
use crate::scenario::Limits;
use meridian_lab_results::folder::RunMetrics;
use std::collections::BTreeSet;
use std::time::Instant;

/// Sums up resource use under load.
#[derive(Debug, Default)]
pub struct Watch {
    targets: BTreeSet<u32>,
    all_known: bool,
    begun: Option<Sample>,
    wall: f64,
    thread: (f64, f64),
    own: f64,
    theirs: Option<f64>,
    machine: (f64, f64, f64),
    descriptors: u64,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    thread: Option<(f64, f64)>,
    own: Option<proc::Process>,
    theirs: Option<proc::Process>,
    machine: Option<proc::Machine>,
}

/// Share of the time a thread works at which it has no capacity left for a faster target.
const BUSY: f64 = 0.95;

impl Watch {
    /// Monitors the lab and the targets on this machine; `all_known` means that every address here belongs to one of
    /// their processes.
    pub fn new(targets: &[Service], all_known: bool) -> Watch {
        let targets = targets.iter().flat_map(|target| &target.processes).copied().collect();
        Watch { targets, all_known, ..Watch::default() }
    }

    fn read(&self) -> Sample {
        Sample {
            at: Instant::now(),
            thread: proc::thread(),
            own: proc::process(std::process::id()),
            theirs: proc::service(&self.targets),
            machine: proc::machine(),
        }
    }

    /// Marks the start of load.
    pub fn begin(&mut self) {
        self.begun = Some(self.read());
    }

    /// Marks the end of load.
    pub fn end(&mut self) {
        let Some(before) = self.begun.take() else { return };
        let now = self.read();
        self.wall += now.at.duration_since(before.at).as_secs_f64();
        if let (Some(a), Some(b)) = (before.thread, now.thread) {
            self.thread = (self.thread.0 + b.0 - a.0, self.thread.1 + b.1 - a.1);
        }
        if let (Some(a), Some(b)) = (before.own, now.own) {
            self.own += b.cpu_s - a.cpu_s;
            self.descriptors = self.descriptors.max(b.descriptors.unwrap_or(0));
        }
        if let (Some(a), Some(b)) = (before.theirs, now.theirs) {
            self.theirs = Some(self.theirs.unwrap_or(0.0) + (b.cpu_s - a.cpu_s).max(0.0));
        }
        if let (Some(a), Some(b)) = (before.machine, now.machine) {
            let (busy, steal, total) = self.machine;
            self.machine = (busy + b.busy_s - a.busy_s, steal + b.steal_s - a.steal_s, total + b.total_s - a.total_s);
        }
    }

    /// Returns the observations.
    #[expect(clippy::cast_precision_loss, reason = "counts and microseconds of a run")]
    pub fn seen(&self, counts: &Counts, recorder_stalls: u64) -> RunMetrics {
        let late = counts.late.borrow();
        let per_wall = |seconds: f64| if self.wall > 0.0 { seconds / self.wall } else { 0.0 };
        let (busy, steal, total) = self.machine;
        let share = |seconds: f64| if total > 0.0 { (seconds / total).max(0.0) } else { 0.0 };
        // Without the targets' own share, their work would count as that of other programs, and make a good run void.
        let told_apart = self.all_known && (self.targets.is_empty() || self.theirs.is_some());
        let rest = told_apart.then(|| busy - self.own - self.theirs.unwrap_or(0.0));
        let over =
            if late.is_empty() { 0.0 } else { late.count_between(1_000, late.high()) as f64 / late.len() as f64 };
        RunMetrics {
            arrivals: counts.arrivals.get(),
            late_over_1ms_share: over,
            late_p99_ms: if late.is_empty() { 0.0 } else { late.value_at_quantile(0.99) as f64 / 1e3 },
            late_max_ms: if late.is_empty() { 0.0 } else { late.max() as f64 / 1e3 },
            cpu: per_wall(self.own),
            driver_cpu: per_wall(self.thread.0),
            driver_starved: per_wall(self.thread.1),
            target_cpu: self.theirs.map(per_wall),
            steal: share(steal),
            other_load: rest.map(share),
            descriptors: self.descriptors,
            descriptors_allowed: proc::descriptors_allowed().unwrap_or(0),
            recorder_stalls,
            cpu_us_per_request: if counts.done.get() > 0 { self.own * 1e6 / counts.done.get() as f64 } else { 0.0 },
        }
    }
}

/// Returns why a run is void; empty if it is valid. `closed` means that every arrival waits for responses, so that no
/// thread spins.
pub fn void(seen: &RunMetrics, limits: &Limits, closed: bool, no_socket: u64) -> Vec<String> {
    let mut why = Vec::new();
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if seen.late_p99_ms > limits.late_ms {
        why.push(format!(
            "the lab was late: 1 % of its sends came more than {:.1} ms after their time (limits.late_ms = {})",
            seen.late_p99_ms, limits.late_ms
        ));
    }
    // Open arrivals spin shortly before each request is due, so their thread looks busy without being the limit.
    if closed && seen.driver_cpu >= BUSY {
        why.push(format!(
            "the lab's own core was the limit: its thread was busy {} of the time",
            percent(seen.driver_cpu)
        ));
    }
    if seen.driver_starved > limits.other_load {
        why.push(format!("the lab waited for a processor {} of the time", percent(seen.driver_starved)));
    }
    if seen.steal > limits.other_load {
        why.push(format!("the host took {} of the machine's processor time", percent(seen.steal)));
    }
    if let Some(other) = seen.other_load.filter(|other| *other > limits.other_load) {
        why.push(format!(
            "programs other than the lab and the targets took {} of the machine's processor time",
            percent(other)
        ));
    }
    if no_socket > 0 {
        why.push(format!("for {no_socket} requests this machine had no port or descriptor left"));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_targets_took_is_no_other_load_and_is_not_guessed_where_they_are_not_known() {
        let seen = |targets: &[u32], all_known: bool, theirs: Option<f64>| {
            let targets = targets.iter().copied().collect();
            let (wall, own, machine) = (5.0, 1.0, (4.0, 0.0, 10.0));
            let watch = Watch { targets, all_known, wall, own, theirs, machine, ..Watch::default() };
            let seen = watch.seen(&Counts::new(), 0);
            (seen.other_load, seen.target_cpu)
        };
        assert_eq!(seen(&[7, 8], true, Some(2.0)), (Some(0.1), Some(0.4)));
        assert_eq!(seen(&[7, 8], false, Some(2.0)), (None, Some(0.4)));
        assert_eq!(seen(&[7], true, None), (None, None));
        // All targets are on other machines.
        assert_eq!(seen(&[], true, None), (Some(0.3), None));
    }

    #[test]
    fn each_limit_of_the_lab_makes_a_run_void_and_says_which() {
        let limits = Limits::default();
        let sound = RunMetrics { driver_cpu: 0.99, ..RunMetrics::default() };
        assert!(void(&sound, &limits, false, 0).is_empty());
        for (seen, closed, no_socket, part) in [
            (RunMetrics { late_p99_ms: 11.0, ..sound.clone() }, false, 0, "late"),
            (sound.clone(), true, 0, "own core"),
            (RunMetrics { driver_starved: 0.06, ..sound.clone() }, false, 0, "waited for a processor"),
            (RunMetrics { steal: 0.06, ..sound.clone() }, false, 0, "host"),
            (RunMetrics { other_load: Some(0.06), ..sound.clone() }, false, 0, "other than the lab"),
            (sound.clone(), false, 3, "no port or descriptor"),
        ] {
            let why = void(&seen, &limits, closed, no_socket);
            assert_eq!(why.len(), 1, "{part}");
            assert!(why[0].contains(part), "{}", why[0]);
        }
    }
}
