//! Decides which traces are recorded, and starts them.

use crate::context::Parent;
use crate::sink::{Kind, SpanSink, TracerStats};
use crate::span::Span;
use crate::trace::{Clock, Recorder, Trace};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Max spans of one trace in this server, which also limits a long stream of chunks.
const SPANS_MAX: u32 = 512;

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// The sampled fraction, 0 to 1, of requests without a caller's decision.
    pub ratio: f64,
    /// Max traces per second recorded because their callers record them: a client must not decide what the server
    /// spends.
    pub parents_per_second: u32,
}

/// Starts traces. Clones share it; the default one records nothing.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// A trace is recorded if the lower half of its id is below this value; `None` records all.
    below: Option<u64>,
    parents: PerSecond,
    recorder: Arc<Recorder>,
}

impl Tracer {
    /// Creates a tracer whose spans go to `sink`; `seed` should be random.
    pub fn new(sampling: Sampling, clock: Clock, seed: u64, sink: Arc<dyn SpanSink>) -> Tracer {
        let below = (sampling.ratio < 1.0).then_some((sampling.ratio * u64::MAX as f64) as u64);
        let parents = PerSecond { max: sampling.parents_per_second, state: AtomicU64::new(0) };
        Tracer(Some(Arc::new(Inner { below, parents, recorder: Arc::new(Recorder::new(clock, seed, sink)) })))
    }

    /// Returns whether it may record anything.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the outcomes of the spans; `None` if nothing is recorded.
    pub fn figures(&self) -> Option<TracerStats> {
        self.0.as_ref().map(|inner| inner.recorder.sink.figures())
    }

    /// Starts a request, within its caller's trace if there is one. Returns its place and its span. A request that is
    /// not recorded has no span, and has a place only if its caller sent a parent to pass on.
    pub fn begin(
        &self,
        parent: impl FnOnce() -> Option<Parent>,
        name: &'static str,
        kind: Kind,
    ) -> (Option<Trace>, Span) {
        let Some(tracer) = &self.0 else { return (None, Span::none()) };
        match parent() {
            Some(parent) => {
                // The clock is read only for callers that record; most requests have none.
                let sampled = parent.sampled && tracer.parents.admits(tracer.recorder.now());
                let left = sampled.then(|| Arc::new(AtomicU32::new(SPANS_MAX)));
                let Parent { trace, span, state, .. } = parent;
                let above = Trace { id: trace, span, state, recorder: tracer.recorder.clone(), left };
                let span = above.open(name.into(), kind, true);
                (Some(span.place().unwrap_or(above)), span)
            }
            None => {
                let Some(above) = self.root() else { return (None, Span::none()) };
                let span = above.open(name.into(), kind, false);
                (span.place(), span)
            }
        }
    }

    /// Returns a place before the first span of a trace, for work that no request started. Its spans are roots. Returns
    /// `None` if the trace is not recorded.
    pub fn root(&self) -> Option<Trace> {
        let tracer = self.0.as_ref()?;
        // The lower half of the id doubles as the sampling draw, so an unrecorded request costs one number.
        let low = tracer.recorder.number();
        if tracer.below.is_some_and(|below| low >= below) {
            return None;
        }
        // Never 0, which W3C Trace Context forbids as an id.
        let id = u128::from(tracer.recorder.number()) << 64 | u128::from(low.max(1));
        let left = Some(Arc::new(AtomicU32::new(SPANS_MAX)));
        Some(Trace { id, span: 0, state: None, recorder: tracer.recorder.clone(), left })
    }
}

/// A lock-free limit per second: the second is in the upper half of a number, the count in the lower.
#[derive(Debug)]
struct PerSecond {
    max: u32,
    state: AtomicU64,
}

