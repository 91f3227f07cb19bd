//! The API without a network: requests of the process that has the data folder open.

use crate::dispatch::{Connection, Peer};
use crate::entry::Entry;
use crate::running;
use crate::state::AppState;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::task::JoinSet;

/// Answers requests of this process as [`crate::serve`] answers those of clients, by the same steps. Its caller is the owner of the data
/// folder, as over the control socket. There is no connection: a dropped response, or a dropped body, ends the work on it.
pub struct InProcess {
    entry: Entry,
    /// Ended with this.
    _tending: JoinSet<()>,
}

impl InProcess {
    /// Begins; needs the runtime.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn begin(state: AppState) -> io::Result<InProcess> {
        let tending = running::begin(&state)?;
        // No socket has this address: requests name their host `localhost`.
        let entry = Entry::new(state, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(InProcess { entry, _tending: tending })
    }

    /// Responds to one request, whose header `Host` is `localhost`.
    pub async fn answer(&self, request: Request<Body>) -> Response {
        self.entry.answer(Connection { peer: Peer::Socket, secure: false }, request).await
    }

    /// Ends streams and searches, so that no answer is in progress for ever.
    pub fn end_streams(&self) {
        running::end_streams(self.entry.state());
    }

    /// Ends it, once no request is in progress. The store stays open: the caller closes it.
    pub async fn end(self) {
        running::stop_saved(self.entry.state()).await;
    }
}
