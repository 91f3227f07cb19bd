//! Writes without a waiting thread: a task submits its batch and continues.

use crate::collection::{Collection, Write, WriteReceipt};
use crate::error::WriteError;
use crate::ingest::partition::{CommittedWrite, Request};
use crate::ingest::queue::{QueueStep, Ticket, too_late};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// A write in the queue of its collection. Dropping it withdraws the write, unless it is already being committed.
#[derive(Debug)]
pub struct PendingWrite {
    collection: Arc<Collection>,
    ticket: Ticket<Request, CommittedWrite>,
}

/// The next step for the holder of a [`PendingWrite`].
#[derive(Debug)]
pub enum WriteStep {
    /// Commit all waiting writes with [`PendingWrite::lead`], then poll again.
    Lead,
    /// Nothing more: this is the outcome of the write.
    Done(Result<WriteReceipt, WriteError>),
}

impl Collection {
    /// Queues a batch, as [`Collection::write`] does, without waiting. It encodes the batch first, so it suits small
    /// ones. It does not wait for memory either: check [`Collection::has_room`] first. The caller enforces the write's
    /// deadline.
    pub fn submit(self: &Arc<Self>, write: Write) -> Result<PendingWrite, WriteError> {
        self.refuse_if_late()?;
        let (request, bytes) = self.request_of(write)?;
        Ok(PendingWrite { collection: self.clone(), ticket: self.queue.push(request, bytes)? })
    }
}

impl PendingWrite {
    /// Returns the next step. While there is none, `waker` is registered to be woken. The outcome is returned once.
    pub fn poll(&self, waker: &Waker) -> Poll<WriteStep> {
        self.ticket.poll(waker).map(|step| match step {
            QueueStep::Lead => WriteStep::Lead,
            QueueStep::Answered(answer) => {
                WriteStep::Done(answer.map(|done| WriteReceipt::of(done, self.collection.numbering())))
            }
        })
    }

    /// Commits the queued writes, including this one, if it leads. Blocks for the disk.
    pub fn lead(&self) {
        self.ticket.lead(|group| self.collection.commit_group(group));
    }

    /// Gives up at the deadline: returns the refusal, or `None` if the write is being committed and its outcome is
    /// near.
    pub fn give_up(&self) -> Option<WriteError> {
        self.ticket.take_back().then(too_late)
    }
}
