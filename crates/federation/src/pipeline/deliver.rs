//! Deliver: results become packets of bounded size.
//!
//! What finds no room because its reader is slow waits until he has taken more, in a task of its own: no other search waits for
//! him. So many bytes may wait, of all searches together; what is over that is lost, and so is what finds no room before
//! anybody has come to read.

use super::{Stage, Work, WorkLane, begin};
use crate::found::Found;
use crate::leg::Leg;
use crate::provider::Own;
use meridian_admission::ByteBudget;
use std::sync::Arc;
use std::vec::IntoIter;

/// Why results are lost.
const LOST: &str = "whoever asked reads too slowly: there was no room for all its results";

/// The stage.
pub struct Deliver {
    keep: WorkLane<Vec<Found>>,
    /// Room for what waits for readers.
    budget: ByteBudget,
}

impl Deliver {
    /// Results to be kept go to `keep`; so many bytes may wait for readers.
    pub fn new(keep: WorkLane<Vec<Found>>, waiting_bytes: usize) -> Deliver {
        Deliver { keep, budget: ByteBudget::new(waiting_bytes) }
    }

    fn deliver(&self, leg: &Arc<Leg>, body: Vec<Found>) {
        let (search, provider) = (&leg.search, leg.provider.name());
        let mut packets = Packets::of(leg, body);
        while let Some(packet) = packets.next() {
            if !search.send(provider, &packet) {
                let rest = std::iter::once(packet).chain(packets.by_ref()).collect();
                return self.wait(leg, rest);
            }
        }
    }

    fn wait(&self, leg: &Arc<Leg>, packets: Vec<Vec<String>>) {
        let bytes: usize = packets.iter().flatten().map(String::len).sum();
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
    type Body = Vec<Found>;
    const NAME: &'static str = "deliver";

    async fn run(self: Arc<Self>, work: Work<Vec<Found>>) {
        let Work { leg, body } = work;
        let question = leg.search.question.clone();
        // What comes from this server's own collections is kept already.
        let kept = (question.keep.is_some() && leg.provider.name() != Own::NAME).then(|| body.clone());
        self.deliver(&leg, body);
        if let Some(body) = kept {
            self.keep.push(Work { leg, body }).await;
        }
    }
}

/// The work on packets that wait for their reader. It runs in a task of its own and in no queue.
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

/// Results as lists of features, each of which fits a packet.
struct Packets<'a> {
    leg: &'a Leg,
    body: IntoIter<Found>,
    room: usize,
    /// The first of the next packet.
    over: Option<String>,
}

impl Packets<'_> {
    fn of(leg: &Leg, body: Vec<Found>) -> Packets<'_> {
        // What stands around the features: names, kind, and a number of up to twenty digits.
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
