//! Webhook delivery: signed packets, in order, retried with exponential backoff, and finally kept as dead letters.
//!
//! A webhook reads the packets of its saved search like any reader, one at a time. It proceeds when a packet is
//! accepted (any 2xx) or given up. Unsent packets wait in the outbox and may be evicted there.

use super::claim::AssignmentCheck;
use super::dead_letters::{DeadLetter, DeadLetters};
use super::definition::Webhook;
use super::ledgers::{Ledgers, suspended};
use super::permits::Permits;
use super::search::SavedSearch;
use super::settings::WebhookSettings;
use hmac::{Hmac, KeyInit, Mac};
use meridian_backend::{Clock, Random};
use meridian_federation::fetch::{chain, client_of_webhooks, pass_on};
use meridian_observe::{Kind, Tracer};
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::{Duration, Instant};

/// How often a webhook of a suspended tenant checks that again.
const SUSPENDED_CHECK: Duration = Duration::from_secs(5);
/// Interval of checks that this process still runs the saved searches.
const HELD_CHECK: Duration = Duration::from_millis(100);
/// Max backoff between two calls for one packet.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// The signature of a body sent at this second since 1970: HMAC-SHA256 (RFC 2104, FIPS 180-4) over `TIMESTAMP.BODY`,
/// in hexadecimal digits after `v1=`.
pub fn signature(secret: &str, timestamp: i64, body: &str) -> String {
    let mut out = String::from("v1=");
    // HMAC accepts keys of any length, so this cannot fail.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(format!("{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        for byte in mac.finalize().into_bytes() {
            // Writing to a string cannot fail.
            let _ = write!(out, "{byte:02x}");
        }
    }
    out
}

/// The sender of all webhooks.
pub(crate) struct WebhookClient {
    settings: WebhookSettings,
    /// Created at the first call.
    client: OnceLock<Result<Client, String>>,
    permits: Permits,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ledgers: Ledgers,
    holds: AssignmentCheck,
    /// Packets given up, of all saved searches.
    pub(crate) letters: DeadLetters,
    /// Packets sent, failed calls, packets given up.
    pub(crate) sent: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dead: AtomicU64,
    tracer: Tracer,
}

impl WebhookClient {
    pub(crate) fn new(
        settings: WebhookSettings,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        ledgers: Ledgers,
        holds: AssignmentCheck,
        tracer: Tracer,
    ) -> WebhookClient {
        WebhookClient {
            tracer,
            client: OnceLock::new(),
            permits: Permits::new(settings.at_once),
            letters: DeadLetters::new(settings.dead_bytes_total),
            settings,
            clock,
            random,
            ledgers,
            holds,
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dead: AtomicU64::new(0),
        }
    }

    /// Sends the packets of a saved search as they arrive, until it is deleted or the server stops.
    pub(crate) async fn run(self: Arc<WebhookClient>, search: Arc<SavedSearch>) {
        let (Some(webhook_state), Some(webhook)) = (&search.webhook_state, &search.definition.webhook) else { return };
        loop {
            let next = webhook_state.lock().next();
            let mut reader = match search.outbox.read(next) {
                Ok(reader) => reader,
                Err(gone) => {
                    // Counted as lost, then it continues with the oldest packet kept.
                    webhook_state.lock().skip_to(gone.first);
                    continue;
                }
            };
            while let Some((seq, packet)) = reader.next().await {
                match self.send(&search, webhook, seq, &packet).await {
                    Ok(()) => webhook_state.lock().took(seq),
                    Err(letter) => self.letters.bury(&search.definition.tenant, webhook_state, letter),
                }
            }
            if search.outbox.is_closed() {
                return;
            }
            // The reader lagged behind the eviction, which the next `read` counts.
        }
    }

