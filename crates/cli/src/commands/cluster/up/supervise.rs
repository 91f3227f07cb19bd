//! Supervises all processes of a cluster: starts them in order, restarts those that end, and stops them in order.
//!
//! A process is running, or it waits for its next start. The wait grows each time that it ends soon after a start.

use super::super::nodes::{Kind, Node};
use super::super::probe;
use super::plan::Plan;
use super::ports;
use super::process::{Process, last_lines};
use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
use crate::units;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

/// Poll interval of the processes.
const LOOK: Duration = Duration::from_millis(100);
/// Max time until processes of one role respond.
const START_MAX: Duration = Duration::from_secs(120);
/// Pause before a process is restarted, the first time and at most.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A process that has run for this long is restarted soon.
const STEADY: Duration = Duration::from_secs(60);
/// How long processes of one role may take to end: an owner flushes, the others finish their requests (20 s by
/// default).
const STOP_MAX: Duration = Duration::from_secs(60);

/// A process, by its index in the plan.
#[derive(Debug)]
struct SupervisedProcess {
    running: Option<Process>,
    started: Instant,
    /// Pause before the next start.
    pause: Duration,
    /// When the next start is due.
    due: Option<Instant>,
}

struct Supervisor {
    plan: Plan,
    all: Vec<SupervisedProcess>,
    /// Whether the list of running processes could not be written.
    is_stale: bool,
}

/// Ctrl-C and SIGTERM.
struct Signals(Signal, Signal);

