//! Mock sources over HTTP/1.1, hand-written: no HTTP library would send the output of a broken source.

use super::file::{MockFault, MockFile};
use super::source::{Reply, Source};
use super::stream;
use meridian_lab_results::error::{LabError, Result};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Max bytes of a request's head and body.
const REQUEST_MAX: usize = 1 << 20;

/// Sources, their state, and the log of their calls.
#[derive(Debug)]
pub struct Mock {
    state: Mutex<State>,
    start: Instant,
}

#[derive(Debug)]
struct State {
    sources: Vec<(Source, u64)>,
    log: Option<BufWriter<File>>,
}

impl Mock {
    /// Prepares the sources of a file. `log` is a file of JSON lines, one per call, that records the actual responses.
    pub fn new(file: &MockFile, log: Option<&Path>) -> Result<Mock> {
        let mut sources = Vec::new();
        for (number, source) in (0..).zip(&file.source) {
            let ready = Source::new(source, file.seed, number);
            sources.push((ready.map_err(|e| LabError::scenario(format!("source {}: {e}", source.name)))?, 0));
        }
        let open =
            |path: &Path| File::create(path).map_err(|e| LabError::results(format!("--log {}: {e}", path.display())));
        let log = log.map(open).transpose()?.map(BufWriter::new);
        Ok(Mock { state: Mutex::new(State { sources, log }), start: Instant::now() })
    }

    /// Serves until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    // A connection lost before it was accepted does not end the server.
                    if let Ok((stream, _)) = accepted {
                        // Only the logged delay counts: the end of a long page must not wait for the client's
                        // acknowledgement.
                        let _ = stream.set_nodelay(true);
                        connections.spawn(Arc::clone(&self).connection(stream));
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn connection(self: Arc<Self>, mut stream: TcpStream) {
        let mut held = Vec::new();
        while let Some(RequestHead { path, key }) = request(&mut stream, &mut held).await {
            let Some(mut reply) = self.reply(&path) else {
                let body = "{\"error\":\"no source has this path\"}";
                if write(&mut stream, &page(404, body)).await {
                    continue;
                } else {
                    return;
                };
            };
            // Outside the lock, which all connections share.
            tokio::time::sleep(reply.delay).await;
            if let Some(packets) = reply.packets.take() {
                return stream::send(&mut stream, packets, key.as_deref()).await;
            }
            if !send(&mut stream, &reply).await {
                return;
            }
        }
    }

    fn reply(&self, path: &str) -> Option<Reply> {
        let mut state = self.state.lock();
        let now = self.start.elapsed();
        let State { sources, log } = &mut *state;
        let (source, calls) = sources.iter_mut().find(|(source, _)| source.answers(path))?;
        let n = *calls;
        *calls += 1;
        let reply = source.reply(n, path, now);
        if let Some(log) = log {
            let whole = reply.wrong.is_none_or(|wrong| matches!(wrong, MockFault::Slow | MockFault::Schema));
            let line = serde_json::json!({
                "at_ms": ms(now), "source": source.name(), "n": n, "path": path, "delay_ms": ms(reply.delay),
                "status": reply.status, "fault": reply.wrong.map(MockFault::name),
                "items": if whole { reply.items } else { 0 }, "bytes": reply.body.len(),
            });
            // A write error of the log shows when it is read; the sources continue. Each line is written at once,
            // since the mock may be killed.
            let _ = writeln!(log, "{line}").and_then(|()| log.flush());
        }
        Some(reply)
    }
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The request.
struct RequestHead {
    path: String,
    /// Key of a client that requests a WebSocket.
    key: Option<String>,
}

/// Reads one request; `None` if the client has disconnected or sent no valid request.
async fn request(stream: &mut TcpStream, held: &mut Vec<u8>) -> Option<RequestHead> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(head) = request.parse(held).ok()? {
            let path = request.path?.to_owned();
            let named = |name: &str| {
                let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
                Some(std::str::from_utf8(header.value).ok()?.trim().to_owned())
            };
            let (key, length) = (named("sec-websocket-key"), named("content-length"));
            let length = length.and_then(|text| text.parse::<usize>().ok());
            let end = head.checked_add(length.unwrap_or(0)).filter(|end| *end <= REQUEST_MAX)?;
            if held.len() >= end {
                held.drain(..end);
                return Some(RequestHead { path, key });
            }
        }
        if held.len() > REQUEST_MAX || stream.read_buf(held).await.ok()? == 0 {
            return None;
        }
    }
}

fn page(status: u16, body: &str) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status} Mock\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body.as_bytes()].concat()
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok()
}

/// Sends what the source's state allows; returns false if the connection is over.
async fn send(stream: &mut TcpStream, reply: &Reply) -> bool {
    let whole = page(reply.status, &reply.body);
    let half = &whole[..whole.len() - reply.body.len().div_ceil(2)];
    match reply.wrong {
        None | Some(MockFault::Slow | MockFault::Schema) => write(stream, &whole).await,
        Some(MockFault::Down) => false,
        Some(MockFault::Truncated) => {
            write(stream, half).await;
            false
        }
        Some(MockFault::Garbage) => {
            write(stream, b"\x00\xffthis is not HTTP\r\n\r\n").await;
            false
        }
        Some(wrong @ (MockFault::HalfOpen | MockFault::Hang)) => {
            if wrong == MockFault::HalfOpen {
                write(stream, half).await;
            }
            // Until the client disconnects.
            let mut ignored = [0; 1024];
            while stream.read(&mut ignored).await.is_ok_and(|n| n > 0) {}
            false
        }
    }
}
