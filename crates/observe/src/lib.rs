//! The server's account of its own work: the request of a log line, the cost of a request, and the spans of a trace.
//!
//! Work runs within a [`WorkContext`]: a value of the thread that names its request, its cost and its place in a trace.
//! A future or a thread that continues the work takes it along. [`stage`] measures a stage of the current work. If the
//! work is not measured, that costs one read of a thread-local value: no allocation, no lock. Ended spans go to a
//! [`SpanSink`].
//!
//! Start reading at [`Tracer::begin`]. The crate knows neither HTTP nor OTLP, starts no thread and reads no clock: its
//! [`Clock`] and seed are passed in.

mod context;
mod current;
mod sink;
mod slot;
mod span;
mod trace;
mod tracer;
mod work;

pub use context::{Parent, TRACEPARENT, TRACESTATE};
pub use current::{RequestId, WorkContext, away, current, hold, measure, span, stage, try_once, within};
pub use sink::{EndedSpan, Kind, SpanSink, TracerStats, Value};
pub use slot::Slot;
pub use span::Span;
pub use trace::{Clock, Trace};
pub use tracer::{Sampling, Tracer};
pub use work::{Count, Stage, StageTimer, Stopwatch, Work};
