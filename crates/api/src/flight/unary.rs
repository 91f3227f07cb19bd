//! Calls that list or describe: their messages are encoded at once, and charged until the client has taken them.
//!
//! Such a message repeats the question in the ticket of each part, so it may take megabytes. The library would keep it
//! uncharged while the client gives its stream no window.

use super::status;
use crate::request::overload::no_room;
use crate::response::whole::{self, TINY_BYTES};
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::response::Response;
use hyper::body::Frame;
use meridian_admission::ByteBudget;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Collects the messages of a response and charges them to `answers`. Its client can be evicted.
///
/// Returns a refusal instead if there is no memory.
pub async fn charged(response: Response, answers: &ByteBudget, state: &AppState) -> Response {
    let (mut parts, mut body) = response.into_parts();
    let (mut bytes, mut trailers) = (Vec::new(), None);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
            Err(e) => return status::internal(e).into_http(),
        }
    }
    let messages = if bytes.len() < TINY_BYTES {
        Body::from(bytes)
    } else {
        let Some(share) = state.readers.try_reserve(answers, bytes.capacity()) else {
            return status::of_refusal(no_room(state)).into_http();
        };
        whole::evictable(whole::of_share(bytes, share), TINY_BYTES, answers, state, &mut parts.extensions)
    };
    Response::from_parts(parts, Body::new(WithTrailers { messages, trailers }))
}

/// Messages and the trailers that hold the status of their call.
struct WithTrailers {
    messages: Body,
    trailers: Option<HeaderMap>,
}

impl HttpBody for WithTrailers {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.messages).poll_frame(cx) {
            Poll::Ready(None) => Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none() && self.messages.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use axum::http::StatusCode;
    use futures_util::stream;
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};
    use std::sync::Arc;
    use tonic::Code;

    fn messages(bytes: usize) -> Response {
        let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
        let frames = Body::from_stream(stream::iter([Ok::<_, axum::Error>(Bytes::from(vec![7; bytes]))]));
        Response::new(Body::new(WithTrailers { messages: frames, trailers: Some(trailers) }))
    }

    #[tokio::test]
    async fn messages_are_charged_until_they_are_taken() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let answers = state.answers.of(&"default".into());
        let mut response = charged(messages(100_000), &answers, &state).await;
        assert!(answers.held() >= 100_000, "{}", answers.held());
        let (mut taken, mut status) = (0, None);
        while let Some(frame) = poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await {
            match frame.unwrap().into_data() {
                Ok(data) => taken += data.len(),
                Err(frame) => status = frame.into_trailers().ok(),
            }
        }
        assert_eq!((taken, status.unwrap()["grpc-status"].to_str().unwrap()), (100_000, "0"));
        assert_eq!(answers.held(), 0);

        let _all = answers.try_take(answers.limit()).unwrap();
        let refused = charged(messages(100_000), &answers, &state).await;
        assert_eq!(refused.status(), StatusCode::OK, "over gRPC");
        assert_eq!(Code::from_bytes(refused.headers()["grpc-status"].as_bytes()), Code::ResourceExhausted);
    }
}
