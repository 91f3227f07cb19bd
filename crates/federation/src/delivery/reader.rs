//! Those who read packets: where each of them is, how far behind, and since when there is none.

use super::{Gone, Outbox, State};
use parking_lot::MutexGuard;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Somebody who reads the packets of a search, in order.
#[derive(Debug)]
pub struct Reader {
    outbox: Arc<Outbox>,
    id: u64,
}

impl Reader {
    /// The next packet and its number; `None` after the last, and where it gave way because this reader was too slow: then
    /// [`Outbox::read`] says what is kept.
    pub async fn next(&mut self) -> Option<(u64, Arc<str>)> {
        loop {
            let mut changed = pin!(self.outbox.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.outbox.state.lock();
                let at = *state.readers.get(&self.id)?;
                if at < state.first {
                    return None;
                }
                if let Some(packet) = state.packets.get((at - state.first) as usize).cloned() {
                    state.readers.insert(self.id, at + 1);
                    state.taken = state.taken.max(at + 1);
                    // A search that waits for a slow source makes no packets, and must not hold the room of those that do.
                    let floor = state.floor();
                    while self.outbox.budget.is_short() && state.first < floor {
                        self.outbox.forget_first(&mut state);
                    }
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
            state.alone = Some(Instant::now());
        }
        drop(state);
        self.outbox.changed.notify_waiters();
    }
}

impl Outbox {
    /// A reader of the packets from number `from` on.
    pub fn read(self: &Arc<Outbox>, from: u64) -> Result<Reader, Gone> {
        let state = self.state.lock();
        if from < state.first {
            return Err(Gone { first: state.first });
        }
        Ok(self.reader(state, from))
    }

    /// A reader of all the packets that are kept, and those that follow.
    pub fn read_kept(self: &Arc<Outbox>) -> Reader {
        let state = self.state.lock();
        let first = state.first;
        self.reader(state, first)
    }

    fn reader(self: &Arc<Outbox>, mut state: MutexGuard<'_, State>, from: u64) -> Reader {
        let id = state.readers_made;
        state.readers_made += 1;
        // A number that was never given out is that of the next packet.
        let from = from.min(state.next());
        state.readers.insert(id, from);
        (state.alone, state.came) = (None, true);
        drop(state);
        self.changed.notify_waiters();
        Reader { outbox: self.clone(), id }
    }

    /// Whether nobody reads, and either all has been taken or nobody has read for `gone`; before the first reader has come, for
    /// `wait`.
    pub fn is_done_with(&self, gone: Duration, wait: Duration) -> bool {
        let state = self.state.lock();
        let Some(since) = state.alone else { return false };
        state.taken == state.next() || since.elapsed() >= if state.came { gone } else { wait }
    }

    /// Completes once nobody has read for `gone`; before the first reader has come, for `wait`.
    pub async fn abandoned(&self, gone: Duration, wait: Duration) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let until = {
                let state = self.state.lock();
                state.alone.map(|since| since + if state.came { gone } else { wait })
            };
            match until {
                None => changed.await,
                Some(until) => {
                    if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                        let state = self.state.lock();
                        if state
                            .alone
                            .is_some_and(|since| since + if state.came { gone } else { wait } <= Instant::now())
                        {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits while a reader is so far behind that half of the room is taken by what it has not read.
    pub async fn room(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                let read = state.floor().saturating_sub(state.first) as usize;
                let unread: usize = state.packets.iter().skip(read).map(|packet| packet.len()).sum();
                if state.sealed || unread <= self.bytes_max / 2 {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Whether anybody has come to read.
    pub fn has_been_read(&self) -> bool {
        self.state.lock().came
    }
}
