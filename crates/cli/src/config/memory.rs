//! Defaults that depend on the available memory, so that a server in a small control group is not killed for lack of
//! it.

use super::setting::{GIB, MIB};
use super::{Config, Role};
use meridian_api::ServerConfig;

/// Memory for the program itself, its threads, its allocator's reserve, and the trees of a few hundred million events.
const PROGRAM_BYTES: u64 = 128 * MIB;
/// Memory of a request while it runs or is paused: the blocks it reads, and the events it encodes. Requests that read
/// large events take more, but few do so at a time.
const REQUEST_BYTES: u64 = 4 * MIB;
/// Memory of a connection: its task, the TLS buffers, and the largest of three parts. The first part is headers of the
/// max size. The second is data that an HTTP/2 client sends ahead, with the 64 KiB of responses that wait for its
/// socket. The third is the buffers of a WebSocket with an incoming message. Other data queued for the client counts as
/// responses.
const CONNECTION_BYTES: u64 = 192 << 10;
/// Memory of a stream besides its connection: its tasks and short messages, or a packet. The current message and the
/// conditions of a stream of events count elsewhere.
const STREAM_BYTES: u64 = 32 << 10;
/// Memory of a remembered object: its hash, a time, and its position.
const OBJECT_BYTES: u64 = 64;
/// One password is hashed at a time (Argon2id).
const PASSWORD_BYTES: u64 = 20 * MIB;
/// Copies of each event that is being written: as columns, encoded for the log, and in the log's buffer. While it is
/// read, columns grow to twice their size.
const BATCH_TIMES: u64 = meridian_api::BATCH_TIMES as u64;
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
    // At least two batches of 64 MiB: one is written while the other is flushed.
    store.memory_bytes = share(8, 128, 256);
    store.log_bytes = store.memory_bytes;
    // A merge keeps four bytes per event, and up to a hundred per event of the segment being written.
    store.merge_rows_max = (memory / 64).clamp(1 << 22, 1 << 25);
    store.segment_rows_max = (memory / 2048).clamp(1 << 18, 1 << 24) as u32;
    // The trees of a billion events take about 2 GB.
    config.cluster.cache.memory = share(16, 32, 4096);
    config.cluster.cache.trees = share(8, 64, 65_536);
    config.server.body_bytes_total = share(16, 64, 512) as usize;
    let server = &mut config.server;
    server.batch_bytes_total = share(12, BATCH_TIMES * store.batch_bytes / MIB, 512) as usize;
    // Four are paused for each that runs.
    server.requests_running_max = (memory / 64 / REQUEST_BYTES).clamp(4, 64) as usize;
    server.connections_max = (memory / 20 / CONNECTION_BYTES).clamp(256, 10_000) as usize;
    server.connections_per_address_max = (server.connections_max / 4).clamp(256, 2_500);
    server.answer_bytes_total = share(32, 32, 256) as usize;
    server.query_bytes_total = share(32, 32, 256);
    server.streams_max = (memory / 64 / STREAM_BYTES).clamp(32, 256) as usize;
    server.stream_objects_max = (memory / 128 / server.streams_max as u64 / OBJECT_BYTES).clamp(256, 8192) as usize;
    server.search.buffer_bytes_total = share(64, 16, 256) as usize;
    server.search.answer_bytes_total = share(16, 64, 256) as usize;
    let saved = &mut server.saved;
    saved.queue_bytes = share(128, 8, 64) as usize;
    saved.buffer_bytes_total = share(128, 8, 256) as usize;
    saved.webhook.dead_bytes_total = share(128, 8, 64) as usize;
    saved.objects_max = (memory / 128 / OBJECT_BYTES).clamp(1 << 16, 1_000_000) as usize;
}

/// Returns the memory that a process never needs in its role: a gateway has no collections of its own, and a read-only
/// server flushes nothing.
fn unneeded(role: Role) -> &'static [&'static str] {
    match role {
        Role::All => &["bucket", "trees"],
        Role::Owner => &["trees"],
        Role::Gateway => &["cache", "bucket", "trees", "writes", "merges"],
        Role::Scan => &["writes", "merges"],
    }
}

/// Returns the max memory of the server, by purpose, in bytes: the settings that bound it.
pub(super) fn budget(config: &Config) -> Vec<(&'static str, u64)> {
    let (server, store) = (&config.server, &config.store);
    let search = &server.search;
    let stream = STREAM_BYTES + OBJECT_BYTES * server.stream_objects_max as u64;
    let all = [
        ("cache", store.cache_bytes),
        ("bucket", config.cluster.cache.memory),
        ("trees", config.cluster.cache.trees),
        ("writes", store.memory_bytes),
        ("bodies", server.body_bytes_total as u64),
        ("batches", server.batch_bytes_total as u64),
        ("requests", REQUEST_BYTES * server.admission().threads_max as u64),
        ("responses", server.answer_bytes_total as u64),
        ("queries", server.query_bytes_total),
        ("connections", CONNECTION_BYTES * server.connections_max as u64 + server.http2_bytes() as u64),
        ("streams", stream * server.streams_max as u64),
        ("searches", (search.buffer_bytes_total + search.answer_bytes_total) as u64),
        ("saved searches", saved_bytes(server)),
        ("administration", meridian_api::ADMINISTRATION_BYTES as u64),
        ("passwords", PASSWORD_BYTES),
        ("merges", merge_bytes(config)),
        (if config.role == Role::Scan { "program" } else { "program and trees" }, PROGRAM_BYTES),
    ];
    all.into_iter().filter(|(purpose, _)| !unneeded(config.role).contains(purpose)).collect()
}

fn saved_bytes(server: &ServerConfig) -> u64 {
    let saved = &server.saved;
    let packets = saved.queue_bytes + saved.buffer_bytes_total + saved.webhook.dead_bytes_total;
    packets as u64 + OBJECT_BYTES * saved.objects_max as u64
}

/// Memory of merges. On disk they need four bytes per event, and a hundred per event written to a segment. In memory
/// they need a quarter of the unflushed data. A merge of large events has few of them, and takes less than one of many.
fn merge_bytes(config: &Config) -> u64 {
    let store = &config.store;
    let written = 100 * u64::from(store.segment_rows_max.min(SEGMENT_ROWS_USUAL));
    4 * store.merge_rows_max + written + store.memory_bytes / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory where it is wanted, in whole: what the defaults let each take, besides what trees, a merge and the
    /// program do.
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
        // Only memory that the role uses counts.
        let all = budget(&small).len();
        small.role = Role::Gateway;
        assert!(budget(&small).len() < all && budget(&small).iter().all(|(purpose, _)| *purpose != "cache"));
        for memory in [GIB, 64 * GIB] {
            let mut scan = Config { role: Role::Scan, ..Config::default() };
            fit(&mut scan, memory);
            let budget = budget(&scan);
            assert!(budget.iter().map(|(_, bytes)| bytes).sum::<u64>() <= memory, "{memory}");
            assert!(["bucket", "trees"].iter().all(|one| budget.iter().any(|(purpose, _)| purpose == one)));
        }
        assert_eq!(small.store.cache_bytes, 128 * MIB);
        assert_eq!(large.store.memory_bytes, 256 * MIB);
        assert!(large.store.cache_bytes > 15 * GIB);
    }
}
