//! The gateways of a cluster, as known to one of them.

use crate::protocol::host_name::HostName;
use meridian_saved::{SLOTS, Slot};
use reqwest::{Certificate, Client, Url};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, timeout_at};

/// Max time to connect to another gateway.
const CONNECT: Duration = Duration::from_secs(2);
/// Max pause within a response of another gateway: streams send something every 15 s.
const SILENCE: Duration = Duration::from_secs(60);
/// How long an idle connection to another gateway is kept: shorter than a server keeps it.
const IDLE: Duration = Duration::from_secs(10);
/// How long to wait for the announcement of an unknown gateway; each announces itself every second.
const HEARD: Duration = Duration::from_secs(2);

/// Another gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its URL for other gateways, without a trailing slash.
    pub url: Arc<str>,
    /// The key that a relayed request must present to it.
    pub key: Arc<str>,
}

/// Which gateway runs the saved searches of a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlotRunner {
    /// No known gateway.
    #[default]
    Nobody,
    /// This gateway.
    Here,
    /// The gateway with this number.
    At(u64),
}

/// The runner of each slot.
pub type SlotRunners = [SlotRunner; SLOTS as usize];

/// The other gateways, and the runner of each slot's saved searches.
pub struct Gateways {
    /// The number of this gateway: random, and the first half of the ids of its searches.
    number: u64,
    /// The key that requests relayed to this gateway must carry. Every process that can read the bucket knows it.
    key: Box<str>,
    others: watch::Sender<BTreeMap<u64, Gateway>>,
    runners: watch::Sender<SlotRunners>,
    /// Set when this gateway stops; relayed requests then end.
    stopping: watch::Sender<bool>,
    client: Client,
}

/// A gateway's statement about a request that it relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayOrigin {
    /// The address of the client.
    pub client: IpAddr,
    /// Scheme and authority under which the client reached that gateway, without a trailing slash.
    pub base: Arc<str>,
}

impl Gateways {
    /// Creates the set without any other known gateway. `number` and `key` are random for each start of a process.
    /// `authorities` holds PEM certificates that are trusted in addition to the system's.
    ///
    /// # Errors
    /// A sentence, if `authorities` contains no certificate, or if TLS is unavailable.
    pub fn new(number: u64, key: String, authorities: Option<&[u8]>) -> Result<Gateways, String> {
        // The client uses the process-wide cryptography provider. Installing it again fails without effect, so the
        // error is ignored.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .pool_idle_timeout(IDLE)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            // Upgrades exist only in HTTP/1.1, and bodies are passed on unchanged.
            .http1_only()
            .no_gzip()
            .no_proxy();
        if let Some(pem) = authorities {
            let authorities = Certificate::from_pem_bundle(pem).map_err(|e| format!("it is not PEM: {e}"))?;
            if authorities.is_empty() {
                return Err("it has no certificate: expected -----BEGIN CERTIFICATE-----".to_owned());
            }
            builder = builder.tls_certs_merge(authorities);
        }
        let client = builder.build().map_err(|e| format!("no HTTP client: {e}"))?;
        let (others, runners, stopping) =
            (watch::Sender::default(), watch::Sender::default(), watch::Sender::default());
        Ok(Gateways { number, key: key.into(), others, runners, stopping, client })
    }

    /// Returns the number of this gateway.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the key of this gateway.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Replaces the set of other gateways, by number.
    pub fn set_others(&self, others: BTreeMap<u64, Gateway>) {
        self.others.send_replace(others);
    }

    /// Returns the numbers of the other gateways.
    pub fn numbers(&self) -> Vec<u64> {
        self.others.borrow().keys().copied().collect()
    }

    /// Sets which gateway runs the saved searches of a slot from now on.
    pub fn set_runner(&self, slot: Slot, runner: SlotRunner) {
        self.runners.send_if_modified(|known| match known.get_mut(usize::from(slot.number())) {
            Some(known) => std::mem::replace(known, runner) != runner,
            None => false,
        });
    }

    /// Returns which gateway runs the saved searches of each slot.
    pub fn runners(&self) -> SlotRunners {
        *self.runners.borrow()
    }

    /// Returns which gateway runs the saved searches of a slot.
    pub fn runner_of(&self, slot: Slot) -> SlotRunner {
        self.runners().get(usize::from(slot.number())).copied().unwrap_or_default()
    }

    /// Returns another gateway by its number. An unknown one may have just started, so this waits until its
    /// announcement must have arrived.
    pub async fn find(&self, number: u64) -> Option<Gateway> {
        let (mut others, until) = (self.others.subscribe(), Instant::now() + HEARD);
        loop {
            let found = others.borrow_and_update().get(&number).cloned();
            if found.is_some() || !matches!(timeout_at(until, others.changed()).await, Ok(Ok(()))) {
                return found;
            }
        }
    }

    /// Returns the client for requests to other gateways.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Ends all relayed requests: this gateway stops.
    pub fn close(&self) {
        self.stopping.send_replace(true);
    }

