//! The ledger of a search: its providers, their outcomes, and the last packet that sums them up.

use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The outcome of a provider in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It returned all its results, up to the limit.
    Complete,
    /// It was not queried, because it does not support the question.
    Skipped,
    /// It did not finish in time.
    Timeout,
    /// It failed, or its response was not as declared.
    Error,
    /// It was not queried, or it refused: budget, rate limit, circuit breaker.
    Refused,
}

impl State {
    /// Returns its name in packets.
    pub fn word(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Skipped => "skipped",
            State::Timeout => "timeout",
            State::Error => "error",
            State::Refused => "refused",
        }
    }
}

/// Account of a search: the packets of each provider, and how each ended.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Whether the last packet was sent. Set under the same lock as the last packet, and checked before each change:
    /// so nothing is recorded that the last packet does not sum up.
    pub(super) sealed: bool,
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) result_packets: u64,
    pub(super) first: Option<Duration>,
    pub(super) last: Option<Duration>,
    pub(super) kept: usize,
}

/// The last packet.
#[derive(Serialize)]
pub(super) struct CompletePacket<'a> {
    pub(super) search: &'a str,
    pub(super) seq: u64,
    pub(super) kind: &'static str,
    pub(super) state: &'static str,
    pub(super) packets: u64,
    pub(super) result_packets: u64,
    pub(super) providers: BTreeMap<&'a str, &'static str>,
    pub(super) ttfp_ms: Option<u64>,
    pub(super) ttlp_ms: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) more: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<usize>,
}

/// Returns the max bytes of the last packet of a search that queries all these providers. It cannot be truncated.
pub(crate) fn last_bytes(providers: &[&str]) -> usize {
    // The longest number and the longest word of each kind, so that no real packet is longer.
    let (most, word) = (u64::MAX, State::Complete.word());
    let last = CompletePacket {
        search: &"0".repeat(32),
        seq: most,
        kind: "complete",
        state: word,
        packets: most,
        result_packets: most,
        providers: providers.iter().map(|name| (*name, word)).collect(),
        ttfp_ms: Some(most),
        ttlp_ms: Some(most),
        more: providers.to_vec(),
        kept: Some(usize::MAX),
    };
    json!(last).to_string().len()
}

/// The account of one provider.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) state: Option<(State, String)>,
    pub(super) results: u64,
    pub(super) ms: u64,
    /// Whether it may have more results than requested.
    pub(super) more: bool,
    pub(super) not_kept: bool,
    /// Batches of results that wait for a slow reader.
    pub(super) waiting: usize,
}

impl Ledger {
    /// Returns `complete` if every provider queried completed, `absent` if none did and there are no results, else
    /// `partial`.
    pub(super) fn word(&self) -> &'static str {
        let mut asked = self
            .entries
            .values()
            .filter_map(|e| e.state.as_ref())
            .map(|(s, _)| *s)
            // A provider that was not queried cannot make a search partial.
            .filter(|s| *s != State::Skipped)
            .peekable();
        let none_asked = asked.peek().is_none();
        // Of no provider at all `all` stays true, hence the check whether any was queried.
        let (mut all, mut any) = (true, false);
        for state in asked {
            all &= state == State::Complete;
            any |= state == State::Complete;
        }
        // Results of a provider that failed later were delivered, so the search is not without an answer.
        match (all && !none_asked, any || self.result_packets > 0) {
            (true, _) => "complete",
            (false, true) => "partial",
            (false, false) => "absent",
        }
    }

    /// Returns the providers that may have more results than requested.
    pub(super) fn with_more(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, entry)| entry.more).map(|(name, _)| name.as_str())
    }

    pub(super) fn states(&self) -> BTreeMap<&str, &'static str> {
        let state = |entry: &Entry| entry.state.as_ref().map_or("timeout", |(state, _)| state.word());
        self.entries.iter().map(|(name, entry)| (name.as_str(), state(entry))).collect()
    }
}
