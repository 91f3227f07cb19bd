//! Routes for operators and their monitors: metrics, health, version, load, cluster, backup.

pub mod backup;
pub mod cluster;
pub mod load;
mod tenant_metrics;

use crate::access::credentials::BEHIND;
use crate::contract::{Health, Version};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::AppState;
use crate::state::metrics::families;
use crate::state::readiness::CollectionFaults;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{Collection, CollectionStats, Metric, MetricKind};
use meridian_model::policy::queue::Class;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long a scrape waits for the metrics of collections. The default timeout of scrapers is 10 s.
const COLLECTIONS_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /metrics`
pub async fn metrics(state: Scope) -> Response {
    let mut out = String::with_capacity(16 << 10);
    state.metrics.write(&mut out);
    let counts = state.gate.counts();
    families!(&mut out;
        gauge "meridian_requests_running" "Requests that hold a permit to run." counts.running;
        gauge "meridian_requests_paused" "Requests that began and were overtaken." counts.paused;
        gauge "meridian_requests_away" "Requests that wait for another process, without a permit." counts.away;
        gauge "meridian_requests_waiting" "Requests that wait for a permit." counts.waiting;
        gauge "meridian_requests_slots" "Permits that there are now." counts.slots;
        counter "meridian_requests_refused_total" "Requests refused because no permit was free."
            state.gate.refused();
        gauge "meridian_request_body_bytes" "Bytes of request bodies in memory." state.bodies.held();
        gauge "meridian_answer_bytes" "Bytes of responses that wait for clients." state.answers.held();
    );
    reader_metrics(&state, &mut out);
    families!(&mut out;
        gauge "meridian_query_bytes" "Bytes that running queries have collected." state.memory.held();
        counter "meridian_query_memory_refused_total"
            "Queries refused because the memory for what they collect was full." state.memory.refused();
        counter "meridian_decoder_panics_total"
            "Bodies whose damaged bytes made a decoder panic; each was refused." meridian_formats::decoder_panics();
    );
    tenant_metrics::write(&state, &mut out);
    trace_metrics(&state, &mut out);
    search_metrics(&state, &mut out);
    saved_metrics(&state, &mut out);
    out.push_str(&collection_metrics(&state).await);
    bucket_metrics(&state, &mut out);
    for Metric { kind, name, help, value } in state.backend.figures() {
        match kind {
            MetricKind::Counter => crate::state::metrics::counter(&mut out, name, help, value),
            MetricKind::Gauge => crate::state::metrics::gauge(&mut out, name, help, value),
        }
    }
    ([(header::CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS))], out).into_response()
}

/// Writes the metrics of slow clients and of streams.
fn reader_metrics(state: &AppState, out: &mut String) {
    #[cfg(feature = "geopackage")]
    families!(out; gauge "meridian_answer_file_bytes" "Bytes of files that responses are made in." state.files.held(););
    let (readers, live) = (&state.readers, &state.live);
    families!(out;
        gauge "meridian_answers_resting" "Responses parked until their clients read on." readers.parked();
        counter "meridian_readers_slow_total" "Clients disconnected because they read too slowly." readers.slow();
        counter "meridian_readers_gave_way_total"
            "Clients that did not read, evicted because others needed the memory for responses." readers.evicted();
        gauge "meridian_http2_stream_bytes" "Bytes of streams of HTTP/2 beyond the reserves of their connections."
            state.http2.held();
        counter "meridian_http2_streams_refused_total" "Streams of HTTP/2 refused because that memory was full."
            state.http2.refused();
        gauge "meridian_stream_condition_bytes" "Bytes of the conditions of open streams." state.conditions.held();
        gauge "meridian_streams_open" "Streams of events open now." live.open();
        counter "meridian_stream_events_total" "Events sent in streams." live.sent.load(Ordering::Relaxed);
        counter "meridian_stream_readers_slow_total" "Readers of streams disconnected because they read too slowly."
            live.slow.load(Ordering::Relaxed);
    );
}

/// Writes the metrics of traces, if any are recorded.
fn trace_metrics(state: &AppState, out: &mut String) {
    let Some(figures) = state.tracer.figures() else { return };
    families!(out;
        counter "meridian_trace_spans_exported_total" "Spans that the collector took." figures.exported;
        counter "meridian_trace_spans_dropped_total" "Spans dropped because the queue was full." figures.dropped;
        counter "meridian_trace_spans_failed_total" "Spans that the collector did not take." figures.failed;
    );
}

/// Writes the metrics of searches. Provider names are not labels: `GET /providers` lists them.
fn search_metrics(state: &AppState, out: &mut String) {
    let (searches, tally) = (&state.searches, state.searches.tally());
    let delay = searches.delay(Class::Background).as_secs_f64();
    let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
    families!(out;
        gauge "meridian_searches_running" "Searches running." searches.running();
        gauge "meridian_search_delay_seconds" "Time that the oldest queued work has waited for a worker." delay;
        gauge "meridian_search_packet_bytes" "Bytes of packets kept for readers." searches.bytes();
        gauge "meridian_search_answer_bytes" "Bytes of provider responses being processed." searches.answer_bytes();
        counter "meridian_searches_total" "Searches started." load(&tally.begun);
        counter "meridian_searches_joined_total" "Requests that joined a running search." load(&tally.joined);
        counter "meridian_searches_refused_total" "Searches refused because the limit was reached."
            load(&tally.refused);
        counter "meridian_search_results_total" "Results sent." load(&tally.results);
        counter "meridian_search_unmatched_total" "Results left out because they do not match." load(&tally.unmatched);
        counter "meridian_search_duplicates_total" "Results left out because another was the same."
            load(&tally.duplicates);
        counter "meridian_search_images_seen_total" "Images of results that the model processed."
            load(&tally.images_seen);
        counter "meridian_search_images_failed_total" "Images that could not be fetched or read."
            load(&tally.images_failed);
        counter "meridian_search_images_late_total" "Images that were not ready when their results were sent."
            load(&tally.images_late);
        counter "meridian_search_images_passed_total" "Images not fetched because the queue was full."
            load(&tally.images_passed);
        counter "meridian_search_late_total" "Work discarded because its search had ended." load(&tally.late);
        counter "meridian_search_lost_total" "Work lost to a panic." load(&tally.lost);
        counter "meridian_task_panics_total"
            "Tasks of searches and saved searches that met a fault of the program and began again."
            meridian_federation::task_panics();
    );
}

/// Writes the metrics of saved searches.
fn saved_metrics(state: &AppState, out: &mut String) {
    let figures = state.saved.figures();
    families!(out;
        gauge "meridian_saved_searches" "Saved searches." figures.searches;
        gauge "meridian_saved_queue_bytes" "Bytes of new events queued for saved searches." figures.queue_bytes;
        gauge "meridian_saved_packet_bytes" "Bytes of packets of saved searches." figures.packet_bytes;
        gauge "meridian_saved_webhook_dead_bytes" "Bytes of dead letters kept." figures.letter_bytes;
        gauge "meridian_saved_objects" "Moving objects whose state is held." figures.objects;
        counter "meridian_saved_events_total" "New events received for saved searches." figures.events.0;
        counter "meridian_saved_events_dropped_total" "New events dropped before they were checked." figures.events.1;
        counter "meridian_saved_matches_total" "Matches of an event and a saved search." figures.matches;
        counter "meridian_saved_webhook_packets_total" "Packets delivered to webhooks." figures.webhooks.0;
        counter "meridian_saved_webhook_failures_total" "Calls to webhooks that failed." figures.webhooks.1;
        counter "meridian_saved_webhook_dead_total" "Packets for webhooks that became dead letters." figures.webhooks.2;
        counter "meridian_saved_polls_total" "Polls of outside providers for saved searches." figures.polls;
    );
}

/// Returns the metrics of all collections; empty if another process does not deliver them in time.
async fn collection_metrics(state: &AppState) -> String {
    let counted = state.clone();
    let counting = async move {
        // One scrape at a time: a paused owner must not hold a thread for each.
        let permit = counted.scrapes.clone().acquire_owned().await;
        let counting = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut out = String::new();
            store_metrics(&counted, &mut out);
            out
        });
        counting.await.unwrap_or_default()
    };
    tokio::time::timeout(COLLECTIONS_TIMEOUT, counting).await.unwrap_or_default()
}

/// Returns sums over all collections. Collection names are not labels, since tenants may create any number of them.
fn store_metrics(state: &AppState, out: &mut String) {
    // The other metrics are useful even if these are unavailable.
    let (Ok(collections), Ok(damaged)) = (state.all_collections(), state.all_damaged()) else { return };
    let stats: Vec<_> = collections.iter().map(|c| c.stats()).collect();
    let sum = |of: fn(&CollectionStats) -> u64| stats.iter().map(of).sum::<u64>();
    let written = stats.iter().map(|s| s.bytes_written()).sum::<u64>();
    let ratio = match sum(|s| s.bytes_taken) {
        0 => 0.0,
        taken => written as f64 / taken as f64,
    };
    // Depth and bound of a single collection, so that the two can be compared.
    let deepest = stats.iter().max_by_key(|s| s.depth);
    families!(out;
        gauge "meridian_collections" "Collections." stats.len();
        gauge "meridian_events" "Events that the newest snapshots see." sum(|s| s.events);
        gauge "meridian_dead_rows" "Rows replaced or deleted and not yet dropped." sum(|s| s.dead_rows);
        gauge "meridian_segments" "Segment files." sum(|s| s.segments);
        gauge "meridian_segment_bytes" "Bytes on disk without the log." sum(|s| s.bytes);
        gauge "meridian_rest_bytes" "Bytes of archive segments (GeoParquet)." sum(|s| s.rest_bytes);
        gauge "meridian_rows_bytes" "Bytes of rows as Arrow: a cache, where the archive has the rows too."
            sum(|s| s.rows_bytes);
        gauge "meridian_memory_trees" "Memory trees." sum(|s| s.runs);
        gauge "meridian_memory_rows" "Rows in memory trees." sum(|s| s.memory_rows);
        gauge "meridian_memory_bytes" "Bytes of memory trees." sum(|s| s.memory_bytes);
        gauge "meridian_log_tail_bytes" "Bytes of log that a restart would replay." sum(|s| s.log_tail_bytes);
        gauge "meridian_idempotency_keys" "Idempotency keys remembered." sum(|s| s.keys);
        counter "meridian_blocks_read_total" "Blocks of rows handed to queries." sum(|s| s.blocks_read);
        counter "meridian_cache_hits_total" "Blocks found in the cache." sum(|s| s.cache_hits);
        counter "meridian_cache_misses_total" "Blocks fetched from disk." sum(|s| s.cache_misses);
        counter "meridian_bytes_read_total" "Bytes fetched from disk." sum(|s| s.bytes_read);
        counter "meridian_bytes_taken_total" "Bytes of writes, as appended to the log." sum(|s| s.bytes_taken);
        counter "meridian_log_bytes_total" "Bytes written to logs." sum(|s| s.log_bytes);
        counter "meridian_flush_bytes_total" "Bytes written by flushes." sum(|s| s.flush_bytes);
        counter "meridian_merge_bytes_total" "Bytes written by merges." sum(|s| s.merge_bytes);
        counter "meridian_rest_written_bytes_total" "Bytes written to archive segments." sum(|s| s.rest_written_bytes);
        counter "meridian_sidecar_bytes_total" "Bytes written of manifests, dead rows and keys."
            sum(|s| s.sidecar_bytes);
        counter "meridian_flush_rows_total" "Rows written by flushes." sum(|s| s.flush_rows);
        counter "meridian_merge_rows_total" "Rows written by merges." sum(|s| s.merge_rows);
        counter "meridian_log_syncs_total" "Syncs of logs." sum(|s| s.syncs);
        counter "meridian_events_expired_total" "Events dropped because they were past the retention."
            sum(|s| s.expired);
        counter "meridian_job_panics_total"
            "Flushes, merges and other jobs that met a fault of the program; each is tried again, ever more rarely."
            sum(|s| s.job_panics) + meridian_backend::store_panics();
        counter "meridian_commit_groups_total" "Groups of writes committed together." sum(|s| s.groups);
        counter "meridian_install_seconds_total"
            "Time in which no write was committed because the result of a flush or merge was being installed."
            sum(|s| s.install_us) as f64 / 1e6;
        gauge "meridian_install_seconds_max" "The longest such time of any collection, since the start."
            stats.iter().map(|s| s.install_us_max).max().unwrap_or(0) as f64 / 1e6;
        gauge "meridian_write_amplification" "Bytes written for each byte taken, since the start." ratio;
        gauge "meridian_depth" "Max runs of segments over one time range, in the collection with most."
            deepest.map_or(0, |s| s.depth);
        gauge "meridian_depth_bound" "Upper bound of the depth of that collection, once all merges are done."
            deepest.map_or(0, |s| s.depth_bound);
        gauge "meridian_collections_refusing_writes" "Collections that take no writes until an operator intervenes."
            stats.iter().filter(|s| s.refuses.is_some()).count();
        gauge "meridian_collections_damaged" "Collections that cannot be opened: not served, and not written over."
            damaged.len();
    );
}

/// Writes the metrics of the parts of a bucket that a process keeps. Only for processes that read one.
fn bucket_metrics(state: &AppState, out: &mut String) {
    let Some((extents, trees)) = state.backend.bucket_cache() else { return };
    families!(out;
        counter "meridian_extent_memory_hits_total" "Extents of the bucket's objects found in memory." extents.memory_hits;
        counter "meridian_extent_memory_misses_total" "Extents not found in memory." extents.memory_misses;
        counter "meridian_extent_disk_hits_total" "Extents found on disk." extents.disk_hits;
        counter "meridian_extent_disk_misses_total" "Extents not found on disk." extents.disk_misses;
        counter "meridian_extent_damaged_total" "Extents on disk that were damaged and read again." extents.damaged;
        gauge "meridian_extent_memory_bytes" "Bytes of extents in memory." extents.memory_bytes;
        gauge "meridian_extent_disk_bytes" "Bytes of extents on disk." extents.disk_bytes;
        counter "meridian_bucket_read_bytes_total" "Bytes of extents read from the bucket." extents.bytes_fetched;
        counter "meridian_bucket_read_ranges_total" "Ranges of extents read from the bucket." extents.ranges_fetched;
        counter "meridian_trees_loaded_total" "Segments opened for questions." trees.loaded;
        counter "meridian_trees_evicted_total" "Segments closed to make room for others." trees.evicted;
        gauge "meridian_trees_bytes" "Bytes of trees and footers of open segments." trees.bytes;
    );
}

/// `GET /healthz`
pub async fn health() -> Result<Response> {
    respond::json("application/json", &Health { status: "ok" })
}

/// `GET /readyz`
pub async fn ready(state: Scope) -> Result<Response> {
    // A load balancer must stop sending requests while the last ones finish.
    if state.stopping.load(Ordering::Relaxed) {
        return Err(Problem::new(Kind::Overloaded, "the server is shutting down"));
    }
    if state.drained.load(Ordering::Relaxed) {
        return Err(Problem::new(Kind::Overloaded, "the server is drained: an operator wants no new work on it"));
    }
    if state.registry.is_behind() {
        return Err(Problem::new(Kind::Overloaded, BEHIND));
    }
    // A full disk of the owner is no reason to send reads elsewhere: all gateways have the same owner.
    let is_gateway = state.member.as_ref().is_some_and(|member| member.role == "gateway");
    // The probe writes to the disk, so it runs only after a write found a full one.
    if !is_gateway && state.backend.met_full_disk() {
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
    let of = state.state().clone();
    let faults = state.readiness.faults(move || faults(&of)).await?;
    let problem = match (faults.damaged.len(), faults.refusing.len()) {
        (0, 0) => return respond::json("application/json", &Health { status: "ready" }),
        (0, _) => Problem::new(Kind::Overloaded, "some collections take no writes"),
        (_, 0) => Problem::new(Kind::Damaged, "some collections are damaged; the others are served"),
        _ => Problem::new(Kind::Damaged, "some collections are damaged, and some take no writes"),
    };
    // Only operators see the names of other tenants' collections.
    let shown = state.caller().is_operator();
    let named = |problem: Problem, name: &str, list: &[String]| match list.is_empty() || !shown {
        true => problem,
        false => problem.with(name, list),
    };
    Err(named(named(problem, "collections", &faults.refusing), "damaged", &faults.damaged))
}

/// Returns the collections that keep the server from being ready. Visits all of them, at a gateway by calls to owners.
fn faults(state: &AppState) -> Result<CollectionFaults> {
    let collections = state.all_collections().map_err(errors::store_problem)?;
    // All servers of a cluster share its damage. If it made them unready, nobody would serve the other collections.
    if state.member.is_some() {
        return Ok(CollectionFaults::default());
    }
    // A read-only server is ready if it can serve reads.
    let refuses = |c: &Arc<dyn Collection>| c.stats().refuses.map(|why| format!("{}: {why}", c.name()));
    let refusing = if state.backend.follows() { Vec::new() } else { collections.iter().filter_map(refuses).collect() };
    let damaged = state.all_damaged().map_err(errors::store_problem)?.iter().map(ToString::to_string).collect();
    Ok(CollectionFaults { refusing, damaged })
}

/// `GET /version`
pub async fn version() -> Result<Response> {
    respond::json("application/json", &Version { name: "meridian", version: env!("CARGO_PKG_VERSION") })
}
