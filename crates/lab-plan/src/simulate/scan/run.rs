//! One trial of a scan tier, event by event.

use super::clients::Cores;
use super::costs::{Batch, Scan};
use super::server::Server;
use super::{Tier, Workload};
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use meridian_model::policy::busy::Turn;
use meridian_model::policy::selector::{Course, End, Profiles, Step};
use serde::Serialize;
use std::time::Duration;

/// The answer of `lab simulate` for a scan tier: how long a scan took, over the measured scans of all clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanOutcome {
    /// Mean duration of a scan.
    pub mean_ms: f64,
    /// Its standard deviation.
    pub sd_ms: f64,
    /// The shortest scan.
    pub min_ms: f64,
    /// The longest scan.
    pub max_ms: f64,
    /// Busy answers that a probe of the workload's `probe_scans` scans would have seen.
    pub busy_events: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client has made its next scan ready.
    Begin(u32),
    /// A client's request for its first batch reaches its server.
    Ask { client: u32, busy_timeout: Duration },
    /// A server looks for scans whose busy timeout has passed.
    Look(u32),
    /// A storage node has delivered for a client's batch.
    Read(u32),
    /// A client has taken a batch in.
    Taken(u32),
    /// The next batch in work is done, unless the number of batches in work changed since.
    Computed { server: u32, change: u32 },
}

#[derive(Debug, Clone)]
struct Client {
    begun: Micros,
    scans: u32,
    tablet: u32,
    server: u32,
    course: Course,
    attempt: usize,
    batches: u32,
    /// Of the scan that runs, and of the batch that is next.
    costs: Scan,
    batch: Batch,
    /// Share of the batch in work that the server did not have.
    missing: f64,
    busy: u32,
    share: f64,
}

struct Simulator<'a> {
    tier: &'a Tier,
    work: &'a Workload,
    profiles: Profiles,
    names: Vec<String>,
    tablets: Vec<String>,
    events: EventQueue<Event>,
    rng: SeededRng,
    clients: Vec<Client>,
    servers: Vec<Server>,
    cores: Cores,
    storage: Vec<Micros>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    scans: u64,
    busy: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

/// Runs a checked tier until every client has made its scans on average; one that cannot be run gives an answer of zeros.
pub fn run(tier: &Tier) -> ScanOutcome {
    each(tier, &mut |_| ())
}

/// The same, and shows how long each measured scan took, in milliseconds.
pub fn each(tier: &Tier, seen: &mut dyn FnMut(f64)) -> ScanOutcome {
    let (Some(work), Ok(profiles)) = (tier.work(), tier.selector()) else { return Tally::default().answer(0.0) };
    let Ok(entries) = work.entries.drawer() else { return Tally::default().answer(0.0) };
    let servers = if tier.immediate { tier.tablet_servers.min(tier.tablets) } else { tier.servers } as usize;
    let mut simulator = Simulator {
        tier,
        work,
        profiles,
        names: (0..servers).map(|i| format!("scan-{i}:9996")).collect(),
        tablets: (0..tier.tablets).map(|i| format!("tablet-{i}")).collect(),
        events: EventQueue::default(),
        rng: SeededRng::new(tier.seed),
        clients: (0..tier.threads).map(|_| Client::new()).collect(),
        servers: (0..servers).map(|_| Server::of(tier)).collect(),
        cores: Cores::of(tier),
        storage: vec![0; tier.machine.storage_nodes as usize],
        tally: Tally { min: f64::INFINITY, ..Tally::default() },
    };
    let total = u64::from(tier.threads) * u64::from(tier.measured_scans);
    for client in 0..tier.threads {
        simulator.begin(client, &entries);
    }
    while simulator.tally.scans < total {
        let Some(event) = simulator.events.take() else { break };
        simulator.happen(event, &entries, seen);
    }
    simulator.tally.answer(work.probe_scans)
}

