//! How a query takes turns: through the meter of the permit that it has at the time.

use meridian_admission::gate::{Meter, Permit};
use meridian_query::Turns;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The turns of a query. A query that is parked gets another permit when it goes on, while its parts keep these turns.
#[derive(Debug)]
pub(super) struct PermitTurns(Mutex<Arc<Meter>>);

impl PermitTurns {
    pub(super) fn of(permit: &Permit) -> Arc<PermitTurns> {
        Arc::new(PermitTurns(Mutex::new(permit.meter().clone())))
    }

    /// Goes on with another permit, on this thread.
    pub(super) fn go_on(&self, permit: &Permit) {
        *self.0.lock() = permit.meter().clone();
        permit.meter().begin();
    }

    fn meter(&self) -> Arc<Meter> {
        self.0.lock().clone()
    }
}

impl Turns for PermitTurns {
    fn tick(&self, over: &dyn Fn() -> bool) {
        // The lock is not held meanwhile: a turn may take long.
        self.meter().tick(over);
    }

    fn is_contended(&self) -> bool {
        self.meter().is_contended()
    }

    fn charge(&self, used: Duration) {
        self.meter().charge(used);
    }

    fn read(&self, bytes: u64) {
        self.meter().read(bytes);
    }
}
