//! One trial, event by event.

use super::{ClosedNetwork, ClosedOutcome, MachineOutcome, PopulationOutcome};
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use std::collections::BTreeSet;

/// Work in nanoseconds of one processor.
type Work = u64;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A user sends a request.
    Ask(usize),
    /// The first of a machine's visits ends, unless they changed meanwhile.
    End { machine: usize, change: u64 },
}

/// A machine: its visits share the processors evenly, and each uses one at most.
struct Machine {
    name: String,
    cores: u64,
    /// The visits, in order of the service at which each ends.
    running: BTreeSet<(Work, usize)>,
    /// Service received by each visit since the start.
    given: Work,
    settled: Micros,
    change: u64,
    /// Processor time used in the measured phase.
    used: Work,
}

struct User {
    population: usize,
    asked: Micros,
    /// The next visit.
    next: usize,
}

/// The machines of a station's processes, and the index of the next.
struct RoundRobin {
    machines: Vec<usize>,
    next: usize,
}

struct Simulator<'a> {
    network: &'a ClosedNetwork,
    events: EventQueue<Event>,
    rng: SeededRng,
    machines: Vec<Machine>,
    stations: Vec<RoundRobin>,
    users: Vec<User>,
    /// Waits by population.
    waits: Vec<Vec<Micros>>,
    counts_from: Micros,
    end: Micros,
}

/// Runs a checked scenario.
pub fn run(network: &ClosedNetwork) -> ClosedOutcome {
    let machine = |name: String, cores: u32| Machine {
        name,
        cores: cores.into(),
        running: BTreeSet::new(),
        given: 0,
        settled: 0,
        change: 0,
        used: 0,
    };
    let mut machines: Vec<Machine> = network.machine.iter().map(|of| machine(of.name.clone(), of.cores)).collect();
    let mut stations = Vec::new();
    for station in &network.station {
        let shared = network.machine.iter().position(|machine| machine.name == station.machine);
        let own = |number: u32| match station.processes {
            1 => station.name.clone(),
            _ => format!("{} {}", station.name, number + 1),
        };
        let mut of = Vec::new();
        for number in 0..station.processes {
            of.push(shared.unwrap_or_else(|| {
                machines.push(machine(own(number), station.cores));
                machines.len() - 1
            }));
        }
        stations.push(RoundRobin { machines: of, next: 0 });
    }
    let counts_from = micros(network.warm_up_s);
    let mut simulator = Simulator {
        network,
        events: EventQueue::default(),
        rng: SeededRng::new(network.seed),
        machines,
        stations,
        users: Vec::new(),
        waits: vec![Vec::new(); network.population.len()],
        counts_from,
        end: counts_from + micros(network.seconds),
    };
    for (number, population) in network.population.iter().enumerate() {
        for _ in 0..population.users {
            simulator.users.push(User { population: number, asked: 0, next: 0 });
            simulator.events.at(0, Event::Ask(simulator.users.len() - 1));
        }
    }
    while let Some(event) = simulator.events.take() {
        if simulator.events.now() >= simulator.end {
            break;
        }
        match event {
            Event::Ask(user) => {
                simulator.users[user].asked = simulator.events.now();
                simulator.users[user].next = 0;
                simulator.go_on(user);
            }
            Event::End { machine, change } if change == simulator.machines[machine].change => simulator.ended(machine),
            // Planned before another visit arrived or left.
            Event::End { .. } => {}
        }
    }
    simulator.outcome()
}

impl Simulator<'_> {
    /// Starts the next visit of a user's request, or completes it.
    fn go_on(&mut self, user: usize) {
        let now = self.events.now();
        let population = &self.network.population[self.users[user].population];
        let Some(visit) = population.visits.get(self.users[user].next) else {
            if now >= self.counts_from {
                self.waits[self.users[user].population].push(now - self.users[user].asked);
            }
            let think = population.think.draw(&mut self.rng);
            self.events.after(think, Event::Ask(user));
            return;
        };
        self.users[user].next += 1;
        let station = self.network.station.iter().position(|station| station.name == visit.station);
        let Some(turns) = station.and_then(|station| self.stations.get_mut(station)) else { return };
        // In turn, as a balancer without knowledge of the load divides requests.
        let machine = turns.machines[turns.next % turns.machines.len()];
        turns.next += 1;
        // At least a nanosecond, so that each visit ends after it began.
        let work = (visit.service.draw_s(&mut self.rng) * 1e9).max(1.0) as Work;
        self.settle(machine);
        let at = self.machines[machine].given + work;
        self.machines[machine].running.insert((at, user));
        self.plan(machine);
    }

    /// Ends the visits of a machine that have received their service.
    fn ended(&mut self, machine: usize) {
        self.settle(machine);
        let mut over = Vec::new();
        while let Some((at, user)) = self.machines[machine].running.first().copied() {
            if at > self.machines[machine].given {
                break;
            }
            self.machines[machine].running.pop_first();
            over.push(user);
        }
        self.plan(machine);
        // Last: a user's next visit may be at this machine, and plans it again.
        over.into_iter().for_each(|user| self.go_on(user));
    }

    /// Adds the service of the elapsed time to the visits of a machine.
    fn settle(&mut self, machine: usize) {
        let (now, counts_from) = (self.events.now(), self.counts_from);
        let machine = &mut self.machines[machine];
        let visits = machine.running.len() as u64;
        if visits > 0 {
            let (passed, busy) = ((now - machine.settled) * 1000, visits.min(machine.cores));
            machine.given += passed * busy / visits;
            // Only time after the warm-up counts.
            machine.used += now.saturating_sub(machine.settled.max(counts_from)) * 1000 * busy;
        }
        machine.settled = now;
    }

    /// Plans the end of a machine's first visit.
    fn plan(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        // The end planned before is void from now on: events cannot be taken out of the queue.
        machine.change += 1;
        let Some((at, _)) = machine.running.first() else { return };
        let visits = machine.running.len() as u64;
        // Rounded up, so that the visit has received its service by then.
        let takes = (at.saturating_sub(machine.given) * visits).div_ceil(visits.min(machine.cores)).div_ceil(1000);
        let event = Event::End { machine: number, change: machine.change };
        self.events.after(takes, event);
    }

    fn outcome(mut self) -> ClosedOutcome {
        let seconds = self.network.seconds;
        let populations = self.network.population.iter().zip(&mut self.waits).map(|(population, waits)| {
            waits.sort_unstable();
            let quantile = |q: f64| {
                let place = (q * waits.len() as f64).ceil() as usize;
                waits.get(place.max(1) - 1).map_or(0.0, |wait| *wait as f64 / 1000.0)
            };
            PopulationOutcome {
                name: population.name.clone(),
                per_second: waits.len() as f64 / seconds,
                mean_ms: waits.iter().sum::<Micros>() as f64 / waits.len().max(1) as f64 / 1000.0,
                p50_ms: quantile(0.5),
                p95_ms: quantile(0.95),
                p99_ms: quantile(0.99),
            }
        });
        let populations: Vec<_> = populations.collect();
        let used = |machine: &Machine| machine.used as f64 / 1e9 / (seconds * machine.cores as f64);
        // A named machine may have no process of any station.
        let has_process = |number: usize| self.stations.iter().any(|station| station.machines.contains(&number));
        let machines = self.machines.iter().enumerate().filter(|(number, _)| has_process(*number));
        ClosedOutcome {
            per_second: populations.iter().map(|population| population.per_second).sum(),
            machines: machines
                .map(|(_, machine)| MachineOutcome { name: machine.name.clone(), used: used(machine) })
                .collect(),
            populations,
        }
    }
}
