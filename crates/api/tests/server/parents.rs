//! Whose traces are continued.

use crate::jwt::{Key, config, now, set};
use crate::kinds::token;
use crate::support::Server;
use meridian_admission::identity::jwt::KeySource;
use meridian_api::AppState;
use meridian_backend::Embedded;
use meridian_observe::{EndedSpan, Sampling, SpanSink, Tracer, TracerStats};
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// A sink that keeps spans.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<EndedSpan>>);

impl SpanSink for Kept {
    fn take(&self, span: EndedSpan) {
        self.0.lock().unwrap().push(span);
    }

    fn figures(&self) -> TracerStats {
        TracerStats::default()
    }
}

#[test]
fn only_callers_have_their_traces_recorded() {
    let kept = Arc::new(Kept::default());
    let sampling = Sampling { ratio: 0.0, parents_per_second: 1_000 };
    let server = Server::traced(Tracer::new(sampling, Box::new(|| 0), 1, kept.clone()));
    let reader = token(&server, None, json!({ "role": "reader" }));
    let bearer = format!("Bearer {reader}");
    let ask = |path: &str, trace: u128, credential: &[(&str, &str)]| {
        let parent = format!("00-{trace:032x}-00f067aa0ba902b7-01");
        let headers = [&[("traceparent", &*parent), ("tracestate", "a=written-by-anyone")], credential].concat();
        server.ask("GET", path, &headers, b"").status
    };
    assert_eq!(ask("/collections", 1, &[]), 401);
    assert_eq!(ask("/collections", 2, &[("authorization", "Bearer mrd_0")]), 401);
    assert_eq!(ask("/collections", 3, &[("cookie", "meridian-session=x")]), 401);
    assert_eq!(ask("/healthz", 4, &[]), 200);
    assert_eq!(ask("/collections", 5, &[("authorization", &bearer)]), 200);
    drop(server);
    let spans = kept.0.lock().unwrap();
    assert!(spans.iter().any(|span| span.trace == 5) && spans.iter().all(|span| span.trace == 5), "{spans:?}");
}

#[test]
fn a_forged_token_with_a_trace_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, set(&[&Key::new("one", 1)])).unwrap();
    let sampling = Sampling { ratio: 0.0, parents_per_second: 1_000 };
    let tracer = Tracer::new(sampling, Box::new(|| 0), 1, Arc::new(Kept::default()));
    let (seams, config) = (Seams::real(), config(KeySource::File(file)));
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let state = AppState::with(Embedded::new(store.clone()), &seams, config, tracer, None).unwrap();
    let server = Server::of("127.0.0.1:0", store, state, None, None);
    let claims = json!({ "iss": "login", "sub": "mary", "aud": "meridian", "exp": now() + 3600, "groups": [] });
    let bearer = format!("Bearer {}", Key::new("one", 2).sign(&claims));
    let parent = format!("00-{:032x}-00f067aa0ba902b7-01", 1);
    // An address has a hundred.
    for _ in 0..60 {
        server.ask("GET", "/collections", &[("authorization", &bearer), ("traceparent", &parent)], b"").problem(401);
    }
}
