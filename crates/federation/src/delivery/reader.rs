//! Readers of packets: their positions, how far they lag, and how long there has been none.

use super::{Outbox, PacketEvicted, State};
use parking_lot::MutexGuard;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// A reader of a search's packets, in order.
#[derive(Debug)]
pub struct Reader {
    outbox: Arc<Outbox>,
    id: u64,
}

impl Reader {
    /// Returns the next packet and its number. `None` after the last packet, and if the next one was evicted because
    /// this reader lagged. [`Outbox::read`] then returns the packets still kept.
    pub async fn next(&mut self) -> Option<(u64, Arc<str>)> {
        loop {
            let mut changed = pin!(self.outbox.changed.notified());
            // Enabled before the state is read, so that a change in between is not missed.
            changed.as_mut().enable();
            {
                let mut state = self.outbox.state.lock();
                // Positions live in the outbox, not in the reader: eviction needs the slowest of them.
                let at = *state.readers.get(&self.id)?;
                if at < state.first {
                    return None;
                }
                if let Some(packet) = state.packets.get((at - state.first) as usize).cloned() {
                    state.readers.insert(self.id, at + 1);
                    state.taken = state.taken.max(at + 1);
                    // A search that waits for a slow source appends no packets. It must still release budget that
                    // others need.
                    let floor = state.floor();
                    while self.outbox.budget.is_short() && state.first < floor {
                        self.outbox.evict_first(&mut state);
                    }
                    // Wakes other readers and `wait_for_space` only after this lock is released.
                    drop(state);
                    self.outbox.changed.notify_waiters();
                    return Some((at, packet));
                }
                if state.sealed || state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.outbox.state.lock();
        state.readers.remove(&self.id);
        if state.readers.is_empty() {
            state.unread_since = Some(Instant::now());
        }
        drop(state);
        self.outbox.changed.notify_waiters();
    }
}

impl Outbox {
    /// Adds a reader of the packets from number `from` on. Fails if that packet has been evicted.
    pub fn read(self: &Arc<Outbox>, from: u64) -> Result<Reader, PacketEvicted> {
        let state = self.state.lock();
        if from < state.first {
            return Err(PacketEvicted { first: state.first });
        }
        Ok(self.reader(state, from))
    }

    /// Adds a reader of all kept packets and the following ones.
    pub fn read_kept(self: &Arc<Outbox>) -> Reader {
        let state = self.state.lock();
        let first = state.first;
        self.reader(state, first)
    }

    fn reader(self: &Arc<Outbox>, mut state: MutexGuard<'_, State>, from: u64) -> Reader {
        // Ids are never reused, so a dropped reader cannot remove its successor.
        let id = state.readers_made;
        state.readers_made += 1;
        // A number that is not assigned yet means the next packet.
        let from = from.min(state.next());
        state.readers.insert(id, from);
        (state.unread_since, state.had_reader) = (None, true);
        drop(state);
        self.changed.notify_waiters();
        Reader { outbox: self.clone(), id }
    }

    /// Returns whether there is no reader, and either all packets were taken or the last reader left at least `gone`
    /// ago. Before the first reader, the limit is `wait`.
    pub fn is_done_with(&self, gone: Duration, wait: Duration) -> bool {
        let state = self.state.lock();
        let Some(since) = state.unread_since else { return false };
        state.taken == state.next() || since.elapsed() >= if state.had_reader { gone } else { wait }
    }

    /// Completes once there has been no reader for `gone`, or for `wait` before the first reader.
    pub async fn abandoned(&self, gone: Duration, wait: Duration) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let until = {
                let state = self.state.lock();
                state.unread_since.map(|since| since + if state.had_reader { gone } else { wait })
            };
            match until {
                None => changed.await,
                Some(until) => {
                    if tokio::time::timeout_at(until, changed).await.is_err() {
                        // Checked again: a reader may have come and gone meanwhile, which restarts the period.
                        let state = self.state.lock();
                        if state
                            .unread_since
                            .is_some_and(|since| since + if state.had_reader { gone } else { wait } <= Instant::now())
                        {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits while the unread packets of the slowest reader hold more than half of `bytes_max`.
    pub async fn wait_for_space(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                let read = state.floor().saturating_sub(state.first) as usize;
                let unread: usize = state.packets.iter().skip(read).map(|packet| packet.len()).sum();
                // Half, since pages already in the pipeline need space too when they arrive.
                if state.sealed || unread <= self.bytes_max / 2 {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Returns whether any reader has ever attached.
    pub fn has_been_read(&self) -> bool {
        self.state.lock().had_reader
    }
}
