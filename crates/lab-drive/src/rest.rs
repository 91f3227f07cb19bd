//! Paces background work so that it yields the processor soon.
//!
//! The driver sends by the clock, and the lab's other work may have to share a processor with it. A running thread
//! keeps the processor until the kernel's next tick (4 ms on many machines). So this work runs in pieces well below a
//! millisecond, and sleeps in between.

use std::time::Instant;

/// Does a piece of work, then rests for as long as that took: uses half of a processor at most.
pub fn rested<T>(piece: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = piece();
    std::thread::sleep(began.elapsed());
    done
}
