//! Ended spans, and what takes them.

use std::borrow::Cow;
use std::fmt;
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

/// Takes ended spans. It must not block.
pub trait SpanSink: fmt::Debug + Send + Sync {
    /// Takes one span.
    fn take(&self, span: EndedSpan);

    /// Returns the counts of span outcomes.
    fn figures(&self) -> TracerStats;
}

/// Outcomes of ended spans, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracerStats {
    /// Accepted by the collector.
    pub exported: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Lost because the collector was unreachable or refused them.
    pub failed: u64,
}
