//! The newest number of a chain of objects `1, 2, 3...` of which most were deleted, found without a listing.
//!
//! A listing may be behind, and a number that was deleted looks like one that was never there. So of the old numbers a few stay: those
//! that are the newest one with low bits cleared. For each number below the newest one of them is a *successor*: the number with one of
//! its zero bits set, and the bits below cleared. From any number on, successors lead to the newest, and a number without a successor is it.
//!
//! While the chain grows this holds as well: a successor is deleted after one with a higher bit was made, and they are looked for from
//! the lowest bit up.

/// Bits of a number that successors may differ in: four thousand million manifests.
const BITS: u32 = 32;
/// How many of the newest numbers stay whatever they are.
const RECENT: u64 = 8;

/// A number above this one that exists. `None`: this one was the newest when the search began.
pub(super) fn successor<E>(number: u64, mut exists: impl FnMut(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    for bit in (0..BITS).filter(|bit| number >> bit & 1 == 0) {
        let above = (number >> bit | 1) << bit;
        if exists(above)? {
            return Ok(Some(above));
        }
    }
    Ok(None)
}

/// The newest number, from any that is not above it.
pub(super) fn newest<E>(from: u64, mut exists: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let mut number = from;
    while let Some(above) = successor(number, &mut exists)? {
        number = above;
    }
    Ok(number)
}

/// Whether a number has to stay once `newest` is there.
pub(super) fn stays(number: u64, newest: u64) -> bool {
    let low = number.trailing_zeros().min(63);
    number + RECENT > newest || newest >> low << low == number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    fn has(chain: &BTreeSet<u64>) -> impl FnMut(u64) -> Result<bool, Infallible> {
        |number| Ok(chain.contains(&number))
    }

    #[test]
    fn few_numbers_stay_and_lead_to_the_newest_from_everywhere() {
        let mut chain = BTreeSet::new();
        for top in 1..3000u64 {
            chain.insert(top);
            chain.retain(|number| stays(*number, top));
            assert!(chain.len() <= 20, "{} stay of {top}", chain.len());
            assert_eq!(newest(0, has(&chain)).unwrap(), top);
            assert_eq!(successor(top, has(&chain)).unwrap(), None);
            for from in (1..top).step_by(7) {
                assert!(successor(from, has(&chain)).unwrap().is_some(), "{from} looks like the newest of {top}");
            }
        }
    }

    proptest! {
        /// The chain grows, and what need not stay is deleted, between any two looks of a search.
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
                    chain.retain(|number| stays(*number, top));
                }
                top
            };
            (1..=grow(&mut chain, 0)).for_each(|number| { chain.insert(number); });
            let before = grow(&mut chain, 1);
            let mut growth = growth.into_iter();
            let found = newest(from.min(before), |number| {
                let exists = chain.contains(&number);
                grow(&mut chain, growth.next().unwrap_or(0));
                Ok::<bool, Infallible>(exists)
            });
            prop_assert!(found.unwrap() >= before);
        }
    }
}
