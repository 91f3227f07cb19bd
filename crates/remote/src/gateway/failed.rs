//! Why a call failed, and whether it may have arrived.

use crate::tls;
use crate::wire::REFUSED_HEADER;
use crate::wire::fault::Fault;
use tonic::{Code, Status};

/// Why a call failed, and whether it may have arrived.
pub(super) struct CallFailure {
    pub(super) fault: Fault,
    pub(super) arrived: bool,
}

impl CallFailure {
    pub(super) fn before(fault: Fault) -> CallFailure {
        CallFailure { fault, arrived: false }
    }

    pub(super) fn after(fault: Fault) -> CallFailure {
        CallFailure { fault, arrived: true }
    }

    pub(super) fn of(status: Status) -> CallFailure {
        let arrived = !is_unconnected(&status) && !is_refused(&status);
        CallFailure { arrived, fault: link_fault(status) }
    }
}

impl From<CallFailure> for Fault {
    fn from(failed: CallFailure) -> Fault {
        failed.fault
    }
}

/// Returns true if a server refused a call before starting it.
pub(super) fn is_refused(status: &Status) -> bool {
    status.metadata().contains_key(REFUSED_HEADER)
}

/// Returns true if a call failed before the connection was made.
fn is_unconnected(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Converts the status of a broken call to a fault. The owner reports its own errors in messages, not here.
pub(super) fn link_fault(status: Status) -> Fault {
    match status.code() {
        Code::DeadlineExceeded => Fault::Deadline,
        // Without a source the status is the owner's own. A broken connection can produce the same code.
        Code::OutOfRange | Code::ResourceExhausted | Code::Unimplemented | Code::InvalidArgument
            if std::error::Error::source(&status).is_none() =>
        {
            Fault::internal(format!("the owner of the data refused a call: {}", status.message()))
        }
        _ => {
            tracing::debug!(%status, "a call to the owner broke off");
            Fault::Unavailable(match tls::refusal_of(&status) {
                Some(why) => format!("the server that has the data cannot be reached: {why}"),
                None => "the server that has the data cannot be reached: try again".to_owned(),
            })
        }
    }
}
