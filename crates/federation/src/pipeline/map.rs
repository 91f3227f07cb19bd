//! Map: an answer becomes results.

use super::sink::Read;
use super::{Stage, Work, WorkLane};
use crate::found::Found;
use crate::provider::{Declared, Raw};
use std::sync::Arc;
use tokio::sync::oneshot;

/// An answer as it came.
pub struct Answer {
    /// How it is read.
    pub declared: Arc<Declared>,
    /// Its bytes.
    pub raw: Raw,
    /// Whoever fetched it waits to hear where the next page is.
    pub reply: oneshot::Sender<Result<Read, String>>,
}

/// The stage.
pub struct Map {
    /// Where results go.
    pub next: WorkLane<Vec<Found>>,
}

/// Longer answers are read on a thread of their own, so that no other search waits for them.
const LONG_BYTES: usize = 64 << 10;

impl Stage for Map {
    type Body = Answer;
    const NAME: &'static str = "map";

    async fn run(self: Arc<Self>, work: Work<Answer>) {
        let Answer { declared, raw, reply } = work.body;
        let long = raw.bytes.len() > LONG_BYTES;
        // Until the results have a place in the next queue: they are about as large as what they were read from.
        let _held = raw.held.clone();
        let read = move || {
            let mapped = declared.mapping.read(&raw.content_type, &raw.bytes);
            mapped.map(|mapped| (declared.next(&mapped.value), mapped.found, mapped.unreadable))
        };
        let mapped = if long { tokio::task::spawn_blocking(read).await } else { Ok(read()) };
        match mapped {
            Ok(Ok((next, found, unreadable))) => {
                work.leg.unreadable(unreadable);
                let items = found.len() + unreadable;
                self.next.push(Work { leg: work.leg, body: found }).await;
                let _ = reply.send(Ok(Read { items, next }));
            }
            Ok(Err(why)) => drop(reply.send(Err(why))),
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => drop(reply.send(Err("the server is stopping".to_owned()))),
            },
        }
    }
}
