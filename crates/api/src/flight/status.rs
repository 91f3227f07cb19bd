//! Maps problems to gRPC statuses. The metadata of a status holds the headers of the refusal and the problem itself.

use super::question;
use crate::protocol::problem::{Kind, Problem};
use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// Headers of a refusal that are kept as metadata of its status.
static KEPT: [HeaderName; 5] = [
    header::RETRY_AFTER,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("x-request-id"),
    header::WWW_AUTHENTICATE,
];
/// Metadata key of the problem (RFC 9457), as JSON.
const PROBLEM: &str = "meridian-problem-bin";
/// Max bytes of that value: clients accept 8 KiB of metadata in total.
const PROBLEM_BYTES_MAX: usize = 2 << 10;
/// Max bytes of a problem that is read: a hundred mistakes of one sentence each.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Returns the status for a problem.
pub fn of_problem(problem: &Problem) -> Status {
    of(problem.status(), &HeaderMap::new(), problem.document())
}

/// Returns the status for a problem that is the whole response, with the headers that the response would have.
pub fn of_refusal(problem: Problem) -> Status {
    let problem = problem.settled();
    let (status, document) = (problem.status(), problem.document());
    of(status, problem.into_response().headers(), document)
}

/// Returns the status for a response that is a problem.
pub async fn of_response(response: Response) -> Status {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, DOCUMENT_BYTES_MAX).await.unwrap_or_default();
    let mut document = serde_json::from_slice(&bytes).unwrap_or_default();
    question::restate(&mut document);
    of(parts.status, &parts.headers, document)
}

fn of(status: StatusCode, headers: &HeaderMap, mut document: Value) -> Status {
    let detail = sentence(&document);
    let code = code(status, document["type"].as_str().unwrap_or_default());
    let mut kept = HeaderMap::new();
    for name in &KEPT {
        if let Some(value) = headers.get(name) {
            kept.insert(name.clone(), value.clone());
        }
    }
    let mut metadata = MetadataMap::from_headers(kept);
    // The list of mistakes may be long. The first one is in the problem itself.
    if document.to_string().len() > PROBLEM_BYTES_MAX
        && let Some(members) = document.as_object_mut()
    {
        members.remove("errors");
    }
    let text = document.to_string();
    if document.is_object() && text.len() <= PROBLEM_BYTES_MAX {
        metadata.insert_bin(PROBLEM, MetadataValue::from_bytes(text.as_bytes()));
    }
    Status::with_metadata(code, detail, metadata)
}

/// Returns the message of a status: the problem's detail with the member at fault, since few clients read the metadata.
fn sentence(document: &Value) -> String {
    let detail = document["detail"].as_str().unwrap_or("the server refused the call");
    match document["field"].as_str() {
        Some(field) if !field.is_empty() && !detail.starts_with(field) => format!("{field}: {detail}"),
        _ => detail.to_owned(),
    }
}

fn code(status: StatusCode, kind: &str) -> Code {
    match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::CONFLICT => Code::AlreadyExists,
        StatusCode::GONE => Code::FailedPrecondition,
        // Also a 503, but a retry does not help.
        StatusCode::SERVICE_UNAVAILABLE if kind.ends_with(":damaged") => Code::DataLoss,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE => {
            Code::ResourceExhausted
        }
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    }
}

