//! File names: unique across the successive writers of a collection. Also decides which files are leftovers.
//!
//! A number is the epoch of its writer (24 bits) above a count (40 bits). A process claims an epoch by committing a
//! manifest in it, and of two that try, compare-and-swap admits one: no name is ever chosen twice. Earlier files have
//! epoch 0.

use super::rules::{Breakage, Rules};

/// Bits of a number that count the files of one writer.
const COUNT_BITS: u32 = 40;

/// The first number of the epoch after that of a given number.
pub fn first_of_next_epoch(number: u64) -> u64 {
    (epoch_of(number) + 1) << COUNT_BITS | 1
}

/// The epoch of a number.
pub fn epoch_of(number: u64) -> u64 {
    number >> COUNT_BITS
}

/// Whether a process can remove a file that its manifest does not name. `claimed` is a number of the epoch that the
/// process claimed with its first manifest.
///
/// Files of earlier epochs can be removed: their writer's next commit fails on the first manifest of this process.
/// Files of this epoch may be in progress. Files of later epochs belong to an owner that took over while this process
/// was paused.
pub fn is_leftover(rules: Rules, file: u64, claimed: u64) -> bool {
    epoch_of(file) < epoch_of(claimed) || rules.breaks(Breakage::RemovalByAge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_begins_above_every_number_of_the_one_before() {
        let first = first_of_next_epoch(77);
        assert_eq!(format!("{first:016x}"), "0000010000000001");
        assert_eq!(first_of_next_epoch(first + 1_000_000), first_of_next_epoch(first + 1));
        assert!(first_of_next_epoch(first) > first + 1_000_000);
    }

    #[test]
    fn files_of_earlier_epochs_are_leftovers_and_no_others() {
        let claimed = first_of_next_epoch(first_of_next_epoch(0));
        let leftover = |file| is_leftover(Rules::SERVER, file, claimed);
        assert!(leftover(77) && leftover(first_of_next_epoch(77) + 5));
        assert!(!leftover(claimed + 3) && !leftover(first_of_next_epoch(claimed)));
    }
}
