//! Counters and histograms in the Prometheus text format.
//!
//! The set of families is small and fixed, and every request updates one of them. They are therefore plain atomics: no
//! registry to lock, no label to allocate. Names and buckets follow OpenTelemetry's semantic conventions for HTTP
//! servers. Labels are bounded: route templates instead of paths, and no tenant names.

use axum::http::{Method, StatusCode};
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds, as recommended by OpenTelemetry for `http.server.request.duration`.
const BUCKETS_S: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Durations counted into buckets. The sum and the first bucket, which nearly every request changes, share a cache
/// line, since it moves between processors.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Histogram {
    sum_us: AtomicU64,
    /// One per bound, and one for longer durations.
    buckets: [AtomicU64; BUCKETS_S.len() + 1],
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = BUCKETS_S.iter().position(|&bound| seconds <= bound).unwrap_or(BUCKETS_S.len());
        // Relaxed: a scrape may see a bucket without its sum, which the next scrape corrects.
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String, family: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        // The buckets of the text format are cumulative.
        let mut total = 0;
        for (i, bucket) in self.buckets.iter().enumerate() {
            total += bucket.load(Ordering::Relaxed);
            match BUCKETS_S.get(i) {
                Some(bound) => {
                    let _ = writeln!(out, "{family}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}");
                }
                None => {
                    let _ = writeln!(out, "{family}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
                }
            }
        }
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{family}_sum{braces} {sum}");
        let _ = writeln!(out, "{family}_count{braces} {total}");
    }
}

/// Requests of one route by method and status.
#[derive(Default)]
struct RouteMetrics {
    /// By method, then by status 100 to 599; allocated on first use.
    by_method: [OnceLock<Box<[OnceLock<Histogram>]>>; METHODS.len()],
}

/// The counters of the HTTP server.
#[derive(Default)]
pub struct Metrics {
    /// By path, once the route table is known.
    routes: OnceLock<Box<[(&'static str, RouteMetrics)]>>,
    unmatched: RouteMetrics,
    active: AtomicI64,
    /// Streamed responses, from the arrival of the request to the last byte produced.
    pub streams: Histogram,
    /// Responses abandoned because the client had disconnected.
    pub clients_gone: AtomicU64,
    /// Responses aborted mid-stream by an error or the deadline.
    pub streams_broken: AtomicU64,
    /// Connections refused because too many were open.
    pub connections_refused: AtomicU64,
    /// Connections that did not complete a TLS handshake.
    pub handshakes_failed: AtomicU64,
    /// Connections open now.
    pub connections_open: AtomicUsize,
}

/// Writes families with a single value: kind, name, help text and value of each.
macro_rules! families {
    ($out:expr; $($kind:ident $name:literal $help:literal $value:expr;)*) => {
        $($crate::state::metrics::$kind($out, $name, $help, $value);)*
    };
}
pub(crate) use families;

/// Counts a request as active until dropped.
pub struct Active<'a>(&'a AtomicI64);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Starts counting requests by path. A path is identified by its index in this order.
    pub fn count_routes(&self, paths: impl Iterator<Item = &'static str>) {
        self.routes.get_or_init(|| paths.map(|path| (path, RouteMetrics::default())).collect());
    }

    /// Counts a request that starts.
    pub fn begin(&self) -> Active<'_> {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(&self.active)
    }

    /// Counts a request whose response head is ready.
    pub fn end(&self, path: Option<usize>, method: &Method, status: StatusCode, duration: Duration) {
        let counted = path.and_then(|number| self.routes.get()?.get(number));
        let metrics = counted.map_or(&self.unmatched, |(_, metrics)| metrics);
        // Other methods are not counted, since clients could create any number of labels.
        let Some(method) = METHODS.iter().position(|m| m == method) else { return };
        // Allocated on first use, since most routes see few methods and statuses.
        let statuses = metrics.by_method[method].get_or_init(|| (0..500).map(|_| OnceLock::new()).collect());
        if let Some(histogram) = statuses.get(usize::from(status.as_u16().saturating_sub(100))) {
            histogram.get_or_init(Histogram::default).record(duration);
        }
    }

    /// Returns a path by its number; empty for a request without one.
    pub fn path(&self, number: Option<usize>) -> &'static str {
        number.and_then(|number| self.routes.get()?.get(number)).map_or("", |(path, _)| path)
    }

    /// Writes the families of the server itself.
    pub fn write(&self, out: &mut String) {
        let family = "http_server_request_duration_seconds";
        let _ = writeln!(out, "# HELP {family} Time from the arrival of a request to the head of its answer.");
        let _ = writeln!(out, "# TYPE {family} histogram");
        let mut routes: Vec<_> =
            self.routes.get().into_iter().flatten().map(|(path, metrics)| (*path, metrics)).collect();
        routes.push(("", &self.unmatched));
        routes.sort_unstable_by_key(|(r, _)| *r);
        for (route, metrics) in routes {
            for (method, statuses) in METHODS.iter().zip(&metrics.by_method) {
                for (i, histogram) in statuses.get().into_iter().flatten().enumerate() {
                    if let Some(histogram) = histogram.get() {
                        let labels = format!(
                            "http_request_method=\"{method}\",http_route=\"{route}\",http_response_status_code=\"{}\"",
                            i + 100
                        );
                        histogram.write(out, family, &labels);
                    }
                }
            }
        }
        let family = "meridian_stream_duration_seconds";
        let _ = writeln!(
            out,
            "# HELP {family} Time from the arrival of a request to the last byte of its streamed answer."
        );
        let _ = writeln!(out, "# TYPE {family} histogram");
        self.streams.write(out, family, "");
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        families!(out;
            gauge "http_server_active_requests" "Requests without a response yet." self.active.load(Ordering::Relaxed);
            counter "meridian_clients_gone_total" "Responses abandoned because the client had disconnected."
                load(&self.clients_gone);
            counter "meridian_streams_broken_total" "Responses broken off in mid-stream by an error or the deadline."
                load(&self.streams_broken);
            gauge "meridian_connections_open" "Connections open now." self.connections_open.load(Ordering::Relaxed);
            counter "meridian_connections_refused_total" "Connections refused because too many were open."
                load(&self.connections_refused);
            counter "meridian_tls_handshakes_failed_total" "Connections that did not complete a TLS handshake."
                load(&self.handshakes_failed);
        );
    }
}

/// Writes one gauge.
pub fn gauge(out: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
}

/// Writes one counter.
pub fn counter(out: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_labelled_by_route() {
        let metrics = Metrics::default();
        metrics.count_routes(["/collections/{c}"].into_iter());
        let active = metrics.begin();
        metrics.end(Some(0), &Method::GET, StatusCode::OK, Duration::from_millis(7));
        metrics.end(Some(0), &Method::GET, StatusCode::OK, Duration::from_secs(60));
        metrics.end(None, &Method::GET, StatusCode::NOT_FOUND, Duration::from_millis(1));
        let mut text = String::new();
        metrics.write(&mut text);
        let labels = "http_request_method=\"GET\",http_route=\"/collections/{c}\",http_response_status_code=\"200\"";
        for line in [
            format!("http_server_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 0"),
            format!("http_server_request_duration_seconds_bucket{{{labels},le=\"0.01\"}} 1"),
            format!("http_server_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("http_server_request_duration_seconds_count{{{labels}}} 2"),
            "http_server_active_requests 1".to_owned(),
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.contains("http_route=\"\",http_response_status_code=\"404\""));
        drop(active);
    }
}
