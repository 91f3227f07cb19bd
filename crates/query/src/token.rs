//! Page tokens: the start of the next page, as opaque text.
//!
//! A token holds the tenant, the snapshot, a hash of the query and the cursor of the last event sent. It names no
//! file or row, so it outlives compaction, a restart and a change of server. Its text is base64url (RFC 4648, section
//! 5, without padding) of
//!
//! ```text
//! version u8 = 1 | tenant length u8, tenant | snapshot u64 | question u64 | cursor | CRC-32C u32
//! version u8 = 2 | tenant length u8, tenant | count u16, snapshots u64 | question u64 | cursor | CRC-32C u32
//! ```
//!
//! all little-endian; [`crate::cursor`] has the bytes of a cursor. Version 1 is of a collection of one partition.
//! Version 2 has a snapshot for each of several partitions.
//!
//! The checksum detects tokens truncated by a mail program; it does not prevent forgery. A forged token reads nothing
//! that its bearer could not request anyway.

use crate::cursor::{Cursor, Reader};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meridian_model::{Invalid, Seq, SeqLayout, Seqs};

/// Max length of a token in characters.
pub const TOKEN_CHARS_MAX: usize = 8_192;

const SINGLE: u8 = 1;
const PARTITIONED: u8 = 2;

/// The content of a page token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Tenant of the query.
    pub tenant: String,
    /// Snapshot read by every page of the result.
    pub snapshot: Seqs,
    /// [`question_mark`] of the query.
    pub question: u64,
    /// The last event returned.
    pub after: Cursor,
}

/// A hash of the parts of a query (collection, filter, order, ...), so that a token is refused if used with another
/// query. Identical on every server and version (FNV-1a, 64 bits).
pub fn question_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        // Length-prefixed: "ab", "c" must not equal "a", "bc".
        (part.len() as u64).to_le_bytes().into_iter().for_each(&mut eat);
        part.bytes().for_each(&mut eat);
    }
    hash
}

/// Combines the hashes of a query (upper half) and of its collection (lower half).
pub fn question_mark(question: u64, collection: u64) -> u64 {
    question << 32 | collection & u64::from(u32::MAX)
}

fn wrong(why: &str) -> Invalid {
    Invalid::field("token", format!("the page token {why}: copy it unchanged from a next link"))
}

impl Token {
    /// The token as URL-safe text, in version 1 if there is one partition.
    pub fn encode(&self) -> String {
        let (mut version, mut snapshots) = (SINGLE, Vec::new());
        if self.snapshot.len() > 1 {
            version = PARTITIONED;
            snapshots.extend((self.snapshot.len() as u16).to_le_bytes());
        }
        self.snapshot.as_slice().iter().for_each(|seq| snapshots.extend(seq.0.to_le_bytes()));
        sealed(version, &self.tenant, &snapshots, self.question, &self.after)
    }

    /// Parses a token of version 1 or 2.
    pub fn decode(text: &str) -> Result<Token, Invalid> {
        // Before anything is decoded or allocated.
        if text.len() > TOKEN_CHARS_MAX {
            return Err(wrong("is too long"));
        }
        let bytes = base64url_decode(text).ok_or_else(|| wrong("is not one that Meridian made"))?;
        let Some((body, checksum)) = bytes.split_last_chunk::<4>() else {
            return Err(wrong("was cut short"));
        };
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(wrong("was changed or cut short"));
        }
        let mut reader = Reader(body);
        let version = reader.u8();
        if !matches!(version, Some(SINGLE | PARTITIONED)) {
            return Err(wrong("was made by another version of Meridian"));
        }
        let token = reader.token(version == Some(PARTITIONED));
        token.filter(|_| reader.0.is_empty()).ok_or_else(|| wrong("is not one that Meridian made"))
    }

    /// Checks that the token belongs to this tenant and to the query of this mark. Returns whether it also belongs to
    /// its collection, rather than to another one of the same name.
    pub fn check(&self, tenant: &str, mark: u64) -> Result<bool, Invalid> {
        if (self.tenant.as_str(), self.question >> 32) != (tenant, mark >> 32) {
            return Err(Invalid::field(
                "token",
                "the page token belongs to another question: send it with the parameters of the link it came in",
            ));
        }
        Ok(self.question == mark)
    }
}

fn sealed(version: u8, tenant: &str, snapshots: &[u8], question: u64, after: &Cursor) -> String {
    let mut out = vec![version];
    let tenant = &tenant.as_bytes()[..tenant.len().min(255)];
    out.push(tenant.len() as u8);
    out.extend_from_slice(tenant);
    out.extend_from_slice(snapshots);
    out.extend_from_slice(&question.to_le_bytes());
    after.put(&mut out);
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    base64url(&out)
}

