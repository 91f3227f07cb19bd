//! `DoGet`: converts an HTTP Arrow stream to Flight messages.
//!
//! Messages are separated without decoding them. One at a time is held, and is charged like a response that its client
//! has not read yet. After the last rows, a final message reports that the result is complete. Without it the result
//! ends with an error, never with status OK.

use super::ipc::{self, Content, Splitter};
use super::status;
use crate::protocol::problem::Kind;
use crate::request::body::frame;
use crate::response::respond;
use crate::response::stream::BrokenOff;
use crate::state::AppState;
use crate::state::readers::{LEAVE_MAX, RETRY_INTERVAL};
use arrow_flight::FlightData;
use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_schema::Schema;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use meridian_admission::{ByteBudget, ByteShare};
use serde::Serialize;
use std::error::Error;
use tokio::time::{Duration, Instant};
use tonic::Status;

/// How long a message waits for memory. Clients that do not read their responses are evicted meanwhile.
const ROOM_WAIT: Duration = LEAVE_MAX.saturating_mul(2);
/// How often the bytes of a message are charged: once as collected, once as encoded for the connection.
const TIMES: usize = 2;

/// The metadata of the last message.
#[derive(Debug, Serialize)]
struct FinalMetadata {
    /// Whether nothing is missing.
    complete: bool,
    /// The parts that are missing because files are damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    /// The snapshot that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// The age of the answer in seconds, as stated by `Age`.
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<u64>,
    /// The number of rows of this answer.
    rows: u64,
}

impl FinalMetadata {
    fn of(headers: &HeaderMap) -> FinalMetadata {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let missing = text(&respond::MISSING);
        FinalMetadata {
            complete: missing.is_none(),
            missing,
            snapshot: text(&respond::SNAPSHOT),
            age: text(&header::AGE).and_then(|age| age.parse().ok()),
            rows: 0,
        }
    }
}

/// Finds out why a body ended early, if its error states that.
fn why(error: &(dyn Error + 'static)) -> Option<Kind> {
    // Nested bodies each wrap the error in one of their own.
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(BrokenOff(why)) = error.downcast_ref() {
            return *why;
        }
        cause = error.source();
    }
    None
}

/// A response that is sent as Flight messages.
struct ResponseStream {
    state: AppState,
    body: Body,
    splitter: Splitter,
    budget: ByteBudget,
    share: ByteShare,
    schema: Option<Schema>,
    last: FinalMetadata,
    ended: bool,
}

