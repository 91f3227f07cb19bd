//! Work beside the driver that gives the processor back soon.
//!
//! The driver sends by the clock, and what else the lab does may have to share a processor with it. A thread that has one keeps
//! it until the kernel's next tick (4 ms on many machines). So it works in pieces well below a millisecond, and sleeps between
//! them.

use std::time::Instant;

/// Does a piece of work, then rests for as long as that took: half of a processor at most.
pub fn rested<T>(piece: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = piece();
    std::thread::sleep(began.elapsed());
    done
}
