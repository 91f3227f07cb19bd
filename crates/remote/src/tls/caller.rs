//! Client connections to a server of roles.

use super::{RoleTls, Security, refusal, server_name};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

/// A server that was reached and then rejected. The text completes "the server that has the data cannot be reached: ".
#[derive(Debug)]
struct ServerRejected(String);

impl fmt::Display for ServerRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServerRejected {}

/// The address is on another machine, and there is no certificate to call it with.
#[derive(Debug)]
pub(crate) struct NoCertificate;

impl fmt::Display for NoCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "it is on another machine, and this process has no certificate: set cluster.tls.cert, key and ca, or \
             cluster.tls.allow_plain = true in a private network",
        )
    }
}

/// Returns the channel of an endpoint, which connects on first use.
pub(crate) fn channel(endpoint: &Endpoint, address: &str, security: &Security) -> Result<Channel, NoCertificate> {
    match security {
        Security::Tls(tls) => {
            let connector = Connector { tls: tls.clone(), address: address.to_owned() };
            Ok(endpoint.connect_with_connector_lazy(connector))
        }
        Security::PlainHere if !is_here(address) => Err(NoCertificate),
        Security::PlainHere | Security::Plain => Ok(endpoint.connect_lazy()),
    }
}

/// Returns the certificate problem of either end, if that is why a call failed.
pub(crate) fn refusal_of<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a str> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The source of an `io::Error` is not the error it wraps, but that error's source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = held
            .and_then(|held| held.downcast_ref::<ServerRejected>())
            .or_else(|| error.downcast_ref::<ServerRejected>());
        if let Some(ServerRejected(why)) = found {
            return Some(why);
        }
        cause = error.source();
    }
    None
}

/// Returns the host of an address `host:port`.
fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// Returns true if traffic to an address stays on this machine.
fn is_here(address: &str) -> bool {
    let host = host_of(address);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Connects to one server, again each time the connection is lost.
#[derive(Clone)]
struct Connector {
    tls: RoleTls,
    address: String,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Connector { tls, address } = self.clone();
        Box::pin(async move {
            let connected = connect(&tls, &address).await;
            if let Err(error) = &connected
                && let Some(why) = refusal_of(error)
            {
                tracing::warn!(address, "no connection to another role: {why}");
            }
            connected.map(TokioIo::new)
        })
    }
}

/// Connects to the server at an address. Both ends have then accepted each other's certificate, the server's for its
/// host.
pub(super) async fn connect(tls: &RoleTls, address: &str) -> io::Result<TlsStream<TcpStream>> {
    let host = host_of(address);
    let name: ServerName<'static> = server_name(host).map_err(refused)?;
    let stream = TcpStream::connect(address).await?;
    // Many calls are small: Nagle's algorithm would hold them back until the previous one is acknowledged.
    stream.set_nodelay(true)?;
    let failed = |error: io::Error| match refusal::of_tls(&error) {
        Some(found) => refused(refusal::of_server(found, host)),
        None => error,
    };
    let mut stream = TlsConnector::from(tls.client()).connect(name, stream).await.map_err(failed)?;
    // In TLS 1.3 a client is done before the server has seen its certificate. An HTTP/2 server speaks first, once it
    // has (RFC 9113, 3.4). So a rejection shows here, and not in the middle of the first call. The bytes read stay in
    // the stream.
    match stream.fill_buf().await.map_err(failed)? {
        [] => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(stream),
    }
}

fn refused(why: String) -> io::Error {
    io::Error::other(ServerRejected(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_here() {
        for here in ["127.0.0.1:7118", "127.1.2.3:1", "[::1]:7118", "localhost:7118", "[::ffff:127.0.0.1]:1"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in
            ["10.0.0.7:7118", "owner-1:7118", "[2001:db8::7]:1", "localhost.example.org:1", "127.0.0.1.example.org:1"]
        {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
