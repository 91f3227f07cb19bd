//! Requests of clients with short timeouts, as used under faults.

use super::PATIENCE;
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of a client. Longer than a server works on a request; see `nodes.rs`.
const WAIT: Duration = Duration::from_secs(8);

/// A complete response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub body: String,
    headers: ureq::http::HeaderMap,
}

impl Response {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It was done, or answered.
    Done(Response),
    /// It was not done, or the resource does not exist.
    Absent,
    /// Whether it was done is unknown, for this reason.
    Unknown(String),
}

impl Outcome {
    /// Classifies a response. One that no fault excuses fails the test.
    #[track_caller]
    pub fn of(answer: Result<Response, String>) -> Outcome {
        match answer {
            Ok(answer) if (200..300).contains(&answer.status) => Outcome::Done(answer),
            Ok(answer) if answer.status == 404 && answer.body.contains("there is no event") => Outcome::Absent,
            Ok(Response { status, body, .. }) => {
                assert!(matches!(status, 408 | 429 | 500..), "a good request got {status}: {body}");
                Outcome::Unknown(status.to_string())
            }
            Err(why) => Outcome::Unknown(why.split(':').next().unwrap_or_default().to_owned()),
        }
    }
}

/// Sends a GET.
pub fn get(url: &str) -> Result<Response, String> {
    answer(client().get(url).call())
}

/// Sends a DELETE.
pub fn delete(url: &str) -> Result<Response, String> {
    answer(client().delete(url).call())
}

/// Puts one event.
pub fn put(url: &str, event: &str) -> Result<Response, String> {
    answer(client().put(url).content_type("application/geo+json").send(event))
}

/// Posts events, one per line, with a key.
pub fn post(url: &str, key: &str, events: &str) -> Result<Response, String> {
    let request = client().post(url).content_type("application/x-ndjson").header("Idempotency-Key", key);
    answer(request.send(events))
}

/// One connection per request, so that none is left from before a fault.
fn client() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(WAIT)).build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Response, String> {
    let mut response = response.map_err(|e| e.to_string())?;
    let body = response.body_mut().with_config().limit(u64::MAX).read_to_string().map_err(|e| e.to_string())?;
    Ok(Response { status: response.status().as_u16(), headers: response.headers().clone(), body })
}

/// Requests a path and reads two kilobytes of the response; the system buffers little more.
pub fn dawdler(address: SocketAddr, path: &str) -> BufReader<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        socket.connect(address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    (&stream).write_all(ask.as_bytes()).unwrap();
    BufReader::with_capacity(1 << 10, stream)
}
