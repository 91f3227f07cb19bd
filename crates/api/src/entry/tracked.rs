//! Tracks a request from its route to the last byte of its response. Its cost is recorded in its span, and logged if
//! the request was slow.

use crate::request::route::{Class, Route};
use crate::response::respond;
use crate::state::AppState;
use crate::state::slow::SlowRequest;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use meridian_admission::identity::Caller;
use meridian_observe::{self as observe, Count, Span, Stage, StageTimer, Work, WorkContext};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// A running request. It ends when this is dropped: with the last byte of its response, or when its client disconnects.
pub struct TrackedRequest {
    state: AppState,
    route: &'static Route,
    caller: Caller,
    arrived: Instant,
    work: Arc<Work>,
    span: Span,
    /// The work that it belongs to.
    current: WorkContext,
    /// The query string, if the operator wants it in the log.
    literals: Option<String>,
    status: Option<StatusCode>,
}

impl TrackedRequest {
    /// Starts measuring the current work.
    pub fn begin(
        state: &AppState,
        route: &'static Route,
        caller: &Caller,
        arrived: Instant,
        uri: &Uri,
        span: Span,
    ) -> TrackedRequest {
        let work = Arc::new(Work::new(state.stopwatch.clone()));
        observe::measure(work.clone());
        let literals = if state.config.slow_literals { uri.query().map(str::to_owned) } else { None };
        TrackedRequest {
            state: state.clone(),
            route,
            caller: caller.clone(),
            arrived,
            work,
            span,
            current: observe::current(),
            literals,
            status: None,
        }
    }

    /// Sets the status of its response.
    pub fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Records that the head of the response is ready, and adds the times of a read's stages to it.
    pub fn set_head(&mut self, response: &mut Response) {
        self.set_status(response.status());
        // Only reads have these stages.
        let is_read = [Stage::Plan, Stage::Scan].iter().any(|stage| self.work.took(*stage).is_some());
        if is_read {
            let stages = [Stage::Admission, Stage::VoidTry, Stage::Plan, Stage::Scan, Stage::Encode];
            let timing = stages.map(|stage| (stage.name(), self.work.took(stage)));
            respond::set_timing(response.headers_mut(), &timing);
        }
    }

    /// Returns whether its span is recorded, which then includes the time to send the response.
    pub fn is_recorded(&self) -> bool {
        self.span.is_recorded()
    }

    /// Starts measuring the sending of the response.
    pub fn sending(&self) -> StageTimer {
        self.current.stage(Stage::Send)
    }

    fn note_if_slow(&self, status: u16) {
        let took = self.arrived.elapsed();
        let waited: Duration = [Stage::Body, Stage::Send].iter().filter_map(|stage| self.work.took(*stage)).sum();
        // Excludes the client's time. Streams are long by design.
        let own = took.saturating_sub(waited);
        let limit = self.state.config.slow;
        if limit.is_zero() || own < limit || self.route.class == Class::Stream {
            return;
        }
        let ms = |took: Duration| took.as_micros() as f64 / 1000.0;
        let stage = |stage| self.work.took(stage).map(ms);
        let count = |count| Some(self.work.count(count)).filter(|n| *n > 0);
        let attempts = self.work.notes().join("; ");
        // This may run on any task or thread that drops the response, and the log line needs the request's id.
        self.current.clone().run(|| {
            tracing::warn!(
                target: "meridian_api::slow",
                method = %self.route.method,
                route = self.route.path,
                status,
                tenant = &*self.caller.tenant,
                ms = ms(took),
                body_ms = stage(Stage::Body),
                admission_ms = stage(Stage::Admission),
                void_try_ms = stage(Stage::VoidTry),
                parse_ms = stage(Stage::Parse),
                plan_ms = stage(Stage::Plan),
                scan_ms = stage(Stage::Scan),
                encode_ms = stage(Stage::Encode),
                commit_ms = stage(Stage::Commit),
                send_ms = stage(Stage::Send),
                parts = count(Count::Parts),
                parts_pruned = count(Count::PartsPruned),
                nodes_visited = count(Count::NodesVisited),
                nodes_pruned = count(Count::NodesPruned),
                nodes_whole = count(Count::NodesWhole),
                blocks_read = count(Count::BlocksRead),
                bytes_read = count(Count::BytesRead),
                events_tested = count(Count::EventsTested),
                events_matched = count(Count::EventsMatched),
                // The outcome of each request that it made to another server.
                attempts = (!attempts.is_empty()).then_some(attempts.as_str()),
                query = self.literals.as_deref(),
                "a slow request"
            );
        });
        // Also kept for `/admin/load`, which works without access to the log.
        self.state.slow.add(SlowRequest {
            at: self.state.now(),
            tenant: self.caller.tenant.clone(),
            method: self.route.method.clone(),
            route: self.route.path,
            status,
            request: self.current.request.as_ref().map(ToString::to_string).unwrap_or_default(),
            took: own,
            stages: Stage::ALL.map(|stage| self.work.took(stage)),
            bytes_read: self.work.count(Count::BytesRead),
            nodes_visited: self.work.count(Count::NodesVisited),
        });
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        // Proxies log 499 for a client that left before the head of its response.
        let status = self.status.map_or(499, |status| status.as_u16());
        self.note_if_slow(status);
        if !self.span.is_recorded() {
            return;
        }
        let (method, route) = (&self.route.method, self.route.path);
        self.span.rename(|| format!("{method} {route}").into());
        self.span.set("http.request.method", Arc::<str>::from(method.as_str()));
        self.span.set("http.route", route);
        self.span.set("http.response.status_code", u64::from(status));
        self.span.set("meridian.tenant", self.caller.tenant.clone());
        for count in Count::ALL {
            match self.work.count(count) {
                0 => {}
                n => self.span.set(count.name(), n),
            }
        }
        if status >= 500 {
            self.span.fail();
        }
    }
}
