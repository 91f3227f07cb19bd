//! Positions of collections as writes advance them, which the gateways' subscribers start from.
//!
//! Partitions that have not moved are reported too. So a reader with reports of the previous owner knows which
//! partitions existed, and their positions. One that it does not know was created since, and all of its writes are new.
//! Otherwise, in a partition without moves so far, it would miss writes that the previous owner took while no reader
//! was connected.
//!
//! A reader gets the newest position of each collection that moved since its last message, however many writes that
//! covers. The state is bounded by the number of collections, and a slow reader delays no other.

use super::reply::ResponseSender;
use crate::wire::answer::{Meta, PartitionPosition};
use crate::wire::fault::Fault;
use meridian_backend::HeldPartition;
use meridian_model::{Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// Max partitions remembered. Beyond that, those without a move for longest are forgotten.
const COLLECTIONS_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Positions {
    state: Mutex<State>,
    /// The number of the newest move.
    moves: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    moves: u64,
    /// By tenant, name and creation time of a collection, and partition.
    last: HashMap<(Arc<str>, Arc<str>, i64, usize), Move>,
}

/// The last move of a collection.
#[derive(Debug, Clone, Copy)]
struct Move {
    /// Number of this move, in the order of all moves.
    number: u64,
    /// Number of partitions of the collection.
    partitions: u16,
    /// The new position.
    position: u64,
    /// The position before the first recorded move; 0 if the partition existed before recording began.
    since: u64,
}

/// Subscriber registered with the backend. It ends with the server, as a backend may be served repeatedly.
#[derive(Debug)]
pub(super) struct PositionSubscriber(pub(super) Weak<Positions>);

impl Subscriber for PositionSubscriber {
    fn listens(&self) -> bool {
        // Always true: a new reader is told where each collection was when it began to read.
        self.0.strong_count() > 0
    }

    fn notify(&self, written: WrittenBatch) {
        if let Some(positions) = self.0.upgrade() {
            positions.note(written);
        }
    }
}

impl Positions {
    /// Records where partitions are before any of them moves.
    pub(super) fn begin(&self, held: Vec<HeldPartition>) {
        let mut state = self.state.lock();
        for HeldPartition { tenant, collection, made, partition, partitions, position } in held {
            state.moves += 1;
            let there = Move { number: state.moves, partitions, position, since: 0 };
            // A write recorded meanwhile is newer.
            let known = state.last.entry((tenant, collection, made, partition)).or_insert(there);
            known.since = 0;
        }
        self.moves.send_replace(state.moves);
    }

    fn note(&self, written: WrittenBatch) {
        let mut state = self.state.lock();
        state.moves += 1;
        let (number, position) = (state.moves, written.first.position());
        let (partition, partitions) = (written.partition(), written.partitions);
        let first = Move { number, partitions, position, since: position.saturating_sub(1) };
        let moved = state.last.entry((written.tenant, written.collection, written.made, partition)).or_insert(first);
        (moved.number, moved.position) = (number, position);
        if state.last.len() > COLLECTIONS_MAX {
            // Half of the room is freed at once, so that a full map is not searched at each write.
            state.last.retain(|_, moved| number - moved.number < COLLECTIONS_MAX as u64 / 2);
        }
        // Readers that wake up take the lock.
        drop(state);
        self.moves.send_replace(number);
    }

    /// Returns what moved after a move, and the number of the newest.
    fn since(&self, after: u64) -> (u64, Vec<PartitionPosition>) {
        let state = self.state.lock();
        let newer = state.last.iter().filter(|(_, moved)| moved.number > after);
        let moved = newer.map(|((tenant, name, made, partition), Move { partitions, position, since, .. })| {
            PartitionPosition {
                tenant: tenant.to_string(),
                name: name.to_string(),
                made: *made,
                partition: *partition,
                partitions: *partitions,
                position: *position,
                since: *since,
            }
        });
        (state.moves, moved.collect())
    }
}

/// Sends positions until the caller goes away: first of all collections, then of each as it moves.
pub(super) async fn send(positions: &Arc<Positions>, out: &ResponseSender) -> Result<(), Fault> {
    let mut moves = positions.moves.subscribe();
    let mut after = 0;
    loop {
        // Before the state is read: a move in between wakes the reader once more, instead of being missed.
        moves.mark_unchanged();
        let moved;
        (after, moved) = positions.since(after);
        let message = Meta { moved, ..Meta::default() };
        if out.send(Ok(message.alone())).await.is_err() || moves.changed().await.is_err() {
            return Ok(());
        }
    }
}