impl PerSecond {
    fn admits(&self, now: u64) -> bool {
        let second = (now / 1_000_000_000) & u64::from(u32::MAX);
        let taken = self.state.try_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            // Second and count share one number, so two requests at the turn of a second cannot both reset it.
            let count = if state >> 32 == second { state & u64::from(u32::MAX) } else { 0 };
            (count < u64::from(self.max)).then_some(second << 32 | (count + 1))
        });
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EndedSpan, Value, WorkContext, span};
    use parking_lot::Mutex;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<EndedSpan>>);

    impl SpanSink for Kept {
        fn take(&self, span: EndedSpan) {
            self.0.lock().push(span);
        }
        fn figures(&self) -> TracerStats {
            TracerStats::default()
        }
    }

    fn tracer(ratio: f64, parents_per_second: u32, at: Arc<AtomicU64>) -> (Tracer, Arc<Kept>) {
        let kept = Arc::new(Kept::default());
        let clock: Clock = Box::new(move || at.fetch_add(10, Ordering::Relaxed));
        (Tracer::new(Sampling { ratio, parents_per_second }, clock, 7, kept.clone()), kept)
    }

    fn caller(sampled: bool) -> Option<Parent> {
        Some(Parent { trace: 0xabc, span: 0xdef, sampled, state: Some("v=1".into()) })
    }

    #[test]
    fn stages_are_parts_of_the_request_and_it_is_a_part_of_its_callers_span() {
        let (tracer, kept) = tracer(0.0, 10, Arc::new(AtomicU64::new(1_000)));
        let (trace, mut root) = tracer.begin(|| caller(true), "request", Kind::Server);
        let passed_on = trace.as_ref().map(Trace::to_pass_on).unwrap();
        WorkContext { trace, ..WorkContext::default() }.run(|| {
            let mut scan = span("scan");
            scan.set("events", 3_u64);
            scan.run(|| drop(span("read")));
            scan.split_off("plan", 5);
        });
        root.fail();
        drop(root);
        let spans = std::mem::take(&mut *kept.0.lock());
        let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["read", "plan", "scan", "request"]);
        let [read, plan, scan, root] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!((root.parent, root.parent_is_remote, root.failed), (0xdef, true, true));
        assert_eq!((scan.parent, plan.parent, read.parent), (root.span, root.span, scan.span));
        assert_eq!((plan.end - plan.start, plan.end), (5, scan.start));
        assert_eq!(scan.attributes, [("events", Value::Int(3))]);
        assert!(spans.iter().all(|span| span.trace == 0xabc && span.end > span.start));
        assert_eq!(passed_on, Parent { span: root.span, ..caller(true).unwrap() });
    }

    #[test]
    fn what_is_not_recorded_is_passed_on_and_has_no_spans() {
        let (tracer, kept) = tracer(1.0, 10, Arc::default());
        let (trace, root) = tracer.begin(|| caller(false), "request", Kind::Server);
        let trace = trace.unwrap();
        assert_eq!((trace.to_pass_on(), root.is_recorded()), (caller(false).unwrap(), false));
        WorkContext { trace: Some(trace), ..WorkContext::default() }.run(|| assert!(!span("scan").is_recorded()));
        let (none, root) = Tracer::default().begin(|| caller(true), "request", Kind::Server);
        assert!(none.is_none() && !root.is_recorded() && kept.0.lock().is_empty());
    }

    #[test]
    fn the_share_without_a_parent_and_the_number_with_one_are_bounded() {
        let at = Arc::new(AtomicU64::new(0));
        let (tracer, _) = tracer(0.25, 3, at.clone());
        let recorded = |parent: fn() -> Option<Parent>| tracer.begin(parent, "request", Kind::Server).1.is_recorded();
        let share = (0..10_000).filter(|_| recorded(|| None)).count();
        assert!((2_200..2_800).contains(&share), "{share}");
        assert_eq!((0..50).filter(|_| recorded(|| caller(true))).count(), 3);
        at.store(1_000_000_000, Ordering::Relaxed);
        assert_eq!((0..50).filter(|_| recorded(|| caller(true))).count(), 3);
    }

    #[test]
    fn a_trace_has_no_end_of_spans() {
        let (tracer, kept) = tracer(1.0, 0, Arc::default());
        let (trace, root) = tracer.begin(|| None, "request", Kind::Server);
        WorkContext { trace, ..WorkContext::default() }.run(|| (0..10_000).for_each(|_| drop(span("scan"))));
        drop(root);
        assert_eq!(kept.0.lock().len(), SPANS_MAX as usize);
    }
}
