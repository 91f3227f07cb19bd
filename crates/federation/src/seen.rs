//! Fingerprints of the results that a search has sent.
//!
//! Duplicates have the same id at one provider, or the same link without fragment and tracking parameters. Near
//! duplicates are longer texts whose SimHashes (Charikar 2002) over word trigrams differ in at most [`BITS`] bits.

use crate::search_result::SearchResult;
use crate::words::Hashes;
use std::collections::HashSet;
use twox_hash::XxHash3_128;

/// Max Hamming distance of near duplicates (Manku, Jain and Das Sarma 2007 take 3 of 64).
const BITS: u32 = 3;
/// Min words for a SimHash. With fewer trigrams it is noise, so shorter texts are not compared.
const WORDS_MIN: usize = 16;

/// Fingerprints of the results that a search has sent.
#[derive(Debug, Default)]
pub struct ResultFingerprints {
    exact: HashSet<u64>,
    texts: Vec<u64>,
}

impl ResultFingerprints {
    /// Records a result. Returns `false` if it, or a near duplicate, was sent before.
    pub(crate) fn is_new(&mut self, provider: &str, found: &SearchResult) -> bool {
        let mut new = self.exact.insert(hash(&[provider, &found.id]));
        if let Some(link) = &found.link {
            // `&=` without short circuit: both fingerprints are recorded, even for a duplicate.
            new &= self.exact.insert(hash(&["link", &bare(link)]));
        }
        if !new {
            return false;
        }
        let words = Hashes::of(found.texts());
        if words.len() < WORDS_MIN {
            return true;
        }
        let text = simhash(&words);
        // Linear, over at most the results of one search: an index for near hashes would cost more.
        if self.texts.iter().any(|other| (other ^ text).count_ones() <= BITS) {
            return false;
        }
        self.texts.push(text);
        true
    }
}

/// Returns a link reduced to the parts that identify its page.
fn bare(link: &str) -> String {
    let link = link.split('#').next().unwrap_or(link);
    let link = link.strip_prefix("https://").or_else(|| link.strip_prefix("http://")).unwrap_or(link);
    let (path, query) = link.split_once('?').unwrap_or((link, ""));
    let telling: Vec<&str> = query.split('&').filter(|p| !p.is_empty() && !p.starts_with("utm_")).collect();
    format!("{}?{}", path.trim_start_matches("www.").trim_end_matches('/'), telling.join("&"))
}

/// Returns a hash of several texts.
pub fn hash(parts: &[&str]) -> u64 {
    // No text contains NUL, so the parts cannot run together.
    XxHash3_128::oneshot(parts.join("\0").as_bytes()) as u64
}

/// Returns the SimHash of a text, from the hashes of its words.
fn simhash(words: &[u64]) -> u64 {
    let runs = words.windows(3).map(|run| run[0] ^ run[1].rotate_left(21) ^ run[2].rotate_left(42));
    Votes::of(runs).majority()
}

/// Counters of set bits for each of 64 bit positions, stored bit-sliced so that all count at once.
#[derive(Default)]
struct Votes {
    /// The n-th bits of all counters, one word each.
    digits: [u64; 32],
    count: u32,
}

impl Votes {
    fn of(mut numbers: impl Iterator<Item = u64>) -> Votes {
        let (mut votes, mut eight) = (Votes::default(), [0; 8]);
        loop {
            let mut held = 0;
            for (slot, bits) in eight.iter_mut().zip(&mut numbers) {
                *slot = bits;
                held += 1;
            }
            if held < eight.len() {
                eight[..held].iter().for_each(|bits| votes.add(0, *bits));
                votes.count += held as u32;
                return votes;
            }
            votes.add_eight(eight);
        }
    }

    /// Adds one set of bits with the weight of the n-th digit.
    fn add(&mut self, n: usize, bits: u64) {
        let mut carry = bits;
        for digit in &mut self.digits[n..] {
            if carry == 0 {
                break;
            }
            (*digit, carry) = (*digit ^ carry, *digit & carry);
        }
    }

    /// Adds eight numbers with one ripple carry (a Harley-Seal counter).
    fn add_eight(&mut self, numbers: [u64; 8]) {
        let [ones, twos, fours, ..] = &mut self.digits;
        let [a, b, c, d, e, f, g, h] = numbers;
        let [ab, cd, ef, gh] = [add_two(ones, a, b), add_two(ones, c, d), add_two(ones, e, f), add_two(ones, g, h)];
        let [abcd, efgh] = [add_two(twos, ab, cd), add_two(twos, ef, gh)];
        let eights = add_two(fours, abcd, efgh);
        self.add(3, eights);
        self.count += 8;
    }

    /// Returns the bits set in more than half of the numbers.
    fn majority(&self) -> u64 {
        let votes = |bit: u32| -> u32 { (0..32).map(|n| ((self.digits[n as usize] >> bit & 1) as u32) << n).sum() };
        (0..64).fold(0, |bits, bit| bits | u64::from(votes(bit) > self.count / 2) << bit)
    }
}

/// Full adder: adds two numbers to a digit, bit by bit, and returns the carry.
fn add_two(digit: &mut u64, a: u64, b: u64) -> u64 {
    let half = *digit ^ a;
    let carry = *digit & a | half & b;
    *digit = half ^ b;
    carry
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn votes_are_counted_as_one_by_one(numbers in proptest::collection::vec(any::<u64>(), 0..200)) {
            let votes = Votes::of(numbers.iter().copied());
            for bit in 0..64 {
                let set = numbers.iter().filter(|bits| *bits >> bit & 1 == 1).count();
                prop_assert_eq!(votes.majority() >> bit & 1 == 1, 2 * set > numbers.len());
            }
        }
    }

    #[test]
    fn the_same_and_nearly_the_same_are_sent_once() {
        let long: Vec<String> = (0..120).map(|n| format!("word{}", n * n % 97)).collect();
        let found = |id: &str, link: &str, text: &str| SearchResult {
            id: id.to_owned(),
            link: Some(link.to_owned()).filter(|l| !l.is_empty()),
            text: Some(text.to_owned()),
            ..SearchResult::default()
        };
        let mut seen = ResultFingerprints::default();
        let mut is_new = |provider: &str, found: SearchResult| seen.is_new(provider, &found);
        assert!(is_new("a", found("1", "https://www.example.org/x/?utm_source=a", "short")));
        assert!(!is_new("a", found("1", "", "other")), "the same id");
        assert!(is_new("b", found("1", "", "other")), "another's id");
        assert!(!is_new("b", found("2", "http://example.org/x#top", "other")), "the same link");
        assert!(is_new("b", found("3", "http://example.org/x?page=2", "short")), "another page");
        assert!(is_new("a", found("4", "", &long.join(" "))));
        let mut edited = long.clone();
        edited[119] = "changed".to_owned();
        assert!(!is_new("c", found("5", "", &edited.join(", ").to_uppercase())), "nearly the same text");
        let other: Vec<String> = (0..120).map(|n| format!("term{}", n * n % 89)).collect();
        assert!(is_new("c", found("6", "", &other.join(" "))), "another text");
    }
}
