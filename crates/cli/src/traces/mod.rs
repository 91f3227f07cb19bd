//! Sends spans to a collector over OTLP (`http/protobuf`).
//!
//! Ended spans wait in a bounded queue, and a task sends them in batches. A full queue drops spans and counts them, so
//! a slow collector delays no request.

mod message;

use crate::config::Traces;
use crate::failure::Failure;
use meridian_observe::{Clock, EndedSpan, Sampling, SpanSink, Tracer, TracerStats};
use meridian_store::seams::Seams;
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant};

/// Max spans of one export.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Max time of one export, including its retries.
const EXPORT_MAX: Duration = Duration::from_secs(10);
/// Pause before the first retry; doubled for each further one.
const RETRY: Duration = Duration::from_millis(500);
/// Max time for the queued spans when the server stops.
const LAST_MAX: Duration = Duration::from_secs(3);
/// Environment variable with headers for the collector, such as a token, as in OpenTelemetry: `name=value,name=value`,
/// percent-encoded.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Sends recorded spans until stopped.
pub struct Sender {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Sender {
    /// Sends the queued spans, within a few seconds, and ends.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Returns a tracer with these settings, and the sender of its spans; no sender if nothing is recorded.
///
/// # Errors
/// The endpoint is not a URL, or the headers are malformed.
pub fn start(settings: &Traces, seams: &Seams) -> Result<(Tracer, Option<Sender>), Failure> {
    let Some(endpoint) = &settings.endpoint else { return Ok((Tracer::default(), None)) };
    let collector = Collector::new(endpoint)?;
    let (queue, waiting) = mpsc::channel(settings.queue_max);
    let sink = Arc::new(Queue { queue, exported: 0.into(), dropped: 0.into(), failed: 0.into() });
    let clock = seams.clock.clone();
    let clock: Clock = Box::new(move || u64::try_from(clock.now()).unwrap_or(0) * 1_000);
    let sampling = Sampling { ratio: settings.sample, parents_per_second: settings.parents_per_second };
    let tracer = Tracer::new(sampling, clock, seams.random.next_u64(), sink.clone());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(send(collector, waiting, sink, stopped));
    Ok((tracer, Some(Sender { stop, task })))
}

/// The queue, as seen by the tracer.
#[derive(Debug)]
struct Queue {
    queue: mpsc::Sender<EndedSpan>,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl SpanSink for Queue {
    fn take(&self, span: EndedSpan) {
        // Never waits: a request must not be delayed by its trace.
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn figures(&self) -> TracerStats {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        TracerStats { exported: load(&self.exported), dropped: load(&self.dropped), failed: load(&self.failed) }
    }
}

/// Sends batches until stopped, and then the rest.
async fn send(
    collector: Collector,
    mut waiting: mpsc::Receiver<EndedSpan>,
    sink: Arc<Queue>,
    mut stopped: oneshot::Receiver<()>,
) {
    let (mut batch, mut is_over) = (Vec::with_capacity(BATCH_MAX), false);
    while !is_over {
        tokio::select! {
            _ = &mut stopped => break,
            _ = waiting.recv_many(&mut batch, BATCH_MAX) => {}
        }
        // Counted from the first span, so that a trickle of spans cannot delay it further.
        let until = Instant::now() + BATCH_WAIT;
        while batch.len() < BATCH_MAX && !is_over {
            let room = BATCH_MAX - batch.len();
            tokio::select! {
                _ = &mut stopped => is_over = true,
                more = tokio::time::timeout_at(until, waiting.recv_many(&mut batch, room)) => if more.is_err() {
                    break;
                },
            }
        }
        let max = if is_over { LAST_MAX } else { EXPORT_MAX };
        collector.take(&mut batch, &sink, max).await;
    }
    // No more spans are accepted; queued ones are sent while there is time.
    waiting.close();
    let until = Instant::now() + LAST_MAX;
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        collector.take(&mut batch, &sink, until.saturating_duration_since(Instant::now())).await;
    }
}

/// The receiving end.
struct Collector {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl Collector {
    fn new(endpoint: &str) -> Result<Collector, Failure> {
        let wrong = |why: String| Failure::Usage(format!("traces.endpoint: {why}"));
        let mut url = Url::parse(endpoint).map_err(|e| wrong(format!("{endpoint:?}: {e}")))?;
        if url.path() == "/" {
            url.set_path("/v1/traces");
        }
        // Fails if another part of the program has installed a provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            Client::builder().http1_only().no_proxy().build().map_err(|e| wrong(format!("no HTTP client: {e}")))?;
        let headers = headers(&std::env::var(HEADERS).unwrap_or_default())
            // Omits the text, which may contain a token.
            .ok_or_else(|| Failure::Usage(format!("{HEADERS}: expected name=value, several separated by commas")))?;
        Ok(Collector { client, url, headers })
    }

    /// Sends a batch, and empties it.
    async fn take(&self, batch: &mut Vec<EndedSpan>, sink: &Queue, max: Duration) {
        let (spans, body) = (batch.len() as u64, message::export(batch));
        batch.clear();
        let sent = tokio::time::timeout(max, self.post(body)).await;
        match sent.unwrap_or_else(|_| Err(format!("it took none within {} s", max.as_secs()))) {
            Ok(()) => sink.exported.fetch_add(spans, Ordering::Relaxed),
            Err(why) => {
                tracing::warn!(why, spans, "the collector took no spans");
                sink.failed.fetch_add(spans, Ordering::Relaxed)
            }
        };
    }

    /// Sends an export until the collector accepts it, or refuses it permanently.
    async fn post(&self, body: Vec<u8>) -> Result<(), String> {
        let mut pause = RETRY;
        loop {
            let request = self.client.post(self.url.clone()).headers(self.headers.clone());
            let answer = request.header(CONTENT_TYPE, "application/x-protobuf").body(body.clone()).send().await;
            match answer.map(|answer| answer.status()) {
                Ok(status) if status.is_success() => return Ok(()),
                // A status after which OTLP forbids a retry.
                Ok(status) if ![429, 502, 503, 504].contains(&status.as_u16()) => {
                    return Err(format!("it answered {status}"));
                }
                // Retried until the caller's deadline: a collector may restart.
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
}

fn headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let value: Vec<u8> = percent_decode_str(value.trim()).collect();
        let mut value = HeaderValue::from_bytes(&value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let read = headers("Authorization=Bearer%20abc, x-tenant=one").unwrap();
        assert!(read["authorization"] == "Bearer abc" && read["x-tenant"] == "one");
        assert!(headers("").unwrap().is_empty() && headers("token").is_none() && headers("a b=c").is_none());
    }
}