impl Client {
    fn new() -> Client {
        Client {
            begun: 0,
            scans: 0,
            tablet: 0,
            server: 0,
            course: Course::new("", Duration::ZERO),
            attempt: 0,
            batches: 0,
            costs: Scan::default(),
            batch: Batch::default(),
            missing: 1.0,
            busy: 0,
            share: 0.0,
        }
    }
}

impl Simulator<'_> {
    fn happen(&mut self, event: Event, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        match event {
            Event::Begin(client) => self.choose(client, entries),
            Event::Taken(client) => self.taken(client, entries, seen),
            Event::Ask { client, busy_timeout } => {
                let (server, now) = (self.clients[client as usize].server, self.now());
                // The line has room for every client, so that none is refused here.
                if self.servers[server as usize].executor.arrive(client, busy_timeout, now).is_ok() {
                    if !busy_timeout.is_zero() {
                        self.events.after(busy_timeout.as_micros() as Micros, Event::Look(server));
                    }
                    self.turns(server, entries);
                }
            }
            Event::Look(server) => self.turns(server, entries),
            Event::Read(client) => {
                let asked = &self.clients[client as usize];
                // Cached data was unpacked when it was cached.
                let saved = self.work.unpack * (1.0 - asked.missing);
                let (server, work) = (asked.server, (asked.batch.work as f64 * (1.0 - saved)) as u64);
                self.servers[server as usize].compute(client, work, self.events.now());
                self.expect(server);
            }
            Event::Computed { server, change } => {
                if self.servers[server as usize].change == change {
                    self.computed(server, entries);
                }
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.events.now())
    }

    /// A client begins its next scan.
    fn begin(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let further = 1.0 + self.work.growth_per_tablet * f64::from(self.tier.tablets - 1);
        let read = entries(&mut self.rng) * further;
        let batches = (read * self.work.returned / f64::from(self.tier.machine.batch_entries)).ceil().max(1.0);
        let tablet = self.rng.below(self.tier.tablets as usize);
        let begun = self.now();
        let scan = &mut self.clients[client as usize];
        scan.begun = self.events.now();
        scan.tablet = tablet as u32;
        scan.course = Course::new(self.tablets[tablet].as_str(), begun);
        scan.busy = 0;
        scan.batches = batches as u32;
        scan.share = (read / batches / self.tier.machine.tablet_entries).min(1.0);
        scan.costs = self.tier.scan(self.work, read, batches);
        scan.batch = scan.costs.first;
        let now = self.events.now();
        let ready = self.cores.begins(client, now);
        match ready > now {
            true => self.events.at(ready, Event::Begin(client)),
            false => self.choose(client, entries),
        }
    }

    /// A client asks the server that the selector names; its busy timeout runs from then.
    fn choose(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let now = self.now();
        let asked = &mut self.clients[client as usize];
        if self.tier.immediate {
            // To the server that holds its tablet, however long its line is.
            asked.server = asked.tablet % self.servers.len() as u32;
            self.events.after(0, Event::Ask { client, busy_timeout: Duration::ZERO });
            return;
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let rng = &mut self.rng;
        match asked.course.next(self.profiles.for_scan_type(None), &names, now, |n| rng.below(n)) {
            Step::Ask(ask) => {
                (asked.server, asked.attempt) = (ask.server as u32, ask.attempt);
                let ask_later = Event::Ask { client, busy_timeout: ask.busy_timeout };
                self.events.after(ask.delay.as_micros() as Micros, ask_later);
            }
            // A scan that no server takes is given up, and the client goes on with another.
            Step::Wait(_) | Step::Absent | Step::GiveUp => self.begin(client, entries),
        }
    }

    /// A server takes the turns that its executor has: it works, or answers busy.
    fn turns(&mut self, server: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let now = self.now();
        while let Some(turn) = self.servers[server as usize].executor.next(now) {
            match turn {
                Turn::Work(client) => self.fetch(server, client),
                Turn::Busy(client) => {
                    let asked = &mut self.clients[client as usize];
                    asked.busy += 1;
                    asked.course.ended(asked.attempt, End::Busy, now);
                    self.choose(client, entries);
                }
            }
        }
    }

    /// A batch begins with what has to come from a storage node.
    fn fetch(&mut self, server: u32, client: u32) {
        let now = self.now();
        let taken = &mut self.clients[client as usize];
        taken.course.started(taken.attempt, now);
        let (share, tablet, storage) = (taken.share, taken.tablet as usize, taken.batch.storage);
        let missing = self.missing(server, tablet, share);
        self.clients[client as usize].missing = missing;
        let node = self.rng.below(self.storage.len());
        // Each node serves one read at a time, so a read begins when the one before it has ended.
        let done = match (storage as f64 * missing).round() as Micros {
            // Cached data does not queue at a storage node.
            0 => self.events.now(),
            time => self.storage[node].max(self.events.now()) + time,
        };
        if done > self.events.now() {
            self.storage[node] = done;
        }
        self.events.at(done, Event::Read(client));
    }

    /// The share of a batch that a server has to fetch, which it then keeps if it may.
    fn missing(&mut self, server: u32, tablet: usize, share: f64) -> f64 {
        if !self.tier.data_cache {
            return 1.0;
        }
        let machine = &self.tier.machine;
        let cached = &mut self.servers[server as usize].cached;
        let missing = 1.0 - cached[tablet];
        let room = machine.cache_bytes / machine.tablet_bytes - cached.iter().sum::<f64>();
        cached[tablet] = (cached[tablet] + (share * missing).min(room.max(0.0))).min(1.0);
        // Blocks are whole: the last bits of a tablet come with their neighbours.
        if cached[tablet] > 0.999 {
            cached[tablet] = 1.0;
        }
        missing
    }

    /// Enters the time at which a server's next batch will be done if nothing changes.
    fn expect(&mut self, server: u32) {
        if let Some((left, change)) = self.servers[server as usize].next_done() {
            self.events.after(left, Event::Computed { server, change });
        }
    }

    fn computed(&mut self, server: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let done = self.servers[server as usize].done(self.events.now());
        self.expect(server);
        for client in done {
            // Threads are free before the clients have taken their batches in: a server does not wait for a client's core.
            self.servers[server as usize].executor.rest(&client);
            let taken = self.cores.works(client, self.events.now(), micros(self.work.turnaround_ms / 1e3));
            self.events.at(taken, Event::Taken(client));
        }
        self.turns(server, entries);
    }

    /// A client that has taken a batch in asks for the next, or begins another scan.
    fn taken(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        let scan = &mut self.clients[client as usize];
        let server = scan.server;
        scan.batches -= 1;
        if scan.batches > 0 {
            scan.batch = scan.costs.further;
            self.servers[server as usize].executor.again(&client);
            self.turns(server, entries);
            return;
        }
        self.servers[server as usize].executor.leave(&client);
        scan.scans += 1;
        if scan.scans > self.tier.warm_up_scans {
            let ms = (self.events.now() - scan.begun) as f64 / 1e3;
            self.tally.add(ms, scan.busy);
            seen(ms);
        }
        self.begin(client, entries);
    }
}

impl Tally {
    fn add(&mut self, ms: f64, busy: u32) {
        self.scans += 1;
        self.busy += u64::from(busy);
        self.sum += ms;
        self.squares += ms * ms;
        self.min = self.min.min(ms);
        self.max = self.max.max(ms);
    }

    fn answer(&self, probe_scans: f64) -> ScanOutcome {
        let n = self.scans.max(1) as f64;
        let mean = self.sum / n;
        // A clock of microseconds has no further digits.
        let micros = |ms: f64| (ms * 1e3).round() / 1e3;
        ScanOutcome {
            mean_ms: micros(mean),
            sd_ms: micros((self.squares / n - mean * mean).max(0.0).sqrt()),
            min_ms: micros(if self.scans > 0 { self.min } else { 0.0 }),
            max_ms: micros(self.max),
            busy_events: (self.busy as f64 / n * probe_scans).round() as u64,
        }
    }
}
