//! The newest number of a chain of objects `1, 2, 3...`, found without a listing. Most of the objects have been
//! deleted.
//!
//! A listing may be stale, and a deleted number looks like one that never existed. So a few old numbers stay: those
//! that equal the newest one with low bits cleared. Each number below the newest one has a *successor* among them:
//! the number with one of its zero bits set, and the bits below cleared. From any number, successors lead to the
//! newest, which is the one without a successor.
//!
//! This also holds while the chain grows. A successor is deleted only after one with a higher bit was created, and the
//! search begins at the lowest bit.

use super::rules::Rules;

/// A search from a number upwards: asks whether numbers exist, one at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Search {
    at: u64,
    /// The bit of `at` to try next; equals `bits` once all were tried.
    bit: u32,
    bits: u32,
}

impl Search {
    /// A search from a number that is not above the newest.
    pub fn from(number: u64, rules: Rules) -> Search {
        let mut search = Search { at: number, bit: 0, bits: rules.number_bits };
        search.skip();
        search
    }

    /// The number to check next; `None` if none above [`Search::at`] existed when the search began.
    pub fn asks(&self) -> Option<u64> {
        (self.bit < self.bits).then(|| (self.at >> self.bit | 1) << self.bit)
    }

    /// Accepts whether the requested number exists.
    pub fn told(&mut self, exists: bool) {
        match self.asks() {
            Some(above) if exists => (self.at, self.bit) = (above, 0),
            _ => self.bit += 1,
        }
        self.skip();
    }

    /// The max number found so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Moves on to a zero bit: only these have a successor.
    fn skip(&mut self) {
        while self.bit < self.bits && self.at >> self.bit & 1 == 1 {
            self.bit += 1;
        }
    }
}

/// The newest number, searched from any that is not above it, for a caller that does nothing between two checks.
pub fn newest<E>(rules: Rules, from: u64, mut exists: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let mut search = Search::from(from, rules);
    while let Some(number) = search.asks() {
        search.told(exists(number)?);
    }
    Ok(search.at())
}

/// Whether a number has to stay once `newest` exists.
pub fn stays(rules: Rules, number: u64, newest: u64) -> bool {
    let low = number.trailing_zeros().min(63);
    number.saturating_add(rules.recent) > newest || newest >> low << low == number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    const RULES: Rules = Rules::SERVER;

    fn found(from: u64, mut exists: impl FnMut(u64) -> bool) -> u64 {
        let Ok(newest) = newest(RULES, from, |number| Ok::<_, Infallible>(exists(number)));
        newest
    }

    #[test]
    fn few_numbers_stay_and_lead_to_the_newest_from_everywhere() {
        let mut chain = BTreeSet::new();
        for top in 1..3000u64 {
            chain.insert(top);
            chain.retain(|number| stays(RULES, *number, top));
            assert!(chain.len() <= 20, "{} stay of {top}", chain.len());
            for from in (0..=top).step_by(61).chain([top]) {
                assert_eq!(found(from, |number| chain.contains(&number)), top, "from {from}");
            }
        }
    }

    proptest! {
        /// The chain grows, and deletable numbers are deleted, between any two checks of a search.
        #[test]
        fn a_search_never_takes_an_older_number_for_the_newest(
            top in 1..400u64,
            from in 0..400u64,
            growth in prop::collection::vec(0..40u64, 64),
        ) {
            let (mut chain, mut top) = (BTreeSet::new(), top);
            let mut grow = |chain: &mut BTreeSet<u64>, by: u64| {
                for _ in 0..by {
                    top += 1;
                    chain.insert(top);
                    chain.retain(|number| stays(RULES, *number, top));
                }
                top
            };
            (1..=grow(&mut chain, 0)).for_each(|number| { chain.insert(number); });
            let before = grow(&mut chain, 1);
            let mut growth = growth.into_iter();
            let found = found(from.min(before), |number| {
                let exists = chain.contains(&number);
                grow(&mut chain, growth.next().unwrap_or(0));
                exists
            });
            prop_assert!(found >= before);
        }
    }
}
