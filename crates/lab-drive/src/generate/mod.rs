//! Generators: seeded values, and templates that are filled with them.
//!
//! A [`Mix`] turns the requests of a population into bytes to send. Only the random source decides which request comes
//! next, and with which values. So the same seed sends the same requests in the same order.

mod draw;
mod file;
mod geo;
mod mix;
mod template;
mod value;

pub use draw::Source;
pub use mix::{Encoding, Endpoint, Mix, Question};
pub use template::Template;
pub use value::Value;

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// Returns the random source of one part of a run: parts with different numbers are independent, and adding a part
/// changes no other.
pub fn stream(seed: u64, parts: &[u64]) -> Pcg64 {
    // SplitMix64 over the parts (Steele, Lea and Flood 2014): neighbouring seeds give unrelated streams.
    let mut state = seed;
    for part in parts {
        state = mix64(state ^ mix64(part.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    }
    Pcg64::seed_from_u64(state)
}

fn mix64(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
