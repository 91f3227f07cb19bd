//! Processor load: the time that threads ran, and the time that they waited to run.

use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Returns the processor time used by this thread so far.
pub(super) fn thread_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

thread_local! {
    static DELAY: RefCell<Delay> = RefCell::new(Delay::open());
}

/// Linux's count of the time that this thread was runnable while no processor was free.
struct Delay {
    /// The `schedstat` file of this thread; `None` on systems without one.
    schedstat: Option<File>,
    /// The value at the last read.
    before: Duration,
}

impl Delay {
    #[allow(clippy::disallowed_methods, reason = "an account of the kernel, not a file: there is nothing to inject")]
    fn open() -> Delay {
        let mut delay = Delay { schedstat: File::open("/proc/thread-self/schedstat").ok(), before: Duration::ZERO };
        delay.take();
        delay
    }

    /// Returns the delay since the last call: the second number of `schedstat`, in nanoseconds.
    fn take(&mut self) -> Duration {
        let mut text = [0; 96];
        // The kernel renders this file again for each read at offset 0.
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
        let nanos = text.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        let now = Duration::from_nanos(nanos);
        now.saturating_sub(std::mem::replace(&mut self.before, now))
    }
}

/// Sums over all metered threads.
#[derive(Debug, Default)]
pub(super) struct Processors {
    /// Nanoseconds.
    ran: AtomicU64,
    delayed: AtomicU64,
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    at: Instant,
    /// Processor time of the whole program.
    program: Duration,
    ran: u64,
    delayed: u64,
}

impl Processors {
    /// Adds a slice of this thread.
    pub(super) fn add(&self, ran: Duration) {
        let delayed = DELAY.with_borrow_mut(Delay::take);
        self.ran.fetch_add(ran.as_nanos() as u64, Ordering::Relaxed);
        self.delayed.fetch_add(delayed.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(super) fn sample(&self) -> Sample {
        Sample {
            at: Instant::now(),
            program: clock(ClockId::ProcessCPUTime),
            ran: self.ran.load(Ordering::Relaxed),
            delayed: self.delayed.load(Ordering::Relaxed),
        }
    }
}

impl Sample {
    /// Returns two fractions since an earlier sample. The first is the processor capacity that the program used. The
    /// second is the part of their runnable time that metered threads waited for a processor.
    pub(super) fn since(&self, earlier: &Sample) -> (f64, f64) {
        // Read each time, because the process affinity or the control group's limit can change at run time.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let passed = self.at.saturating_duration_since(earlier.at).as_secs_f64() * processors as f64;
        let program = self.program.saturating_sub(earlier.program).as_secs_f64();
        let ran = self.ran.saturating_sub(earlier.ran) as f64;
        let delayed = self.delayed.saturating_sub(earlier.delayed) as f64;
        let busy = if passed > 0.0 { program / passed } else { 0.0 };
        (busy, if ran + delayed > 0.0 { delayed / (ran + delayed) } else { 0.0 })
    }
}
