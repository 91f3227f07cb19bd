//! Work that no request waits for.

/// Runs background work on behalf of a tenant, and charges the tenant for it.
///
/// The work is never held back: merges that starve make every query slower, and a flush frees memory that writes wait
/// for. So it always has its share of the processors, and the requests of the tenant that it serves have less.
pub trait Background: Send + Sync + std::fmt::Debug {
    /// Runs work on this thread.
    fn run(&self, tenant: &str, work: &mut dyn FnMut());
}

/// Charges no tenant.
impl Background for () {
    fn run(&self, _: &str, work: &mut dyn FnMut()) {
        work();
    }
}
