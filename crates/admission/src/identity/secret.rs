//! Random secrets that identify a caller: the text that a client presents, and its stored form.
//!
//! The text has the form `PREFIX ID _ SECRET`. The id locates the record and names it in lists and logs. The secret is
//! 256 random bits in hexadecimal. Only its SHA-256 is stored. A slow hash would protect nothing: a random secret
//! cannot be guessed from its digest.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// SHA-256 of a secret.
pub type Digest = [u8; 32];

/// A new secret: its id, its full text, and the digest to store.
pub struct NewSecret {
    pub id: String,
    pub text: String,
    /// The digest in hexadecimal, as stored in records.
    pub digest: String,
}

/// A secret's text, split into its two parts.
pub struct Parts<'a> {
    pub id: &'a str,
    secret: &'a str,
}

/// Generates a secret.
#[allow(clippy::disallowed_methods, reason = "a secret comes from the system, never from a seed")]
pub fn make(prefix: &str) -> Result<NewSecret, getrandom::Error> {
    let mut random = [0; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut random)?;
    let id = data_encoding::HEXLOWER.encode(&random[..ID_BYTES]);
    let secret = data_encoding::HEXLOWER.encode(&random[ID_BYTES..]);
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(secret.as_bytes()));
    let text = format!("{prefix}{id}_{secret}");
    Ok(NewSecret { id, text, digest })
}

/// Parses the digest of a record; `None` if the text is not a digest.
pub fn digest(text: &str) -> Option<Digest> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Returns a digest, in the form stored in records, that no known secret has.
pub fn digest_of_nothing() -> String {
    data_encoding::HEXLOWER.encode(&Digest::default())
}

impl<'a> Parts<'a> {
    /// Splits a text; `None` if it is not a secret with this prefix.
    pub fn read(prefix: &str, text: &'a str) -> Option<Parts<'a>> {
        let rest = text.strip_prefix(prefix)?;
        let (id, secret) = (rest.get(..2 * ID_BYTES)?, rest.get(2 * ID_BYTES..)?.strip_prefix('_')?);
        // Counted without branches, because every request with a token passes here.
        let is_digit = |b: &u8| b.is_ascii_digit() | (b'a'..=b'f').contains(b);
        let hexadecimal = |part: &str| part.as_bytes().iter().filter(|b| !is_digit(b)).count() == 0;
        let fits = secret.len() == 2 * SECRET_BYTES && hexadecimal(id) && hexadecimal(secret);
        fits.then_some(Parts { id, secret })
    }

    /// Returns whether the secret has this digest, in a time that reveals nothing about the digest.
    pub fn matches(&self, digest: &Digest) -> bool {
        Sha256::digest(self.secret.as_bytes()).as_slice().ct_eq(digest).into()
    }

    /// Derives a secret for one purpose, which only the holder of this one can compute.
    pub fn derive(&self, purpose: &str) -> String {
        let digest = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(self.secret).finalize();
        data_encoding::HEXLOWER.encode(&digest)
    }
}

/// Returns whether two texts are equal, in a time that depends only on their lengths.
pub fn equal(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
