//! Numbers of files: unique across the processes that write a collection, one after the other.
//!
//! A number is the epoch of its writer (24 bits) above a count (40 bits). A process takes an epoch by committing a manifest in it. Of
//! two processes that try, compare-and-swap lets one succeed, so no name is ever chosen twice. Earlier files have epoch 0.

/// Bits of a number that count the files of one writer.
const COUNT_BITS: u32 = 40;

/// The first number of the epoch after that of another number.
pub(crate) fn next_epoch(number: u64) -> u64 {
    ((number >> COUNT_BITS) + 1) << COUNT_BITS | 1
}

#[cfg(test)]
mod tests {
    use super::next_epoch;

    #[test]
    fn an_epoch_begins_above_every_number_of_the_one_before() {
        let first = next_epoch(77);
        assert_eq!(format!("{first:016x}"), "0000010000000001");
        assert_eq!(next_epoch(first + 1_000_000), next_epoch(first));
        assert!(next_epoch(first) > first + 1_000_000);
    }
}
