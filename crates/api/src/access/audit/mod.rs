//! The audit log of administrative acts.
//!
//! The entry point records every request to a route whose access is *manage*. It writes one line before the handler
//! runs, and another with the response's status. If the first cannot be written, the handler does not run. Requests to
//! other routes create collections through [`creating`]. Other code, such as sign-in, records its acts through
//! [`crate::state::audit_log::Audit::record`] and [`crate::state::audit_log::Audit::refused`].

mod acts;
pub mod list;

pub use acts::{AuditDetails, act_of, admit, creating, recorded};

use meridian_admission::identity::Caller;
use meridian_backend::Act;
use std::net::IpAddr;

/// Prefix of the recorded change of a renamed collection, followed by its new name.
pub const NEW_NAME: &str = "new name ";

/// Builds an act with this name and target, by a caller in a request from this client. A client without an address uses
/// the control socket.
pub fn act((name, target): (&str, &str), caller: &Caller, (client, request): (Option<IpAddr>, &str)) -> Act {
    Act {
        request: request.to_owned(),
        who: caller.name.to_string(),
        tenant: caller.tenant.to_string(),
        from: client.map_or_else(|| "socket".to_owned(), |address| address.to_canonical().to_string()),
        act: name.to_owned(),
        target: target.to_owned(),
        ..Act::default()
    }
}