impl Signals {
    fn new() -> Result<Signals, Failure> {
        let failed = |e: std::io::Error| Failure::Refused(format!("cannot watch for signals: {e}"));
        let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        Ok(Signals(interrupt.map_err(failed)?, terminate.map_err(failed)?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// How all processes of a plan came to end.
pub(super) enum Outcome {
    /// By a signal.
    Stopped,
    /// Another program took a port between its choice and the start of the process that listens there.
    PortTaken(Failure),
}

/// Runs all processes of a plan until a signal.
pub(super) async fn run(plan: Plan) -> Result<Outcome, Failure> {
    // Installed before anything starts: an early signal must not find the default handler.
    let mut signals = Signals::new()?;
    let now = Instant::now();
    let new = |_: &Node| SupervisedProcess { running: None, started: now, pause: PAUSE_MIN, due: None };
    let all = plan.nodes.nodes.iter().map(new).collect();
    let mut supervisor = Supervisor { plan, all, is_stale: false };
    let started = tokio::select! {
        () = signals.next() => Ok(false),
        started = supervisor.start() => started.map(|()| true),
    };
    let outcome = match started {
        Ok(true) => {
            supervisor.watch(&mut signals).await;
            Ok(())
        }
        Ok(false) => Ok(()),
        Err(failure) => Err(failure),
    };
    say("stopping");
    let stopped = supervisor.stop(&mut signals).await;
    match outcome {
        Ok(()) => {}
        Err(failure) if ports::taken(&supervisor.plan.nodes).is_some() => return Ok(Outcome::PortTaken(failure)),
        Err(failure) => return Err(failure),
    }
    stopped?;
    say("stopped");
    Ok(Outcome::Stopped)
}

impl Supervisor {
    /// Starts all processes, and waits until they respond.
    async fn start(&mut self) -> Result<(), Failure> {
        for role in Kind::ALL {
            let places = self.places(role);
            for place in &places {
                let node = self.node(*place);
                let begun = Process::start(&self.plan, &node);
                let process = begun.map_err(|e| Failure::Refused(format!("{} cannot be started: {e}", node.name)))?;
                self.began(*place, process);
            }
            self.note()?;
            self.answer(places).await?;
        }
        self.show()
    }

    /// Waits until processes respond. One that ends meanwhile is not restarted: what stopped it would stop the next one
    /// too.
    async fn answer(&mut self, mut waiting: Vec<usize>) -> Result<(), Failure> {
        let until = Instant::now() + START_MAX;
        while let Some(place) = waiting.first().copied() {
            for place in 0..self.all.len() {
                let ended = self.all[place].running.as_mut().and_then(Process::ended);
                if let Some(status) = ended {
                    let node = self.node(place);
                    return Err(Failure::Refused(format!(
                        "{} ended before it answered: {status}{}",
                        node.name,
                        last_lines(&node.log_file)
                    )));
                }
            }
            let node = self.node(place);
            let (name, log) = (node.name.clone(), node.log_file.clone());
            if tokio::task::spawn_blocking(move || probe::is_ready(&node)).await.unwrap_or(false) {
                waiting.remove(0);
                continue;
            }
            if Instant::now() > until {
                let seconds = START_MAX.as_secs();
                return Err(Failure::Refused(format!("{name} does not answer after {seconds} s{}", last_lines(&log))));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Prints what is running, and where to begin.
    fn show(&self) -> Result<(), Failure> {
        let mut table = Table::new(["name", "role", "address", "pid", "log"]).whole_unless_shown();
        for node in &self.plan.nodes.nodes {
            let pid = node.pid.map(|pid| pid.to_string()).unwrap_or_default();
            let log = node.log_file.strip_prefix(&self.plan.folder).unwrap_or(&node.log_file).display().to_string();
            table.push(vec![node.name.clone(), node.role.to_string(), node.address.clone(), pid, log]);
        }
        with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))?;
        let folder = self.plan.folder.display();
        say(&format!("bucket {}   logs below {folder}   Ctrl-C stops all", self.plan.nodes.bucket));
        if let Some(url) = self.plan.nodes.gateways.first() {
            say(&format!("ready {url}"));
        }
        Ok(())
    }

    /// Restarts processes that end, until a signal.
    async fn watch(&mut self, signals: &mut Signals) {
        loop {
            tokio::select! {
                () = signals.next() => return,
                () = sleep(LOOK) => self.look(),
            }
        }
    }

    fn look(&mut self) {
        let mut changed = false;
        for place in 0..self.all.len() {
            let one = &mut self.all[place];
            if let Some(status) = one.running.as_mut().and_then(Process::ended) {
                one.running = None;
                self.failed(place, &format!("ended: {status}"));
                changed = true;
            }
            if self.all[place].due.is_some_and(|due| due <= Instant::now()) {
                match Process::start(&self.plan, &self.node(place)) {
                    Ok(process) => self.began(place, process),
                    Err(e) => self.failed(place, &format!("cannot be started: {e}")),
                }
                changed = true;
            }
        }
        if changed || self.is_stale {
            let noted = self.note();
            // The processes continue without it, for example on a full disk.
            if let Err(failure) = &noted
                && !self.is_stale
            {
                say(&format!("{failure}; that is tried again"));
            }
            self.is_stale = noted.is_err();
        }
    }

    /// Reports that a process is not running, and schedules its restart.
    fn failed(&mut self, place: usize, what: &str) {
        let one = &mut self.all[place];
        if one.started.elapsed() >= STEADY {
            one.pause = PAUSE_MIN;
        }
        let pause = one.pause;
        one.due = Some(Instant::now() + pause);
        one.pause = (pause * 2).min(PAUSE_MAX);
        let node = &mut self.plan.nodes.nodes[place];
        let of = node.pid.take().map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        say(&format!(
            "{}{of} {what}; it is started again in {}; its log ends so:{}",
            node.name,
            units::duration_text(pause),
            last_lines(&node.log_file)
        ));
    }

    fn began(&mut self, place: usize, process: Process) {
        let again = self.all[place].due.take().is_some();
        let node = &mut self.plan.nodes.nodes[place];
        node.pid = Some(process.id());
        if again {
            say(&format!("{} is started again (pid {})", node.name, process.id()));
        }
        let one = &mut self.all[place];
        (one.running, one.started) = (Some(process), Instant::now());
    }

    /// Stops all processes, in reverse start order. A second signal kills what is left.
    async fn stop(&mut self, signals: &mut Signals) -> Result<(), Failure> {
        let mut at_once = false;
        for role in Kind::ALL.into_iter().rev() {
            let places = self.places(role);
            for place in &places {
                let one = &mut self.all[*place];
                one.due = None;
                if let Some(process) = &mut one.running {
                    process.terminate();
                }
            }
            let until = Instant::now() + STOP_MAX;
            while !at_once && self.is_any_left(&places) && Instant::now() < until {
                tokio::select! {
                    () = signals.next() => { at_once = true; }
                    () = sleep_until((Instant::now() + LOOK).min(until)) => {}
                }
            }
            self.is_any_left(&places);
            for place in places {
                let node = &mut self.plan.nodes.nodes[place];
                node.pid = None;
                if let Some(mut process) = self.all[place].running.take() {
                    process.kill();
                    say(&format!("{} did not end in time: killed", node.name));
                }
            }
        }
        self.note()
    }

    /// Removes processes that have ended; returns true if others are left.
    fn is_any_left(&mut self, places: &[usize]) -> bool {
        for place in places {
            let running = &mut self.all[*place].running;
            if running.as_mut().and_then(Process::ended).is_some() {
                *running = None;
            }
        }
        places.iter().any(|place| self.all[*place].running.is_some())
    }

    fn places(&self, role: Kind) -> Vec<usize> {
        let nodes = self.plan.nodes.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.role == role).map(|(place, _)| place).collect()
    }

    fn node(&self, place: usize) -> Node {
        self.plan.nodes.nodes[place].clone()
    }

    /// Writes the list of running processes.
    fn note(&self) -> Result<(), Failure> {
        self.plan.nodes.write(&self.plan.folder)
    }
}
