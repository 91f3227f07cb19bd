//! Connections: their protocols, and refusals before there is a request.
//!
//! The layers, from the bottom: a stream that does not stall (`stall.rs`), TLS if configured (`tls.rs`), then one of
//! two protocols. These are HTTP/1.1 (`http1.rs` over `wire.rs`) and HTTP/2 (`http2.rs`, one request in
//! `exchange.rs`). The entry point above does not know the layers.

mod addresses;
mod asked;
mod exchange;
mod frames;
mod http1;
mod http2;
mod plain;
mod stall;
mod tls;
mod wire;

pub use addresses::{Addresses, Counted};
pub use asked::{AfterSwitch, HangUp};
pub use tls::{Certificate, CertificateFault, Tls};

use crate::entry::{Connection, Entry, Peer};
use stall::Stalling;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

/// Serves a client of the network until it or `stopping` ends the connection.
pub async fn serve(
    stream: TcpStream,
    address: IpAddr,
    counted: Counted,
    tls: Option<Tls>,
    entry: Arc<Entry>,
    mut stopping: watch::Receiver<bool>,
) {
    let from = Connection { peer: Peer::Address(address), secure: tls.is_some() };
    let config = &entry.state().config;
    let Some(tls) = tls else {
        return http1::serve(Stalling::new(stream, config.write_stall), from, &entry, stopping).await;
    };
    let secured = async {
        // Decided by the first byte, before the limits: a client that sends nothing takes no place of a handshake.
        if !plain::speaks_tls(&stream).await? {
            plain::refuse(stream).await;
            return Ok(None);
        }
        let stream = Stalling::new(stream, config.write_stall);
        tls.shake_hands(stream, counted.handshakes()).await.map(Some)
    };
    // One deadline for first byte, turn and handshake: a silent client holds its connection no longer.
    let secured = tokio::select! {
        secured = tokio::time::timeout(config.handshake_timeout, secured) => secured,
        // No request has begun.
        _ = stopping.wait_for(|stop| *stop) => return,
    };
    let stream = match secured {
        Ok(Ok(Some(stream))) => stream,
        Ok(Ok(None)) => return,
        failed => {
            entry.state().metrics.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            let error = failed.ok().and_then(Result::err).map(tracing::field::display);
            return tracing::debug!(client = %address, error, "no TLS handshake");
        }
    };
    // A client that negotiates nothing speaks HTTP/1.1.
    if stream.get_ref().1.alpn_protocol() == Some(tls::H2) {
        http2::serve(stream, from, &entry, stopping).await;
    } else {
        http1::serve(stream, from, &entry, stopping).await;
    }
}

/// Serves a client of the control socket: the owner of the data folder.
pub async fn serve_owner(stream: UnixStream, entry: Arc<Entry>, stopping: watch::Receiver<bool>) {
    let from = Connection { peer: Peer::Socket, secure: false };
    let stream = Stalling::new(stream, entry.state().config.write_stall);
    http1::serve(stream, from, &entry, stopping).await;
}