impl Reader<'_> {
    fn token(&mut self, partitioned: bool) -> Option<Token> {
        let length = self.u8()?;
        let tenant = std::str::from_utf8(self.bytes(usize::from(length))?).ok()?.to_owned();
        let count = if partitioned { usize::from(self.u16()?) } else { 1 };
        // A forged count must not determine an allocation.
        if count == 0 || count > SeqLayout::Partitioned.partitions_max() {
            return None;
        }
        let snapshot = (0..count).map(|_| self.u64().map(Seq)).collect::<Option<Seqs>>()?;
        Some(Token { tenant, snapshot, question: self.u64()?, after: self.cursor()? })
    }
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns `None` for any text that [`base64url`] cannot have produced, so that a token has one spelling.
pub(crate) fn base64url_decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::tests::cursors;
    use meridian_index::Key;
    use proptest::prelude::*;

    /// A token of version 2, whatever the number of snapshots.
    fn encode_partitioned(token: &Token, snapshots: &[Seq]) -> String {
        let mut bytes = (snapshots.len() as u16).to_le_bytes().to_vec();
        snapshots.iter().for_each(|seq| bytes.extend(seq.0.to_le_bytes()));
        sealed(PARTITIONED, &token.tenant, &bytes, token.question, &token.after)
    }

    proptest! {
        #[test]
        fn tokens_come_back_and_changed_ones_are_refused(
            after in cursors(),
            tenant in "[a-z]{1,20}",
            snapshot: u64,
            question: u64,
            flip: prop::sample::Index,
            bit in 0u8..6,
        ) {
            let token = Token { tenant, snapshot: Seqs::one(Seq(snapshot)), question, after };
            let text = token.encode();
            prop_assert!(text.len() <= TOKEN_CHARS_MAX);
            prop_assert_eq!(Token::decode(&text), Ok(token));
            let mut broken = text.clone().into_bytes();
            let at = flip.index(broken.len());
            let alphabet = base64::alphabet::URL_SAFE.as_str().as_bytes();
            let digit = alphabet.iter().position(|&a| a == broken[at]).unwrap();
            broken[at] = alphabet[digit ^ 1 << bit];
            prop_assert!(Token::decode(std::str::from_utf8(&broken).unwrap()).is_err());
            prop_assert!(Token::decode(&text[..at]).is_err());
        }

        #[test]
        fn tokens_of_partitions_are_read(
            after in cursors(),
            tenant in "[a-z]{1,20}",
            snapshots in prop::collection::vec(any::<u64>().prop_map(Seq), 1..=256),
            question: u64,
        ) {
            let token = Token { tenant, snapshot: snapshots.iter().copied().collect(), question, after };
            let text = token.encode();
            prop_assert!(text.len() <= TOKEN_CHARS_MAX);
            prop_assert_eq!(Token::decode(&text), Ok(token.clone()));
            // For one partition both versions are equivalent, and version 1 is written.
            let other = encode_partitioned(&token, &snapshots);
            prop_assert_eq!(Token::decode(&other), Ok(token));
            prop_assert_eq!(other == text, snapshots.len() > 1);
        }

        #[test]
        fn nonsense_is_refused_without_a_panic(text in "\\PC{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(Token::decode(&text).is_err());
            // With a valid checksum, so that the rest is read.
            for version in [SINGLE, PARTITIONED, 3] {
                let mut body = vec![version];
                body.extend(&bytes);
                body.extend(crc32c::crc32c(&body).to_le_bytes());
                let _ = Token::decode(&base64url(&body));
            }
        }
    }

    #[test]
    fn a_token_answers_its_own_question_only() {
        let question = question_hash(["quakes", "mag > 3", ""]);
        assert_ne!(question, question_hash(["quakes", "mag > 3"]));
        assert_ne!(question_hash(["ab", "c"]), question_hash(["a", "bc"]));
        let after = Cursor::Natural { key: Key(7), seq: Seq(9) };
        let mark = question_mark(question, 7);
        let token = Token { tenant: "default".to_owned(), snapshot: Seqs::one(Seq(3)), question: mark, after };
        assert_eq!(token.check("default", mark), Ok(true));
        assert_eq!(token.check("default", question_mark(question, 8)), Ok(false), "another collection of the name");
        assert!(token.check("other", mark).is_err());
        assert!(token.check("default", question_mark(question ^ 1, 7)).is_err());
    }

    #[test]
    fn no_token_names_more_partitions_than_there_can_be() {
        let after = Cursor::Natural { key: Key(7), seq: Seq(9) };
        for count in [0, 257] {
            let snapshots = vec![Seq(1); count];
            let token = Token { tenant: "a".to_owned(), snapshot: Seqs::default(), question: 0, after: after.clone() };
            assert!(Token::decode(&encode_partitioned(&token, &snapshots)).is_err());
        }
    }
}
