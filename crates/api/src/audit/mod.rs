//! The audit log of administrative acts.
//!
//! The entry point records every request to a route whose access is *manage*. It writes one line before the handler
//! runs, and another with the response's status. If the first cannot be written, the handler does not run. Requests to
//! other routes create collections through [`creating`]. Other code, such as sign-in, records its acts through
//! [`Audit::record`] and [`Audit::refused`].

mod acts;
pub mod list;
mod refusals;
mod writer;

pub use acts::{Note, act_of, admit, creating, recorded};
pub use refusals::Source;

use crate::overload;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use meridian_admission::identity::Caller;
use meridian_backend::{Act, AuditLog, Clock};
use parking_lot::Mutex;
use refusals::Refusals;
use std::net::IpAddr;
use std::sync::Arc;
use writer::{WAITING_MAX, Writer};

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

/// The writer of a server's audit log.
pub struct Audit {
    writer: Arc<Writer>,
    clock: Arc<dyn Clock>,
    refusals: Mutex<Refusals>,
}

impl Audit {
    /// Creates a writer for this log.
    pub fn new(log: Arc<dyn AuditLog>, clock: Arc<dyn Clock>) -> Audit {
        Audit { writer: Arc::new(Writer::new(log)), clock, refusals: Mutex::default() }
    }

    /// Returns the log.
    pub fn log(&self) -> &Arc<dyn AuditLog> {
        self.writer.log()
    }

    /// Checks whether lines can be recorded soon.
    ///
    /// # Errors
    /// 503 if too many wait for the disk.
    pub fn ready(&self, state: &AppState) -> Result<()> {
        match self.writer.is_full() {
            true => {
                Err(overload::overloaded(state, "too many administrative acts wait: try again".to_owned(), WAITING_MAX))
            }
            false => Ok(()),
        }
    }

    /// Records an act durably and returns its line number.
    ///
    /// # Errors
    /// 507 if it cannot be written: then the act must not be done, or not be acknowledged.
    pub async fn record(&self, act: Act) -> Result<u64> {
        self.writer.append(act).await?.ok_or_else(|| {
            Problem::new(Kind::StorageUnavailable, "the audit log cannot be written now, so nothing is administered")
        })
    }

    /// Records a refused attempt without waiting for the disk. Callers without rights must not fill the log: above a
    /// rate per minute, a source's attempts are only counted.
    pub fn refused(&self, source: Source, mut act: Act) {
        if self.writer.is_full() {
            return self.counted(source);
        }
        let Some(unrecorded) = self.refusals.lock().take(source, self.clock.now()) else { return };
        act.unrecorded = unrecorded;
        let writer = self.writer.clone();
        // Not awaited: a refusal need not wait for the disk.
        drop(tokio::spawn(async move { writer.append(act).await }));
    }

    /// Counts an attempt that was refused unread; the next line of its source reports the count.
    pub fn counted(&self, source: Source) {
        self.refusals.lock().count(source);
    }
}
