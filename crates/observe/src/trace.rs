//! The place of work in a trace, and the recorder of its spans.

use crate::context::Parent;
use crate::sink::SpanSink;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nanoseconds since 1970.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Numbers spans, and passes them on once they end.
pub(crate) struct Recorder {
    clock: Clock,
    /// Randomizes trace and span numbers.
    seed: u64,
    numbers: AtomicU64,
    pub(crate) sink: Arc<dyn SpanSink>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("sink", &self.sink).finish_non_exhaustive()
    }
}

/// The position of work in a trace.
#[derive(Debug, Clone)]
pub struct Trace {
    pub(crate) id: u128,
    pub(crate) span: u64,
    pub(crate) state: Option<Arc<str>>,
    pub(crate) recorder: Arc<Recorder>,
    /// Number of spans that may still be recorded; `None` if the trace is not.
    pub(crate) left: Option<Arc<AtomicU32>>,
}

impl Recorder {
    pub(crate) fn new(clock: Clock, seed: u64, sink: Arc<dyn SpanSink>) -> Recorder {
        Recorder { clock, seed, numbers: AtomicU64::new(0), sink }
    }

    /// Returns a number not drawn before: SplitMix64 (Steele, Lea and Flood 2014) over a counter.
    pub(crate) fn number(&self) -> u64 {
        // Relaxed: each caller gets another number, and their order means nothing.
        let n = self.numbers.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed.wrapping_add(n);
        // Each step can be reversed, so that different counts never give the same number.
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }
}

impl Trace {
    /// Returns the trace id: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// Returns whether the trace is recorded.
    pub fn is_recorded(&self) -> bool {
        self.left.is_some()
    }

    /// Returns the parent that outgoing requests of this work pass on.
    pub fn to_pass_on(&self) -> Parent {
        Parent { trace: self.id, span: self.span, sampled: self.is_recorded(), state: self.state.clone() }
    }
}