    /// Completes once this gateway stops. Given a slot, also completes once a gateway other than the named one runs its
    /// saved searches. The previous one may be paused, and unable to report that.
    pub fn closed(&self, of: Option<(Slot, SlotRunner)>) -> impl Future<Output = ()> + Send + 'static {
        let (mut stopping, mut now) = (self.stopping.subscribe(), self.runners.subscribe());
        async move {
            // An error means that the sender has been dropped too.
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => {}
                _ = now.wait_for(|now| of.is_some_and(|(slot, runner)| now[usize::from(slot.number())] != runner)) => {}
            }
        }
    }

    /// Parses another gateway's statement about a request: its key, the client's address and the base of URLs. Returns
    /// `None` if it is not meant for this process.
    pub fn read(&self, header: &[u8]) -> Option<RelayOrigin> {
        let mut parts = std::str::from_utf8(header).ok()?.split(' ');
        let (key, client, base) = (parts.next()?, parts.next()?, parts.next()?);
        let relayed = RelayOrigin { client: client.parse().ok()?, base: base.into() };
        (parts.next().is_none() && is_same(key.as_bytes(), self.key.as_bytes())).then_some(relayed)
    }
}

/// Compares keys of equal length in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl fmt::Debug for Gateway {
    /// Without its key, which stands for any client.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the gateway {:?}", self.url)
    }
}

impl fmt::Debug for Gateways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the gateway {} of {:?}", self.number, *self.others.borrow())
    }
}

impl RelayOrigin {
    /// Formats the header for the next gateway.
    pub fn written(&self, key: &str) -> String {
        format!("{key} {} {}", self.client, self.base)
    }

    /// Returns whether the client uses TLS.
    pub fn is_secure(&self) -> bool {
        self.base.starts_with("https://")
    }
}

/// Checks a URL under which other gateways reach this one. Returns its host, which becomes one of the server's names.
///
/// # Errors
/// A sentence that describes the fault.
pub fn advertised(url: &str) -> Result<HostName, String> {
    let wrong = || {
        format!(
            "{url:?}: expected a URL without a path that other gateways can reach, such as http://gateway-1.example.org:7117"
        )
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let plain = matches!(parsed.scheme(), "http" | "https") && matches!(parsed.path(), "" | "/");
    let authority = url.split("://").nth(1).map(|rest| rest.trim_end_matches('/')).filter(|_| plain);
    authority.and_then(|authority| authority.parse().ok()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateways() -> Gateways {
        Gateways::new(7, "secret".to_owned(), None).unwrap()
    }

    #[test]
    fn what_is_passed_on_counts_with_the_key_of_this_process_alone() {
        let gateways = gateways();
        let relayed = RelayOrigin { client: "10.0.0.9".parse().unwrap(), base: "https://events.example.org".into() };
        assert_eq!(gateways.read(relayed.written("secret").as_bytes()), Some(relayed.clone()));
        assert!(relayed.is_secure());
        for header in ["", "secret", "secret 10.0.0.9", "secret somebody http://a", "secret 10.0.0.9 http://a more"] {
            assert_eq!(gateways.read(header.as_bytes()), None, "{header}");
        }
        for key in ["secreT", "", "secret1"] {
            assert_eq!(gateways.read(relayed.written(key).as_bytes()), None, "{key}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_just_started_is_waited_for_and_one_that_is_gone_not_for_long() {
        let gateways = Arc::new(gateways());
        let begun = Instant::now();
        assert_eq!(gateways.find(1).await, None);
        assert_eq!(begun.elapsed(), HEARD);
        let other = Gateway { url: "http://10.0.0.1:7117".into(), key: "k".into() };
        let finding = tokio::spawn({
            let gateways = gateways.clone();
            async move { gateways.find(1).await }
        });
        tokio::task::yield_now().await;
        gateways.set_others(BTreeMap::from([(2, other.clone())]));
        tokio::task::yield_now().await;
        gateways.set_others(BTreeMap::from([(1, other.clone())]));
        assert_eq!(finding.await.unwrap(), Some(other));
    }

    #[test]
    fn no_key_of_a_gateway_is_in_its_debug_text() {
        let gateways = gateways();
        let other = Gateway { url: "http://10.0.0.1:7117".into(), key: "another secret".into() };
        gateways.set_others(BTreeMap::from([(1, other)]));
        let told = format!("{gateways:?}");
        assert!(told.contains("10.0.0.1") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn an_advertised_url_has_a_host_and_no_path() {
        for url in ["http://gateway-1:7117", "https://g.example.org/", "http://[::1]:7117"] {
            assert!(advertised(url).is_ok(), "{url}");
        }
        for url in ["", "gateway-1:7117", "ftp://a", "http://a/b", "http://"] {
            assert!(advertised(url).unwrap_err().contains("expected a URL"), "{url}");
        }
    }
}
