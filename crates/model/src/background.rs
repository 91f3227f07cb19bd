//! Background work, which no request waits for.

/// Runs background work on behalf of a tenant and charges the tenant for it.
///
/// The work is never throttled: starved merges slow every query, and a flush frees memory that writes wait for. It
/// always gets its share of the processors, at the expense of the tenant's own requests.
pub trait Background: Send + Sync + std::fmt::Debug {
    /// Runs the work on this thread.
    fn run(&self, tenant: &str, work: &mut dyn FnMut());
}

/// Charges no tenant.
impl Background for () {
    fn run(&self, _: &str, work: &mut dyn FnMut()) {
        work();
    }
}
