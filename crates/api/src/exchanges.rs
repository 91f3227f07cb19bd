//! Bounds on the exchanges of codes with issuers, while users sign in.

use meridian_admission::identity::jwt::{Issuer, Issuers};
use std::collections::HashMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Max exchanges that wait for one issuer. Further ones get 503.
pub const RUNNING_MAX: usize = 16;

/// Permits for exchanges, by issuer: a slow issuer takes none of others.
pub struct Exchanges(HashMap<String, Semaphore>);

impl Exchanges {
    /// Permits for these issuers.
    pub fn of(issuers: &Issuers) -> Exchanges {
        let permits = |issuer: &Issuer| (issuer.settings().name.clone(), Semaphore::new(RUNNING_MAX));
        Exchanges(issuers.with_sign_in().map(|(issuer, _)| permits(issuer)).collect())
    }

    /// A permit for an exchange with an issuer; `None` if all are taken.
    pub fn begin(&self, issuer: &str) -> Option<SemaphorePermit<'_>> {
        self.0.get(issuer)?.try_acquire().ok()
    }
}
