//! The settings of the server, its store, its requests and responses, and the places profile.

use super::setting::{GIB, KIB, MIB, Setting, TIB, size, text, texts, within};
use super::{durability, durability_name};
use crate::units;
use meridian_store::PARTITIONS_MAX;
use std::path::PathBuf;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    plain!("server.listen", "Address and port to listen on.", listen),
    plain!(
        "server.flight_listen",
        "Address and port of Arrow Flight for clients, such as 127.0.0.1:7118; empty: none. An owner of a cluster has cluster.flight.",
        flight_listen
    ),
    Setting {
        key: "server.public_url",
        help: "Address at which clients reach the server, for links; empty: that of each request.",
        get: |c| Value::String(c.server.public_url.clone().unwrap_or_default()),
        set: |c, v| {
            let url = text(v)?;
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("{url:?}: expected an address such as https://events.example.org"));
            }
            c.server.public_url = (!url.is_empty()).then(|| url.trim_end_matches('/').to_owned());
            Ok(())
        },
    },
    list!(
        "server.hosts",
        "Additional host names of the server, with or without a port, besides its address, localhost and the host of public_url. Others get 421.",
        server.hosts
    ),
    list!(
        "server.origins",
        "Origins, such as https://tools.example.org, whose pages may read answers (CORS), write and open WebSockets; the server's own and that of public_url may.",
        server.origins
    ),
    list!(
        "server.frame_ancestors",
        "Origins, such as https://portal.example.org, whose pages may embed the server's pages.",
        server.frame_ancestors
    ),
    Setting {
        key: "server.base_map",
        help: "Base map of the map page: a PMTiles file, or the URL of a style; empty: the one in the program, which asks no other server.",
        get: |c| Value::String(c.server.base_map.as_ref().map(ToString::to_string).unwrap_or_default()),
        set: |c, v| {
            let text = text(v)?;
            c.server.base_map = (!text.is_empty()).then(|| text.parse()).transpose()?;
            Ok(())
        },
    },
    list!(
        "server.base_map_origins",
        "Origins, such as https://fonts.example.org, that the style of server.base_map loads tiles, glyphs and pictures from, besides its own.",
        server.base_map_origins
    ),
    list!(
        "server.proxies",
        "Addresses and networks, such as 10.0.0.0/8, of proxies whose Forwarded, X-Forwarded-For and X-Forwarded-Proto are believed.",
        server.proxies
    ),
    duration!(
        "server.shutdown_grace",
        "How long a shutdown waits for running requests.",
        server.shutdown_grace,
        "0s",
        "1h"
    ),
    Setting {
        key: "store.data",
        help: "Folder that holds the data.",
        get: |c| Value::String(c.store.data.display().to_string()),
        set: |c, v| text(v).map(|t| c.store.data = PathBuf::from(t)),
    },
    Setting {
        key: "store.ephemeral",
        help: "Keep everything in memory; nothing survives the process.",
        get: |c| Value::Boolean(c.store.ephemeral),
        set: |c, v| v.as_bool().map(|b| c.store.ephemeral = b).ok_or_else(|| "expected true or false".to_owned()),
    },
    size!(
        "store.cache_bytes",
        "Max memory for cached blocks: by default a quarter of the memory of the machine (or its control group) beyond 512 MiB.",
        store.cache_bytes,
        MIB,
        TIB
    ),
    size!("store.memory_bytes", "Max memory for events not yet in a segment.", store.memory_bytes, MIB, TIB),
    size!("store.log_bytes", "Max size of a collection's log before it is flushed.", store.log_bytes, MIB, TIB),
    size!("store.log_file_bytes", "Size of one log file.", store.log_file_bytes, MIB, 4 * GIB),
    size!(
        "store.serving_bytes",
        "Max disk for serving the GeoParquet archive: its trees, which stay, and its rows as Arrow, for faster answers.",
        store.serving_bytes,
        0,
        1024 * TIB
    ),
    count!(
        "store.rest_rows_min",
        "Min events of a segment that is archived as GeoParquet automatically.",
        store.archive_rows_min,
        1,
        u64::from(u32::MAX)
    ),
    duration!("store.files_memory", "How long listed files stay.", store.files_memory, "1m", "366d"),
    duration!("store.key_memory", "How long an idempotency key is remembered.", store.key_memory, "1m", "366d"),
    count!("store.keys_max", "Max idempotency keys remembered by a collection.", store.keys_max, 1_000, 100_000_000),
    duration!(
        "store.snapshot_memory",
        "How long a page token stays valid after its last use.",
        store.snapshot_memory,
        "5m",
        "7d"
    ),
    size!(
        "store.audit_bytes",
        "Max disk for the audit log; beyond it, its oldest sixteenth is removed, but for a part of each tenant.",
        store.audit_bytes,
        MIB,
        TIB
    ),
    count!(
        "store.partitions",
        "Number of partitions of a new collection whose request names none.",
        server.partitions,
        1,
        u64::from(PARTITIONS_MAX)
    ),
    duration!("store.write_wait", "How long a write waits for memory.", store.write_wait, "0s", "10m"),
    Setting {
        key: "ingest.batch_bytes",
        help: "Max size of a batch and of a request body; a larger one gets 413.",
        get: |c| Value::String(units::size_text(c.store.batch_bytes)),
        set: |c, v| {
            let bytes = within(size(v)?, 64 * KIB, GIB, units::size_text)?;
            c.store.batch_bytes = bytes;
            c.server.body_bytes_max = bytes as usize;
            Ok(())
        },
    },
    size!(
        "ingest.unfolded_bytes",
        "Max decompressed size of a body; a larger one gets 413.",
        server.unfolded_bytes_max,
        MIB,
        TIB
    ),
    size!("ingest.body_bytes_total", "Max memory of all bodies.", server.body_bytes_total, MIB, TIB),
    size!(
        "ingest.batch_bytes_total",
        "Max memory of all events that are read from bodies and not stored yet; then 503.",
        server.batch_bytes_total,
        MIB,
        TIB
    ),
    duration!("ingest.body_stall", "Max pause within a body; then 408.", server.body_stall, "1s", "1h"),
    duration!("ingest.body_grace", "Time before the min speed of a body counts.", server.body_grace, "1s", "1h"),
    size!("ingest.body_rate_min", "Min average speed of a body in bytes a second.", server.body_rate_min, 0, GIB),
    count!("requests.connections_max", "Max open connections.", server.connections_max, 1, 1_000_000),
    count!(
        "requests.connections_per_address_max",
        "Max open connections of one address, or of one /64 of IPv6.",
        server.connections_per_address_max,
        1,
        1_000_000
    ),
    count!("requests.running_max", "Max requests that hold a processor slot.", server.requests_running_max, 1, 100_000),
    count!(
        "requests.waiting_max",
        "Max queued requests; more get 503 at once.",
        server.requests_waiting_max,
        0,
        1_000_000
    ),
    duration!("requests.wait", "Max wait of an interactive request; then 503.", server.admission_wait, "0s", "10m"),
    duration!("requests.timeout", "Default deadline of a request.", server.timeout_default, "1ms", "1d"),
    duration!("requests.timeout_stream", "The same for whole results.", server.timeout_stream, "1ms", "1d"),
    duration!("requests.timeout_max", "Max deadline of a request.", server.timeout_max, "1ms", "7d"),
    size!(
        "requests.query_bytes_total",
        "Max bytes that queries collect before they can answer (sorts, groups, grids), all together; then 503.",
        server.query_bytes_total,
        MIB,
        TIB
    ),
    duration!("requests.head_timeout", "Max time for the head of a request.", server.head_timeout, "1s", "1h"),
    Setting {
        key: "answers.compress",
        help: "Whether responses are compressed (zstd, brotli, gzip) for clients that accept it.",
        get: |c| Value::Boolean(c.server.compress),
        set: |c, v| v.as_bool().map(|b| c.server.compress = b).ok_or_else(|| "expected true or false".to_owned()),
    },
    duration!(
        "answers.stall",
        "Max time that a client may read nothing of its response.",
        server.write_stall,
        "1s",
        "1h"
    ),
    size!("answers.chunk_bytes", "Target size of one chunk of a response.", server.chunk_bytes, KIB, 16 * MIB),
    count!(
        "answers.chunks_waiting_max",
        "Max chunks that wait for a slow client.",
        server.chunks_waiting_max,
        1,
        1_000
    ),
    size!(
        "answers.bytes_total",
        "Max bytes of responses that wait, all together; beyond it, clients that do not read are disconnected.",
        server.answer_bytes_total,
        MIB,
        TIB
    ),
    size!(
        "answers.file_bytes",
        "Max size of a response that is made in a file before it is sent (GeoPackage); a larger one gets 400.",
        server.answer_file_bytes_max,
        MIB,
        TIB
    ),
    size!(
        "answers.file_bytes_total",
        "Max disk for these files, all together; then 503.",
        server.answer_file_bytes_total,
        8 * MIB,
        TIB
    ),
    size!(
        "answers.disk_free_min",
        "Free space of their disk that these files leave to writes; a response whose file would leave less gets 507.",
        server.answer_disk_free_min,
        0,
        TIB
    ),
    size!(
        "answers.rate_min",
        "Min speed at which a client reads its answer, in bytes a second; a slower one is disconnected.",
        server.answer_rate_min,
        0,
        GIB
    ),
    count!("streams.max", "Max open streams of events and packets; more get 503.", server.streams_max, 0, 1_000_000),
    count!(
        "streams.objects_max",
        "Moving objects that a stream with `when` remembers, at least; it looks up others.",
        server.stream_objects_max,
        1,
        1_000_000
    ),
    duration!("streams.lifetime", "Max lifetime of a stream of events.", server.stream_lifetime, "1s", "30d"),
];

pub(super) const PLACES: &[Setting] = &[Setting {
    key: "places.durability",
    help: "Durability of the places profile's collection: \"local\" or \"ephemeral\".",
    get: |c| Value::String(durability_name(c.server.places_durability).to_owned()),
    set: |c, v| {
        c.server.places_durability = durability(&text(v)?)?;
        Ok(())
    },
}];
