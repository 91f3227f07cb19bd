//! Turns of a query: by the meter of its current permit.

use meridian_admission::gate::{Meter, Permit};
use meridian_observe::Slot;
use meridian_query::Scheduler;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The turns of a query. A query that waits for its client gets another permit when it continues, while its parts keep
/// these turns. Without a permit it neither waits nor is charged.
#[derive(Debug, Default)]
pub struct PermitScheduler(Mutex<Option<Arc<Meter>>>);

impl PermitScheduler {
    /// Makes the turns of a permit.
    pub fn of(permit: &Permit) -> Arc<PermitScheduler> {
        Arc::new(PermitScheduler(Mutex::new(Some(permit.meter().clone()))))
    }

    /// Continues with another permit, on this thread.
    pub fn go_on(&self, permit: &Permit) {
        *self.0.lock() = Some(permit.meter().clone());
        permit.meter().begin();
    }

    fn meter(&self) -> Option<Arc<Meter>> {
        self.0.lock().clone()
    }
}

impl Slot for PermitScheduler {
    fn rest(&self) {
        if let Some(meter) = self.meter() {
            meter.rest();
        }
    }

    fn wake(&self, over: &dyn Fn() -> bool) {
        if let Some(meter) = self.meter() {
            meter.wake(over);
        }
    }
}

impl Scheduler for PermitScheduler {
    fn tick(&self, over: &dyn Fn() -> bool) {
        // The lock is not held meanwhile, as a turn may take long.
        if let Some(meter) = self.meter() {
            meter.tick(over);
        }
    }

    fn is_contended(&self) -> bool {
        self.meter().is_some_and(|meter| meter.is_contended())
    }

    fn charge(&self, used: Duration) {
        if let Some(meter) = self.meter() {
            meter.charge(used);
        }
    }

    fn read(&self, bytes: u64) {
        if let Some(meter) = self.meter() {
            meter.read(bytes);
        }
    }

    fn read_too_much(&self) {
        if let Some(meter) = self.meter() {
            meter.read_too_much();
        }
    }
}