    /// Sends one packet with retries. The error is the dead letter.
    async fn send(&self, search: &SavedSearch, webhook: &Webhook, seq: u64, packet: &str) -> Result<(), DeadLetter> {
        let (mut begun, mut tries) = (Instant::now(), 0);
        loop {
            while suspended(&self.ledgers, &search.definition.tenant) {
                tokio::time::sleep(SUSPENDED_CHECK).await;
                // The suspension is not the webhook's fault, so its packets get the full time again.
                (begun, tries) = (Instant::now(), 0);
            }
            // Another process sends them now. Only a call that begins just before may come late.
            while !(self.holds)() {
                tokio::time::sleep(HELD_CHECK).await;
            }
            let outcome = match self.permits.take(&search.definition.tenant).await {
                // The permit is released before the backoff: a dead webhook holds none while it waits.
                Ok(_permit) => self.call(search, webhook, seq, packet).await,
                Err(why) => Err(why),
            };
            tries += 1;
            if let Some(webhook_state) = &search.webhook_state {
                webhook_state.lock().failing = outcome.as_ref().err().cloned();
            }
            let Err(why) = outcome else {
                self.sent.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            };
            self.failed.fetch_add(1, Ordering::Relaxed);
            let pause = self.pause(tries);
            // Tested with the coming pause: it must not sleep for an hour only to give up.
            if tries >= self.settings.tries || begun.elapsed() + pause > self.settings.age {
                self.dead.fetch_add(1, Ordering::Relaxed);
                return Err(DeadLetter::new(seq, self.clock.now(), tries, why, packet.to_owned()));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the backoff after `tries` failures: doubled each time, with a jitter of a quarter, so that calls that
    /// failed together do not retry together.
    fn pause(&self, tries: u32) -> Duration {
        let doubled = self.settings.wait.saturating_mul(1 << (tries - 1).min(20)).min(PAUSE_MAX);
        doubled.mul_f64(0.75 + (self.random.next_u64() >> 11) as f64 / (1_u64 << 54) as f64)
    }

    async fn call(&self, search: &SavedSearch, webhook: &Webhook, seq: u64, packet: &str) -> Result<(), String> {
        let timestamp = self.clock.now().div_euclid(1_000_000);
        let client = self.client.get_or_init(|| client_of_webhooks(self.settings.allow_private)).as_ref();
        let request = client
            .map_err(Clone::clone)?
            .post(webhook.url.clone())
            .timeout(self.settings.timeout)
            .header(CONTENT_TYPE, "application/json")
            .header("Meridian-Search", &search.id)
            .header("Meridian-Seq", seq)
            .header("Meridian-Timestamp", timestamp)
            .header("Meridian-Signature", signature(&webhook.secret, timestamp, packet))
            .body(packet.to_owned());
        let (trace, mut span) = self.tracer.begin(|| None, "webhook", Kind::Client);
        span.set("meridian.tenant", search.definition.tenant.clone());
        let request = trace.iter().fold(request, pass_on);
        // The URL may contain a secret, and the error is shown by the API.
        let outcome = match request.send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => Err(format!("it answered {status}")),
            Err(e) => Err(chain(&e.without_url())),
        };
        if outcome.is_err() {
            span.fail();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_admission::Ledger;
    use meridian_store::seams::{Seams, SeededRandom};

    #[test]
    fn signatures_are_those_that_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'a secret of mine'
        let expected = "v1=a1b5dc591e1c9a3d968ea9aa944b0040f9b2596dc84414ee1ab5249b10d0f4f1";
        assert_eq!(signature("a secret of mine", 1_700_000_000, "{\"a\":1}"), expected);
        assert_ne!(signature("a secret of mine", 1_700_000_001, "{\"a\":1}"), expected);
        assert_ne!(signature("another secret", 1_700_000_000, "{\"a\":1}"), expected);
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let random = Arc::new(SeededRandom::new(3));
        let clock = Seams::real().clock;
        let webhooks = WebhookClient::new(
            WebhookSettings::default(),
            clock,
            random,
            Arc::new(|tenant: &str| Some(Arc::new(Ledger::new(tenant)))),
            Arc::new(|| true),
            Tracer::default(),
        );
        for tries in 1..100 {
            let doubled = Duration::from_secs(1 << (tries - 1).min(12)).min(PAUSE_MAX);
            let pause = webhooks.pause(tries);
            assert!(pause >= doubled.mul_f64(0.75) && pause <= doubled.mul_f64(1.25), "{tries}: {pause:?}");
        }
    }
}
