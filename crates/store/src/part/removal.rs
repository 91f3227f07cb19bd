//! Objects that no manifest names any more, kept until no snapshot of this process pins them.
//!
//! `Drop` never deletes an object. The code that makes an object obsolete dooms its name here, with its pin.
//! Maintenance deletes the names whose pins are gone. A crash before that leaves leftovers, which the next start
//! removes.

use crate::seams::Objects;
use parking_lot::Mutex;
use std::any::Any;
use std::io::ErrorKind;
use std::sync::Weak;

/// Marks an object as in use: its name stays as long as a strong reference exists.
pub(crate) type Pin = Weak<dyn Any + Send + Sync>;

/// Names to be deleted. Only pinned names stay, since each sweep takes out all others.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    doomed: Mutex<Vec<(String, Pin)>>,
}

impl Removal {
    /// Schedules an object for deletion once nothing pins it.
    pub(crate) fn doom(&self, name: String, pin: Pin) {
        self.doomed.lock().push((name, pin));
    }

    /// Schedules an object for deletion that nothing in this process has open.
    pub(crate) fn doom_unpinned(&self, name: String) {
        self.doom(name, Weak::<()>::new());
    }

    /// Returns true if an object waits to be deleted.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.doomed.lock().iter().any(|(doomed, _)| doomed == name)
    }

    /// Takes out the unpinned names, except those that must be `kept` for now. The caller deletes them.
    pub(crate) fn take_free(&self, kept: impl Fn(&str) -> bool) -> Vec<String> {
        // A released pin is never taken again: parts are shared by cloning, and no manifest names these any more.
        let free = |(name, pin): &mut (String, Pin)| pin.strong_count() == 0 && !kept(name);
        self.doomed.lock().extract_if(.., free).map(|(name, _)| name).collect()
    }
}

/// Deletes an object that is no longer needed. If that fails it becomes a leftover, which the next start removes.
pub(crate) fn delete(objects: &dyn Objects, name: &str) {
    if let Err(e) = objects.delete(name)
        && e.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %objects.path(name).display(), error = %e, "an obsolete file could not be removed");
    }
}
