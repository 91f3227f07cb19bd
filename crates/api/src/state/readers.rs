//! The clients with a streamed response, and which of them is evicted when the memory for responses is full.
//!
//! All bytes of responses that clients have not received yet come from one budget. When it is used up, the client that
//! has read nothing for longest is evicted, so clients that do not read cost the others nothing. A client that has only
//! just connected may still read, so a query waits [`EVICT_AFTER`] before an eviction.
//!
//! The client of a stream of events receives the reason, so it leaves with a delay. Until then its bytes count as about
//! to be freed: no other client is evicted for them.

use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::Clock;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::time::{Duration, Instant};

/// A client that read something more recently than this is not evicted.
const EVICT_AFTER: Duration = Duration::from_secs(1);
/// How often a wait for memory tries again.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Max time for an evicted client to leave.
pub const LEAVE_MAX: Duration = Duration::from_secs(1);

/// The unread data of one client, for which it can be evicted.
pub trait UnreadData: Send + Sync {
    /// Returns the budget from which it is taken.
    fn answers(&self) -> &ByteBudget;

    /// Returns the bytes that an eviction frees.
    fn bytes(&self) -> usize;

    /// Returns how long the client has read nothing, as far as known; `None` if nothing waits for it, or if it was
    /// evicted.
    fn idle(&self) -> Option<Duration>;

    /// Returns whether it was evicted and still holds its bytes.
    fn is_leaving(&self) -> bool;

    /// Evicts the client; returns false if there is nothing to free.
    fn evict(&self) -> bool;
}

/// The clients whose responses are being streamed. Clones share the same set.
#[derive(Clone, Default)]
pub struct Readers(Arc<Inner>);

#[derive(Default)]
struct Inner {
    all: Mutex<HashMap<u64, Arc<dyn UnreadData>>>,
    next: AtomicU64,
    parked: AtomicUsize,
    slow: AtomicU64,
    evicted: AtomicU64,
}

/// The registration of one streamed response, removed when dropped.
pub struct Registration {
    readers: Readers,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.readers.0.all.lock().remove(&self.number);
    }
}

/// Counts a query, or a file, that is parked until its client has read some of the response.
pub struct ParkedQuery(Readers);

impl ParkedQuery {
    /// Counts one more.
    pub fn enter(readers: &Readers) -> ParkedQuery {
        readers.0.parked.fetch_add(1, Ordering::Relaxed);
        ParkedQuery(readers.clone())
    }
}

impl Drop for ParkedQuery {
    fn drop(&mut self) {
        self.0.0.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Readers {
    /// Registers a client as evictable, until the registration is dropped.
    pub fn register(&self, client: Arc<dyn UnreadData>) -> Registration {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.all.lock().insert(number, client);
        Registration { readers: self.clone(), number }
    }

    /// Returns the number of queries parked because their clients read slowly.
    pub fn parked(&self) -> usize {
        self.0.parked.load(Ordering::Relaxed)
    }

    /// Returns the number of clients disconnected since the start because they read too slowly.
    pub fn slow(&self) -> u64 {
        self.0.slow.load(Ordering::Relaxed)
    }

    /// Returns the number of clients evicted since the start to free memory for the responses of others.
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Ordering::Relaxed)
    }

    /// Counts a client that was disconnected because it read too slowly.
    pub fn count_slow(&self) {
        self.0.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// Reserves a share of the memory for responses, evicting idle clients if necessary; `None` if there is no room
    /// yet.
    pub fn try_reserve(&self, answers: &ByteBudget, bytes: usize) -> Option<ByteShare> {
        loop {
            let share = answers.try_take_some(bytes);
            // Each iteration evicts a client, so the loop ends: without another idle client nothing is evicted.
            if share.is_some() || !self.evict_idlest(answers, bytes) {
                return share;
            }
        }
    }

    /// Reserves a share of the memory for responses, evicting idle clients if necessary; `None` if all of it is
    /// reserved by clients that read.
    ///
    /// Blocks for at most [`EVICT_AFTER`], when a client that has read nothing since the wait began becomes evictable.
    /// If evicted clients are still leaving then, waits for them for at most [`LEAVE_MAX`].
    pub fn reserve(&self, clock: &dyn Clock, answers: &ByteBudget, bytes: usize) -> Option<ByteShare> {
        let (begun, mut wait) = (Instant::now(), EVICT_AFTER);
        loop {
            let share = self.try_reserve(answers, bytes);
            if share.is_some() {
                return share;
            }
            if begun.elapsed() >= wait {
                // Extended once, and only for clients that are about to free memory.
                if wait > EVICT_AFTER || leaving(&self.owing(answers)) == 0 {
                    return None;
                }
                wait += LEAVE_MAX;
            }
            // Polled: this thread cannot await the budget's notification.
            clock.sleep(RETRY_INTERVAL);
        }
    }

    /// Returns the clients that may be evicted for a tenant.
    fn owing(&self, answers: &ByteBudget) -> Vec<Arc<dyn UnreadData>> {
        // Cloned for the time after the registry's lock, which is never held together with a client's lock.
        let of_budget = |one: &&Arc<dyn UnreadData>| one.answers().is_same_budget(answers);
        let mut clients: Vec<Arc<dyn UnreadData>> = self.0.all.lock().values().filter(of_budget).cloned().collect();
        clients.retain(|one| {
            let held = one.answers();
            held.is_of_same_tenant(answers) || held.exceeds_guarantee()
        });
        clients
    }

    /// Evicts the client that has read nothing for longest. Returns false if all of them read, or if evicted clients
    /// already hold the wanted number of bytes. A client of another tenant is evicted only if that tenant exceeds its
    /// guarantee.
    fn evict_idlest(&self, answers: &ByteBudget, wanted: usize) -> bool {
        let clients = self.owing(answers);
        let leaving = leaving(&clients);
        // The memory is about to be freed: one request must not evict more clients than it needs.
        if leaving > 0 && leaving >= wanted {
            return false;
        }
        let idle = clients.iter().filter_map(|one| Some((one.idle()?, one)));
        let Some((idle, client)) = idle.max_by_key(|(idle, _)| *idle).filter(|(idle, _)| *idle >= EVICT_AFTER) else {
            return false;
        };
        let bytes = client.bytes();
        // Its client may have read meanwhile: then nothing was freed, and the caller tries again.
        if client.evict() {
            self.0.evicted.fetch_add(1, Ordering::Relaxed);
            let idle_ms = idle.as_millis() as u64;
            tracing::info!(
                idle_ms,
                bytes,
                "a client that does not read was evicted: others need the memory for responses"
            );
        }
        true
    }
}

/// Returns the bytes of evicted clients that have not left yet.
fn leaving(clients: &[Arc<dyn UnreadData>]) -> usize {
    clients.iter().filter(|one| one.is_leaving()).map(|one| one.bytes()).sum()
}
