//! Page tokens of a cluster over random schedules. Clients page through snapshots that readers and the owner show,
//! while merges drop rows, and processes start and stop.
//!
//! The rules are the ones that servers run (`policy::horizon`, `policy::pins`). The invariant: a token used within
//! its lifetime never yields 410, whatever happens to one process. For each rule, some seed detects its omission.

use meridian_model::policy::horizon::{Horizon, Uses};
use meridian_model::policy::pins::{InUse, PinTable};
use std::time::Duration;

const SECOND: i64 = 1_000_000;
/// Length of a step.
const STEP: i64 = SECOND / 4;
/// Lifetime of a token after its last use.
const TOKEN: i64 = 300 * SECOND;
/// How long a process keeps a snapshot after its last use: uses by others are reported late.
const KEPT: i64 = TOKEN + TOKEN / 4;
/// How long a pin counts at its owner, and at its reader.
const PIN: (i64, i64) = (75 * SECOND, 60 * SECOND);
/// Intervals at which readers write their pins, owners read them, and gateways report.
const RENEW: i64 = 20 * SECOND;
const LOOK: i64 = 10 * SECOND;
const TELL: i64 = SECOND / 2;
/// After a process was killed, no process of another kind is, until what the first one knew is known elsewhere.
const APART: i64 = RENEW + LOOK + 2 * SECOND;
/// Number of steps of a schedule: two hours.
const STEPS: usize = 28_800;
const SEEDS: u64 = 100;

/// An omitted rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Gateways report to owners.
    Telling,
    /// Snapshots of a reader outlive it.
    Outliving,
    /// A new owner treats everything as used at its start.
    Baseline,
    /// Snapshots are kept for longer than tokens.
    Margin,
    /// Pins that cannot be listed are not treated as absent.
    Doubt,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Owner {
    horizon: Horizon,
    pin_table: PinTable,
    looked: i64,
    known: bool,
}

struct Reader {
    name: String,
    horizon: Horizon,
    /// Its visible state: the newest manifest that it has loaded.
    position: u64,
    renewed: i64,
}

struct Gateway {
    uses: Uses<()>,
    told: i64,
}

struct Token {
    seq: u64,
    used: i64,
    /// When its client requests the next page.
    due: i64,
    /// Whether the client pages at a scan server, without a gateway's knowledge.
    direct: bool,
}

struct World {
    without: Without,
    random: Random,
    now: i64,
    /// Numbers of the newest write, and of the newest write in a manifest.
    written: u64,
    flushed: u64,
    /// Floor of the newest manifest: snapshots below it are gone.
    dropped: u64,
    /// The pins in the bucket: reader, number, statement.
    pins: Vec<(String, u64, u64)>,
    /// Time until which the bucket cannot be listed.
    unlisted: i64,
    owner: Option<Owner>,
    readers: Vec<Reader>,
    gateways: Vec<Gateway>,
    tokens: Vec<Token>,
    started: u64,
    /// When a reader and a gateway were last killed.
    killed: (i64, i64),
    /// When a client without a gateway last used a snapshot.
    direct: i64,
    /// Broken promises.
    broken: Option<String>,
}

impl World {
    fn new(seed: u64, without: Without) -> World {
        let gateway = || Gateway { uses: Uses::new(8), told: 0 };
        let mut world = World {
            without,
            random: Random(seed),
            now: 1_000 * SECOND,
            written: 1,
            flushed: 1,
            dropped: 0,
            pins: Vec::new(),
            unlisted: 0,
            owner: None,
            readers: Vec::new(),
            gateways: vec![gateway(), gateway()],
            tokens: Vec::new(),
            started: 0,
            killed: (0, 0),
            direct: 0,
            broken: None,
        };
        world.take_over();
        world.readers = (0..3).map(|_| world.reader()).collect();
        world
    }

    fn horizon(&self, dropped: u64) -> Horizon {
        let kept = if self.without == Without::Margin { TOKEN } else { KEPT };
        Horizon::new(Duration::from_micros(kept as u64), dropped, self.now)
    }

    fn take_over(&mut self) {
        let since = if self.without == Without::Baseline { self.flushed } else { self.dropped };
        let tokens = if self.without == Without::Outliving { 0 } else { KEPT };
        let (horizon, pin_table) = (self.horizon(since), PinTable::new(PIN.0, tokens));
        self.owner = Some(Owner { horizon, pin_table, looked: i64::MIN, known: false });
    }

    fn reader(&mut self) -> Reader {
        self.started += 1;
        let (name, horizon) = (format!("r{}", self.started), self.horizon(self.dropped));
        Reader { name, horizon, position: self.flushed, renewed: i64::MIN }
    }

    fn any_reader(&mut self) -> usize {
        self.random.below(self.readers.len() as u64) as usize
    }

    /// Periodic work of the processes.
    fn tick(&mut self) {
        self.now += STEP;
        let now = self.now;
        for reader in &mut self.readers {
            if now - reader.renewed.max(0) >= RENEW || reader.renewed == i64::MIN {
                let number = self.pins.iter().find(|(name, ..)| *name == reader.name).map_or(1, |pin| pin.1 + 1);
                self.pins.retain(|(name, ..)| *name != reader.name);
                self.pins.push((reader.name.clone(), number, reader.horizon.floor(now, reader.position)));
                reader.renewed = now;
            }
        }
        let Some(owner) = &mut self.owner else { return };
        if now - owner.looked.max(0) >= LOOK || owner.looked == i64::MIN {
            owner.looked = now;
            owner.known = now >= self.unlisted;
            for (name, number, seq) in self.pins.iter().filter(|_| owner.known) {
                if !owner.pin_table.has(name, *number) {
                    let in_use = InUse { folder: String::new(), manifest: 0, seq: *seq };
                    owner.pin_table.take(name, *number, vec![in_use], now);
                }
            }
            let pinned = owner.pin_table.in_use(now).get("").map(|used| used.seq);
            let in_doubt = !owner.known && self.without != Without::Doubt;
            owner.horizon.pin(if in_doubt { Some(0) } else { pinned });
            if owner.known {
                self.pins.retain(|(name, ..)| owner.pin_table.counts(name, now));
            }
        }
        for gateway in &mut self.gateways {
            if now - gateway.told >= TELL && self.without != Without::Telling {
                gateway.told = now;
                for ((), seq) in gateway.uses.take(8) {
                    owner.horizon.take_again(now, seq);
                }
            }
        }
    }

