//! A session with a PostgreSQL server: startup and authentication.

use super::message::{self, ServerError};
use crate::protocol::address::{Address, Login};
use crate::protocol::fault::ExchangeError;
use crate::protocol::stream::Stream;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use std::collections::HashSet;
use tokio::io::AsyncReadExt;

/// An authenticated session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) stream: Stream,
    /// Received bytes that are not parsed yet.
    pub(super) buffer: Vec<u8>,
    /// Requests whose statements the server has prepared.
    pub(super) prepared: HashSet<u16>,
}

/// Bytes read at once.
const BUFFER: usize = 16 << 10;

/// Version 3.0 of the protocol, and the number that requests TLS in its place.
const VERSION: u32 = 196_608;
const WANTS_TLS: u32 = 80_877_103;

impl Session {
    /// Connects, secures and authenticates.
    pub(super) async fn open(address: &Address) -> Result<Session, ExchangeError> {
        let mut stream = Stream::plain(address).await?;
        if address.tls.is_some() {
            let mut wish = Vec::new();
            message::put(&mut wish, 0, &[&WANTS_TLS.to_be_bytes()]);
            stream.send(&wish).await?;
            match stream.read_u8().await {
                Ok(b'S') => stream = stream.secured(address).await?,
                Ok(b'N') => return Err(ExchangeError::failed("TLS: the server does not offer it")),
                Ok(_) => return Err(ExchangeError::failed("the answer is not PostgreSQL's")),
                Err(e) => return Err(ExchangeError::broken(&e)),
            }
        }
        let mut session = Session { stream, buffer: Vec::new(), prepared: HashSet::new() };
        session.sign_in(&address.login).await?;
        Ok(session)
    }

    /// Reads more.
    pub(super) async fn read(&mut self) -> Result<(), ExchangeError> {
        self.buffer.reserve(BUFFER);
        self.stream.fill(&mut self.buffer).await
    }

    async fn sign_in(&mut self, login: &Login) -> Result<(), ExchangeError> {
        let user = login.user.as_deref().unwrap_or("postgres");
        let database = login.database.as_deref().unwrap_or(user);
        let mut out = Vec::new();
        let mut body = VERSION.to_be_bytes().to_vec();
        for text in
            ["user", user, "database", database, "application_name", "meridian-lab", "client_encoding", "UTF8", ""]
        {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        message::put(&mut out, 0, &[&body]);
        self.stream.send(&out).await?;
        let password = login.password.as_deref().unwrap_or_default().as_bytes();
        let mut scram = None;
        loop {
            let mut used = 0;
            let mut reply = Vec::new();
            while let Some(message) = message::next(&self.buffer[used..]).map_err(ExchangeError::failed)? {
                used += message.length;
                match message.kind {
                    b'R' => answer(message.body, user, password, &mut scram, &mut reply)?,
                    b'E' => return Err(complaint(&ServerError::read(message.body))),
                    b'Z' => {
                        self.buffer.drain(..used);
                        return Ok(());
                    }
                    // Parameters, cancellation keys, notices, unsupported features of a newer protocol.
                    b'S' | b'K' | b'N' | b'v' => {}
                    _ => return Err(ExchangeError::failed("the answer is not PostgreSQL's")),
                }
            }
            self.buffer.drain(..used);
            if reply.is_empty() {
                self.read().await?;
            } else {
                self.stream.send(&reply).await?;
            }
        }
    }
}

/// Returns a server's error in the form of the record.
pub(super) fn complaint(of: &ServerError) -> ExchangeError {
    let detail = format!("SQLSTATE {}: {}", of.code, of.text);
    if of.is_refusal() { ExchangeError::refused(detail) } else { ExchangeError::failed(detail) }
}

/// Answers one step of the server's authentication.
fn answer(
    asked: &[u8],
    user: &str,
    password: &[u8],
    scram: &mut Option<ScramSha256>,
    reply: &mut Vec<u8>,
) -> Result<(), ExchangeError> {
    let odd = || ExchangeError::failed("the server's authentication is not sound");
    let (kind, rest) = asked.split_first_chunk().ok_or_else(odd)?;
    match u32::from_be_bytes(*kind) {
        0 => {}
        3 => message::put(reply, b'p', &[password, &[0]]),
        5 => {
            let salt = rest.first_chunk().ok_or_else(odd)?;
            message::put(reply, b'p', &[md5_hash(user.as_bytes(), password, *salt).as_bytes(), &[0]]);
        }
        10 if rest.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) => {
            let begun = scram.insert(ScramSha256::new(password, ChannelBinding::unsupported()));
            let first = begun.message();
            let length = u32::try_from(first.len()).unwrap_or(u32::MAX).to_be_bytes();
            message::put(reply, b'p', &[SCRAM_SHA_256.as_bytes(), &[0], &length, first]);
        }
        11 => {
            let scram = scram.as_mut().ok_or_else(odd)?;
            scram.update(rest).map_err(|_| odd())?;
            message::put(reply, b'p', &[scram.message()]);
        }
        12 => scram.as_mut().ok_or_else(odd)?.finish(rest).map_err(|_| odd())?,
        _ => {
            return Err(ExchangeError::failed(
                "the server wants a sign-in that is not spoken: expected a password or none",
            ));
        }
    }
    Ok(())
}
