//! Replays every stored input, and mutated ones: none makes its parser panic or exceed its memory limit.
//!
//! `MERIDIAN_FUZZ_SECONDS` mutates inputs for that many seconds per target, from a seed that a failure reports.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

use cap::Cap;
use fuzz_targets::TARGETS;
use std::alloc::System;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Memory is that of the process: the tests run one after another.
static ALONE: Mutex<()> = Mutex::new(());

/// Memory that a parser may hold for any input, and additionally for each byte of input.
const HELD: (usize, usize) = (64 << 20, 64);
/// Mutated inputs per target in a plain run.
const CHANGED: usize = 200;
/// Max time per target in a plain run; cuts short targets that open stores for each input.
const PLAIN: Duration = Duration::from_secs(5);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut inputs: Vec<PathBuf> = ["corpus", "regressions"]
        .iter()
        .filter_map(|kind| std::fs::read_dir(root().join(kind).join(target)).ok())
        .flat_map(|folder| folder.map(|entry| entry.unwrap().path()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "fuzz/corpus/{target} has no input");
    inputs.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Runs a target; returns the violation, if any.
fn run(target: &str, bytes: &[u8]) -> Result<(), String> {
    let (before, peak) = (MEMORY.allocated(), MEMORY.max_allocated());
    std::panic::catch_unwind(|| fuzz_targets::run(target, bytes)).map_err(|_| "a panic".to_owned())?;
    // The peak is that of the process so far: it is attributable to this input only if it grew.
    let held = MEMORY.max_allocated().saturating_sub(before);
    let most = HELD.0 + HELD.1 * bytes.len();
    if MEMORY.max_allocated() > peak && held > most {
        return Err(format!("{held} bytes held: expected at most {most}"));
    }
    Ok(())
}

#[test]
fn kept_inputs_make_no_parser_panic_or_hold_much_memory() {
    let _alone = ALONE.lock();
    for target in TARGETS {
        for (path, bytes) in kept(target.0) {
            run(target.0, &bytes).unwrap_or_else(|what| panic!("{}: {what}", path.display()));
        }
    }
}

/// A generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }

    /// A random part of the bytes.
    fn piece<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let from = self.below(bytes.len());
        let rest = &bytes[from.min(bytes.len())..];
        &rest[..self.below(rest.len() + 1).min(64)]
    }

    /// An input with some mutations; parts may come from another one.
    fn changed(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        const EDGES: [u8; 7] = [0, 1, 0x7f, 0x80, 0xfe, 0xff, b'9'];
        let mut bytes = input.to_vec();
        for _ in 0..1 + self.below(6) {
            let at = self.below(bytes.len() + 1);
            match self.below(8) {
                0 => bytes.truncate(at),
                1 => drop(bytes.splice(at..at, self.piece(other).to_vec())),
                2 => drop(bytes.splice(at..at, self.piece(input).to_vec())),
                3 => drop(bytes.splice(at..(at + self.below(16)).min(bytes.len()), [])),
                4 => {
                    let edge = EDGES[self.below(EDGES.len())];
                    let end = (at + [1, 2, 4, 8][self.below(4)]).min(bytes.len());
                    bytes[at..end].fill(edge);
                }
                5 => bytes.insert(at, self.below(256) as u8),
                6 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(1 + self.below(4) as u8),
                _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
        bytes
    }
}

#[test]
fn changed_inputs_make_no_parser_panic_or_hold_much_memory() {
    let _alone = ALONE.lock();
    let seconds = std::env::var("MERIDIAN_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).map(Duration::from_secs);
    let only = std::env::var("MERIDIAN_FUZZ_TARGET").ok();
    let seed = match seconds {
        Some(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64,
        None => 20,
    };
    let mut failures = Vec::new();
    for target in TARGETS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let (inputs, mut random) = (kept(target.0), Random(seed | 1));
        let (begun, mut count, mut slowest) = (Instant::now(), 0, Duration::ZERO);
        while count < seconds.map_or(CHANGED, |_| usize::MAX) && begun.elapsed() < seconds.unwrap_or(PLAIN) {
            let [one, other] = [random.below(inputs.len()), random.below(inputs.len())];
            let bytes = random.changed(&inputs[one].1, &inputs[other].1);
            // Before it runs: the input must be recorded even if it ends the process.
            let found = std::env::temp_dir().join(format!("meridian-fuzz-{}-{seed}", target.0));
            if seconds.is_some() {
                std::fs::write(&found, &bytes).unwrap();
            }
            let each = Instant::now();
            if let Err(what) = run(target.0, &bytes) {
                std::fs::write(&found, &bytes).unwrap();
                failures.push(format!("{}: {what}: keep {} in fuzz/regressions", target.0, found.display()));
                break;
            }
            slowest = slowest.max(each.elapsed());
            count += 1;
        }
        println!("{}: {count} changed inputs, at most {} ms each", target.0, slowest.as_millis());
    }
    assert!(failures.is_empty(), "seed {seed}: {failures:#?}");
}

#[test]
fn every_target_has_its_program_and_no_program_lacks_a_target() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut programs: Vec<String> = std::fs::read_dir(root().join("fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    programs.sort();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(programs, names);
    for name in names {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not in fuzz/Cargo.toml");
    }
}
