//! Reads that must not wait, for queries on a thread that others need soon.
//!
//! A read passes through many layers that know nothing of the thread's other work, and it stays on its thread. So
//! whether it may wait is a property of the thread. The few places that read a file or build an index ask it.

use crate::error::StoreError;
use std::cell::Cell;

thread_local! {
    static WAITS: Cell<Waits> = const { Cell::new(Waits::Allowed) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Allowed,
    Refused,
    /// Refused, and at least one was.
    Met,
}

/// Restores what the thread was allowed before, also after a panic.
struct Before(Waits);

impl Drop for Before {
    fn drop(&mut self) {
        WAITS.set(self.0);
    }
}

/// Runs work whose reads must not wait: neither for a file or a bucket, nor for an index of many rows. Returns its
/// result, and whether a read was refused. If so, the result is void, even if it is no error.
pub fn without_waits<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = Before(WAITS.replace(Waits::Refused));
    let result = work();
    let met = WAITS.get() == Waits::Met;
    drop(before);
    (result, met)
}

/// Returns whether this thread must not wait. A caller that would wait then does without, which voids the result.
pub(crate) fn refused() -> bool {
    if WAITS.get() == Waits::Allowed {
        return false;
    }
    WAITS.set(Waits::Met);
    true
}

/// Called before a read that may wait.
///
/// # Errors
/// [`StoreError::MustNotWait`] within [`without_waits`].
pub(crate) fn check() -> Result<(), StoreError> {
    if refused() { Err(StoreError::MustNotWait) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_refused_wait_is_told_even_if_its_error_is_not() {
        assert!(check().is_ok());
        assert_eq!(without_waits(|| 7), (7, false));
        assert!(matches!(without_waits(check), (Err(StoreError::MustNotWait), true)));
        assert_eq!(without_waits(|| check().is_ok()), (false, true));
        // Within another, and after a panic.
        let (inner, outer) = without_waits(|| without_waits(check).1);
        assert_eq!((inner, outer), (true, false));
        assert!(catch_unwind(|| without_waits(|| panic!("at work"))).is_err());
        assert!(check().is_ok());
    }
}
