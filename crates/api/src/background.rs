//! Background work, charged to the tenants that it serves, and recorded.

use meridian_admission::gate::Gate;
use meridian_admission::identity::Registry;
use meridian_model::Background;
use meridian_observe::{Current, Tracer};
use std::fmt;
use std::sync::Arc;

/// Charges what is done in the background to the gate that admits requests. Each piece of work is a trace of its own.
pub struct GatedBackground {
    gate: Gate,
    registry: Arc<Registry>,
    tracer: Tracer,
}

impl GatedBackground {
    /// Over a server's gate and tenants.
    pub fn new(gate: Gate, registry: Arc<Registry>, tracer: Tracer) -> GatedBackground {
        GatedBackground { gate, registry, tracer }
    }
}

impl fmt::Debug for GatedBackground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedBackground").field("gate", &self.gate.counts()).finish_non_exhaustive()
    }
}

impl Background for GatedBackground {
    fn run(&self, tenant: &str, work: &mut dyn FnMut()) {
        // Without a span here: the store often looks for work without finding any, and opens a span for what it
        // finds.
        let current = Current { trace: self.tracer.root(), ..Current::default() };
        current.run(|| match self.registry.ledger(tenant) {
            Some(ledger) => self.gate.run_for(&ledger, work),
            // Its tenant was just removed.
            None => work(),
        });
    }
}
