//! One saved search: its definition, packets and counters.

use super::checkpoint::{UnreadPositions, earliest};
use super::dead_letters::WebhookState;
use super::definition::Definition;
use super::retention::PacketRetention;
use super::status::{PollReport, SavedSearchStatus};
use meridian_federation::delivery::Outbox;
use meridian_model::{FenceTransition, time};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Max results of remote providers remembered for deduplication.
const SEEN_MAX: usize = 10_000;

/// A saved search.
#[derive(Debug)]
pub struct SavedSearch {
    /// Its id in URLs: 32 hexadecimal digits.
    pub id: String,
    /// A shorter number for it within the process.
    pub(crate) number: u64,
    /// Creation time, in microseconds since 1970.
    pub created: i64,
    /// Its definition.
    pub definition: Definition,
    /// Its packets.
    pub outbox: Arc<Outbox>,
    /// Number of the newest write before its creation.
    pub(crate) since: u64,
    /// The origins of packets that may be unread, oldest first.
    pub(crate) origins: Mutex<VecDeque<Origin>>,
    /// The state of its webhook.
    pub(crate) webhook_state: Option<Arc<Mutex<WebhookState>>>,
    /// The state of its polls.
    pub(crate) polled: Mutex<PollState>,
    /// Locked during a poll.
    pub(crate) polling: tokio::sync::Mutex<()>,
    pub(crate) counts: Counts,
    pub(crate) packet_bytes: usize,
}

/// Counters since its creation or the last crash.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Results sent, and packets with results.
    pub(crate) results: AtomicU64,
    pub(crate) result_packets: AtomicU64,
    /// Unprocessed events of its tenant, as reported to readers.
    pub(crate) told_dropped: AtomicU64,
    /// Unprocessed events before its creation.
    pub(crate) dropped_before: AtomicU64,
    /// Events left out of the catch-up because there were too many.
    pub(crate) left_out: AtomicU64,
}

/// The write whose events a run of packets reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// End of the packet numbers, exclusive. They start at the end of the previous origin.
    end: u64,
    collection: String,
    #[serde(default, skip_serializing_if = "is_first")]
    partition: usize,
    position: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(partition: &usize) -> bool {
    *partition == 0
}

/// The state of polls.
#[derive(Debug, Default)]
pub(crate) struct PollState {
    /// Polls done.
    pub(crate) polls: u64,
    /// End time of the last one, in microseconds since 1970.
    pub(crate) last: Option<i64>,
    /// The state of each provider, as reported to readers.
    pub(crate) states: BTreeMap<String, String>,
    /// Why the last one could not start.
    pub(crate) failing: Option<String>,
    pub(crate) seen: SentHashes,
    /// Whether there are seen results that are not on disk yet.
    pub(crate) news: bool,
}

/// Hashes of results sent; the oldest are evicted.
#[derive(Debug, Default)]
pub(crate) struct SentHashes {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SentHashes {
    /// Records a result. Returns `false` if it is known.
    pub(crate) fn is_new(&mut self, result: u64) -> bool {
        if !self.known.insert(result) {
            return false;
        }
        self.order.push_back(result);
        if self.order.len() > SEEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    /// Encodes the hashes for the disk, oldest first.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.order.iter().flat_map(|result| result.to_le_bytes()).collect()
    }

    /// Decodes these bytes.
    pub(crate) fn of(bytes: &[u8]) -> SentHashes {
        let mut seen = SentHashes::default();
        for result in bytes.as_chunks::<8>().0 {
            seen.is_new(u64::from_le_bytes(*result));
        }
        seen
    }
}

impl SavedSearch {
    /// Sends results, in packets of bounded size.
    pub(crate) fn send(
        &self,
        retention: &PacketRetention,
        provider: &str,
        when: Option<FenceTransition>,
        features: &[Arc<str>],
    ) {
        let room = self.room(provider);
        let mut rest = features;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |feature: &&Arc<str>| {
                bytes += feature.len() + 1;
                bytes <= room
            };
            // At least one, or a feature that exceeds the room would loop forever.
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let list = now.iter().map(|feature| &**feature).collect::<Vec<&str>>().join(",");
            let (search, provider) = (json!(self.id), json!(provider));
            let when = when.map_or_else(String::new, |when| format!("\"when\":\"{}\",", when.word()));
            let kept = retention.keep(&self.definition.tenant, &self.outbox, |seq| {
                format!(
                    "{{\"search\":{search},\"seq\":{seq},\"provider\":{provider},\"kind\":\"results\",{when}\"features\":[{list}]}}"
                )
            });
            if kept {
                self.counts.results.fetch_add(now.len() as u64, Ordering::Relaxed);
                self.counts.result_packets.fetch_add(1, Ordering::Relaxed);
            }
            rest = later;
        }
    }

