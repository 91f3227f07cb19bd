//! The null server: a minimal HTTP/1.1 server, so that a run against it shows the lab's own ceiling.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The only response.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Max bytes of a request's head.
const BUFFER: usize = 16 << 10;

/// Responds with `200` and `{}` to every request on every connection, until the future is dropped.
pub async fn serve(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection lost before it was accepted does not end the server.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(answer(stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    let (mut filled, mut body) = (0, 0_usize);
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let (mut at, mut answers) = (0, 0);
        loop {
            let skip = body.min(filled - at);
            (at, body) = (at + skip, body - skip);
            let Some(end) = head_end(&buffer[at..filled]) else { break };
            body = length(&buffer[at..at + end]);
            (at, answers) = (at + end, answers + 1);
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        match answers {
            0 => {}
            1 => stream.write_all(ANSWER).await?,
            many => stream.write_all(&ANSWER.repeat(many)).await?,
        }
        // A head that fills the buffer would never be complete, so its connection is closed.
        if filled == buffer.len() {
            return Ok(());
        }
    }
}

/// Returns the offset of the head's end.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn length(head: &[u8]) -> usize {
    // A request without a body is not searched for its length.
    if head.starts_with(b"GET ") || head.starts_with(b"HEAD ") {
        return 0;
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(head).is_err() {
        return 0;
    }
    let of = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    of.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok()).unwrap_or(0)
}