    fn step(&mut self) {
        self.tick();
        match self.random.below(400) {
            0..=39 => self.written += 1,
            40..=49 if self.owner.is_some() => self.flushed = self.written,
            50..=69 => {
                if let Some(owner) = &mut self.owner {
                    self.dropped = owner.horizon.drop_below(self.now, self.flushed);
                }
            }
            70..=109 => {
                let at = self.any_reader();
                let reader = &mut self.readers[at];
                reader.position = self.flushed;
                reader.horizon.follow(self.dropped);
            }
            110..=111 if self.tokens.len() < 8 => self.open_page(),
            120 if self.random.one_in(20) => self.owner = None,
            121..=123 if self.owner.is_none() => self.take_over(),
            124 if self.random.one_in(3) => {
                let at = self.any_reader();
                self.kill_reader(at);
            }
            125 if self.random.one_in(3) => self.kill_gateway(),
            127 if self.readers.len() < 3 && self.random.one_in(8) => {
                let reader = self.reader();
                self.readers.push(reader);
            }
            126 if self.random.one_in(60) => self.unlisted = self.now + 900 * SECOND,
            _ => {}
        }
        let now = self.now;
        // A client that comes too late gets an error, and that is all.
        self.tokens.retain(|token| now - token.used <= TOKEN);
        (0..self.tokens.len()).for_each(|at| self.turn_page(at));
    }

    /// When a client requests the page after the one it has: soon, or as late as allowed.
    fn due(&mut self) -> i64 {
        let patience = match self.random.one_in(2) {
            true => self.random.below(TOKEN as u64) as i64,
            false => TOKEN - self.random.below(8) as i64 * STEP,
        };
        self.now + patience
    }

    fn open_page(&mut self) {
        let (at, direct) = (self.any_reader(), self.random.one_in(3));
        let seq = self.readers[at].position;
        self.readers[at].horizon.note(self.now, seq);
        self.note(seq, direct);
        let due = self.due();
        self.tokens.push(Token { seq, used: self.now, due, direct });
    }

    /// Requests the next page of a token if it is due.
    fn turn_page(&mut self, at: usize) {
        let (now, by) = (self.now, self.any_reader());
        let (token, reader) = (&mut self.tokens[at], &mut self.readers[by]);
        let holds = reader.renewed > i64::MIN && now < reader.renewed + PIN.1;
        // A lagging process is busy, and one without a pin has just started: another one is asked.
        if now < token.due || token.seq > reader.position || !holds {
            return;
        }
        if !reader.horizon.take_again(now, token.seq) {
            let after = (now - token.used) / SECOND;
            self.broken = Some(format!("410 after {after} s: {} of {}", token.seq, self.dropped));
        }
        token.used = now;
        let (seq, direct) = (token.seq, token.direct);
        // After some pages a client is done.
        if self.random.one_in(6) {
            self.tokens[at].due = i64::MAX;
            return;
        }
        self.tokens[at].due = self.due();
        self.note(seq, direct);
        if self.random.one_in(6) {
            // Before its pin can state the use.
            self.kill_reader(by);
        }
    }

    fn note(&mut self, seq: u64, direct: bool) {
        if direct {
            self.direct = self.now;
        } else {
            let at = self.random.below(2) as usize;
            assert!(self.gateways[at].uses.note((), seq));
        }
    }

    fn kill_reader(&mut self, at: usize) {
        // Knowledge that only this reader has, about a client without a gateway, would be lost with it.
        if self.readers.len() > 1 && self.now - self.killed.1 > APART && self.now - self.direct > APART {
            self.killed.0 = self.now;
            self.readers.remove(at);
        }
    }

    fn kill_gateway(&mut self) {
        if self.now - self.killed.0 > APART {
            self.killed.1 = self.now;
            let at = self.random.below(2) as usize;
            self.gateways[at] = Gateway { uses: Uses::new(8), told: self.now };
        }
    }
}

/// The violation by a schedule of this seed, if any; and how much was dropped.
fn run(seed: u64, without: Without) -> (Option<String>, u64) {
    let mut world = World::new(seed, without);
    for _ in 0..STEPS {
        world.step();
        if world.broken.is_some() {
            break;
        }
    }
    (world.broken, world.dropped)
}

#[test]
fn a_token_that_is_used_stays_good_whatever_becomes_of_one_process() {
    for seed in 0..SEEDS {
        let (broken, dropped) = run(seed, Without::Nothing);
        assert_eq!(broken, None, "seed {seed}");
        assert!(dropped > 0, "nothing was ever dropped with seed {seed}");
    }
}

#[test]
fn each_rule_is_needed() {
    for without in [Without::Telling, Without::Outliving, Without::Baseline, Without::Margin, Without::Doubt] {
        assert!((0..SEEDS).any(|seed| run(seed, without).0.is_some()), "no seed finds that {without:?} is left out");
    }
}
