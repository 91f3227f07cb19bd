//! Defaults that follow the memory there is, so that a server in a small control group is not ended for want of it.

use super::Config;
use super::setting::{GIB, MIB};

/// Scales the settings for memory by `memory`, the bytes that the process may use. Above 8 GiB only the cache grows.
pub(super) fn fit(config: &mut Config, memory: u64) {
    let share = |part: u64, least: u64, most: u64| (memory / part / MIB * MIB).clamp(least * MIB, most * MIB);
    let store = &mut config.store;
    // The first half gibibyte is for the program, trees of segments, and a merge.
    store.cache_bytes = (memory.saturating_sub(GIB / 2) / 4 / MIB * MIB).clamp(64 * MIB, 64 * GIB);
    // Two batches of 64 MiB at least: one goes in while the other is flushed.
    store.memory_bytes = share(8, 128, 256);
    store.log_bytes = store.memory_bytes;
    // A merge keeps four bytes of each event, and a segment that is written up to a hundred.
    store.merge_rows_max = (memory / 64).clamp(1 << 22, 1 << 25);
    store.segment_rows_max = (memory / 1024).clamp(1 << 18, 1 << 24) as u32;
    config.server.body_bytes_total = share(16, 64, 512) as usize;
    config.server.answer_bytes_total = share(16, 32, 256) as usize;
    config.server.query_bytes_total = share(16, 32, 256);
    config.server.search.buffer_bytes_total = share(16, 32, 256) as usize;
    config.server.search.answer_bytes_total = share(16, 32, 256) as usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory where it is wanted, in whole: what the defaults let each take, beside what trees, a merge and the program do.
    #[test]
    fn what_a_small_server_may_take_at_once_fits_into_it() {
        for memory in [GIB, 2 * GIB, 3 * GIB, 64 * GIB] {
            let mut config = Config::default();
            fit(&mut config, memory);
            let store = &config.store;
            let merge = 4 * store.merge_rows_max + 100 * u64::from(store.segment_rows_max.min(1_700_000));
            let bodies = config.server.body_bytes_total as u64;
            assert!(store.cache_bytes + store.memory_bytes + merge + bodies <= memory * 2 / 3, "{memory}");
            assert!(Config::parse(&config.show()).is_ok(), "{memory}");
        }
        let (mut small, mut large) = (Config::default(), Config::default());
        fit(&mut small, GIB);
        fit(&mut large, 64 * GIB);
        assert_eq!(small.store.cache_bytes, 128 * MIB);
        assert_eq!(large.store.memory_bytes, 256 * MIB);
        assert!(large.store.cache_bytes > 15 * GIB);
    }
}
