//! One trial of a scan tier, event by event.

use super::client::{Client, Key};
use super::clients::Cores;
use super::outcome::{ScanOutcome, Tally};
use super::server::Server;
use super::{Tier, Workload};
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use meridian_model::policy::busy::ExecutorStep;
use meridian_model::policy::selector::{AttemptRequest, End, Hedging, Profiles, ScanAttempts, Step};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client has prepared its next scan.
    Begin(u32),
    /// A client's request for its first batch reaches a server.
    Ask { key: Key, busy_timeout: Duration },
    /// A client's scan may be slow to start.
    Slow { client: u32, scan: u32 },
    /// A server checks for scans whose busy timeout has passed.
    Look(u32),
    /// A storage node has delivered for a client's batch.
    Read(u32),
    /// A client has processed a batch.
    Taken(u32),
    /// The next batch in work is done, unless the number of batches in work changed meanwhile.
    Computed { server: u32, change: u32 },
}

struct Simulator<'a> {
    tier: &'a Tier,
    work: &'a Workload,
    profiles: Profiles,
    hedging: Option<Hedging>,
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

/// Runs a checked tier until every client has made its scans on average; an impossible one gives a result of zeros.
pub fn run(tier: &Tier) -> ScanOutcome {
    each(tier, &mut |_| ())
}

/// Like `run`, and reports how long each measured scan took, in milliseconds.
pub fn each(tier: &Tier, seen: &mut dyn FnMut(f64)) -> ScanOutcome {
    let (Some(work), Ok(profiles)) = (tier.work(), tier.selector()) else { return Tally::default().answer(0.0) };
    let Ok(entries) = work.entries.drawer() else { return Tally::default().answer(0.0) };
    let servers = if tier.immediate { tier.tablet_servers.min(tier.tablets) } else { tier.servers } as usize;
    let mut simulator = Simulator {
        tier,
        work,
        profiles,
        hedging: tier.hedging().ok().flatten(),
        names: (0..servers).map(|i| format!("scan-{i}:9996")).collect(),
        tablets: (0..tier.tablets).map(|i| format!("tablet-{i}")).collect(),
        events: EventQueue::default(),
        rng: SeededRng::new(tier.seed),
        clients: (0..tier.threads).map(|_| Client::new()).collect(),
        servers: (0..servers).map(|_| Server::of(tier)).collect(),
        cores: Cores::of(tier),
        storage: vec![0; tier.machine.storage_nodes as usize],
        tally: Tally::default(),
    };
    let total = u64::from(tier.threads) * u64::from(tier.measured_scans);
    for client in 0..tier.threads {
        simulator.begin(client, &entries);
    }
    while simulator.tally.scans < total {
        let Some(event) = simulator.events.take() else { break };
        simulator.happen(event, &entries, seen);
    }
    simulator.answer()
}

