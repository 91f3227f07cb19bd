//! Randomness.
#![allow(clippy::disallowed_methods, reason = "the seam itself")]

use parking_lot::Mutex;
use std::hash::{BuildHasher, Hasher};

/// A source of random numbers. They protect no secret against a determined attacker.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// Returns 64 random bits.
    fn next_u64(&self) -> u64;
}

/// Numbers that differ between starts of the program.
#[derive(Debug)]
pub struct SystemRandom(SeededRandom);

impl SystemRandom {
    /// Seeds itself from the operating system.
    pub fn new() -> Self {
        // The standard library keys each RandomState from the operating system's randomness.
        let seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        SystemRandom(SeededRandom::new(seed))
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        SystemRandom::new()
    }
}

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

/// Numbers determined by a seed (SplitMix64; Steele, Lea and Flood 2014).
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    /// Starts the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        SeededRandom(Mutex::new(seed))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
