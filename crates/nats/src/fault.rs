//! Classifies JetStream errors: whether the call can have had an effect.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use meridian_store::stream::PublishOutcome;
use std::error::Error as _;
use std::io::{self, ErrorKind};

/// Error code for a stream whose name is taken, with other settings.
pub(crate) const NAME_TAKEN: ErrorCode = ErrorCode::STREAM_NAME_EXIST;

/// Returns the outcome of publishing a message.
pub(crate) fn outcome_of(error: PublishError) -> PublishOutcome {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => PublishOutcome::Refused,
        // No stream took the message.
        PublishErrorKind::StreamNotFound => PublishOutcome::Denied(io::Error::new(ErrorKind::NotConnected, error)),
        PublishErrorKind::MaxPayloadExceeded => PublishOutcome::Denied(io::Error::new(ErrorKind::InvalidInput, error)),
        PublishErrorKind::TimedOut => PublishOutcome::Lost(io::Error::new(ErrorKind::TimedOut, error)),
        _ => match refusal(&error) {
            Some(kind) => PublishOutcome::Denied(io::Error::new(kind, error)),
            None => PublishOutcome::Lost(io::Error::other(error)),
        },
    }
}

/// Returns the kind of a refusal that proves nothing was stored; `None` if the error does not prove that.
fn refusal(error: &PublishError) -> Option<ErrorKind> {
    let said = error.source()?.downcast_ref::<async_nats::jetstream::Error>()?;
    let full = [
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::MEMORY_RESOURCES_EXCEEDED,
    ];
    match said.error_code() {
        code if full.contains(&code) => Some(ErrorKind::StorageFull),
        // The same code means a full stream or a failed disk: only the text distinguishes them.
        ErrorCode::STREAM_STORE_FAILED => said.to_string().contains("maximum").then_some(ErrorKind::StorageFull),
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            Some(ErrorKind::InvalidInput)
        }
        ErrorCode::STREAM_SEALED => Some(ErrorKind::PermissionDenied),
        _ => None,
    }
}
