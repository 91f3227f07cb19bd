//! What the server tells of its own work: which request a log line belongs to, what the request costs, and the spans of a trace.
//!
//! Work runs within a [`Current`]: a value of the thread that names its request, its cost and its place in a trace. A future or a
//! thread that goes on with the work takes it along. [`stage`] measures a stage of the current work. Where nobody measures it, that
//! is one look at a value of the thread: no allocation, no lock. Ended spans go to a [`SpanSink`].
//!
//! Start reading at [`Tracer::begin`]. The crate knows neither HTTP nor OTLP, starts no thread and reads no clock: its
//! [`Clock`] and seed are given to it.

mod context;
mod current;
mod span;
mod tracer;
mod work;

pub use context::{Parent, TRACEPARENT, TRACESTATE};
pub use current::{Current, RequestId, current, measure, span, within};
pub use span::{EndedSpan, Kind, Span, Value};
pub use tracer::{Clock, Figures, Sampling, SpanSink, Trace, Tracer};
pub use work::{Count, Measured, Stage, Stopwatch, Work, stage};
