//! Deliver: results become packets of bounded size.

use super::{Stage, Work, WorkLane};
use crate::found::Found;
use crate::leg::Leg;
use crate::provider::Own;
use std::sync::Arc;

/// The stage.
pub struct Deliver {
    /// Where results go that are kept.
    pub keep: WorkLane<Vec<Found>>,
}

impl Stage for Deliver {
    type Body = Vec<Found>;
    const NAME: &'static str = "deliver";

    async fn run(self: Arc<Self>, work: Work<Vec<Found>>) {
        let Work { leg, body } = work;
        let question = leg.search.question.clone();
        // What comes from this server's own collections is kept already.
        let kept = (question.keep.is_some() && leg.provider.name() != Own::NAME).then(|| body.clone());
        deliver(&leg, body);
        if let Some(body) = kept {
            self.keep.push(Work { leg, body }).await;
        }
    }
}

fn deliver(leg: &Leg, body: Vec<Found>) {
    let (search, provider) = (&leg.search, leg.provider.name());
    // What stands around the features: names, kind, and a number of up to twenty digits.
    let around = 120 + search.id.len() + provider.len();
    let room = search.packet_bytes.saturating_sub(around);
    let (mut packet, mut bytes) = (Vec::new(), 0);
    let no_room = || leg.lose("whoever asked reads too slowly: there was no room for all its results".to_owned());
    for found in body {
        let Some(feature) = found.feature_within(room) else {
            leg.unreadable(1);
            continue;
        };
        if bytes + feature.len() + 1 > room && !packet.is_empty() {
            if !search.send(provider, &packet) {
                return no_room();
            }
            packet.clear();
            bytes = 0;
        }
        bytes += feature.len() + 1;
        packet.push(feature);
    }
    if !packet.is_empty() && !search.send(provider, &packet) {
        no_room();
    }
}
