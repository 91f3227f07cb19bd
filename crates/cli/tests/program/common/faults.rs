//! Faults of a cluster while its clients write and read: the fixed ones of every run, and random ones from a seed.

use super::Random;
use super::gateway::Gateway as Store;
use super::grid::{Grid, LEASE};
use super::history::Chain;
use super::nats_cluster::SERVERS;
use super::nodes::Node;
use super::proxy::Fault;
use super::registers::Registers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longer than a lease, including the margin of a candidate.
const BEYOND: Duration = Duration::from_millis(LEASE.as_millis() as u64 * 2);

/// A fault of the cluster.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// `kill -9` of a process, which is restarted.
    Kill(usize),
    /// SIGSTOP, SIGCONT.
    Pause(usize),
    /// SIGTERM to a process, which is restarted.
    Stop(usize),
    /// A faulty link.
    Link(usize, Fault),
    /// The bucket's disk is full.
    Fill,
    /// `kill -9` of a NATS server, and a pause of one.
    KillServer(usize),
    PauseServer(usize),
    /// `kill -9` of the store with the bucket.
    KillStore,
}

impl Act {
    /// Returns a random one.
    fn any(grid: &Grid, random: &mut Random) -> Act {
        let (node, server) = (random.below(grid.nodes.len() as u64) as usize, random.below(SERVERS as u64) as usize);
        let link = Act::Link(random.below(grid.links.len() as u64) as usize, fault(random));
        match random.below(12) {
            0 | 1 => Act::Kill(node),
            2 | 3 => Act::Pause(node),
            4 => Act::Stop(node),
            5 if grid.has_disk() => Act::Fill,
            6 if grid.nats.is_some() => Act::KillServer(server),
            7 if grid.nats.is_some() => Act::PauseServer(server),
            6 if grid.store.is_some() => Act::KillStore,
            _ => link,
        }
    }

    fn begin(self, grid: &mut Grid) {
        match self {
            Act::Kill(n) => grid.nodes[n].kill(),
            Act::Pause(n) => grid.nodes[n].pause(),
            Act::Stop(n) => grid.nodes[n].stop(),
            Act::Link(link, fault) => grid.fail(link, fault),
            Act::Fill => grid.fill(),
            Act::KillServer(n) => grid.nats.iter_mut().for_each(|nats| nats.kill(n)),
            Act::PauseServer(n) => grid.nats.iter().for_each(|nats| nats.pause(n)),
            Act::KillStore => grid.store.iter_mut().for_each(Store::kill),
        }
    }

    fn end(self, grid: &mut Grid) {
        match self {
            Act::Kill(n) | Act::Pause(n) => grid.nodes[n].revive(),
            // It ends by itself, and is then restarted.
            Act::Stop(_) => {}
            Act::Link(link, _) => grid.fail(link, Fault::None),
            Act::Fill => grid.empty(),
            Act::KillServer(n) | Act::PauseServer(n) => grid.nats.iter_mut().for_each(|nats| nats.revive(n)),
            Act::KillStore => grid.store.iter_mut().for_each(Store::restart),
        }
    }

    /// Formats it with names.
    fn show(self, grid: &Grid) -> String {
        let node = |n: usize| &grid.nodes[n].name;
        match self {
            Act::Kill(n) => format!("kill {}", node(n)),
            Act::Pause(n) => format!("pause {}", node(n)),
            Act::Stop(n) => format!("stop {}", node(n)),
            Act::Link(link, fault) => format!("{}: {fault:?}", grid.links[link].name),
            Act::Fill => "the bucket's disk is full".to_owned(),
            Act::KillServer(n) => format!("kill n{n}"),
            Act::PauseServer(n) => format!("pause n{n}"),
            Act::KillStore => "kill the store".to_owned(),
        }
    }
}

fn fault(random: &mut Random) -> Fault {
    match random.below(7) {
        0 => Fault::Delay(Duration::from_millis(20 + random.below(500))),
        1 => Fault::Throttle(1_000 + random.below(50_000)),
        2 => Fault::HalfOpen,
        3 => Fault::AsksLost,
        4 => Fault::AnswersLost,
        5 => Fault::Cut,
        _ => Fault::Reset,
    }
}

