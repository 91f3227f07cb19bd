//! One trial of a scan tier, event by event.

use super::clients::Cores;
use super::{Tier, Workload};
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use meridian_model::policy::selector::{Attempt, Outcome, Profile, Profiles, Selection, Tablet};
use serde::Serialize;
use std::collections::VecDeque;
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

/// A core's work in units of a nanosecond, so that sharing it keeps whole numbers.
type Work = u64;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client has made its next scan ready.
    Begin(u32),
    /// A client's request for a batch reaches its server.
    Ask(u32),
    /// A client's first batch has waited for its busy timeout.
    Busy { client: u32, attempt: u32 },
    /// A storage node has delivered for a client's batch.
    Read(u32),
    /// A client has taken a batch in.
    Taken(u32),
    /// The next batch in work is done, unless the number of batches in work changed since.
    Computed { server: u32, change: u32 },
}

#[derive(Debug, Clone, Default)]
struct Client {
    begun: Micros,
    scans: u32,
    tablet: u32,
    server: u32,
    tried: Vec<u32>,
    /// Attempts of this client in all: a busy timeout of an earlier one means nothing.
    attempt: u32,
    started: bool,
    waiting: bool,
    batches: u32,
    cpu: Work,
    /// Share of the batch in work that the server did not have.
    missing: f64,
    storage: Micros,
    busy: u32,
    share: f64,
}

#[derive(Debug, Clone, Default)]
struct Server {
    queue: VecDeque<(u32, u32)>,
    running: u32,
    /// Batches that compute: the virtual time at which each ends, and its client.
    computing: Vec<(Work, u32)>,
    /// Work that each computing batch has been given since the start.
    given: Work,
    settled: Micros,
    change: u32,
    /// Share of each tablet that is in the cache.
    cached: Vec<f64>,
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
        clients: vec![Client::default(); tier.threads as usize],
        servers: vec![Server { cached: vec![0.0; tier.tablets as usize], ..Server::default() }; servers],
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

impl Simulator<'_> {
    fn happen(&mut self, event: Event, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        match event {
            Event::Begin(client) => self.choose(client),
            Event::Taken(client) => self.taken(client, entries, seen),
            Event::Ask(client) => {
                let asked = &mut self.clients[client as usize];
                asked.waiting = true;
                let (server, attempt) = (asked.server, asked.attempt);
                // With the attempt: the same client may ask the same server again before this entry is reached.
                self.servers[server as usize].queue.push_back((client, attempt));
                self.start(server);
            }
            Event::Busy { client, attempt } => {
                let asked = &mut self.clients[client as usize];
                // The timeout of an earlier attempt may fire after the client has gone on to another server.
                if asked.attempt == attempt && asked.waiting && !asked.started {
                    asked.waiting = false;
                    asked.busy += 1;
                    asked.tried.push(asked.server);
                    self.choose(client);
                }
            }
            Event::Read(client) => {
                let asked = &self.clients[client as usize];
                // Cached data was unpacked when it was cached.
                let saved = self.work.unpack * (1.0 - asked.missing);
                let (server, cpu) = (asked.server, (asked.cpu as f64 * (1.0 - saved)) as Work);
                self.settle(server);
                // In the virtual time of the server, which slows down with its load. Its end stays the same when others
                // come or go.
                let at = self.servers[server as usize].given + cpu;
                self.servers[server as usize].computing.push((at, client));
                self.expect(server);
            }
            Event::Computed { server, change } => {
                if self.servers[server as usize].change == change {
                    self.computed(server);
                }
            }
        }
    }

    /// A client begins its next scan.
    fn begin(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let further = 1.0 + self.work.growth_per_tablet * f64::from(self.tier.tablets - 1);
        let read = entries(&mut self.rng) * further;
        let size = read / (self.work.entries.mean * further) * further;
        let batches = (read * self.work.returned / f64::from(self.tier.machine.batch_entries)).ceil().max(1.0);
        let factor = if self.tier.immediate { self.work.tablet_server_factor } else { 1.0 };
        let scan = &mut self.clients[client as usize];
        scan.begun = self.events.now();
        scan.tablet = self.rng.below(self.tier.tablets as usize) as u32;
        scan.tried.clear();
        scan.started = false;
        scan.busy = 0;
        scan.batches = batches as u32;
        scan.share = (read / batches / self.tier.machine.tablet_entries).min(1.0);
        scan.cpu = (self.work.cpu_ms * factor * size / batches * 1e6) as Work;
        scan.storage = micros(self.work.storage_ms * size / batches / 1e3);
        let now = self.events.now();
        let ready = self.cores.begins(client, now);
        match ready > now {
            true => self.events.at(ready, Event::Begin(client)),
            false => self.choose(client),
        }
    }

