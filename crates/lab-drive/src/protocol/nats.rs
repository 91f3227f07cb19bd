//! NATS (docs.nats.io/reference/reference-protocols/nats-protocol), as a requesting client: it publishes with an inbox
//! to reply to, and replies are results.
//!
//! `GET` is a request: the first reply is the response or, if results are events, everything that arrives while the
//! user listens. `PUT` publishes to JetStream, whose acknowledgement is the response.

use super::address::Address;
use super::fault::{CLOSED, ExchangeError};
use super::scan::BODY_MAX;
use super::stream::Stream;
use crate::protocol::{Client, Exchange};
use crate::scenario::{Request, ResultUnit};
use serde_json::Value as Json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A connection, opened when first needed and reopened when lost.
#[derive(Debug)]
pub struct Nats {
    address: Address,
    session: Option<Session>,
    out: Vec<u8>,
}

/// A connection that has completed its handshake and listens to its inbox.
#[derive(Debug)]
struct Session {
    stream: Stream,
    buffer: Vec<u8>,
    /// Subject of the inbox, to which the number of a request is added.
    inbox: String,
    asked: u64,
}

/// A message from a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A message: its subject, its headers (empty if it has none), its payload.
    Delivery { subject: &'a [u8], headers: &'a [u8], payload: &'a [u8] },
    /// A ping, to be answered by a pong.
    Ping,
    /// The answer to a ping.
    Pong,
    /// The description of the server.
    Info(&'a [u8]),
    /// An error.
    Error(&'a [u8]),
    /// Success.
    Ok,
}

/// Bytes read at once, and max length of a line.
const BUFFER: usize = 16 << 10;

/// Number of connections of this process so far, so that no two share an inbox.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

impl Nats {
    /// Creates an unopened connection.
    pub fn new(address: Address) -> Nats {
        Nats { address, session: None, out: Vec::new() }
    }

    /// Checks that the request has a subject and a way of publishing.
    pub fn can_ask(request: &Request) -> Result<(), String> {
        let name = &request.name;
        if request.path.len() < 2 {
            return Err(format!(
                "request {name}: over nats:// the path is the subject: expected one such as /orders.new"
            ));
        }
        match (request.method.as_str(), &request.result) {
            ("GET" | "PUT", ResultUnit::Body) | ("GET", ResultUnit::Event) => Ok(()),
            ("GET" | "PUT", _) => Err(format!(
                "request {name}: result: over nats:// expected \"body\" (one reply), or \"event\" (every reply) with GET"
            )),
            (method, _) => Err(format!(
                "request {name}: method = {method:?}: over nats:// expected GET (a request) or PUT (into JetStream)"
            )),
        }
    }
}

impl Session {
    async fn open(address: &Address) -> Result<Session, ExchangeError> {
        // The server speaks first, in plain text, and then accepts a handshake.
        let stream = Stream::plain(address).await?;
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let born = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let inbox = format!("_INBOX.lab{}x{born:x}x{number}", std::process::id());
        let mut session = Session { stream, buffer: Vec::new(), inbox, asked: 0 };
        while session.step(|message| matches!(message, Message::Info(_))).await?.is_none() {}
        // NATS upgrades to TLS after the INFO line, on the same connection.
        let Session { stream, buffer, inbox, asked } = session;
        let mut session = Session { stream: stream.secured(address).await?, buffer, inbox, asked };
        session.stream.send(&introduction(address, &session.inbox)).await?;
        while session.step(|message| matches!(message, Message::Pong)).await?.is_none() {}
        Ok(session)
    }

    /// Takes received messages until `wanted` is among them; reads once if it is not.
    async fn step(&mut self, wanted: impl Fn(&Message<'_>) -> bool) -> Result<Option<()>, ExchangeError> {
        let mut used = 0;
        while let Some((message, length)) = next(&self.buffer[used..]).map_err(ExchangeError::failed)? {
            used += length;
            if let Message::Error(text) = message {
                return Err(error(text));
            }
            if wanted(&message) {
                self.buffer.drain(..used);
                return Ok(Some(()));
            }
        }
        self.buffer.drain(..used);
        self.read().await.map(|()| None)
    }

    async fn read(&mut self) -> Result<(), ExchangeError> {
        self.buffer.reserve(BUFFER);
        self.stream.fill(&mut self.buffer).await
    }
}

impl Client for Nats {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        if self.session.is_none() {
            self.session = Some(Session::open(&self.address).await?);
        }
        Ok(())
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        let Exchange { question, unit, record, scan, clock } = of;
        let into_stream = question.method() == b"PUT";
        let subject = question.path().trim_start_matches('/');
        if subject.is_empty() || subject.bytes().any(|byte| byte <= b' ') {
            return Err(ExchangeError::failed("a subject is empty or holds a blank"));
        }
        self.open().await?;
        // Only a whole response leaves a connection that can be used again.
        let Some(mut session) = self.session.take() else { return Err(ExchangeError::failed(CLOSED)) };
        session.asked += 1;
        let reply_to = format!("{}.{}", session.inbox, session.asked);
        self.out.clear();
        self.out.extend_from_slice(format!("PUB {subject} {reply_to} {}\r\n", question.body().len()).as_bytes());
        self.out.extend_from_slice(question.body());
        self.out.extend_from_slice(b"\r\n");
        record.sent = Some(clock.now());
        session.stream.send(&self.out).await?;
        let mut answered = None;
        while answered.is_none() {
            session.read().await?;
            let now = clock.now();
            let (mut used, mut pings) = (0, 0);
            while let Some((message, length)) = next(&session.buffer[used..]).map_err(ExchangeError::failed)? {
                used += length;
                match message {
                    Message::Ping => pings += 1,
                    Message::Error(text) => return Err(error(text)),
                    // A reply to an earlier request may still arrive: several may answer one.
                    Message::Delivery { subject, headers, payload } if subject == reply_to.as_bytes() => {
                        record.first_byte.get_or_insert(now);
                        let verdict = reply(headers, payload, into_stream);
                        if verdict.is_ok() {
                            scan.message(payload, now);
                        }
                        if verdict.is_err() || **unit != ResultUnit::Event {
                            answered = Some(verdict);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            session.buffer.drain(..used);
            // Sent after the loop, which borrows the buffer. A server that gets no pong closes the connection.
            for _ in 0..pings {
                session.stream.send(b"PONG\r\n").await?;
            }
        }
        // Put back only here: an error drops the session, whose buffer may hold half a message.
        self.session = Some(session);
        answered.unwrap_or(Ok(()))
    }

    fn abandon(&mut self) {
        self.session = None;
    }
}

/// Returns the first bytes of a client: its credentials, its inbox, and a ping whose answer shows that it was
/// accepted.
fn introduction(address: &Address, inbox: &str) -> Vec<u8> {
    let mut connect = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": address.tls.is_some(), "lang": "rust", "name": "meridian-lab",
        "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "headers": true, "no_responders": true,
    });
    let login = &address.login;
    match (&login.user, &login.password) {
        (Some(user), Some(password)) => {
            connect["user"] = Json::from(user.as_str());
            connect["pass"] = Json::from(password.as_str());
        }
        (Some(token), None) => connect["auth_token"] = Json::from(token.as_str()),
        _ => {}
    }
    format!("CONNECT {connect}\r\nSUB {inbox}.* 1\r\nPING\r\n").into_bytes()
}

/// Returns the outcome in a reply: a status in its headers, or an acknowledgement of JetStream.
pub(crate) fn reply(headers: &[u8], payload: &[u8], into_stream: bool) -> Result<(), ExchangeError> {
    match headers.strip_prefix(b"NATS/1.0 ").and_then(|rest| rest.get(..3)) {
        Some(b"503") => return Err(ExchangeError::failed("no responder listens to this subject")),
        Some(status) if status.iter().all(u8::is_ascii_digit) => {
            return Err(ExchangeError::failed(format!("the reply has status {}", String::from_utf8_lossy(status))));
        }
        _ => {}
    }
    if !into_stream {
        return Ok(());
    }
    let said = serde_json::from_slice::<Json>(payload).unwrap_or_default();
    match said["error"]["code"].as_u64() {
        // No resources, or not ready.
        Some(503) => Err(ExchangeError::refused("JetStream has no room")),
        Some(code) => {
            let text = said["error"]["description"].as_str().unwrap_or("an error");
            Err(ExchangeError::failed(format!("JetStream answered {code}: {text}")))
        }
        None if said["stream"].is_string() && said["seq"].is_u64() => Ok(()),
        None => Err(ExchangeError::failed("the reply is no acknowledgement of JetStream")),
    }
}

fn error(text: &[u8]) -> ExchangeError {
    let text = String::from_utf8_lossy(text);
    ExchangeError::failed(format!("the server answered {}", text.trim().trim_matches('\'')))
}

/// Returns the first received message with its length, if it is complete.
pub(crate) fn next(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, &'static str> {
    const ODD: &str = "the answer is not NATS";
    let Some(end) = bytes.windows(2).take(BUFFER).position(|two| two == b"\r\n") else {
        return if bytes.len() > BUFFER { Err("a line of the answer is too long") } else { Ok(None) };
    };
    let (line, body) = (&bytes[..end], end + 2);
    let cut = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
    let (word, rest) = line.split_at(cut);
    let message = match word.to_ascii_uppercase().as_slice() {
        b"PING" => Message::Ping,
        b"PONG" => Message::Pong,
        b"+OK" => Message::Ok,
        b"-ERR" => Message::Error(rest),
        b"INFO" => Message::Info(rest),
        word @ (b"MSG" | b"HMSG") => {
            let words: Vec<&[u8]> = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
            let number = |word: &&[u8]| std::str::from_utf8(word).ok()?.parse::<usize>().ok();
            // Subject, subscription, reply subject (optional), length of the headers if any, total length.
            let (subject, numbers) = match (word, words.as_slice()) {
                (b"MSG", [subject, _, all] | [subject, _, _, all]) => (*subject, (Some(0), number(all))),
                (b"HMSG", [subject, _, head, all] | [subject, _, _, head, all]) => {
                    (*subject, (number(head), number(all)))
                }
                _ => return Err(ODD),
            };
            let (Some(head), Some(all)) = numbers else { return Err(ODD) };
            if head > all || all > BODY_MAX {
                return Err(ODD);
            }
            let Some(whole) = bytes.get(body..body + all + 2) else { return Ok(None) };
            let message = Message::Delivery { subject, headers: &whole[..head], payload: &whole[head..all] };
            return Ok(Some((message, body + all + 2)));
        }
        _ => return Err(ODD),
    };
    Ok(Some((message, body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_found_once_it_is_whole(
            payload in prop::collection::vec(any::<u8>(), 0..60), headers in "[a-z]{0,9}", reply: bool, cut in 0..90_usize,
        ) {
            let reply = if reply { " to" } else { "" };
            let all = headers.len() + payload.len();
            let head = if headers.is_empty() { format!("MSG a.b 1{reply} {all}\r\n") } else { format!("HMSG a.b 1{reply} {} {all}\r\n", headers.len()) };
            let wire = [head.as_bytes(), headers.as_bytes(), &payload, b"\r\n"].concat();
            let due = Message::Delivery { subject: b"a.b", headers: headers.as_bytes(), payload: &payload };
            prop_assert_eq!(next(&wire), Ok(Some((due, wire.len()))));
            prop_assert_eq!(next(&wire[..cut.min(wire.len() - 1)]), Ok(None));
        }

        #[test]
        fn any_bytes_are_a_message_or_a_mistake_or_too_few(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = next(&bytes);
        }
    }

    #[test]
    fn only_an_acknowledgement_counts_as_one() {
        let said = |payload: &str| reply(b"", payload.as_bytes(), true).map_err(|fault| fault.detail.into_owned());
        assert_eq!(said("{\"stream\":\"S\",\"seq\":7}"), Ok(()));
        assert_eq!(said("hello"), Err("the reply is no acknowledgement of JetStream".to_owned()));
        assert_eq!(
            said("{\"error\":{\"code\":400,\"description\":\"odd\"}}"),
            Err("JetStream answered 400: odd".to_owned())
        );
        assert_eq!(reply(b"", b"hello", false), Ok(()));
        assert!(reply(b"NATS/1.0 503\r\n\r\n", b"", false).is_err());
    }
}
