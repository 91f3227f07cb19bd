//! Guards decoders of foreign formats: a panic on damaged bytes becomes an input error.
//!
//! Any client can send such bytes, so a panic is counted and not logged.

use crate::error::Fault;
use meridian_model::Invalid;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Whether this thread is in a decoder.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns how often a decoder has panicked on damaged bytes since the start.
pub fn decoder_panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Runs a decoder.
pub(crate) fn guarded<T>(what: &str, decode: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    keep_quiet();
    let outer = DECODING.replace(true);
    // The decoder is never used again after a panic, so no inconsistent state is seen.
    let done = catch_unwind(AssertUnwindSafe(decode));
    // Restored and not cleared, as decoders may be nested.
    DECODING.set(outer);
    match done {
        Ok(done) => done,
        Err(_) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            Err(Fault::stop(Invalid::new(format!("the {what} data is damaged"))))
        }
    }
}

/// Installs a panic hook that skips panics of decoders and passes on all others.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    // Once, since each further hook would wrap the one before it.
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            // By thread: panics of other threads are still reported meanwhile.
            if !DECODING.get() {
                report(panic);
            }
        }));
    });
}
