//! Plain HTTP on the TLS port: a readable response instead of an alert that no browser displays.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Duration;

/// The first byte of every TLS connection: a record of the type handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
/// How much of the request is read, and for how long. A connection closed with unread bytes is reset, and the response
/// is lost.
const READ_BYTES: usize = 16 << 10;
const LINGER: Duration = Duration::from_secs(1);

const ANSWER: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n\
Connection: close\r\nContent-Length: 44\r\n\r\nThis port speaks TLS: use https, not http.\r\n";

/// Returns whether the client begins a TLS handshake. Consumes nothing from the stream.
pub async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(first[0] == HANDSHAKE),
    }
}

/// Responds that the port speaks TLS, and closes.
pub async fn refuse(mut stream: TcpStream) {
    let mut room = vec![0; READ_BYTES];
    let told = async {
        let _ = stream.read(&mut room).await;
        stream.write_all(ANSWER).await?;
        stream.shutdown().await?;
        stream.read(&mut room).await
    };
    let _ = tokio::time::timeout(LINGER, told).await;
}

#[cfg(test)]
mod tests {
    use super::ANSWER;

    #[test]
    fn the_canned_answer_is_complete() {
        let text = std::str::from_utf8(ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }
}
