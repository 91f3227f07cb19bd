//! Schedules drawn from a seed: long ones, in which everything fails at some time.

use crate::process::Work;
use crate::world::{Budget, End, Move, World};
use meridian_model::policy::owner::Rules;

/// Number of moves of a schedule.
const MOVES: usize = 220;
/// Max moves until a node serves again, once failures stop.
const RECOVERY_MAX: usize = 2_000;

/// Random numbers from a seed (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Runs the schedule of a seed; the error holds the violated property and the moves that lead to it.
pub fn run(seed: u64, rules: Rules) -> Result<(), String> {
    let mut made = Vec::new();
    run_noting(seed, rules, &mut made).map_err(|what| {
        let moves: Vec<String> = made.iter().map(|made| format!("{made:?}")).collect();
        format!("seed {seed}: {what}, after {} moves:\n  {}", moves.len(), moves.join("\n  "))
    })
}

fn run_noting(seed: u64, rules: Rules, made: &mut Vec<Move>) -> Result<(), String> {
    let mut random = Random::new(seed);
    let nodes = 2 + random.below(2);
    let faults = [0, 1, 4, 12][random.below(4)];
    let budget = Budget {
        writes: 12,
        flushes: 8,
        merges: 3,
        takeovers: 7,
        reads: 4,
        faults,
        kills: random.below(4) as u8,
        freezes: random.below(3) as u8,
    };
    let mut world = World::new(rules, nodes, budget, random.below(2) == 0);
    // A node runs for a while, as in reality; the others are paused meanwhile.
    let (mut running, mut moves) = (0, Vec::new());
    for _ in 0..MOVES {
        moves.clear();
        match random.below(100) {
            0..10 => running = random.below(nodes),
            10..13 => moves.extend((0..world.late.len()).map(Move::Arrive)),
            13 => moves.extend(world.moves().into_iter().filter(|chosen| *chosen == Move::Freeze)),
            _ => world.moves_of(running, &mut moves),
        }
        if let Some(chosen) = choose(&moves, &mut random) {
            make(&mut world, made, chosen)?;
        }
    }
    recover(&mut world, made)
}

/// Chooses a move, likely ones more often.
fn choose(moves: &[Move], random: &mut Random) -> Option<Move> {
    let weight = |chosen: &Move| match chosen {
        Move::End(_, End::Done) => 40,
        Move::Begin(_, Work::Write(_)) => 10,
        Move::Begin(_, Work::Flush | Work::Commit) => 8,
        Move::Begin(..) => 4,
        Move::End(..) | Move::Kill(_) => 1,
        Move::Arrive(_) | Move::Freeze => 4,
    };
    let all: usize = moves.iter().map(weight).sum();
    let mut at = (all > 0).then(|| random.below(all))?;
    for chosen in moves {
        match at.checked_sub(weight(chosen)) {
            Some(rest) => at = rest,
            None => return Some(*chosen),
        }
    }
    None
}

/// Once failures stop and the other processes are gone, a process takes over and serves.
fn recover(world: &mut World, made: &mut Vec<Move>) -> Result<(), String> {
    if world.is_frozen() {
        make(world, made, Move::Freeze)?;
    }
    while !world.late.is_empty() {
        make(world, made, Move::Arrive(0))?;
    }
    world.budget.takeovers = 1;
    for work in [Work::Takeover, Work::Write(world.next_write()), Work::Flush, Work::Commit, Work::Release] {
        (world.budget.writes, world.budget.flushes) = (1, 1);
        let node = world.newest_node();
        make(world, made, Move::Begin(node, work))?;
        // Other processes may come first, and do nothing.
        let (node, mut left) = (world.newest_node(), RECOVERY_MAX);
        while world.waits(node) {
            left = left.checked_sub(1).ok_or_else(|| format!("{work:?} comes to no end"))?;
            make(world, made, Move::End(node, End::Done))?;
        }
        if !world.serves(node) {
            return Err(format!("the last owner does not serve after {work:?}"));
        }
    }
    Ok(())
}

fn make(world: &mut World, made: &mut Vec<Move>, chosen: Move) -> Result<(), String> {
    made.push(chosen);
    world.make(chosen)
}
