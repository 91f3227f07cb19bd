//! Distinct counts: by hashes up to a bound, then by HyperLogLog (Flajolet et al., 2007) with Ertl's estimator
//! (2017), which needs no correction tables.

use super::bytes::{Malformed, Reader};
use crate::function::FunctionValue;
use crate::hash::NumberHasher;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use twox_hash::XxHash3_128;

/// Max distinct values counted exactly. Their hashes have 128 bits: a collision among this many has a probability of
/// 10^-31.
pub(super) const VALUES_MAX: usize = 4096;
/// Bits of a hash that select its register.
const INDEX_BITS: u32 = 14;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash that feed a register.
const RANK_BITS: u32 = u64::BITS - INDEX_BITS;
/// Three standard errors, each 1.04 over the root of the number of registers: 997 of 1000 estimates are closer.
const ERROR: f64 = 3.0 * 1.04 / 128.0;
/// Memory of an entry of the set.
const ENTRY_BYTES: usize = 32;

type Seen = HashSet<u128, BuildHasherDefault<FoldedHasher>>;

/// A hasher for keys that are hashes or numbers already.
#[derive(Default)]
pub(crate) struct FoldedHasher(NumberHasher);

impl Hasher for FoldedHasher {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u128(&mut self, n: u128) {
        self.0.write_u64(n as u64);
        self.0.write_u64((n >> 64) as u64);
    }
}

/// The distinct values of a field in one group.
#[derive(Debug, Clone)]
pub(crate) enum Distinct {
    Seen(Seen),
    /// The max rank of the hashes of each register.
    Registers(Box<[u8]>),
}

impl Distinct {
    pub(super) fn none() -> Distinct {
        Distinct::Seen(Seen::default())
    }

    pub(super) fn add_int(&mut self, n: i64) {
        self.add(u128::from(n as u64));
    }

    pub(super) fn add_float(&mut self, x: f64) {
        // Both zeros are one value.
        self.add(u128::from(if x == 0.0 { 0 } else { x.to_bits() }));
    }

    pub(super) fn add_text(&mut self, text: &str) {
        self.add(XxHash3_128::oneshot(text.as_bytes()));
    }

    fn add(&mut self, value: u128) {
        match self {
            Distinct::Seen(seen) => {
                seen.insert(value);
                if seen.len() > VALUES_MAX {
                    self.become_registers();
                }
            }
            Distinct::Registers(registers) => register(registers, value),
        }
    }

    fn become_registers(&mut self) {
        if let Distinct::Seen(seen) = self {
            let mut registers = vec![0; REGISTERS].into_boxed_slice();
            seen.iter().for_each(|value| register(&mut registers, *value));
            *self = Distinct::Registers(registers);
        }
    }

    pub(super) fn merge(&mut self, other: &Distinct) {
        match other {
            Distinct::Seen(seen) => seen.iter().for_each(|value| self.add(*value)),
            Distinct::Registers(theirs) => {
                self.become_registers();
                if let Distinct::Registers(mine) = self {
                    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Distinct::Seen(seen) => seen.capacity() * ENTRY_BYTES,
            Distinct::Registers(registers) => registers.len(),
        }
    }

    /// The number of distinct values, and its relative error.
    pub(super) fn count(&self) -> (FunctionValue, f64) {
        match self {
            Distinct::Seen(seen) => (FunctionValue::Int(seen.len() as i128), 0.0),
            Distinct::Registers(registers) => (FunctionValue::Int(estimate(registers).round() as i128), ERROR),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Distinct::Seen(seen) => {
                let mut all: Vec<u128> = seen.iter().copied().collect();
                all.sort_unstable();
                out.push(0);
                out.extend((all.len() as u32).to_le_bytes());
                all.iter().for_each(|value| out.extend(value.to_le_bytes()));
            }
            Distinct::Registers(registers) => {
                out.push(1);
                out.extend_from_slice(registers);
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Distinct, Malformed> {
        let mut reader = Reader(bytes);
        let all = match reader.byte()? {
            0 => {
                let entries = reader.entries(VALUES_MAX)?;
                Distinct::Seen((0..entries).map(|_| reader.u128()).collect::<Result<Seen, _>>()?)
            }
            1 => {
                let registers = reader.take(REGISTERS)?;
                // A higher one would be out of range for the estimate.
                if registers.iter().any(|rank| u32::from(*rank) > RANK_BITS + 1) {
                    return Err(Malformed);
                }
                Distinct::Registers(registers.into())
            }
            _ => return Err(Malformed),
        };
        reader.end().map(|()| all)
    }
}

/// Records a value in its register: the position of the first set bit in its hash.
fn register(registers: &mut [u8], value: u128) {
    let mut hasher = FoldedHasher::default();
    hasher.write_u128(value);
    let hash = hasher.finish();
    let rank = (hash << INDEX_BITS).leading_zeros().min(RANK_BITS) + 1;
    let register = &mut registers[(hash >> RANK_BITS) as usize];
    *register = (*register).max(rank as u8);
}

/// Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
fn estimate(registers: &[u8]) -> f64 {
    let mut with_rank = [0u32; RANK_BITS as usize + 2];
    registers.iter().for_each(|rank| with_rank[usize::from(*rank)] += 1);
    let size = REGISTERS as f64;
    let mut z = size * tau(1.0 - f64::from(with_rank[RANK_BITS as usize + 1]) / size);
    for rank in (1..=RANK_BITS as usize).rev() {
        z = 0.5 * (z + f64::from(with_rank[rank]));
    }
    z += size * sigma(f64::from(with_rank[0]) / size);
    size * size / (2.0 * std::f64::consts::LN_2 * z)
}

fn sigma(mut x: f64) -> f64 {
    let (mut y, mut z) = (1.0, x);
    // All registers are empty: there is no value.
    if x >= 1.0 {
        return f64::INFINITY;
    }
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}
