//! Batches sent at a rate, whether or not earlier ones were answered.
//!
//! Each batch is the template with a number of its own in place of [`PLACEHOLDER`], and is sent with that number as
//! its idempotency key. A line of the output file records the outcome of each: number, status, microseconds until the
//! response, and microseconds by which it was sent late. The status is 0 without a response, and -1 for a batch that
//! was not sent. Over NATS the response is the stream's acknowledgement: 201, or 503 for an error.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

/// Placeholder for the batch's number in the template. All numbers have the same number of digits.
const PLACEHOLDER: &[u8] = b"10000000";
/// Timeout of a response.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// What to send, where, how often and for how long.
#[derive(clap::Args)]
pub struct Options {
    /// Address of the server.
    #[arg(long)]
    address: String,
    /// Request target, or the subject of a stream in NATS.
    #[arg(long)]
    target: String,
    /// Media type of the batches; without it they are published to NATS.
    #[arg(long)]
    kind: Option<String>,
    /// File with a batch, in which 10000000 stands for its number.
    #[arg(long)]
    template: PathBuf,
    /// Number of the first batch, with 8 digits.
    #[arg(long)]
    first: usize,
    /// Batches a second; without it, each connection sends its next batch when the last one is answered.
    #[arg(long)]
    rate: Option<f64>,
    /// Seconds to send.
    #[arg(long)]
    seconds: f64,
    /// Connections, each with one batch in flight.
    #[arg(long)]
    connections: usize,
    /// A batch for which no connection is free after so many seconds is not sent, and counted.
    #[arg(long, default_value_t = 2.0)]
    late: f64,
    /// File for what became of each batch.
    #[arg(long)]
    out: PathBuf,
}

struct Flood {
    options: Options,
    template: Vec<u8>,
    /// Positions of the number in the template.
    places: Vec<usize>,
    began: Instant,
    next: Cell<usize>,
    ended: RefCell<String>,
}

/// Sends, and prints the number of batches.
pub async fn run(options: Options) -> std::result::Result<(), String> {
    let template = std::fs::read(&options.template).map_err(|e| format!("{}: {e}", options.template.display()))?;
    let places: Vec<usize> =
        template.windows(PLACEHOLDER.len()).enumerate().filter(|(_, w)| *w == PLACEHOLDER).map(|(at, _)| at).collect();
    let (began, next, ended) = (Instant::now(), Cell::new(0), RefCell::new(String::new()));
    let flood = Rc::new(Flood { options, template, places, began, next, ended });
    let senders: Vec<_> =
        (0..flood.options.connections).map(|_| tokio::task::spawn_local(send(flood.clone()))).collect();
    for sender in senders {
        sender.await.map_err(|e| e.to_string())?;
    }
    let out = &flood.options.out;
    std::fs::write(out, flood.ended.borrow().as_str()).map_err(|e| format!("{}: {e}", out.display()))?;
    println!("{}", serde_json::json!({ "batches": flood.next.get() }));
    Ok(())
}

async fn send(flood: Rc<Flood>) {
    let end = flood.began + Duration::from_secs_f64(flood.options.seconds);
    let mut connection = None;
    loop {
        let number = flood.next.get();
        let due = flood.options.rate.map(|rate| flood.began + Duration::from_secs_f64(number as f64 / rate));
        if due.unwrap_or_else(Instant::now) >= end {
            return;
        }
        flood.next.set(number + 1);
        if let Some(due) = due {
            sleep_until(due).await;
        }
        let number = flood.options.first + number;
        let late = due.map_or(Duration::ZERO, |due| due.elapsed());
        let sent = Instant::now();
        let status = match late.as_secs_f64() > flood.options.late {
            true => -1,
            false => match timeout(ANSWER_MAX, flood.post(&mut connection, number)).await {
                Ok(Ok(status)) => i32::from(status),
                Ok(Err(_)) | Err(_) => {
                    connection = None;
                    0
                }
            },
        };
        let took = sent.elapsed().as_micros();
        let _ = writeln!(flood.ended.borrow_mut(), "{number},{status},{took},{}", late.as_micros());
    }
}

type Halves = (OwnedReadHalf, OwnedWriteHalf);

