//! Page tokens: where the next page begins, as text that means nothing to whoever carries it.
//!
//! A token holds the tenant, the snapshot, a hash of the question and the place of the last event sent
//! in the order of the answer. It names no file and no row, so it outlives compaction, a restart and a
//! change of server. Its text is base64url (RFC 4648, section 5, without padding) of
//!
//! ```text
//! version u8 = 1 | tenant length u8, tenant | snapshot u64 | question u64 | place | CRC-32C u32
//! place: 0 | key u128 | seq u64                              natural order
//!        1 | distance f64 | seq u64 | given u64              by distance
//!        2 | count u8 | values | seq u64                     by fields
//! value: 0 | 1, i64 | 2, f64 | 3, u8 | 4, length u16, text   null, integer or time, float, boolean, text
//! ```
//!
//! all little-endian. The checksum is there for tokens cut short by a mail program, not against forgery:
//! a forged token reads nothing that its bearer could not ask for anyway.

use meridian_index::Key;
use meridian_model::{Invalid, Seq};

/// Longest token that is read, in characters.
pub const TOKEN_CHARS_MAX: usize = 8_192;

const VERSION: u8 = 1;

/// A sort value as it stands in a [`Place`]: what the order compares, not always the whole value.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    /// No value; after all others, in both directions.
    Null,
    /// An integer, or a time in microseconds since 1970.
    Int(i64),
    /// A float.
    Float(f64),
    /// False before true.
    Bool(bool),
    /// At most [`crate::sort::TEXT_BYTES_COMPARED`] bytes of a text or id.
    Text(Vec<u8>),
}

/// The place of an event in the order of an answer; a page begins after one.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// In natural order.
    Natural {
        /// Key of the event.
        key: Key,
        /// Its sequence number.
        seq: Seq,
    },
    /// By distance.
    Near {
        /// Distance of the event in metres.
        distance_m: f64,
        /// Its sequence number.
        seq: Seq,
        /// Events given on earlier pages, for orders that end after the nearest k.
        given: u64,
    },
    /// By fields.
    Fields {
        /// Value of each sort key.
        values: Vec<SortValue>,
        /// Sequence number of the event.
        seq: Seq,
    },
}

/// What a page token says.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Tenant that asked.
    pub tenant: String,
    /// Snapshot that every page of the answer reads.
    pub snapshot: Seq,
    /// [`question_hash`] of what was asked.
    pub question: u64,
    /// The last event given.
    pub after: Place,
}

/// A hash of the parts of a question (collection, filter, order, ...), so that a token is refused where
/// another question is asked with it. The same on every server and version (FNV-1a, 64 bits).
pub fn question_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        // The length first: "ab", "c" must not be "a", "bc".
        (part.len() as u64).to_le_bytes().into_iter().for_each(&mut eat);
        part.bytes().for_each(&mut eat);
    }
    hash
}