/// The cluster while clients run.
pub struct Faults<'a> {
    pub grid: &'a mut Grid,
    pub chain: &'a Chain,
    pub registers: &'a Registers,
    /// Set when a client has found an error, so that nothing waits any longer.
    pub stop: &'a AtomicBool,
    pub begun: Instant,
}

impl Faults<'_> {
    /// Prints an event with its time.
    pub fn say(&self, what: &str) {
        println!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f64());
    }

    /// Waits until a condition holds, or a client has found an error.
    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Grid) -> bool) {
        let stop = self.stop;
        self.grid.until(what, |grid| holds(grid) || stop.load(Ordering::Relaxed));
    }

    /// Waits until writes and operations succeed.
    #[track_caller]
    pub fn progress(&mut self, when: &str) {
        let (chain, registers) = (self.chain, self.registers);
        let (events, operations) = (chain.acknowledged(), registers.known());
        self.until(&format!("writes and operations {when}"), |_| {
            chain.acknowledged() > events + 3 && registers.known() > operations + 10
        });
    }

    /// Pauses the owner for longer than its lease, along with a gateway, which does not learn of the next owner. They
    /// wake up together: neither may show or change anything that the next owner has replaced.
    #[track_caller]
    pub fn owner_sleeps(&mut self) {
        // Before the owner is looked up: on a slow machine it may lose its lease before it is paused.
        let marks: Vec<usize> = self.grid.nodes.iter().map(Node::mark).collect();
        let (former, gateway) = (self.grid.owner(), self.grid.of("gateway")[1]);
        let other = self.grid.of("owner").into_iter().find(|n| *n != former).unwrap();
        self.say(&format!("{} and {} are paused", self.grid.nodes[former].name, self.grid.nodes[gateway].name));
        [former, gateway].iter().for_each(|n| self.grid.nodes[*n].pause());
        self.until("the other owner takes over", |grid| grid.nodes[other].has_said(marks[other], "owns"));
        self.progress("after the takeover");
        let stop = self.stop;
        self.grid.hold(BEYOND, || stop.load(Ordering::Relaxed));
        self.say("they wake up");
        [former, gateway].iter().for_each(|n| self.grid.nodes[*n].revive());
        self.until("the former owner notices", |grid| grid.nodes[former].has_said(marks[former], "lost"));
        self.progress("after the former owner woke up");
    }

    /// Takes away one NATS server, then the quorum; then they return.
    #[track_caller]
    pub fn servers_go(&mut self, random: &mut Random) {
        let first = random.below(SERVERS as u64) as usize;
        let second = (first + 1) % SERVERS;
        self.say(&format!("n{first} is killed"));
        Act::KillServer(first).begin(self.grid);
        self.progress("without one of three NATS servers");
        self.say(&format!("n{second} is killed as well"));
        Act::KillServer(second).begin(self.grid);
        // Acknowledged means synced by two of three servers, so nothing new can be.
        for gateway in self.grid.urls("gateway") {
            let taken = self.chain.write_once(&gateway, random);
            assert!(!taken, "a write was acknowledged without a quorum");
        }
        let stop = self.stop;
        self.grid.hold(BEYOND, || stop.load(Ordering::Relaxed));
        self.say("both return");
        [first, second].into_iter().for_each(|n| Act::KillServer(n).end(self.grid));
        self.progress("after the quorum returned");
    }

    /// Applies one fault or two at once, for a while.
    #[track_caller]
    pub fn some(&mut self, random: &mut Random) {
        let acts: Vec<Act> = (0..=random.below(2)).map(|_| Act::any(self.grid, random)).collect();
        let (time, after) =
            (Duration::from_millis(200 + random.below(3_000)), Duration::from_millis(random.below(1_500)));
        let shown: Vec<String> = acts.iter().map(|act| act.show(self.grid)).collect();
        self.say(&format!("{}, for {} ms", shown.join("; "), time.as_millis()));
        acts.iter().for_each(|act| act.begin(self.grid));
        let stop = self.stop;
        self.grid.hold(time, || stop.load(Ordering::Relaxed));
        acts.iter().for_each(|act| act.end(self.grid));
        self.grid.hold(after, || stop.load(Ordering::Relaxed));
    }
}
