//! Tickets for `DoGet`, signed by the server that issued them.
//!
//! ```text
//! version u8 = 1 | HMAC-SHA-256 of the version and the rest, 32 bytes | JSON
//! ```
//!
//! A ticket grants no rights: its bearer is a caller with a credential of its own, which is checked like that of any
//! request. The signature keeps a client from requesting a snapshot or a part that no description named.

use super::question::Question;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::ask::Pin;
use meridian_model::Seqs;
use meridian_query::Cursor;
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};
use std::io;

/// Version of tickets that is written and read.
const VERSION: u8 = 1;
/// Bytes of a signature.
const TAG_BYTES: usize = 32;
/// How long a ticket is valid, in microseconds: as long as its snapshot is kept.
pub const VALID_US: i64 = 5 * 60 * 1_000_000;

/// Signs and verifies tickets, with a key of its own.
pub struct Tickets(Key);

/// The content of a ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The tenant that it was issued for.
    pub tenant: String,
    /// The question.
    pub question: Question,
    /// The snapshot from which the answer is read; `None` for the newest at that time.
    pub snapshot: Option<Seqs>,
    /// When the content of the snapshot's collection began, in microseconds since 1970. Content that began at another
    /// time has other snapshots.
    pub began: Option<i64>,
    /// The part of the answer, as the encoded cursors before it and at its end.
    pub part: (Option<Vec<u8>>, Option<Vec<u8>>),
    /// When it expires, in microseconds since 1970.
    pub expires: i64,
}

impl Ticket {
    /// Parses the JSON of a ticket.
    ///
    /// # Errors
    /// 400 if it has members that this version does not write.
    pub fn read(json: &[u8]) -> Result<Ticket> {
        serde_json::from_slice(json).map_err(|_| wrong("is of another version of Meridian"))
    }

    /// Formats it as JSON.
    ///
    /// # Errors
    /// A fault of the server.
    pub fn write(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(Problem::internal)
    }

    /// Returns the part and snapshot that it fixes.
    ///
    /// # Errors
    /// 400 if it has a place unknown to this version.
    pub fn pin(&self) -> Result<Pin> {
        let (after, until) = &self.part;
        Ok(Pin {
            tenant: self.tenant.clone(),
            snapshot: self.snapshot.clone(),
            began: self.began,
            after: after.as_deref().map(read).transpose()?,
            until: until.as_deref().map(read).transpose()?,
        })
    }
}

fn read(place: &[u8]) -> Result<Cursor> {
    Cursor::from_bytes(place).ok_or_else(|| wrong("is not one that this server gave"))
}

impl Tickets {
    /// Creates an instance with a new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    #[allow(clippy::disallowed_methods, reason = "a key comes from the system, never from a seed")]
    pub fn new() -> io::Result<Tickets> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        key.map(Tickets).map_err(|_| io::Error::other("the system has no random numbers for the key of tickets"))
    }

    /// Signs a ticket and returns its bytes.
    ///
    /// # Errors
    /// A fault of the server.
    pub fn seal(&self, ticket: &Ticket) -> Result<Vec<u8>> {
        let json = ticket.write()?;
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(self.tag(&json).as_ref());
        bytes.extend_from_slice(&json);
        Ok(bytes)
    }

    /// Verifies and parses a ticket.
    ///
    /// # Errors
    /// 400 if this server did not issue it, 410 if it has expired.
    pub fn open(&self, bytes: &[u8], now: i64) -> Result<Ticket> {
        let Some((VERSION, rest)) = bytes.split_first().map(|(version, rest)| (*version, rest)) else {
            return Err(wrong("is not one that this server gave"));
        };
        let (tag, json) = rest.split_at_checked(TAG_BYTES).ok_or_else(|| wrong("was cut short"))?;
        let message = [&[VERSION], json].concat();
        hmac::verify(&self.0, &message, tag).map_err(|_| wrong("is not one that this server gave"))?;
        let ticket = Ticket::read(json)?;
        match now >= ticket.expires {
            true => Err(Problem::new(Kind::Gone, "the ticket has expired: ask for the flight's info again")),
            false => Ok(ticket),
        }
    }

    fn tag(&self, json: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, &[&[VERSION], json].concat())
    }
}

fn wrong(why: &str) -> Problem {
    Problem::parameter("ticket", format!("the ticket {why}: expected one of GetFlightInfo, of the same server"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::question::Kind as Of;
    use meridian_model::Seq;
    use proptest::prelude::*;

    fn ticket() -> Ticket {
        let question = Question { collection: "quakes".into(), kind: Of::Items, query: "limit=3".into() };
        let part = (None, Some(vec![0; 25]));
        Ticket {
            tenant: "default".into(),
            question,
            snapshot: Some(Seqs::one(Seq(7))),
            began: Some(1),
            part,
            expires: 1_000,
        }
    }

    #[test]
    fn a_ticket_counts_at_its_own_server_until_it_expires() {
        let (tickets, other) = (Tickets::new().unwrap(), Tickets::new().unwrap());
        let bytes = tickets.seal(&ticket()).unwrap();
        assert_eq!(tickets.open(&bytes, 999).unwrap(), ticket());
        assert_eq!(tickets.open(&bytes, 1_000).unwrap_err().kind(), Kind::Gone);
        assert_eq!(other.open(&bytes, 999).unwrap_err().kind(), Kind::InvalidParameter);
        assert!(ticket().pin().unwrap().until.is_some());
    }

    proptest! {
        #[test]
        fn no_other_bytes_are_a_ticket(at in 0..400usize, flip in 1..=255u8, length in 0..400usize) {
            let tickets = Tickets::new().unwrap();
            let mut bytes = tickets.seal(&ticket()).unwrap();
            let cut = bytes[..length.min(bytes.len() - 1)].to_vec();
            prop_assert!(tickets.open(&cut, 0).is_err());
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(tickets.open(&bytes, 0).is_err());
        }
    }
}
