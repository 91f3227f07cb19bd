//! The API without a network, for requests by the process that has the data folder open.

use crate::entry::Entry;
use crate::request::dispatch::{Connection, Peer};
use crate::server::running;
use crate::state::AppState;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use tokio::task::JoinSet;

/// Handles requests of this process in the same steps as [`crate::serve`] handles those of clients. The caller is the
/// owner of the data folder, as over the control socket. There is no connection: dropping a response or its body ends
/// the work on it.
pub struct InProcess {
    entry: Entry,
    /// Aborted when this is dropped.
    _tending: JoinSet<()>,
}

impl InProcess {
    /// Starts the background work; must be called within a runtime.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn begin(state: AppState) -> io::Result<InProcess> {
        let tending = running::begin(&state)?;
        // No socket has this address: requests name `localhost` as their host.
        let entry = Entry::new(state, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(InProcess { entry, _tending: tending })
    }

    /// Responds to one request, whose header `Host` is `localhost`.
    pub fn answer(&self, request: Request<Body>) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(self.entry.answer(Connection { peer: Peer::Socket, secure: false }, request))
    }

    /// Ends streams and searches, so that no response remains in progress forever.
    pub fn end_streams(&self) {
        running::end_streams(self.entry.state());
    }

    /// Shuts down, once no request is in progress. The store stays open; the caller closes it.
    pub async fn end(self) {
        running::stop_saved(self.entry.state()).await;
    }
}