/// Returns the messages of a response; their memory is charged to `budget`.
pub fn messages(
    state: &AppState,
    budget: ByteBudget,
    response: Response,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + use<> {
    let (parts, body) = response.into_parts();
    let stream = ResponseStream {
        state: state.clone(),
        body,
        splitter: Splitter::default(),
        share: budget.empty(),
        budget,
        schema: None,
        last: FinalMetadata::of(&parts.headers),
        ended: false,
    };
    try_unfold(stream, |mut stream| async move {
        let message = stream.message().await?;
        Ok(message.map(|message| (message, stream)))
    })
}

impl ResponseStream {
    /// Returns the next message; `None` at the end.
    async fn message(&mut self) -> Result<Option<FlightData>, Status> {
        while !self.ended {
            let broken = |why: String| {
                tracing::error!(why, "an Arrow stream cannot be taken apart");
                status::broken_off(None)
            };
            if let Some((content, message)) = self.splitter.message().map_err(broken)? {
                match content {
                    Content::Schema => {
                        let schema = try_schema_from_flatbuffer_bytes(&message.data_header);
                        self.schema = Some(schema.map_err(status::internal)?);
                    }
                    Content::Rows(rows) => self.last.rows += rows,
                    Content::Dictionary { .. } => {}
                }
                return Ok(Some(message));
            }
            let next = frame(&mut self.body).await;
            match next {
                Some(Ok(data)) if !self.splitter.is_over() => self.take(&data).await?,
                Some(Ok(_)) => {}
                None if self.splitter.is_over() => {
                    self.ended = true;
                    return self.finish().map(Some);
                }
                // Even after the last rows: only the end of the body confirms that it is complete.
                None => return Err(status::broken_off(None)),
                Some(Err(error)) => return Err(status::broken_off(why(&error))),
            }
        }
        Ok(None)
    }

    /// Takes data once there is memory for the message to which it belongs.
    async fn take(&mut self, data: &Bytes) -> Result<(), Status> {
        self.splitter.push(data);
        let wanted = TIMES * self.splitter.wants().max(data.len());
        if self.share.try_grow(wanted) {
            return Ok(());
        }
        // Given back before a larger share is taken: responses that wait for each other would deadlock.
        self.share = self.budget.empty();
        let until = Instant::now() + ROOM_WAIT;
        loop {
            if let Some(share) = self.state.readers.try_reserve(&self.budget, wanted) {
                self.share = share;
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(status::no_room());
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Builds the last message.
    fn finish(&mut self) -> Result<FlightData, Status> {
        let schema = self.schema.take().ok_or_else(|| status::internal("an Arrow stream without a schema"))?;
        let last = serde_json::to_vec(&self.last).map_err(status::internal)?;
        // A record batch without rows: some clients accept no message without a record batch, others stop at one.
        Ok(ipc::empty(schema).map_err(status::internal)?.with_app_metadata(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::response::tables;
    use axum::response::IntoResponse;
    use futures_util::StreamExt;
    use futures_util::stream::iter;
    use meridian_backend::{Embedded, Seams};
    use meridian_model::Seq;
    use meridian_query::TrackPoint;
    use meridian_store::{Options, Store};
    use serde_json::Value;
    use std::io;
    use std::sync::Arc;
    use tonic::Code;

    fn state() -> AppState {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap()
    }

    /// Reads all messages, and the error at the end.
    async fn read(state: &AppState, body: Body) -> (Vec<FlightData>, Option<Status>) {
        let all = messages(state, state.answers.clone(), body.into_response()).collect::<Vec<_>>().await;
        let (mut read, mut error) = (Vec::new(), None);
        for message in all {
            assert!(error.is_none(), "a message after an error");
            match message {
                Ok(message) => read.push(message),
                Err(status) => error = Some(status),
            }
        }
        (read, error)
    }

    #[tokio::test]
    async fn only_a_whole_answer_says_that_it_is_complete() {
        let state = state();
        let point = |n: i32| TrackPoint { lon: f64::from(n), lat: 0.5, time: i64::from(n), seq: Seq(0) };
        let points: Vec<TrackPoint> = (0..20).map(point).collect();
        let bytes = tables::track(&points).unwrap();
        let pieces =
            |bytes: &[u8]| bytes.chunks(100).map(Bytes::copy_from_slice).map(Ok).collect::<Vec<io::Result<_>>>();
        let (whole, error) = read(&state, Body::from_stream(iter(pieces(&bytes)))).await;
        assert!(error.is_none());
        let last: Value = serde_json::from_slice(&whole.last().unwrap().app_metadata).unwrap();
        assert_eq!((&last["complete"], &last["rows"]), (&Value::Bool(true), &20.into()));
        let broken = |pieces: Vec<io::Result<Bytes>>| {
            let state = state.clone();
            async move {
                let (read, error) = read(&state, Body::from_stream(iter(pieces))).await;
                assert_eq!(error.map(|status| status.code()), Some(Code::Aborted), "of no known cause");
                assert!(read.iter().all(|message| message.app_metadata.is_empty()));
            }
        };
        for cut in (0..bytes.len()).step_by(37) {
            broken(pieces(&bytes[..cut])).await;
        }
        let mut late = pieces(&bytes);
        late.push(Err(io::Error::other("cut")));
        broken(late).await;
        broken(pieces(b"no stream at all")).await;
        for (why, code) in [
            (Kind::DeadlineExceeded, Code::DeadlineExceeded),
            (Kind::Damaged, Code::DataLoss),
            (Kind::Unauthorized, Code::Unauthenticated),
        ] {
            // Nested, as the body of a response wraps that of a query.
            let inner = Body::from_stream(iter(vec![Ok(Bytes::new()), Err(BrokenOff(Some(why)))]));
            let (_, error) = read(&state, Body::new(inner)).await;
            assert_eq!(error.map(|status| status.code()), Some(code));
        }
        assert_eq!(state.answers.held(), 0);
    }
}
