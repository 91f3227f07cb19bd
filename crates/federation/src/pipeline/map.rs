//! Map: a response becomes results.

use super::{Stage, Work, WorkLane};
use crate::declaration::MappedResponse;
use crate::provider::{PageSummary, Response};
use crate::search_result::SearchResult;
use std::sync::Arc;

/// The stage.
pub struct Map {
    /// The next stage.
    pub next: WorkLane<Vec<SearchResult>>,
}

/// Size in bytes above which a response is mapped on a blocking thread, so that other searches are not delayed.
const LONG_BYTES: usize = 64 << 10;

impl Stage for Map {
    type Body = Response;
    const NAME: &'static str = "map";

    async fn run(self: Arc<Self>, work: Work<Response>) {
        let Response { declared, raw, reply } = work.body;
        let long = raw.bytes.len() > LONG_BYTES;
        // Held until the results enter the next queue, since they take about as much memory as the response.
        let _held = raw.held.clone();
        let read = move || {
            let MappedResponse { found, unreadable, value } = declared.mapping.read(&raw.content_type, &raw.bytes)?;
            let (items, next) = (found.len() + unreadable, declared.next(&value));
            let read = PageSummary { items, next, missing: declared.mapping.missing(&found) };
            Ok::<_, String>((read, found, unreadable))
        };
        let mapped = if long { tokio::task::spawn_blocking(read).await } else { Ok(read()) };
        match mapped {
            Ok(Ok((read, found, unreadable))) => {
                work.leg.unreadable(unreadable);
                work.leg.expect(found.len());
                // Sent before the reply: once the provider requests the next page, the results of this one are counted
                // and queued.
                self.next.push(Work { leg: work.leg, body: found }).await;
                let _ = reply.send(Ok(read));
            }
            Ok(Err(why)) => drop(reply.send(Err(why))),
            Err(e) => match e.try_into_panic() {
                // Resumed here, so that the stage reports it like its own panics.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => drop(reply.send(Err("the server is stopping".to_owned()))),
            },
        }
    }
}
