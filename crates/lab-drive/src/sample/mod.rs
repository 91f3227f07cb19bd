//! Samplers: the lab itself, the machine, the targets' processes and metrics, once per second of the trial's clock.

mod fetch;
pub mod proc;

use crate::clock::Clock;
use crate::protocol::address::{Address, single};
use crate::scenario::{Sampler, Scenario, WaitIdle};
use meridian_lab_results::error::Result;
use meridian_lab_results::folder::Sample;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two readings of processes and the machine.
const EVERY: Duration = Duration::from_secs(1);
/// Interval of checks for due readings.
const LOOK: Duration = Duration::from_millis(50);

/// The processes of a target on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name in samples.
    pub name: String,
    /// Processes that listen on its ports; their descendants belong to it.
    pub processes: BTreeSet<u32>,
}

impl Service {
    /// Returns those of a scenario's targets, and whether every address on this machine has one that is not the lab
    /// itself.
    pub fn of(scenario: &Scenario, targets: &[Vec<Address>]) -> (Vec<Service>, bool) {
        let mut all_known = true;
        let mut services = Vec::new();
        for (target, addresses) in scenario.target.iter().zip(targets) {
            let mut processes = BTreeSet::new();
            for address in addresses.iter().filter(|address| address.socket.ip().is_loopback()) {
                let mut found = proc::listeners_of(address.port);
                // A mock in this process is the lab, not a target.
                found.remove(&std::process::id());
                all_known &= !found.is_empty();
                processes.append(&mut found);
            }
            services.push(Service { name: scenario.sampled_as(target), processes });
        }
        (services, all_known)
    }
}

/// The sampling thread.
#[derive(Debug)]
pub struct Sampling {
    line: TimeLine,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The current trial, and its clock.
type TimeLine = Arc<Mutex<Option<(u16, Clock)>>>;

#[derive(Debug)]
struct Source {
    name: String,
    kind: Kind,
    every: Duration,
    due: Instant,
    cpu_before: Option<(Instant, f64)>,
}

#[derive(Debug)]
enum Kind {
    Process(u32),
    Service(BTreeSet<u32>),
    Machine(Option<proc::Machine>),
    Metrics(Address, Vec<String>),
}

impl Sampling {
    /// Starts sampling; nothing is read until a trial runs. `keep` takes the samples and returns whether it wants
    /// more.
    pub fn start(
        samplers: &[Sampler],
        targets: &[Service],
        allowed: &[String],
        keep: impl Fn(Vec<Sample>) -> bool + Send + 'static,
    ) -> Result<Sampling> {
        let source = |name: &str, kind, every| Source {
            name: name.to_owned(),
            kind,
            every,
            due: Instant::now(),
            cpu_before: None,
        };
        let mut sources = vec![
            source("lab", Kind::Process(std::process::id()), EVERY),
            source("machine", Kind::Machine(None), EVERY),
        ];
        let known = targets.iter().filter(|target| !target.processes.is_empty());
        sources.extend(known.map(|target| source(&target.name, Kind::Service(target.processes.clone()), EVERY)));
        for sampler in samplers {
            sources.push(match sampler {
                Sampler::Process { name, pid } => source(name, Kind::Process(*pid), EVERY),
                Sampler::Prometheus { name, url, metrics, every_s } => source(
                    name,
                    Kind::Metrics(single(name, url, allowed)?, metrics.clone()),
                    Duration::from_secs_f64(*every_s),
                ),
            });
        }
        let (line, stop) = (TimeLine::default(), Arc::new(AtomicBool::new(false)));
        let (own_line, own_stop) = (Arc::clone(&line), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("lab-sample".to_owned()).spawn(move || {
            while !own_stop.load(Ordering::Relaxed) {
                let on = *own_line.lock();
                if let Some((trial, clock)) = on
                    && !read_due(&mut sources, trial, clock, &keep)
                {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        });
        // A run without samples is still a run.
        Ok(Sampling { line, stop, thread: thread.ok() })
    }

    /// Sets the current trial, or none.
    pub fn trial(&self, on: Option<(u16, Clock)>) {
        *self.line.lock() = on;
    }

    /// Stops the thread.
    pub fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends by itself within one reading; a panic there costs samples, not the run.
            let _ = thread.join();
        }
    }
}

/// Reads due samples; returns false if the run has ended.
fn read_due(sources: &mut [Source], trial: u16, clock: Clock, keep: &impl Fn(Vec<Sample>) -> bool) -> bool {
    let now = Instant::now();
    let mut samples = Vec::new();
    for source in sources.iter_mut().filter(|source| source.due <= now) {
        source.due = now + source.every;
        let at = clock.now();
        for (metric, value) in source.read() {
            samples.push(Sample { trial, at, source: source.name.clone(), metric, value });
        }
    }
    samples.is_empty() || keep(samples)
}

impl Source {
    fn read(&mut self) -> Vec<(String, f64)> {
        match &mut self.kind {
            Kind::Process(pid) => {
                let now = proc::process(*pid);
                self.process(now)
            }
            Kind::Service(named) => {
                let now = proc::service(named);
                self.process(now)
            }
            Kind::Machine(before) => {
                let Some(now) = proc::machine() else { return Vec::new() };
                // The counters run since the machine started, so a share needs two readings.
                let Some(before) = before.replace(now) else { return Vec::new() };
                let total = (now.total_s - before.total_s).max(0.01);
                let share = |a: f64, b: f64| (a - b) / total;
                vec![
                    ("busy_share".to_owned(), share(now.busy_s, before.busy_s)),
                    ("steal_share".to_owned(), share(now.steal_s, before.steal_s)),
                ]
            }
            Kind::Metrics(address, wanted) => match fetch::page(address) {
                Ok(page) => {
                    wanted.iter().filter_map(|name| Some((name.clone(), fetch::metric(&page, name)?))).collect()
                }
                // Shown as a gap in the samples; the target may well be down at this time.
                Err(_) => Vec::new(),
            },
        }
    }

