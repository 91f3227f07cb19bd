//! Spans: each measures one stage of a request, from its start until it is dropped.

use crate::sink::{EndedSpan, Kind, Value};
use crate::trace::Trace;
use std::borrow::Cow;
use std::sync::atomic::Ordering;

/// A stage that is measured until the span is dropped; no span if the work is not recorded.
#[derive(Debug)]
pub struct Span(Option<Box<OpenSpan>>);

#[derive(Debug)]
struct OpenSpan {
    /// The place of this span, under which its children are recorded.
    place: Trace,
    ended: EndedSpan,
}

impl Span {
    /// Returns a no-op span, which costs nothing.
    pub const fn none() -> Span {
        Span(None)
    }

    fn begin(place: Trace, ended: EndedSpan) -> Span {
        Span(Some(Box::new(OpenSpan { place, ended })))
    }

    /// Returns whether the span is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the place of the span, if it is recorded.
    pub(crate) fn place(&self) -> Option<Trace> {
        self.0.as_ref().map(|open| open.place.clone())
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.ended.attributes.push((name, value.into()));
        }
    }

    /// Renames the span.
    pub fn rename(&mut self, name: impl FnOnce() -> Cow<'static, str>) {
        if let Some(open) = &mut self.0 {
            open.ended.name = name();
        }
    }

    /// Marks the stage as failed.
    pub fn fail(&mut self) {
        if let Some(open) = &mut self.0 {
            open.ended.failed = true;
        }
    }

    /// Splits off the first `nanos` nanoseconds as a separate sibling span.
    pub fn split_off(&mut self, name: &'static str, nanos: u64) {
        let Some(open) = &mut self.0 else { return };
        let mut first = open.place.sibling(open.ended.parent, name);
        if let Some(OpenSpan { ended, .. }) = first.0.as_deref_mut() {
            ended.start = open.ended.start;
            open.ended.start += nanos;
            ended.end = open.ended.start;
        }
    }
}

impl Trace {
    /// Starts a child span of this place; no span if the trace is not recorded.
    pub fn child(&self, name: impl Into<Cow<'static, str>>, kind: Kind) -> Span {
        if self.left.is_none() {
            return Span::none();
        }
        self.open(name.into(), kind, false)
    }

    /// Starts a sibling of this place's span.
    fn sibling(&self, parent: u64, name: &'static str) -> Span {
        Trace { span: parent, ..self.clone() }.child(name, Kind::Internal)
    }

    pub(crate) fn open(&self, name: Cow<'static, str>, kind: Kind, parent_is_remote: bool) -> Span {
        let Some(left) = &self.left else { return Span::none() };
        // Relaxed: only a count. Spans of one trace may end on many threads.
        let taken = left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            return Span::none();
        }
        // Never 0, which stands for no parent.
        let place = Trace { span: self.recorder.number().max(1), ..self.clone() };
        let ended = EndedSpan {
            trace: self.id,
            span: place.span,
            parent: self.span,
            parent_is_remote,
            state: self.state.clone(),
            name,
            kind,
            start: self.recorder.now(),
            end: 0,
            attributes: Vec::new(),
            failed: false,
        };
        Span::begin(place, ended)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let OpenSpan { place, mut ended } = *open;
            // A span that was split off already has its end.
            if ended.end == 0 {
                // A clock that was set back must not produce a negative duration.
                ended.end = place.recorder.now().max(ended.start);
            }
            place.recorder.sink.take(ended);
        }
    }
}
