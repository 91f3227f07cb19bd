//! Connections accepted by a server of roles. Every such server accepts them here, so none is served without its
//! caller's certificate.

use super::RoleTls;
use super::refusal;
use futures_util::{Stream, StreamExt as _};
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::TcpIncoming;

/// Max concurrent handshakes; further callers wait to be accepted.
const HANDSHAKES_MAX: usize = 1024;
/// Timeout of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Accepts the connections of a listener whose callers show an allowed certificate. The others are closed, and named in
/// the log. Dropping the stream closes the listener.
pub(crate) fn incoming(listener: TcpListener, tls: RoleTls) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .map(move |accepted| {
            let tls = tls.clone();
            async move {
                match accepted {
                    Ok(stream) => shake_hands(&tls, stream).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        })
        .buffer_unordered(HANDSHAKES_MAX)
        .filter_map(std::future::ready)
}

/// Returns the connection if its caller is allowed.
async fn shake_hands(tls: &RoleTls, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let caller = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    // Read now, so that a replaced certificate counts from the next connection on.
    let accepted = TlsAcceptor::from(tls.server()).accept(stream);
    match tokio::time::timeout(HANDSHAKE, accepted).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            match refusal::of_tls(&error) {
                // The log rate-limits lines of the same text, so the caller is a field.
                Some(found) => tracing::warn!(caller, "a caller is refused: {}", refusal::of_caller(found)),
                // A mere port check sends nothing.
                None => tracing::debug!(caller, %error, "no TLS handshake"),
            }
            None
        }
        Err(_) => {
            tracing::debug!(caller, "a TLS handshake took too long");
            None
        }
    }
}