    fn process(&mut self, read: Option<proc::Process>) -> Vec<(String, f64)> {
        let Some(process) = read else { return Vec::new() };
        let now = Instant::now();
        let before = self.cpu_before.replace((now, process.cpu_s));
        let cpu = before.map(|(then, cpu_s)| {
            // The time of a process that its parent does not wait for is lost when it ends.
            (process.cpu_s - cpu_s).max(0.0) / now.duration_since(then).as_secs_f64().max(1e-3)
        });
        #[expect(clippy::cast_precision_loss, reason = "bytes and descriptors")]
        let rest =
            [("resident_bytes", Some(process.resident as f64)), ("descriptors", process.descriptors.map(|n| n as f64))];
        let all = [("cpu_cores", cpu)].into_iter().chain(rest);
        all.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Waits until a target is idle by its own metric. Returns the time it took; errors are sentences.
pub async fn wait_idle(idle: &WaitIdle, allowed: &[String]) -> Result<Duration> {
    use meridian_lab_results::error::LabError;
    let address = single("wait_idle", &idle.url, allowed)?;
    let (start, mut since) = (Instant::now(), None);
    loop {
        let (of, name) = (address.clone(), idle.metric.clone());
        let page = tokio::task::spawn_blocking(move || fetch::page(&of)).await.unwrap_or_else(|e| Err(e.to_string()));
        let value = page.map_err(LabError::target)?;
        let value = fetch::metric(&value, &name)
            .ok_or_else(|| LabError::scenario(format!("wait_idle: {} has no metric {name}", idle.url)))?;
        if value <= idle.at_most {
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed().as_secs_f64() >= idle.for_s {
                return Ok(start.elapsed());
            }
        } else {
            // Idle means idle without a break: a short pause between two tasks of the target must not start a trial.
            since = None;
        }
        if start.elapsed().as_secs_f64() > idle.limit_s {
            return Err(LabError::target(format!(
                "the target was not idle within {} s: {name} is {value}, expected at most {}",
                idle.limit_s, idle.at_most
            )));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
