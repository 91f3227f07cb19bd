//! Defaults that follow the available memory, so that a server in a small control group is not killed for lack of it.

use super::Config;
use super::setting::{GIB, MIB};

/// Memory for the program itself, its threads and connections, and the trees of a few hundred million events.
const PROGRAM_BYTES: u64 = 128 * MIB;
/// What a request holds while it runs: the block that it reads, and the events that it encodes.
const REQUEST_BYTES: u64 = 8 * MIB;
/// Rows of a segment above which a merge writes more than one.
const SEGMENT_ROWS_USUAL: u32 = 1_700_000;

/// Scales the settings for memory by `memory`, the bytes that the process may use. Above 8 GiB only the cache grows.
pub(super) fn fit(config: &mut Config, memory: u64) {
    let share = |part: u64, min: u64, max: u64| (memory / part / MIB * MIB).clamp(min * MIB, max * MIB);
    let store = &mut config.store;
    store.batch_bytes = share(32, 32, 64);
    config.server.body_bytes_max = store.batch_bytes as usize;
    // The first half gibibyte is for the program, trees of segments, and a merge.
    store.cache_bytes = (memory.saturating_sub(GIB / 2) / 4 / MIB * MIB).clamp(64 * MIB, 64 * GIB);
    // Two batches of 64 MiB at least: one goes in while the other is flushed.
    store.memory_bytes = share(8, 128, 256);
    store.log_bytes = store.memory_bytes;
    // A merge keeps four bytes of each event, and a segment that is written up to a hundred.
    store.merge_rows_max = (memory / 64).clamp(1 << 22, 1 << 25);
    store.segment_rows_max = (memory / 1024).clamp(1 << 18, 1 << 24) as u32;
    config.server.body_bytes_total = share(16, 64, 512) as usize;
    // Two batches, so that the half that each tenant can always have holds one.
    config.server.batch_bytes_total = share(16, 64, 512) as usize;
    config.server.requests_running_max = (memory / 16 / REQUEST_BYTES).clamp(4, 64) as usize;
    config.server.answer_bytes_total = share(16, 32, 256) as usize;
    config.server.query_bytes_total = share(16, 32, 256);
    config.server.search.buffer_bytes_total = share(16, 32, 256) as usize;
    config.server.search.answer_bytes_total = share(16, 32, 256) as usize;
}

/// Max memory of the server, by purpose, in bytes: the settings that bound it.
pub(super) fn budget(config: &Config) -> Vec<(&'static str, u64)> {
    let (server, store) = (&config.server, &config.store);
    vec![
        ("cache", store.cache_bytes),
        ("writes", store.memory_bytes),
        ("bodies", server.body_bytes_total as u64),
        ("batches", server.batch_bytes_total as u64),
        ("requests", REQUEST_BYTES * server.admission().slots_max as u64),
        ("responses", server.answer_bytes_total as u64),
        ("queries", server.query_bytes_total),
        ("searches", (server.search.buffer_bytes_total + server.search.answer_bytes_total) as u64),
        ("merges", merge_bytes(config)),
        ("program and trees", PROGRAM_BYTES),
    ]
}

/// Memory that a merge needs: four bytes of each event, and a hundred of each that is written to a segment.
fn merge_bytes(config: &Config) -> u64 {
    let store = &config.store;
    4 * store.merge_rows_max + 100 * u64::from(store.segment_rows_max.min(SEGMENT_ROWS_USUAL))
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
            let bodies = config.server.body_bytes_total as u64;
            let most = store.cache_bytes + store.memory_bytes + merge_bytes(&config) + bodies;
            assert!(most <= memory * 2 / 3, "{memory}");
            assert!(budget(&config).iter().map(|(_, bytes)| bytes).sum::<u64>() <= memory, "{memory}");
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
