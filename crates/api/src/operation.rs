//! Routes for operators and their monitors: metrics, health, version.

use crate::contract::{Health, Version};
use crate::metrics::{counter, gauge};
use crate::problem::{Kind, Problem, Result};
use crate::respond;
use crate::state::AppState;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use meridian_model::policy::queue::Class;
use std::sync::atomic::Ordering;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`
pub async fn metrics(State(state): State<AppState>) -> Response {
    let mut out = String::with_capacity(16 << 10);
    state.metrics.write(&mut out);
    gauge(&mut out, "meridian_requests_running", "Requests that hold a permit to run.", state.limiter.running());
    gauge(&mut out, "meridian_requests_waiting", "Requests that wait for a permit.", state.limiter.waiting());
    counter(
        &mut out,
        "meridian_requests_refused_total",
        "Requests refused because no permit was free.",
        state.limiter.refused(),
    );
    gauge(&mut out, "meridian_request_body_bytes", "Bytes of request bodies in memory.", state.bodies.held());
    gauge(&mut out, "meridian_answer_bytes", "Bytes of responses that wait for clients.", state.answers.held());
    answer_metrics(&state, &mut out);
    stream_metrics(&state, &mut out);
    gauge(&mut out, "meridian_query_bytes", "Bytes that running queries have collected.", state.memory.taken());
    let help = "Queries refused because the memory for what they collect was full.";
    counter(&mut out, "meridian_query_memory_refused_total", help, state.memory.refused());
    let help = "Bodies whose damaged bytes made a decoder panic; each was refused.";
    counter(&mut out, "meridian_decoder_panics_total", help, meridian_formats::decoder_panics());
    search_metrics(&state, &mut out);
    saved_metrics(&state, &mut out);
    store_metrics(&state, &mut out);
    ([(header::CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS))], out).into_response()
}

/// Metrics of event streams.
fn stream_metrics(state: &AppState, out: &mut String) {
    let live = &state.live;
    gauge(out, "meridian_streams_open", "Streams of events open now.", live.open());
    counter(out, "meridian_stream_events_total", "Events sent in streams.", live.sent.load(Ordering::Relaxed));
    let help = "Readers of streams disconnected because they read too slowly.";
    counter(out, "meridian_stream_readers_slow_total", help, live.slow.load(Ordering::Relaxed));
}

/// Metrics of clients that read slowly.
fn answer_metrics(state: &AppState, out: &mut String) {
    let readers = &state.readers;
    gauge(out, "meridian_answers_resting", "Responses parked until their clients read on.", readers.parked());
    counter(out, "meridian_readers_slow_total", "Clients disconnected because they read too slowly.", readers.slow());
    let help = "Clients that did not read, evicted because others needed the memory for responses.";
    counter(out, "meridian_readers_gave_way_total", help, readers.evicted());
}

/// Metrics of searches. Names of providers are not labels: `GET /providers` has them.
fn search_metrics(state: &AppState, out: &mut String) {
    let (searches, tally) = (&state.searches, state.searches.tally());
    gauge(out, "meridian_searches_running", "Searches running.", searches.running());
    let delay = searches.delay(Class::Background).as_secs_f64();
    gauge(out, "meridian_search_delay_seconds", "Time that the oldest queued work has waited for a worker.", delay);
    gauge(out, "meridian_search_packet_bytes", "Bytes of packets kept for readers.", searches.bytes());
    gauge(out, "meridian_search_answer_bytes", "Bytes of provider responses being processed.", searches.answer_bytes());
    for (name, help, count) in [
        ("meridian_searches_total", "Searches started.", &tally.begun),
        ("meridian_searches_joined_total", "Requests that joined a running search.", &tally.joined),
        ("meridian_searches_refused_total", "Searches refused because the limit was reached.", &tally.refused),
        ("meridian_search_results_total", "Results sent.", &tally.results),
        ("meridian_search_unmatched_total", "Results left out because they do not match.", &tally.unmatched),
        ("meridian_search_duplicates_total", "Results left out because another was the same.", &tally.duplicates),
        ("meridian_search_images_seen_total", "Images of results that the model processed.", &tally.images_seen),
        ("meridian_search_images_failed_total", "Images that could not be fetched or read.", &tally.images_failed),
        (
            "meridian_search_images_late_total",
            "Images that were not ready when their results were sent.",
            &tally.images_late,
        ),
        ("meridian_search_images_passed_total", "Images not fetched because the queue was full.", &tally.images_passed),
        ("meridian_search_late_total", "Work discarded because its search had ended.", &tally.late),
        ("meridian_search_lost_total", "Work lost to a panic.", &tally.lost),
    ] {
        counter(out, name, help, count.load(Ordering::Relaxed));
    }
}

/// Metrics of saved searches.
fn saved_metrics(state: &AppState, out: &mut String) {
    let figures = state.saved.figures();
    gauge(out, "meridian_saved_searches", "Saved searches.", figures.searches);
    gauge(out, "meridian_saved_queue_bytes", "Bytes of new events queued for saved searches.", figures.queue_bytes);
    gauge(out, "meridian_saved_packet_bytes", "Bytes of packets of saved searches.", figures.packet_bytes);
    gauge(out, "meridian_saved_webhook_dead_bytes", "Bytes of dead letters kept.", figures.letter_bytes);
    gauge(out, "meridian_saved_objects", "Moving objects whose state is held.", figures.objects);
    for (name, help, count) in [
        ("meridian_saved_events_total", "New events received for saved searches.", figures.events.0),
        ("meridian_saved_events_dropped_total", "New events dropped before they were checked.", figures.events.1),
        ("meridian_saved_matches_total", "Matches of an event and a saved search.", figures.matches),
        ("meridian_saved_webhook_packets_total", "Packets delivered to webhooks.", figures.webhooks.0),
        ("meridian_saved_webhook_failures_total", "Calls to webhooks that failed.", figures.webhooks.1),
        ("meridian_saved_webhook_dead_total", "Packets for webhooks that became dead letters.", figures.webhooks.2),
        ("meridian_saved_polls_total", "Polls of outside providers for saved searches.", figures.polls),
    ] {
        counter(out, name, help, count);
    }
}

/// Sums over all collections. Names of collections are not labels, since tenants may create any number of them.
fn store_metrics(state: &AppState, out: &mut String) {
    let collections = state.backend.list(&state.config.tenant);
    let stats: Vec<_> = collections.iter().map(|c| c.stats()).collect();
    gauge(out, "meridian_collections", "Collections.", stats.len());
    macro_rules! sums {
        ($write:ident: $($name:literal $help:literal $field:ident;)*) => {
            $($write(out, $name, $help, stats.iter().map(|s| s.$field).sum::<u64>());)*
        };
    }
    sums!(gauge:
        "meridian_events" "Events that the newest snapshots see." events;
        "meridian_dead_rows" "Rows replaced or deleted and not yet dropped." dead_rows;
        "meridian_segments" "Segment files." segments;
        "meridian_segment_bytes" "Bytes on disk without the log." bytes;
        "meridian_rest_bytes" "Bytes of archive segments (GeoParquet)." rest_bytes;
        "meridian_rows_bytes" "Bytes of rows as Arrow: a cache, where the archive has the rows too." rows_bytes;
        "meridian_memory_trees" "Memory trees." runs;
        "meridian_memory_rows" "Rows in memory trees." memory_rows;
        "meridian_memory_bytes" "Bytes of memory trees." memory_bytes;
        "meridian_log_tail_bytes" "Bytes of log that a restart would replay." log_tail_bytes;
        "meridian_idempotency_keys" "Idempotency keys remembered." keys;
    );
    sums!(counter:
        "meridian_blocks_read_total" "Blocks of rows handed to queries." blocks_read;
        "meridian_cache_hits_total" "Blocks found in the cache." cache_hits;
        "meridian_cache_misses_total" "Blocks fetched from disk." cache_misses;
        "meridian_bytes_read_total" "Bytes fetched from disk." bytes_read;
        "meridian_bytes_taken_total" "Bytes of writes, as appended to the log." bytes_taken;
        "meridian_log_bytes_total" "Bytes written to logs." log_bytes;
        "meridian_flush_bytes_total" "Bytes written by flushes." flush_bytes;
        "meridian_merge_bytes_total" "Bytes written by merges." merge_bytes;
        "meridian_rest_written_bytes_total" "Bytes written to archive segments." rest_written_bytes;
        "meridian_sidecar_bytes_total" "Bytes written of manifests, dead rows and keys." sidecar_bytes;
        "meridian_flush_rows_total" "Rows written by flushes." flush_rows;
        "meridian_merge_rows_total" "Rows written by merges." merge_rows;
        "meridian_log_syncs_total" "Syncs of logs." syncs;
        "meridian_events_expired_total" "Events dropped because they were past the retention." expired;
        "meridian_commit_groups_total" "Groups of writes committed together." groups;
    );
    counter(
        out,
        "meridian_install_seconds_total",
        "Time in which no write was committed because the result of a flush or merge was being installed.",
        stats.iter().map(|s| s.install_us).sum::<u64>() as f64 / 1e6,
    );
    gauge(
        out,
        "meridian_install_seconds_max",
        "The longest such time of any collection, since the start.",
        stats.iter().map(|s| s.install_us_max).max().unwrap_or(0) as f64 / 1e6,
    );
    let (written, taken) = stats.iter().fold((0, 0), |(w, t), s| (w + s.bytes_written(), t + s.bytes_taken));
    let ratio = if taken == 0 { 0.0 } else { written as f64 / taken as f64 };
    gauge(out, "meridian_write_amplification", "Bytes written for each byte taken, since the start.", ratio);
    let deepest = stats.iter().max_by_key(|s| s.depth);
    gauge(
        out,
        "meridian_depth",
        "Max runs of segments over one time range, in the collection with most.",
        deepest.map_or(0, |s| s.depth),
    );
    gauge(
        out,
        "meridian_depth_bound",
        "Upper bound of the depth of that collection, once all merges are done.",
        deepest.map_or(0, |s| s.depth_bound),
    );
    gauge(
        out,
        "meridian_collections_refusing_writes",
        "Collections that take no writes until an operator intervenes.",
        stats.iter().filter(|s| s.refuses.is_some()).count(),
    );
    gauge(
        out,
        "meridian_collections_damaged",
        "Collections that cannot be opened: not served, and not written over.",
        state.backend.damaged(&state.config.tenant).len(),
    );
}

/// `GET /healthz`
pub async fn health() -> Result<Response> {
    respond::json("application/json", &Health { status: "ok" })
}

/// `GET /readyz`
pub async fn ready(State(state): State<AppState>) -> Result<Response> {
    if state.stopping.load(Ordering::Relaxed) {
        return Err(Problem::new(Kind::Overloaded, "the server is shutting down"));
    }
    if state.backend.met_full_disk() {
        let backend = state.backend.clone();
        let full = tokio::task::spawn_blocking(move || backend.full_disk()).await.map_err(Problem::internal)?;
        if let Some(path) = full {
            tracing::warn!(path = %path.display(), "the disk is still full");
            return Err(Problem::new(
                Kind::Overloaded,
                "the disk is full: nothing can be written until there is space",
            ));
        }
    }
    let collections = state.backend.list(&state.config.tenant);
    let refusing: Vec<String> =
        collections.iter().filter_map(|c| c.stats().refuses.map(|why| format!("{}: {why}", c.name()))).collect();
    let damaged: Vec<String> = state.backend.damaged(&state.config.tenant).iter().map(ToString::to_string).collect();
    let problem = match (damaged.len(), refusing.len()) {
        (0, 0) => return respond::json("application/json", &Health { status: "ready" }),
        (0, _) => Problem::new(Kind::Overloaded, "some collections take no writes"),
        (_, 0) => Problem::new(Kind::Damaged, "some collections are damaged; the others are served"),
        _ => Problem::new(Kind::Damaged, "some collections are damaged, and some take no writes"),
    };
    let named = |problem: Problem, name: &str, list: Vec<String>| match list.is_empty() {
        true => problem,
        false => problem.with(name, list),
    };
    Err(named(named(problem, "collections", refusing), "damaged", damaged))
}

/// `GET /version`
pub async fn version() -> Result<Response> {
    respond::json("application/json", &Version { name: "meridian", version: env!("CARGO_PKG_VERSION") })
}
