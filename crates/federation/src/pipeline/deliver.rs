//! Deliver: results become packets of bounded size.
//!
//! Packets that find no space because the reader is slow wait in a task of their own, so that no other search is
//! delayed. All searches together may have a bounded number of bytes waiting. Results beyond it are lost, and so are
//! results without space before the first reader attaches.

use super::{Stage, Work, WorkLane, begin};
use crate::provider::{Leg, LocalProvider};
use crate::search_result::SearchResult;
use meridian_admission::ByteBudget;
use std::sync::Arc;
use std::vec::IntoIter;

/// Why results are lost.
const LOST: &str = "the client reads too slowly: there was no space for all its results";

/// The stage.
pub struct Deliver {
    keep: WorkLane<Vec<SearchResult>>,
    /// Budget for packets that wait for readers.
    budget: ByteBudget,
}

impl Deliver {
    /// Results to be stored go to `keep`. Packets waiting for readers hold at most `waiting_bytes`.
    pub fn new(keep: WorkLane<Vec<SearchResult>>, waiting_bytes: usize) -> Deliver {
        Deliver { keep, budget: ByteBudget::new(waiting_bytes) }
    }

    fn deliver(&self, leg: &Arc<Leg>, body: Vec<SearchResult>) {
        let (search, provider) = (&leg.search, leg.provider.name());
        let mut packets = Packets::of(leg, body);
        while let Some(packet) = packets.next() {
            if !search.send(provider, &packet) {
                // The order of results is kept: all later packets wait behind the first that found no space.
                let rest = std::iter::once(packet).chain(packets.by_ref()).collect();
                return self.wait(leg, rest);
            }
        }
    }

    fn wait(&self, leg: &Arc<Leg>, packets: Vec<Vec<String>>) {
        let bytes: usize = packets.iter().flatten().map(String::len).sum();
        // Without a reader yet, waiting would hold memory for a client that may never come.
        let held = leg.search.outbox.has_been_read().then(|| self.budget.try_take(bytes)).flatten();
        match held {
            Some(held) => {
                let work = Work { leg: leg.clone(), body: packets };
                begin(Arc::new(Wait), work, held, leg.search.tally.clone());
            }
            None => leg.lose(LOST.to_owned()),
        }
    }
}

impl Stage for Deliver {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "deliver";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, body } = work;
        let question = leg.search.question.clone();
        // Results of the local provider are in a collection already.
        let kept = (question.keep.is_some() && leg.provider.name() != LocalProvider::NAME).then(|| body.clone());
        // Delivered before it is stored: the client must not wait for a write to disk.
        self.deliver(&leg, body);
        if let Some(body) = kept {
            self.keep.push(Work { leg, body }).await;
        }
    }
}

/// Packets that wait for their reader. They run in a task of their own, outside any queue.
struct Wait;

impl Stage for Wait {
    type Body = Vec<Vec<String>>;
    const NAME: &'static str = "deliver";

    async fn run(self: Arc<Self>, work: Work<Vec<Vec<String>>>) {
        let Work { leg, body } = work;
        let (search, provider) = (&leg.search, leg.provider.name());
        search.waits_for_reader(provider, true);
        for packet in &body {
            search.send_when_read(provider, packet).await;
        }
        search.waits_for_reader(provider, false);
    }
}

/// Results grouped into lists of features, each of which fits a packet.
struct Packets<'a> {
    leg: &'a Leg,
    body: IntoIter<SearchResult>,
    room: usize,
    /// The first feature of the next packet.
    over: Option<String>,
}

impl Packets<'_> {
    fn of(leg: &Leg, body: Vec<SearchResult>) -> Packets<'_> {
        // Bytes around the features: names, kind, and a number of up to twenty digits.
        let around = 120 + leg.search.id.len() + leg.provider.name().len();
        let room = leg.search.packet_bytes.saturating_sub(around);
        Packets { leg, body: body.into_iter(), room, over: None }
    }

    fn feature(&mut self) -> Option<String> {
        if let Some(feature) = self.over.take() {
            return Some(feature);
        }
        loop {
            match self.body.next()?.feature_within(self.room) {
                Some(feature) => return Some(feature),
                None => self.leg.unreadable(1),
            }
        }
    }
}

impl Iterator for Packets<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        let (mut packet, mut bytes) = (Vec::new(), 0);
        while let Some(feature) = self.feature() {
            if bytes + feature.len() + 1 > self.room && !packet.is_empty() {
                self.over = Some(feature);
                break;
            }
            bytes += feature.len() + 1;
            packet.push(feature);
        }
        (!packet.is_empty()).then_some(packet)
    }
}