/// Returns the status over HTTP of a call's response, whose own status is 200 even for a refusal.
pub fn over_http(response: &Response) -> StatusCode {
    let headers = response.headers();
    let Some(code) = headers.get("grpc-status") else { return response.status() };
    match Code::from_bytes(code.as_bytes()) {
        Code::Ok => StatusCode::OK,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Unimplemented => StatusCode::METHOD_NOT_ALLOWED,
        Code::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
        Code::FailedPrecondition => StatusCode::GONE,
        Code::ResourceExhausted => StatusCode::SERVICE_UNAVAILABLE,
        // The library has this code, without a problem, for messages that are no Protobuf.
        Code::Internal if headers.contains_key(PROBLEM) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Returns the status for a fault of the server, and logs the cause.
pub fn internal(cause: impl std::fmt::Display) -> Status {
    of_problem(&Problem::internal(cause))
}

/// Returns the status for an answer that ends before all of it was sent, because of a problem of this kind.
pub fn broken_off(why: Option<Kind>) -> Status {
    match why {
        Some(Kind::DeadlineExceeded) => Status::deadline_exceeded(
            "the answer was broken off at its deadline, and what was sent is not all of it: ask for less, or give more time with timeout",
        ),
        Some(Kind::Damaged) => Status::data_loss(
            "the answer was broken off at events that cannot be read, and what was sent is not all of it: `meridian check` lists the damage",
        ),
        Some(Kind::Unauthorized) => Status::unauthenticated(
            "the answer was broken off, and what was sent is not all of it: the credential was revoked or has expired",
        ),
        Some(Kind::NotFound) => Status::not_found(
            "the answer was broken off, and what was sent is not all of it: the collection was removed",
        ),
        _ => Status::aborted("the answer was broken off: what was sent is not all of it; ask again"),
    }
}

/// Refuses a message for lack of memory.
pub fn no_memory() -> Status {
    of_refusal(Problem::new(
        Kind::Overloaded,
        "the request bodies being read use all the memory set aside for them: try again",
    ))
}

/// Ends an answer for whose messages there is no memory.
pub fn no_room() -> Status {
    of_refusal(Problem::new(
        Kind::Overloaded,
        "the responses that clients have not taken yet use all the memory set aside for them: try again, or ask for less",
    ))
}

/// Refuses a command or ticket that is too large.
pub fn too_large(limit: usize) -> Status {
    Status::invalid_argument(format!("the message is over the limit of {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::Invalid;
    use std::time::Duration;

    #[tokio::test]
    async fn a_refusal_says_when_to_come_back() {
        let problem = || Problem::new(Kind::Overloaded, "busy").retry_after(Duration::from_secs(3));
        let status = of_refusal(problem());
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "busy"));
        assert_eq!(status.metadata().get("retry-after").unwrap(), "3");
        let status = of_response(problem().into_response()).await;
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "busy"));
        assert_eq!(status.metadata().get("retry-after").unwrap(), "3");
        let problem = status.metadata().get_bin(PROBLEM).unwrap().to_bytes().unwrap();
        let problem: Value = serde_json::from_slice(&problem).unwrap();
        assert_eq!(problem["type"], "urn:meridian:problem:overloaded");
    }

    #[test]
    fn clients_refused_for_memory_come_back_at_different_times() {
        for refusal in [no_memory, no_room] {
            assert_eq!(refusal().code(), Code::ResourceExhausted);
            let waits = (0..30).map(|_| refusal().metadata().get("retry-after").unwrap().to_str().unwrap().to_owned());
            assert!(waits.collect::<std::collections::BTreeSet<_>>().len() > 1);
        }
    }

    #[test]
    fn what_no_retry_helps_is_no_exhausted_resource() {
        let code = |kind| of_problem(&Problem::new(kind, "x")).code();
        assert_eq!(code(Kind::Damaged), Code::DataLoss);
        assert_eq!(code(Kind::TooLarge), Code::InvalidArgument);
        assert_eq!(code(Kind::KeyReused), Code::InvalidArgument);
        assert_eq!(code(Kind::QuotaExceeded), Code::ResourceExhausted);
        assert_eq!(code(Kind::Gone), Code::FailedPrecondition);
    }

    #[test]
    fn a_refusal_counts_as_over_http() {
        let over_http = |status: Status| super::over_http(&status.into_http()).as_u16();
        use Kind::{Forbidden, Gone, Internal, NotFound, Overloaded, Unauthorized};
        for kind in [Unauthorized, Forbidden, NotFound, Gone, Overloaded, Internal] {
            let problem = || Problem::new(kind, "x");
            assert_eq!(over_http(of_refusal(problem())), problem().status().as_u16(), "{kind:?}");
        }
        assert_eq!(over_http(Status::unimplemented("x")), 405);
        assert_eq!(over_http(Status::internal("no Protobuf")), 400, "a fault of the client");
        assert_eq!(super::over_http(&StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()).as_u16(), 415);
    }

    #[test]
    fn a_message_names_the_member_at_fault_once() {
        let message = |problem: Problem| of_problem(&problem).message().to_owned();
        assert_eq!(message(Problem::parameter("bbox", "expected four numbers")), "bbox: expected four numbers");
        assert_eq!(message(Problem::parameter("bbox", "bbox: expected four")), "bbox: expected four");
        assert_eq!(message(Problem::new(Kind::Overloaded, "busy")), "busy");
    }

    #[test]
    fn an_answer_that_breaks_off_says_why() {
        let code = |why| broken_off(why).code();
        assert_eq!(code(Some(Kind::DeadlineExceeded)), Code::DeadlineExceeded);
        assert_eq!(code(Some(Kind::Damaged)), Code::DataLoss);
        assert_eq!(code(Some(Kind::NotFound)), Code::NotFound);
        assert_eq!((code(Some(Kind::Internal)), code(None)), (Code::Aborted, Code::Aborted));
    }

    #[test]
    fn a_long_list_of_mistakes_leaves_room_for_the_first() {
        let list = (1..=100).map(|line| Invalid::field("mag", "x".repeat(200)).at_line(line)).collect();
        let status = of_problem(&Problem::invalid_bodies(list));
        let problem = status.metadata().get_bin(PROBLEM).unwrap().to_bytes().unwrap();
        let problem: Value = serde_json::from_slice(&problem).unwrap();
        assert_eq!((&problem["line"], problem.get("errors")), (&1.into(), None));
    }
}
