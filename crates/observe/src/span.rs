//! Spans: each measures one stage of a request, from its start until it is dropped.

use crate::current::Current;
use crate::tracer::Trace;
use std::borrow::Cow;
use std::sync::Arc;

/// The role of a span, as defined by OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A stage within this program.
    Internal,
    /// A request that this program serves.
    Server,
    /// A request that this program makes.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// Text from a bounded set, never an id or a value from a client's filter.
    Text(Arc<str>),
    /// A static text of this program.
    Name(&'static str),
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<&'static str> for Value {
    fn from(name: &'static str) -> Value {
        Value::Name(name)
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Value {
        Value::Text(text)
    }
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedSpan {
    /// Its trace id.
    pub trace: u128,
    /// Its number within the trace.
    pub span: u64,
    /// The parent span; 0 for the root of a trace.
    pub parent: u64,
    /// Whether the parent span belongs to another program.
    pub parent_is_remote: bool,
    /// The vendor-specific entries of the trace.
    pub state: Option<Arc<str>>,
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its role.
    pub kind: Kind,
    /// Start, in nanoseconds since 1970.
    pub start: u64,
    /// End, in nanoseconds since 1970; not before the start.
    pub end: u64,
    /// Attributes: counts and names.
    pub attributes: Vec<(&'static str, Value)>,
    /// Whether the stage failed.
    pub failed: bool,
}

/// A stage that is measured until the span is dropped; no span if the work is not recorded.
#[derive(Debug)]
pub struct Span(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    /// The place of this span, under which its children are recorded.
    place: Trace,
    ended: EndedSpan,
}

impl Span {
    /// Returns a no-op span, which costs nothing.
    pub const fn none() -> Span {
        Span(None)
    }

    pub(crate) fn begin(place: Trace, ended: EndedSpan) -> Span {
        Span(Some(Box::new(Open { place, ended })))
    }

    /// Returns whether the span is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
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

    /// Returns the current work as part of this span; unchanged for a no-op span.
    pub fn current(&self) -> Current {
        self.within(crate::current())
    }

    /// Returns work as part of this span; unchanged for a no-op span.
    pub fn within(&self, mut work: Current) -> Current {
        if let Some(open) = &self.0 {
            work.trace = Some(open.place.clone());
        }
        work
    }

    /// Runs a closure as part of the span.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.0 {
            Some(_) => self.current().run(work),
            None => work(),
        }
    }

    /// Splits off the first `nanos` nanoseconds as a separate sibling span.
    pub fn split_off(&mut self, name: &'static str, nanos: u64) {
        let Some(open) = &mut self.0 else { return };
        let mut first = open.place.sibling(open.ended.parent, name);
        if let Some(Open { ended, .. }) = first.0.as_deref_mut() {
            ended.start = open.ended.start;
            open.ended.start += nanos;
            ended.end = open.ended.start;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let Open { place, mut ended } = *open;
            // A span that was split off already has its end.
            if ended.end == 0 {
                // A clock that was set back must not produce a negative duration.
                ended.end = place.now().max(ended.start);
            }
            place.end(ended);
        }
    }
}
