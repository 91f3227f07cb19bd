//! Positions of collections, as their writes move them: what the gateways' subscribers start from.
//!
//! Partitions that have not moved are named too. So a reader that was told by the owner before knows which partitions there were, and where each
//! was. One that it does not know was made since, and all of its writes are new. Without them, what the owner before took while no reader was
//! connected would be missed in a partition that had not moved until then.
//!
//! A reader gets the newest position of each collection that moved since its last message, however many writes that were.
//! What is kept is bounded by the number of collections, and a slow reader delays no other.

use super::answers::Out;
use crate::wire::answer::{Meta, Moved};
use crate::wire::fault::Fault;
use meridian_backend::Held;
use meridian_model::{Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// Max partitions of collections that are remembered; beyond it, the ones without a move for longest are forgotten.
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
    /// By tenant, name and time of creation of a collection, and partition.
    last: HashMap<(Arc<str>, Arc<str>, i64, usize), Move>,
}

/// The last move of a collection.
#[derive(Debug, Clone, Copy)]
struct Move {
    /// Its number among all moves.
    number: u64,
    /// How many partitions the collection has.
    partitions: u16,
    /// Where to.
    position: u64,
    /// The position before the first move that was noted; 0 of one that was there before.
    since: u64,
}

/// What the backend notifies, for as long as the server runs: a backend may be served again and again.
#[derive(Debug)]
pub(super) struct Noting(pub(super) Weak<Positions>);

impl Subscriber for Noting {
    fn listens(&self) -> bool {
        // Always: a reader is told where each collection was when it began to read.
        self.0.strong_count() > 0
    }

    fn notify(&self, written: WrittenBatch) {
        if let Some(positions) = self.0.upgrade() {
            positions.note(written);
        }
    }
}

impl Positions {
    /// Notes where partitions are before any of them moves.
    pub(super) fn begin(&self, held: Vec<Held>) {
        let mut state = self.state.lock();
        for Held { tenant, collection, made, partition, partitions, position } in held {
            state.moves += 1;
            let there = Move { number: state.moves, partitions, position, since: 0 };
            // A write that was noted meanwhile is newer.
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
            state.last.retain(|_, moved| number - moved.number < COLLECTIONS_MAX as u64 / 2);
        }
        drop(state);
        self.moves.send_replace(number);
    }

    /// What moved after a move, and the number of the newest.
    fn since(&self, after: u64) -> (u64, Vec<Moved>) {
        let state = self.state.lock();
        let newer = state.last.iter().filter(|(_, moved)| moved.number > after);
        let moved = newer.map(|((tenant, name, made, partition), Move { partitions, position, since, .. })| Moved {
            tenant: tenant.to_string(),
            name: name.to_string(),
            made: *made,
            partition: *partition,
            partitions: *partitions,
            position: *position,
            since: *since,
        });
        (state.moves, moved.collect())
    }
}

/// Sends positions until the caller goes away: first of all collections, then of each as it moves.
pub(super) async fn send(positions: &Arc<Positions>, out: &Out) -> Result<(), Fault> {
    let mut moves = positions.moves.subscribe();
    let mut after = 0;
    loop {
        moves.mark_unchanged();
        let moved;
        (after, moved) = positions.since(after);
        let message = Meta { moved, ..Meta::default() };
        if out.send(Ok(message.alone())).await.is_err() || moves.changed().await.is_err() {
            return Ok(());
        }
    }
}
