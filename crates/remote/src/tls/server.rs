//! Connections for a server of roles. Every such server takes them from here, so none is served without its caller's certificate.

use super::RoleTls;
use super::refusal;
use futures_util::{Stream, StreamExt as _};
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::TcpIncoming;

/// Handshakes at a time; further callers wait to be accepted.
const HANDSHAKES_MAX: usize = 1024;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The connections of a listener whose callers have shown a certificate that is allowed. The others are closed, and named in the log.
/// The listener closes when the stream is dropped.
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

/// The connection, if its caller may call.
async fn shake_hands(tls: &RoleTls, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let caller = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    // Taken now, so that a certificate that is exchanged counts from the next connection on.
    let accepted = TlsAcceptor::from(tls.server()).accept(stream);
    match tokio::time::timeout(HANDSHAKE, accepted).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            match refusal::of_tls(&error) {
                // The log bounds lines of one text, so the caller is a field.
                Some(found) => tracing::warn!(caller, "a caller is refused: {}", refusal::of_caller(found)),
                // One that looks whether the port is open says nothing.
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
