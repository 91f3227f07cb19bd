//! Visits every state that processes reach within a budget, once.

use crate::process::Work;
use crate::world::{Budget, Move, World};
use meridian_model::policy::owner::Rules;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Extent of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Number of distinct states.
    pub states: usize,
    /// Moves of the longest path without a repeated state.
    pub depth: usize,
    /// Whether the search was exhaustive.
    pub complete: bool,
}

/// A world on the current path, and the moves left to try from it.
struct Branch {
    world: World,
    /// The process that made the last move, and the number of switches left.
    running: u32,
    switches: u8,
    left: Vec<Move>,
    made: Option<Move>,
}

impl Branch {
    fn new(world: World, running: u32, switches: u8) -> Branch {
        let left = world.moves();
        Branch { world, running, switches, left, made: None }
    }

    /// Identity of the state: without a bound on switches, the process of the last move does not matter.
    fn key(&self) -> (u64, u64) {
        let mut hasher = Fold(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
        self.world.hash(&mut hasher);
        if self.switches < u8::MAX {
            (self.running, self.switches).hash(&mut hasher);
        }
        (hasher.0, hasher.1)
    }

    /// The branch after a move; `None` if it takes a switch too many.
    fn after(&self, chosen: Move) -> Option<Result<Branch, String>> {
        let before = chosen.node().map(|node| self.world.process_of(node));
        let switch = before.is_some_and(|before| before != self.running);
        let switches = if switch && self.switches < u8::MAX { self.switches.checked_sub(1)? } else { self.switches };
        let mut world = self.world.clone();
        if let Err(what) = world.make(chosen) {
            return Some(Err(what));
        }
        let running = match chosen {
            Move::Begin(_, Work::Takeover) => world.process_of(world.newest_node()),
            _ => before.unwrap_or(self.running),
        };
        Some(Ok(Branch::new(world, running, switches)))
    }
}

/// Searches depth first, with a max number of switches between processes ([`u8::MAX`] for no limit). Returns an error
/// with the violated property and the moves that lead to it.
pub fn explore(
    rules: Rules,
    nodes: usize,
    budget: Budget,
    switches: u8,
    states_max: usize,
) -> Result<Explored, String> {
    let mut seen = HashSet::new();
    let mut way = vec![Branch::new(World::new(rules, nodes, budget, false), 0, switches)];
    let mut explored = Explored { states: 0, depth: 0, complete: true };
    seen.extend(way.iter().map(Branch::key));
    while let Some(branch) = way.last_mut() {
        let Some(chosen) = branch.left.pop() else {
            way.pop();
            continue;
        };
        branch.made = Some(chosen);
        let next = match branch.after(chosen) {
            None => continue,
            Some(Ok(next)) => next,
            Some(Err(what)) => {
                let moves: Vec<String> = way.iter().filter_map(|branch| Some(format!("{:?}", branch.made?))).collect();
                return Err(format!("{what}, after {} moves:\n  {}", moves.len(), moves.join("\n  ")));
            }
        };
        if !seen.insert(next.key()) {
            continue;
        }
        way.push(next);
        explored.depth = explored.depth.max(way.len() - 1);
        if seen.len() >= states_max {
            explored.complete = false;
            break;
        }
    }
    explored.states = seen.len();
    Ok(explored)
}

/// Hashes words to 128 bits, so that collisions among many million states are improbable. Faster than the standard
/// library's hash, which guards against crafted inputs.
struct Fold(u64, u64);

impl Fold {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.1 = (self.1.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.word(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }
}