    /// Records that the packets sent last report the write at this position of a partition, or later ones.
    pub(crate) fn note_origin(&self, collection: &str, partition: usize, position: u64) {
        let (_, end, _) = self.outbox.numbers();
        let origin = Origin { end, collection: collection.to_owned(), partition, position };
        self.untaken().push_back(origin);
    }

    /// The origins of packets that may be unread, oldest first.
    pub(crate) fn untaken(&self) -> MutexGuard<'_, VecDeque<Origin>> {
        let taken = self.taken();
        let mut origins = self.origins.lock();
        while origins.front().is_some_and(|oldest| oldest.end <= taken) {
            origins.pop_front();
        }
        origins
    }

    /// Returns, by collection, the position before the first write in each partition that unread packets report.
    pub(crate) fn behind(&self) -> BTreeMap<String, UnreadPositions> {
        let mut behind: BTreeMap<String, UnreadPositions> = BTreeMap::new();
        for origin in self.untaken().iter() {
            let before = UnreadPositions::default().with(origin.partition, Some(origin.position.saturating_sub(1)));
            let min = behind.entry(origin.collection.clone()).or_default();
            *min = earliest(min, &before);
        }
        behind
    }

    /// Packets below this number were taken (by the webhook if there is one) or evicted. For a deleted saved search,
    /// all of them.
    fn taken(&self) -> u64 {
        // Deleted: its packets need no catch-up, whatever was read.
        if self.outbox.is_sealed() {
            return u64::MAX;
        }
        let (first, taken) = self.outbox.taken();
        first.max(self.webhook_state.as_ref().map_or(taken, |webhook_state| webhook_state.lock().next()))
    }

    /// Max bytes of the features in a packet. Around them are names, kind, and a number of up to twenty digits.
    pub(crate) fn room(&self, provider: &str) -> usize {
        self.packet_bytes.saturating_sub(140 + self.id.len() + provider.len())
    }

    /// Reports the state of a provider.
    pub(crate) fn report(
        &self,
        retention: &PacketRetention,
        provider: &str,
        state: &str,
        detail: &str,
        results: u64,
        ms: u64,
    ) {
        // Details come from outside sources, and packets have a bounded size.
        let detail = &detail[..detail.floor_char_boundary(400)];
        retention.keep(&self.definition.tenant, &self.outbox, |seq| {
            json!({"search": self.id, "seq": seq, "provider": provider, "kind": "provider", "state": state,
                "detail": detail, "results": results, "ms": ms})
            .to_string()
        });
    }

    /// Sends the last packet: the saved search is deleted.
    pub(crate) fn end(&self) {
        self.outbox.seal(|seq| {
            json!({"search": self.id, "seq": seq, "kind": "complete", "state": "complete", "packets": seq + 1,
                "result_packets": self.counts.result_packets.load(Ordering::Relaxed), "providers": {},
                "detail": "the saved search was deleted"})
            .to_string()
        });
    }

    /// Returns its state; `dropped` is the number of unprocessed events of its tenant.
    pub(crate) fn status(&self, dropped: u64, letters: bool) -> SavedSearchStatus {
        let (first_packet, next_packet, lost_packets) = self.outbox.numbers();
        let unseen = dropped.saturating_sub(self.counts.dropped_before.load(Ordering::Relaxed));
        let mut definition = self.definition.shown();
        // The state of the webhook replaces its definition.
        definition.remove("webhook");
        let webhook = self.webhook_state.as_ref().zip(self.definition.webhook.as_ref());
        SavedSearchStatus {
            id: self.id.clone(),
            created: time::format_instant(self.created),
            results: self.counts.results.load(Ordering::Relaxed),
            first_packet,
            next_packet,
            lost_packets,
            dropped_events: unseen + self.counts.left_out.load(Ordering::Relaxed),
            webhook: webhook.map(|(state, webhook)| state.lock().report(webhook.url.as_str(), letters)),
            polls: self.definition.poll.map(|_| self.polled.lock().report()),
            definition,
        }
    }
}

impl PollState {
    fn report(&self) -> PollReport {
        PollReport {
            count: self.polls,
            last: self.last.map(time::format_instant),
            providers: self.states.clone(),
            failing: self.failing.clone(),
        }
    }
}
