//! The connection of a WebSocket, whose bytes are charged to the tenant of its caller like those of other responses.

use crate::request::quota;
use crate::state::AppState;
use meridian_admission::identity::Caller;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that has switched protocols. What is written to it is charged.
pub struct ChargedConnection<S> {
    connection: S,
    /// Who is charged. `None` if the gateway that relayed the request charges.
    caller: Option<(Caller, AppState)>,
}

impl<S> ChargedConnection<S> {
    /// Creates a connection whose bytes are charged to this caller, if any.
    pub fn new(connection: S, caller: Option<(Caller, AppState)>) -> ChargedConnection<S> {
        ChargedConnection { connection, caller }
    }

    fn charged(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let (Poll::Ready(Ok(bytes)), Some((caller, state))) = (&written, &self.caller) {
            quota::charge_sent(state, caller, *bytes as u64);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ChargedConnection<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ChargedConnection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(cx, bytes);
        self.charged(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(cx, bytes);
        self.charged(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use meridian_backend::{Embedded, Seams};
    use meridian_model::policy::quota::{Quota, Quotas};
    use meridian_store::{Options, Store};
    use std::sync::Arc;
    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::time::Instant;

    #[tokio::test]
    async fn what_is_written_is_charged_once_in_a_cluster() {
        for is_relayed in [false, true] {
            let seams = Seams::real();
            let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
            let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
            let (caller, mut quotas) = (state.callers.local.clone(), Quotas::default());
            quotas.set(Quota::ResultBytesPerSecond, Some(1)).unwrap();
            caller.ledger.set(1, &quotas);
            let (connection, _client) = duplex(1 << 10);
            let charged = (!is_relayed).then(|| (caller.clone(), state.clone()));
            ChargedConnection::new(connection, charged).write_all(&[7; 1 << 10]).await.unwrap();
            let entered = caller.ledger.enter(&[Quota::ResultBytesPerSecond], caller.share(), Instant::now());
            assert_eq!(entered.is_ok(), is_relayed);
        }
    }
}
