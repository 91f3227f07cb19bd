//! The byte stream between the lab and a target: TCP, with or without TLS.

use super::address::Address;
use super::fault::{CLOSED, ExchangeError};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP.
    Plain(TcpStream),
    /// Within TLS; boxed, because a plain one takes only a few bytes.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects, and performs the handshake if the address requires TLS.
    pub async fn open(address: &Address) -> Result<Stream, ExchangeError> {
        let plain = Stream::plain(address).await?;
        if address.tls.is_some() { plain.secured(address).await } else { Ok(plain) }
    }

    /// Connects, without TLS yet.
    pub async fn plain(address: &Address) -> Result<Stream, ExchangeError> {
        let stream = TcpStream::connect(address.socket).await.map_err(|e| ExchangeError::not_connected(&e))?;
        // Without it the kernel delays a second small write until the first is acknowledged.
        stream.set_nodelay(true).map_err(|e| ExchangeError::not_connected(&e))?;
        Ok(Stream::Plain(stream))
    }

    /// Performs the handshake over a plain connection; a secured one, or an address without TLS, stays unchanged.
    pub async fn secured(self, address: &Address) -> Result<Stream, ExchangeError> {
        match (self, &address.tls) {
            (Stream::Plain(plain), Some(tls)) => Ok(Stream::Tls(Box::new(tls.shake_hands(plain).await?))),
            (stream, _) => Ok(stream),
        }
    }

    /// Returns the protocol agreed by ALPN within TLS.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Returns whether the other side is known to have closed an idle connection, or has sent unrequested bytes.
    /// Within TLS this is unknown: pending bytes may be a ticket.
    pub fn has_ended(&self) -> bool {
        match self {
            Stream::Plain(stream) => match stream.try_read(&mut [0]) {
                Ok(_) => true,
                Err(e) => e.kind() != io::ErrorKind::WouldBlock,
            },
            Stream::Tls(_) => false,
        }
    }

    /// Reads the available bytes, at least one, to the end of `buffer`.
    pub async fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<(), ExchangeError> {
        match self.read_buf(buffer).await {
            Ok(0) => Err(ExchangeError::failed(CLOSED)),
            Ok(_) => Ok(()),
            Err(e) => Err(ExchangeError::broken(&e)),
        }
    }

    /// Writes and flushes all of it.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        let sent = match self {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            // TLS may hold accepted bytes in its buffer.
            Stream::Tls(stream) => match stream.write_all(bytes).await {
                Ok(()) => stream.flush().await,
                wrong => wrong,
            },
        };
        sent.map_err(|e| ExchangeError::broken(&e))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn an_idle_connection_is_known_to_have_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let plain = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        let (other, stream) = (listener.accept().await.expect("the other end"), Stream::Plain(plain));
        assert!(!stream.has_ended());
        drop(other);
        let ended = async {
            while !stream.has_ended() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("its end is seen");
    }
}
