//! Limits the exchanges of codes with issuers during sign-in.

use meridian_admission::identity::jwt::{Issuer, Issuers};
use std::collections::HashMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Max concurrent exchanges per issuer. Further ones get 503.
pub const RUNNING_MAX: usize = 16;

/// Limits the exchanges with each issuer, so that a slow issuer takes no permits from others.
pub struct Exchanges(HashMap<String, Semaphore>);

impl Exchanges {
    /// Creates the permits for these issuers.
    pub fn of(issuers: &Issuers) -> Exchanges {
        let permits = |issuer: &Issuer| (issuer.settings().name.clone(), Semaphore::new(RUNNING_MAX));
        Exchanges(issuers.with_sign_in().map(|(issuer, _)| permits(issuer)).collect())
    }

    /// Takes a permit for an exchange with an issuer; `None` if all are taken.
    pub fn begin(&self, issuer: &str) -> Option<SemaphorePermit<'_>> {
        self.0.get(issuer)?.try_acquire().ok()
    }
}