impl Token {
    /// The token as text that is safe in a URL.
    pub fn encode(&self) -> String {
        let mut out = vec![VERSION];
        let tenant = &self.tenant.as_bytes()[..self.tenant.len().min(255)];
        out.push(tenant.len() as u8);
        out.extend_from_slice(tenant);
        out.extend_from_slice(&self.snapshot.0.to_le_bytes());
        out.extend_from_slice(&self.question.to_le_bytes());
        match &self.after {
            Place::Natural { key, seq } => {
                out.push(0);
                out.extend_from_slice(&key.0.to_le_bytes());
                out.extend_from_slice(&seq.0.to_le_bytes());
            }
            Place::Near { distance_m, seq, given } => {
                out.push(1);
                out.extend_from_slice(&distance_m.to_le_bytes());
                out.extend_from_slice(&seq.0.to_le_bytes());
                out.extend_from_slice(&given.to_le_bytes());
            }
            Place::Fields { values, seq } => {
                out.push(2);
                out.push(values.len().min(255) as u8);
                values.iter().take(255).for_each(|v| put_value(&mut out, v));
                out.extend_from_slice(&seq.0.to_le_bytes());
            }
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        base64url(&out)
    }

    /// Reads what [`Token::encode`] wrote.
    pub fn decode(text: &str) -> Result<Token, Invalid> {
        let wrong =
            |why: &str| Invalid::field("token", format!("the page token {why}: take it as it stands in a next link"));
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
        if reader.u8() != Some(VERSION) {
            return Err(wrong("was made by another version of Meridian"));
        }
        reader.token().filter(|_| reader.0.is_empty()).ok_or_else(|| wrong("is not one that Meridian made"))
    }

    /// Checks that the token belongs to this tenant and question.
    pub fn check(&self, tenant: &str, question: u64) -> Result<(), Invalid> {
        if self.tenant != tenant || self.question != question {
            return Err(Invalid::field(
                "token",
                "the page token belongs to another question: send it with the parameters of the link it came in",
            ));
        }
        Ok(())
    }
}

fn put_value(out: &mut Vec<u8>, value: &SortValue) {
    match value {
        SortValue::Null => out.push(0),
        SortValue::Int(n) => {
            out.push(1);
            out.extend_from_slice(&n.to_le_bytes());
        }
        SortValue::Float(x) => {
            out.push(2);
            out.extend_from_slice(&x.to_le_bytes());
        }
        SortValue::Bool(b) => out.extend([3, u8::from(*b)]),
        SortValue::Text(text) => {
            let text = &text[..text.len().min(usize::from(u16::MAX))];
            out.push(4);
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
}

/// Takes values off the front of some bytes; `None` where there are too few.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn float(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes).filter(|x| !x.is_nan())
    }

    fn token(&mut self) -> Option<Token> {
        let length = self.u8()?;
        let tenant = std::str::from_utf8(self.bytes(usize::from(length))?).ok()?.to_owned();
        let (snapshot, question) = (Seq(self.u64()?), self.u64()?);
        let after = match self.u8()? {
            0 => Place::Natural { key: Key(self.array().map(u128::from_le_bytes)?), seq: Seq(self.u64()?) },
            1 => Place::Near { distance_m: self.float()?, seq: Seq(self.u64()?), given: self.u64()? },
            2 => {
                let count = self.u8()?;
                let values = (0..count).map(|_| self.value()).collect::<Option<Vec<_>>>()?;
                Place::Fields { values, seq: Seq(self.u64()?) }
            }
            _ => return None,
        };
        Some(Token { tenant, snapshot, question, after })
    }

    fn value(&mut self) -> Option<SortValue> {
        Some(match self.u8()? {
            0 => SortValue::Null,
            1 => SortValue::Int(self.array().map(i64::from_le_bytes)?),
            2 => SortValue::Float(self.float()?),
            3 => SortValue::Bool(self.u8()? != 0),
            4 => {
                let length = self.array().map(u16::from_le_bytes)?;
                SortValue::Text(self.bytes(usize::from(length))?.to_vec())
            }
            _ => return None,
        })
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn base64url(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |w, (i, &b)| w | u32::from(b) << (16 - 8 * i));
        (0..=chunk.len()).for_each(|i| out.push(ALPHABET[(word >> (18 - 6 * i) & 63) as usize] as char));
    }
    out
}

/// `None` for any text that [`base64url`] cannot have written, so that a token has one spelling.
fn base64url_decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let mut word = 0u32;
        for (i, byte) in chunk.iter().enumerate() {
            word |= (ALPHABET.iter().position(|a| a == byte)? as u32) << (18 - 6 * i);
        }
        let bytes = word.to_be_bytes();
        let used = chunk.len() - 1;
        if bytes[1 + used..].iter().any(|&b| b != 0) {
            return None;
        }
        out.extend_from_slice(&bytes[1..1 + used]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = SortValue> {
        prop_oneof![
            Just(SortValue::Null),
            any::<i64>().prop_map(SortValue::Int),
            prop::num::f64::NORMAL.prop_map(SortValue::Float),
            any::<bool>().prop_map(SortValue::Bool),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(SortValue::Text),
        ]
    }

    fn places() -> impl Strategy<Value = Place> {
        prop_oneof![
            (any::<u128>(), any::<u64>()).prop_map(|(k, s)| Place::Natural { key: Key(k), seq: Seq(s) }),
            (0.0..2e7f64, any::<u64>(), any::<u64>()).prop_map(|(distance_m, s, given)| Place::Near {
                distance_m,
                seq: Seq(s),
                given
            }),
            (prop::collection::vec(values(), 0..8), any::<u64>())
                .prop_map(|(values, s)| Place::Fields { values, seq: Seq(s) }),
        ]
    }

    proptest! {
        #[test]
        fn tokens_come_back_and_changed_ones_are_refused(
            after in places(),
            tenant in "[a-z]{1,20}",
            snapshot: u64,
            question: u64,
            flip: prop::sample::Index,
            bit in 0u8..6,
        ) {
            let token = Token { tenant, snapshot: Seq(snapshot), question, after };
            let text = token.encode();
            prop_assert!(text.len() <= TOKEN_CHARS_MAX);
            prop_assert_eq!(Token::decode(&text), Ok(token));
            let mut broken = text.clone().into_bytes();
            let at = flip.index(broken.len());
            let digit = ALPHABET.iter().position(|&a| a == broken[at]).unwrap();
            broken[at] = ALPHABET[digit ^ 1 << bit];
            prop_assert!(Token::decode(std::str::from_utf8(&broken).unwrap()).is_err());
            prop_assert!(Token::decode(&text[..at]).is_err());
        }

        #[test]
        fn nonsense_is_refused_without_a_panic(text in "\\PC{0,80}") {
            prop_assert!(Token::decode(&text).is_err());
        }
    }

    #[test]
    fn a_token_answers_its_own_question_only() {
        let question = question_hash(["quakes", "mag > 3", ""]);
        assert_ne!(question, question_hash(["quakes", "mag > 3"]));
        assert_ne!(question_hash(["ab", "c"]), question_hash(["a", "bc"]));
        let after = Place::Natural { key: Key(7), seq: Seq(9) };
        let token = Token { tenant: "default".to_owned(), snapshot: Seq(3), question, after };
        assert!(token.check("default", question).is_ok());
        assert!(token.check("other", question).is_err());
        assert!(token.check("default", question ^ 1).is_err());
    }
}
