//! The invariants after every step of any process.

use super::{World, WriteOutcome};
use crate::bucket::{Content, Event, LogObject};
use meridian_model::policy::owner::{Breakage, LogPlace};
use std::sync::Arc;

impl World {
    /// Checks the contents of newest manifest and log together: everything acknowledged, once, in order.
    pub(super) fn check_bucket(&self) -> Result<(), String> {
        let newest = self.bucket.manifests.get(&self.head).ok_or("the newest manifest is gone")?;
        let manifest = &newest.manifest;
        let Some(mut content) = self.bucket.read_files(&manifest.files) else {
            return Err(format!("manifest {} names a file that is gone", self.head));
        };
        let (mut at, mut before, mut position) = (manifest.log, None, 0);
        while let Some(object) = self.bucket.log.get(&at).or_else(|| self.without_fence(at)) {
            if before.is_some_and(|before| before != object.before) {
                return Err(format!("{at:?} does not follow the object before it"));
            }
            before = Some(object.sum());
            let place = object.place;
            match &object.content {
                Content::Fence(epoch) => at = LogPlace { epoch: *epoch, number: place.number + 1 },
                Content::Group(events) => {
                    for event in events {
                        if event.position <= position {
                            return Err(format!("position {} comes after {position}", event.position));
                        }
                        position = event.position;
                    }
                    content.extend(events.iter().filter(|event| event.position > manifest.flushed));
                    at = place.next();
                }
            }
        }
        self.check_content(&content, false)
    }

    /// For a log without fences: where another writer's part begins.
    fn without_fence(&self, at: LogPlace) -> Option<&Arc<LogObject>> {
        let later = |place: &&LogPlace| place.number == at.number && place.epoch > at.epoch;
        let place = self.rules.breaks(Breakage::LeaseAlone).then(|| self.bucket.log.keys().find(later))??;
        self.bucket.log.get(place)
    }

    /// Checks events against the known outcomes of the writes. With `whole`, none may be there in part, as a client
    /// would see it.
    pub(super) fn check_content(&self, content: &[Event], whole: bool) -> Result<(), String> {
        for (write, outcome) in self.outcomes.iter().enumerate() {
            let count =
                |half| content.iter().filter(|event| usize::from(event.write) == write && event.half == half).count();
            match (outcome, count(0), count(1)) {
                (_, 2.., _) | (_, _, 2..) => return Err(format!("write {write} is there twice")),
                (WriteOutcome::Stored, 1, 1)
                | (WriteOutcome::Absent | WriteOutcome::Open, 0, 0)
                | (WriteOutcome::Open, 1, 1) => {}
                (WriteOutcome::Stored, ..) => return Err(format!("write {write} was acknowledged and is lost")),
                (WriteOutcome::Absent, ..) => return Err(format!("write {write} was refused and is there")),
                (WriteOutcome::Open, ..) if whole => return Err(format!("write {write} is there in part")),
                (WriteOutcome::Open, ..) => {}
            }
        }
        Ok(())
    }
}