    /// A client asks the server that the selector names; its busy timeout runs from then.
    fn choose(&mut self, client: u32) {
        let asked = &self.clients[client as usize];
        let mut wait = None;
        // An immediate scan goes to the server that holds its tablet.
        let mut server = asked.tablet % self.servers.len() as u32;
        if !self.tier.immediate {
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let tried: Vec<Attempt<'_>> = asked
                .tried
                .iter()
                .map(|server| Attempt { server: names[*server as usize], outcome: Outcome::Busy })
                .collect();
            let tablet = [Tablet { name: &self.tablets[asked.tablet as usize], attempts: &tried }];
            let profile: &Profile = self.profiles.for_scan_type(None);
            let rng = &mut self.rng;
            if let Selection::Servers { servers, busy_timeout, .. } =
                profile.select(&tablet, &names, Duration::ZERO, |n| rng.below(n))
            {
                server = servers[0] as u32;
                wait = Some(busy_timeout.as_micros() as Micros);
            }
        }
        let asked = &mut self.clients[client as usize];
        asked.server = server;
        asked.attempt += 1;
        let attempt = asked.attempt;
        self.events.after(0, Event::Ask(client));
        if let Some(wait) = wait {
            self.events.after(wait, Event::Busy { client, attempt });
        }
    }

    /// Threads that are free take batches from the queue; what answered busy meanwhile is passed over.
    fn start(&mut self, server: u32) {
        while self.servers[server as usize].running < self.tier.machine.executor_threads {
            let Some((client, attempt)) = self.servers[server as usize].queue.pop_front() else { return };
            let taken = &mut self.clients[client as usize];
            // The client gave up while it was queued. Its entry is skipped here, which is cheaper than searching the
            // queue for it.
            if taken.attempt != attempt || !taken.waiting {
                continue;
            }
            taken.waiting = false;
            taken.started = true;
            let (share, tablet, storage) = (taken.share, taken.tablet as usize, taken.storage);
            self.servers[server as usize].running += 1;
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

    /// Gives computing batches the processor time that passed since it was last given: a core each, or an equal share.
    fn settle(&mut self, server: u32) {
        let now = self.events.now();
        let cores = u64::from(self.tier.machine.cores);
        let server = &mut self.servers[server as usize];
        let passed = (now - server.settled) * 1_000;
        let n = server.computing.len() as u64;
        if n > 0 {
            // Processor sharing: beyond as many batches as cores, each gets an equal share, and `given` counts the work
            // done for one.
            server.given += if n <= cores { passed } else { passed * cores / n };
        }
        server.settled = now;
    }

    /// Enters the time at which the next batch will be done if nothing changes.
    fn expect(&mut self, server: u32) {
        let cores = u64::from(self.tier.machine.cores);
        let state = &mut self.servers[server as usize];
        // Each arrival changes when the next batch ends. The number invalidates the event that was scheduled for the
        // old time.
        state.change += 1;
        let Some(next) = state.computing.iter().map(|(at, _)| *at).min() else { return };
        let n = state.computing.len() as u64;
        let left = next.saturating_sub(state.given);
        let time = if n <= cores { left } else { (left * n).div_ceil(cores) };
        self.events.after(time.div_ceil(1_000), Event::Computed { server, change: state.change });
    }

    fn computed(&mut self, server: u32) {
        self.settle(server);
        let state = &mut self.servers[server as usize];
        let given = state.given;
        let mut done = Vec::new();
        state.computing.retain(|(at, client)| {
            if *at <= given {
                done.push(*client);
            }
            *at > given
        });
        // Threads are free before the clients have taken their batches in: a server does not wait for a client's core.
        state.running -= done.len() as u32;
        self.expect(server);
        for client in done {
            let taken = self.cores.works(client, self.events.now(), micros(self.work.turnaround_ms / 1e3));
            self.events.at(taken, Event::Taken(client));
        }
        self.start(server);
    }

    /// A client that has taken a batch in asks for the next, or begins another scan.
    fn taken(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        let scan = &mut self.clients[client as usize];
        scan.batches -= 1;
        if scan.batches > 0 {
            self.events.after(0, Event::Ask(client));
            return;
        }
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
