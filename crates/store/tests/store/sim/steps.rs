//! A schedule: the steps of one seed, as a list that can be shortened.

use meridian_store::seams::{Random, SeededRandom};

/// The action of a step. Details are drawn from the step's own seed, so that it stays the same kind of action when
/// earlier steps are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A batch, sometimes with a key, sometimes replacing.
    Write,
    /// One event, replaced completely or in part.
    Put,
    /// A batch under a key that was used before.
    Resend,
    DeleteIds,
    DeleteRows,
    /// A snapshot is taken, to return to later.
    Token,
    ComeBack,
    Flush,
    Memory,
    /// A merge of segments, or the files are listed and read as another program would.
    Segments,
    /// A job is chosen, executed, installed: writes and crashes come in between.
    Begin,
    Run,
    Install,
    AddField,
    /// Time passes.
    Pass,
    /// The machine's clock is set.
    Jump,
    Crash,
    /// The store is closed and reopened.
    Close,
    /// Calls to the disk fail from now on.
    Fault,
    /// The disk is nearly full.
    Full,
    ReadOnly,
    /// The disk works again.
    Heal,
    /// A bit of a file flips.
    Flip,
    /// A file is cut, zeroed or overwritten from some byte on.
    Spoil,
    /// A file goes missing.
    Vanish,
    /// Damage is undone, as from a backup.
    Mend,
    Check,
}

use Action::*;

/// Frequency of each action, in a thousand.
const ODDS: [(Action, u64); 27] = [
    (Write, 220),
    (Put, 80),
    (Resend, 40),
    (DeleteIds, 60),
    (DeleteRows, 30),
    (Token, 40),
    (ComeBack, 50),
    (Flush, 70),
    (Memory, 40),
    (Segments, 50),
    (Begin, 50),
    (Run, 35),
    (Install, 35),
    (AddField, 5),
    (Pass, 30),
    (Jump, 10),
    (Crash, 40),
    (Close, 10),
    (Fault, 35),
    (Full, 8),
    (ReadOnly, 4),
    (Heal, 20),
    (Flip, 8),
    (Spoil, 6),
    (Vanish, 8),
    (Mend, 10),
    (Check, 6),
];

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub action: Action,
    pub seed: u64,
}

/// Returns the schedule of a seed.
pub fn schedule(seed: u64, steps: usize) -> Vec<Step> {
    let random = SeededRandom::new(seed);
    let all: u64 = ODDS.iter().map(|(_, odds)| odds).sum();
    let draw = |_| {
        let mut at = random.next_u64() % all;
        let chosen = ODDS.iter().find(|(_, odds)| {
            let here = at < *odds;
            at = at.wrapping_sub(*odds);
            here
        });
        Step { action: chosen.map_or(Write, |(action, _)| *action), seed: random.next_u64() }
    };
    (0..steps).map(draw).collect()
}

/// Parses numbers and ranges such as `0-3,7`.
pub fn parse_kept(text: &str) -> Option<Vec<usize>> {
    let mut kept = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        kept.extend(from.parse::<usize>().ok()?..=to.parse().ok()?);
    }
    Some(kept)
}

/// The reverse of [`parse_kept`].
pub fn print_kept(kept: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for at in kept {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == *at => *to = *at,
            _ => parts.push((*at, *at)),
        }
    }
    let part = |(from, to): &(usize, usize)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}
