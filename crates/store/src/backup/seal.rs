//! Secrets in a backup, sealed with the operator's key.
//!
//! A sealed record is `salt (32) || ciphertext || tag (16)`. The cipher is ChaCha20-Poly1305 (RFC 8439), with a key for
//! each record. That key is HKDF-SHA256 (RFC 5869) of the operator's key, the salt, and the info `meridian backup
//! record 1`. A key is used once, so the nonce is zero. Folder and name of the record are authenticated too, so a
//! record cannot be substituted for another.

use crate::error::StoreError;
use meridian_model::Invalid;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use std::path::Path;
use std::{fmt, io};

const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 32;
const INFO: &[u8] = b"meridian backup record 1";

/// The operator's key, which seals the secrets in a backup.
#[derive(Clone)]
pub struct BackupKey([u8; KEY_BYTES]);

impl BackupKey {
    /// Parses a key: 32 bytes in hexadecimal or base64 (RFC 4648, either alphabet, padding optional).
    ///
    /// # Errors
    /// The expected format.
    pub fn parse(text: &str) -> Result<BackupKey, Invalid> {
        let text = text.trim();
        let plain = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
        let bytes = match text.len() == 2 * KEY_BYTES {
            true => data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()),
            false => data_encoding::BASE64_NOPAD.decode(plain.as_bytes()),
        };
        let key = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        key.map(BackupKey).ok_or_else(|| {
            let detail = format!(
                "expected {KEY_BYTES} random bytes in base64 or hexadecimal, such as `openssl rand -base64 32` prints"
            );
            Invalid::field("key", detail)
        })
    }

    /// Seals a record.
    pub(super) fn seal(&self, folder: &str, name: &str, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.try_seal(folder, name, content).map_err(|_| {
            let why = io::Error::other("the system gives no random bytes");
            StoreError::io("seal", &Path::new(folder).join(name))(why)
        })
    }

    #[allow(clippy::disallowed_methods, reason = "a salt comes from the system, never from a seed")]
    fn try_seal(&self, folder: &str, name: &str, content: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt)?;
        let mut sealed = content.to_vec();
        self.derived(&salt)?.seal_in_place_append_tag(nonce(), about(folder, name), &mut sealed)?;
        Ok([&salt[..], &sealed].concat())
    }

    /// Opens a sealed record; `None` if it was sealed with another key, belongs to another record, or was modified.
    pub(super) fn open(&self, folder: &str, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, rest) = sealed.split_first_chunk()?;
        let mut content = rest.to_vec();
        let opened = self.derived(salt).ok()?.open_in_place(nonce(), about(folder, name), &mut content).ok()?.len();
        content.truncate(opened);
        Some(content)
    }

    /// Derives the key of the record with this salt.
    fn derived(&self, salt: &[u8; SALT_BYTES]) -> Result<LessSafeKey, Unspecified> {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let key = secret.expand(&[INFO], &CHACHA20_POLY1305)?;
        Ok(LessSafeKey::new(UnboundKey::from(key)))
    }
}

impl fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackupKey")
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn about(folder: &str, name: &str) -> Aad<Vec<u8>> {
    // Names contain no slash, so no two records share this text.
    Aad::from(format!("{folder}/{name}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_key_is_read_in_each_of_its_forms() {
        let key = BackupKey::parse(KEY).unwrap();
        let hex: String = (0..32).map(|n| format!("{n:02x}")).collect();
        for same in [&format!("  {KEY}\n"), KEY.trim_end_matches('='), &hex, &hex.to_uppercase()] {
            assert_eq!(BackupKey::parse(same).unwrap().0, key.0, "{same}");
        }
        for wrong in ["", "short", &hex[1..], &format!("{hex}00"), &"g".repeat(64), "AAECAwQF!=="] {
            assert!(BackupKey::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "BackupKey");
    }

    #[test]
    fn a_sealed_record_opens_with_its_key_and_in_its_place_only() {
        let (key, other) = (BackupKey::parse(KEY).unwrap(), BackupKey::parse(&"ab".repeat(32)).unwrap());
        let sealed = key.seal("access", "token-1", b"digest").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"digest"));
        assert_eq!(key.open("access", "token-1", &sealed).unwrap(), b"digest");
        assert!(key.open("access", "token-2", &sealed).is_none() && key.open("saved", "token-1", &sealed).is_none());
        assert!(other.open("access", "token-1", &sealed).is_none());
        for n in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[n] ^= 1;
            assert!(key.open("access", "token-1", &changed).is_none(), "{n}");
            assert!(key.open("access", "token-1", &sealed[..n]).is_none(), "{n}");
        }
        assert_ne!(sealed, key.seal("access", "token-1", b"digest").unwrap());
    }

    /// Made with Python's `cryptography` from the description in docs/backup.md: a backup stays readable without this
    /// program.
    #[test]
    fn a_record_that_another_program_sealed_opens() {
        let sealed = "6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283\
                      f89a2cb364539e6cd2d275c47d46e9c49a845fc175b5";
        let sealed = data_encoding::HEXLOWER.decode(sealed.as_bytes()).unwrap();
        assert_eq!(BackupKey::parse(KEY).unwrap().open("access", "token-1", &sealed).unwrap(), b"digest");
    }
}