impl Simulator<'_> {
    fn answer(&self) -> ScanOutcome {
        let tally = &self.tally;
        ScanOutcome {
            hedged: self.hedging.is_some().then(|| tally.hedged as f64 / tally.scans.max(1) as f64),
            cache_hits: self.tier.data_cache.then(|| if tally.read > 0.0 { tally.had / tally.read } else { 0.0 }),
            ..tally.answer(self.work.probe_scans)
        }
    }

    fn happen(&mut self, event: Event, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        match event {
            Event::Begin(client) => self.choose(client, entries),
            Event::Taken(client) => self.taken(client, entries, seen),
            Event::Ask { key, busy_timeout } => {
                let (client, now) = (&self.clients[key.client as usize], self.now());
                let made = client.attempts.trace().get(key.attempt);
                if client.scans != key.scan || made.is_some_and(|made| !made.end.is_under_way()) {
                    // The other attempt has started meanwhile.
                    return;
                }
                let server = client.asked[key.attempt];
                // The queue has room for two attempts of every client, so that none is refused here.
                if self.servers[server as usize].executor.arrive(key, busy_timeout, now).is_ok() {
                    if !busy_timeout.is_zero() {
                        self.events.after(busy_timeout.as_micros() as Micros, Event::Look(server));
                    }
                    self.execute(server, entries);
                }
            }
            Event::Look(server) => self.execute(server, entries),
            Event::Slow { client, scan } => self.hedge(client, scan),
            Event::Read(client) => {
                let asked = &self.clients[client as usize];
                // Cached data was unpacked when it was cached.
                let saved = self.work.unpack * (1.0 - asked.missing);
                let (server, work) = (asked.server(), (asked.batch.work as f64 * (1.0 - saved)) as u64);
                self.servers[server as usize].compute(client, work, self.events.now());
                self.expect(server);
            }
            Event::Computed { server, change } => {
                // A batch that came or went since has planned another end.
                if self.servers[server as usize].change == change {
                    self.computed(server, entries);
                }
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.events.now())
    }

    /// Starts a client's next scan.
    fn begin(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let further = 1.0 + self.work.growth_per_tablet * f64::from(self.tier.tablets - 1);
        let read = entries(&mut self.rng) * further;
        let batches = (read * self.work.returned / f64::from(self.tier.machine.batch_entries)).ceil().max(1.0);
        let tablet = self.rng.below(self.tier.tablets as usize);
        let begun = self.now();
        let scan = &mut self.clients[client as usize];
        scan.begun = self.events.now();
        scan.tablet = tablet as u32;
        scan.attempts = ScanAttempts::new(self.tablets[tablet].as_str(), begun);
        scan.asked.clear();
        scan.attempt = 0;
        scan.busy = 0;
        scan.batches = batches as u32;
        scan.share = (read / batches / self.tier.machine.tablet_entries).min(1.0);
        scan.costs = self.tier.scan(self.work, read, batches);
        scan.batch = scan.costs.first;
        if let Some(hedging) = &mut self.hedging {
            hedging.scan_begins();
        }
        let now = self.events.now();
        let ready = self.cores.begins(client, now);
        match ready > now {
            true => self.events.at(ready, Event::Begin(client)),
            false => self.choose(client, entries),
        }
    }

    /// Sends a client's request to the server that the selector names; its busy timeout starts now.
    fn choose(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let now = self.now();
        let asked = &mut self.clients[client as usize];
        if self.tier.immediate {
            // Sent to the server that holds its tablet, however long its queue is.
            asked.asked = vec![asked.tablet % self.servers.len() as u32];
            let key = asked.key(client, 0);
            self.events.after(0, Event::Ask { key, busy_timeout: Duration::ZERO });
            return;
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let rng = &mut self.rng;
        match asked.attempts.next(self.profiles.for_scan_type(None), &names, now, |n| rng.below(n)) {
            Step::Ask(ask) => {
                let scan = asked.scans;
                self.ask(client, ask);
                if let Some(after) = self.hedging.as_ref().map(|hedging| ask.delay + hedging.after()) {
                    self.events.after(after.as_micros() as Micros, Event::Slow { client, scan });
                }
            }
            // A scan that no server takes is given up, and the client continues with another.
            Step::Wait(_) | Step::Absent | Step::GiveUp => self.begin(client, entries),
        }
    }

    fn ask(&mut self, client: u32, ask: AttemptRequest) {
        let asked = &mut self.clients[client as usize];
        asked.asked.push(ask.server as u32);
        let key = asked.key(client, ask.attempt);
        self.events.after(ask.delay.as_micros() as Micros, Event::Ask { key, busy_timeout: ask.busy_timeout });
    }

    /// Sends a scan that has not started to a second server, if the budget allows.
    fn hedge(&mut self, client: u32, scan: u32) {
        let now = self.now();
        let slow = &mut self.clients[client as usize];
        // By now the client may be at its next scan, which is not the slow one.
        let Some(hedging) = self.hedging.as_mut().filter(|_| slow.scans == scan) else { return };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let rng = &mut self.rng;
        let second = slow.attempts.hedge(self.profiles.for_scan_type(None), &names, hedging, now, |n| rng.below(n));
        if let Some(ask) = second {
            self.ask(client, ask);
        }
    }

    /// Performs the steps of a server's executor: it works, or answers busy.
    fn execute(&mut self, server: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let now = self.now();
        while let Some(step) = self.servers[server as usize].executor.next(now) {
            match step {
                ExecutorStep::Work(key) => {
                    let client = &mut self.clients[key.client as usize];
                    client.attempt = key.attempt;
                    // With hedging both attempts may be queued. The one that did not start first is withdrawn, so that
                    // it takes no place.
                    if let Some(slower) = client.attempts.started(key.attempt, now) {
                        let slower = client.key(key.client, slower);
                        self.servers[client.asked[slower.attempt] as usize].executor.leave(&slower);
                    }
                    self.fetch(server, key.client);
                }
                ExecutorStep::Busy(key) => {
                    let asked = &mut self.clients[key.client as usize];
                    asked.busy += 1;
                    asked.attempts.ended(key.attempt, End::Busy, now);
                    // While a hedge is still queued, its answer decides.
                    if !asked.attempts.is_under_way() {
                        self.choose(key.client, entries);
                    }
                }
            }
        }
    }

    /// Starts a batch with its read from a storage node.
    fn fetch(&mut self, server: u32, client: u32) {
        let taken = &self.clients[client as usize];
        let (share, tablet, storage) = (taken.share, taken.tablet as usize, taken.batch.storage);
        let missing = self.missing(server, tablet, share);
        self.clients[client as usize].missing = missing;
        self.tally.read += share;
        self.tally.had += share * (1.0 - missing);
        let node = self.rng.below(self.storage.len());
        // Each node serves one read at a time, so a read begins when the previous one has ended.
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

    /// Returns the share of a batch that a server must fetch, and caches it if allowed.
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

    /// Schedules the time at which a server's next batch will be done if nothing changes.
    fn expect(&mut self, server: u32) {
        if let Some((left, change)) = self.servers[server as usize].next_done() {
            self.events.after(left, Event::Computed { server, change });
        }
    }

    fn computed(&mut self, server: u32, entries: &impl Fn(&mut SeededRng) -> f64) {
        let done = self.servers[server as usize].done(self.events.now());
        self.expect(server);
        for client in done {
            // Threads are freed before clients have processed their batches: a server does not wait for a client's
            // core.
            let key = self.clients[client as usize].current(client);
            self.servers[server as usize].executor.rest(&key);
            let taken = self.cores.works(client, self.events.now(), micros(self.work.turnaround_ms / 1e3));
            self.events.at(taken, Event::Taken(client));
        }
        self.execute(server, entries);
    }

    /// Lets a client that has processed a batch request the next, or start another scan.
    fn taken(&mut self, client: u32, entries: &impl Fn(&mut SeededRng) -> f64, seen: &mut dyn FnMut(f64)) {
        let scan = &mut self.clients[client as usize];
        let (server, key) = (scan.server(), scan.current(client));
        scan.batches -= 1;
        if scan.batches > 0 {
            scan.batch = scan.costs.further;
            self.servers[server as usize].executor.again(&key);
            self.execute(server, entries);
            return;
        }
        self.servers[server as usize].executor.leave(&key);
        scan.scans += 1;
        if scan.scans > self.tier.warm_up_scans {
            let ms = (self.events.now() - scan.begun) as f64 / 1e3;
            self.tally.add(ms, scan.busy);
            self.tally.hedged += u64::from(scan.attempts.trace().iter().any(|made| made.hedge));
            seen(ms);
        }
        self.begin(client, entries);
    }
}