impl Flood {
    /// Opens a connection; over NATS one that has subscribed to its acknowledgements.
    async fn open(&self) -> Result<Halves> {
        let stream = TcpStream::connect(&self.options.address).await?;
        stream.set_nodelay(true)?;
        let (read, mut write) = stream.into_split();
        if self.options.kind.is_none() {
            let inbox = inbox_of(&write)?;
            write.write_all(format!("CONNECT {{\"verbose\":false}}\r\nSUB {inbox} 1\r\n").as_bytes()).await?;
        }
        Ok((read, write))
    }

    /// Returns the status of the response to a batch. The connection is opened if there is none, and dropped if the
    /// server closes it.
    async fn post(&self, connection: &mut Option<Halves>, number: usize) -> Result<u16> {
        let Options { address, target, kind, .. } = &self.options;
        let (mut read, mut write) = match connection.take() {
            Some(halves) => halves,
            None => self.open().await?,
        };
        let length = self.template.len();
        let head = match kind {
            Some(kind) => format!(
                "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nIdempotency-Key: b{number}\r\nContent-Length: {length}\r\n\r\n"
            ),
            None => format!("PUB {target} {} {length}\r\n", inbox_of(&write)?),
        };
        let (mut request, head) = (head.clone().into_bytes(), head.len());
        request.extend_from_slice(&self.template);
        let digits = format!("{number:08}");
        for at in &self.places {
            request[head + at..head + at + PLACEHOLDER.len()].copy_from_slice(digits.as_bytes());
        }
        let mut buffer = Vec::with_capacity(1 << 10);
        if kind.is_none() {
            request.extend_from_slice(b"\r\n");
            write.write_all(&request).await?;
            let status = acknowledgement(&mut read, &mut write, &mut buffer).await?;
            *connection = Some((read, write));
            return Ok(status);
        }
        // A refusal may arrive before the body is sent, and the server may not read the rest.
        let (written, answered) = tokio::join!(write.write_all(&request), answer(&mut read, &mut buffer));
        let (status, closes) = answered?;
        if written.is_ok() && !closes {
            *connection = Some((read, write));
        }
        Ok(status)
    }
}

/// Reads a response with a length; returns its status, and whether the server closes the connection.
async fn answer(read: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Result<(u16, bool)> {
    let wrong = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
    loop {
        if read.read_buf(buffer).await? == 0 {
            return Err(wrong("the server closed the connection"));
        }
        let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(|| wrong("no status"))?;
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length: usize =
            field("content-length:").and_then(|l| l.parse().ok()).ok_or_else(|| wrong("an answer without a length"))?;
        if buffer.len() >= end + 4 + length {
            return Ok((status, field("connection:") == Some("close")));
        }
    }
}

/// Returns the subject of a connection's acknowledgements.
fn inbox_of(write: &OwnedWriteHalf) -> Result<String> {
    Ok(format!("_INBOX.flood.{}", write.local_addr()?.port()))
}

/// Reads lines of the NATS protocol until an acknowledgement has arrived, which reports `error` if nothing was stored.
async fn acknowledgement(read: &mut OwnedReadHalf, write: &mut OwnedWriteHalf, buffer: &mut Vec<u8>) -> Result<u16> {
    loop {
        while let Some(end) = buffer.windows(2).position(|w| w == b"\r\n") {
            let line = String::from_utf8_lossy(&buffer[..end]).into_owned();
            if line == "PING" {
                write.write_all(b"PONG\r\n").await?;
            } else if let Some(length) =
                line.strip_prefix("MSG ").and_then(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            {
                if buffer.len() < end + 2 + length + 2 {
                    break;
                }
                let said = String::from_utf8_lossy(&buffer[end + 2..end + 2 + length]).into_owned();
                buffer.drain(..end + 2 + length + 2);
                return Ok(if said.contains("\"error\"") { 503 } else { 201 });
            } else if line.starts_with("-ERR") {
                return Err(Error::new(ErrorKind::InvalidData, line));
            }
            buffer.drain(..end + 2);
        }
        if read.read_buf(buffer).await? == 0 {
            return Err(Error::new(ErrorKind::InvalidData, "the server closed the connection"));
        }
    }
}
