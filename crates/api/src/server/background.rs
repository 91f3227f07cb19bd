//! Background work: charged to the tenants that it serves, and traced.

use meridian_admission::gate::Gate;
use meridian_admission::identity::Registry;
use meridian_model::Background;
use meridian_observe::{Tracer, WorkContext};
use std::fmt;
use std::sync::Arc;

/// Charges background work to the gate that admits requests. Each piece of work is a separate trace.
pub struct GatedBackground {
    gate: Gate,
    registry: Arc<Registry>,
    tracer: Tracer,
}

impl GatedBackground {
    /// Creates one over a server's gate and tenants.
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
        // No span here: the store often polls without finding work, and opens a span for the work it finds.
        let current = WorkContext { trace: self.tracer.root(), ..WorkContext::default() };
        current.run(|| match self.registry.ledger(tenant) {
            Some(ledger) => self.gate.run_for(&ledger, work),
            // The tenant was just removed.
            None => work(),
        });
    }
}
