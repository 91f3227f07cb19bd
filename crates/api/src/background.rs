//! Background work, charged to the tenants that it serves.

use meridian_admission::gate::Gate;
use meridian_admission::identity::Registry;
use meridian_model::Background;
use std::fmt;
use std::sync::Arc;

/// Charges what is done in the background to the gate that admits requests.
pub struct Charged {
    gate: Gate,
    registry: Arc<Registry>,
}

impl Charged {
    /// Over a server's gate and tenants.
    pub fn new(gate: Gate, registry: Arc<Registry>) -> Charged {
        Charged { gate, registry }
    }
}

impl fmt::Debug for Charged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charged").field("gate", &self.gate.counts()).finish_non_exhaustive()
    }
}

impl Background for Charged {
    fn run(&self, tenant: &str, work: &mut dyn FnMut()) {
        match self.registry.ledger(tenant) {
            Some(ledger) => self.gate.run_for(&ledger, work),
            // Its tenant was just removed.
            None => work(),
        }
    }
}
