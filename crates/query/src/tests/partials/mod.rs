//! Partial results of several partitions, sent as Arrow and merged, against one collection with all events.

mod hostile;
mod numbers;
mod refused;
mod rows;
mod tiles;

use super::world::*;
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use proptest::prelude::*;
use std::collections::HashMap;

/// One collection, and the same events over several.
pub(super) struct Partitions {
    pub(super) whole: World,
    pub(super) parts: Vec<World>,
}

/// An operation on all of them.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Events, each with a number that chooses its partition.
    Write(Vec<(Event, u8)>),
    Delete(usize),
    /// The whole, or the partition with this number.
    Flush(Option<u8>),
    Maintain,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = |events: Vec<Event>| {
        let length = events.len();
        (Just(events), prop::collection::vec(0u8..5, length))
            .prop_map(|(e, p)| Step::Write(e.into_iter().zip(p).collect()))
    };
    let step = prop_oneof![
        5 => batches(60).prop_flat_map(write),
        1 => (2usize..9).prop_map(Step::Delete),
        2 => prop::option::of(0u8..5).prop_map(Step::Flush),
        1 => Just(Step::Maintain),
    ];
    prop::collection::vec(step, 1..7)
}

/// Kinds with given ids, by which an event is known in both worlds.
pub(super) fn given_kinds() -> impl Strategy<Value = Kind> {
    kinds().prop_map(|kind| Kind { made_ids: false, ..kind })
}

impl Partitions {
    pub(super) fn after(kind: Kind, count: usize, steps: &[Step]) -> Partitions {
        let parts = (0..count).map(|_| World::new(kind)).collect();
        let mut all = Partitions { whole: World::new(kind), parts };
        let mut next = 0;
        for step in steps {
            all.apply(step, &mut next);
        }
        all
    }

    fn apply(&mut self, step: &Step, next: &mut usize) {
        match step {
            Step::Write(events) => {
                let mut events = events.clone();
                for (event, part) in &mut events {
                    event.id = format!("e{next}");
                    *part %= self.parts.len() as u8;
                    *next += 1;
                }
                let of = |wanted: Option<usize>| -> Vec<Event> {
                    let here =
                        events.iter().filter(|(_, part)| wanted.is_none_or(|wanted| usize::from(*part) == wanted));
                    here.map(|(event, _)| event.clone()).collect()
                };
                self.whole.write_as_they_are(&of(None));
                self.parts.iter_mut().enumerate().for_each(|(i, part)| part.write_as_they_are(&of(Some(i))));
            }
            Step::Delete(every) => {
                let ids: Vec<String> = self.whole.live.iter().step_by(*every).map(|e| e.id.clone()).collect();
                self.whole.delete(&ids);
                self.parts.iter_mut().for_each(|part| part.delete(&ids));
            }
            Step::Flush(None) => self.whole.apply(&Op::Flush),
            Step::Flush(Some(part)) => {
                let count = self.parts.len();
                self.parts[usize::from(*part) % count].apply(&Op::Flush);
            }
            Step::Maintain => self.parts.iter_mut().for_each(|part| part.apply(&Op::Maintain)),
        }
    }

    /// Events by their ids.
    pub(super) fn events(&self) -> HashMap<&str, &Event> {
        self.whole.live.iter().map(|event| (event.id.as_str(), event)).collect()
    }
}

/// A record batch after a round trip over the wire.
pub(super) fn shipped(batch: &RecordBatch) -> RecordBatch {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let schema = reader.schema();
    let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &read).unwrap()
}
