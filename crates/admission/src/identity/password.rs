//! Passwords and their stored form.
//!
//! Passwords are hashed with Argon2id (RFC 9106), with the parameters recommended by OWASP: 19 MiB of memory, two
//! passes, one lane. That takes about 30 ms of processor time. The hash is a PHC string, which includes its parameters,
//! so hashes made with other parameters stay valid.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use meridian_model::Invalid;
use std::fmt;
use unicode_normalization::UnicodeNormalization;

/// Memory of one hash, in KiB.
const MEMORY_KIB: u32 = 19 * 1024;
/// Number of passes over the memory.
const PASSES: u32 = 2;
/// Number of lanes, which could be computed in parallel.
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;

/// Max memory in KiB, passes and lanes of a stored hash: the highest values listed by OWASP. A record could otherwise
/// demand 4 TiB.
const COST_MAX: (u32, u32, u32) = (46 * 1024, 5, 1);
/// Min characters of a new password (NIST SP 800-63B requires 15 as the only factor, and 8 otherwise).
const CHARS_MIN: usize = 12;
/// Max bytes of a password: hashing more would only cost time.
const BYTES_MAX: usize = 1024;

/// The hash checked for an unknown user, so that the response takes equally long. No known password has it.
const OF_NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyB0aGlzIQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A password as typed. It is never displayed.
pub struct Password(String);

impl Password {
    /// Converts a typed password to the normalized form that is hashed. Unicode can spell a character in several ways,
    /// and keyboards differ (NIST SP 800-63B, 3.1.1.2). Returns `None` if it is too long for a password.
    pub fn typed(text: &str) -> Option<Password> {
        (text.len() <= BYTES_MAX).then(|| Password(text.nfkc().collect()))
    }

    /// Checks a password chosen for a new user.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub fn chosen(text: &str) -> Result<Password, Invalid> {
        let wrong = |what| Invalid::field("password", format!("the password {what}"));
        let password =
            Password::typed(text).ok_or_else(|| wrong(format!("has more than {BYTES_MAX} bytes: expected fewer")))?;
        match password.0.chars().count() < CHARS_MIN {
            true => Err(wrong(format!("is too short: expected {CHARS_MIN} characters or more"))),
            false => Ok(password),
        }
    }

    /// Hashes the password with a new salt; takes about 30 ms.
    ///
    /// # Errors
    /// If there is no randomness or no memory.
    #[allow(clippy::disallowed_methods, reason = "a salt comes from the system, never from a seed")]
    pub fn hash(&self) -> Result<PasswordDigest, String> {
        let mut salt = [0; SALT_BYTES];
        // Each password has its own salt, so equal passwords of two users have different hashes.
        getrandom::fill(&mut salt).map_err(|e| e.to_string())?;
        let hash = hasher()?.hash_password_with_salt(self.0.as_bytes(), &salt).map_err(|e| e.to_string())?;
        Ok(PasswordDigest(hash.to_string()))
    }

    /// Returns whether the password has this hash; takes about 30 ms.
    pub fn has(&self, digest: &PasswordDigest) -> bool {
        // With the parameters of the hash, which may differ from the current ones.
        let hash = digest.hash();
        hash.is_some_and(|hash| Argon2::default().verify_password(self.0.as_bytes(), &hash).is_ok())
    }
}

fn hasher() -> Result<Argon2<'static>, String> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|e| e.to_string())?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// The stored form of a password: a PHC string.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct PasswordDigest(String);

impl PasswordDigest {
    /// Returns the digest used for an unknown user.
    pub fn of_nobody() -> PasswordDigest {
        PasswordDigest(OF_NOBODY.to_owned())
    }

    /// Returns whether it equals `before`, so that the password is unchanged. Both come from records, so the time of
    /// the comparison reveals nothing.
    pub fn is_still(&self, before: &PasswordDigest) -> bool {
        self == before
    }

    /// Returns whether the digest is well-formed, so that a password can be checked against it.
    pub fn is_whole(&self) -> bool {
        self.hash().is_some()
    }

    /// Parses the hash; `None` if it is invalid or would cost too much to check.
    fn hash(&self) -> Option<PasswordHash> {
        let hash = PasswordHash::new(&self.0).ok()?;
        let params = Params::try_from(&hash).ok()?;
        let costs = params.m_cost() <= COST_MAX.0 && params.t_cost() <= COST_MAX.1 && params.p_cost() <= COST_MAX.2;
        costs.then_some(hash)
    }
}

impl fmt::Debug for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordDigest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_its_own_hash_and_no_other() {
        let password = Password::chosen("correct horse battery").unwrap();
        let (one, two) = (password.hash().unwrap(), password.hash().unwrap());
        assert!(one != two, "the salt differs");
        assert!(one.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", one.0);
        assert!(password.has(&one) && password.has(&two));
        assert!(!Password::typed("correct horse batterz").unwrap().has(&one));
        assert!(!password.has(&PasswordDigest("$argon2id$v=19$broken".to_owned())));
    }

    #[test]
    fn the_hash_of_nobody_costs_what_a_real_one_costs() {
        let nobody = PasswordDigest::of_nobody();
        assert!(nobody.is_whole());
        let real = Password::chosen("correct horse battery").unwrap().hash().unwrap();
        let head = |digest: &PasswordDigest| digest.0.rsplitn(3, '$').last().map(str::to_owned);
        assert_eq!(head(&nobody), head(&real));
        assert_eq!(nobody.0.len(), real.0.len());
        assert!(!Password::typed("").unwrap().has(&nobody));
    }

    #[test]
    fn a_hash_that_costs_too_much_is_none() {
        for (params, whole) in
            [("m=64,t=1,p=1", true), ("m=4294967295,t=2,p=1", false), ("m=64,t=4294967295,p=1", false)]
        {
            let digest = PasswordDigest(OF_NOBODY.replace("m=19456,t=2,p=1", params));
            assert_eq!(digest.is_whole(), whole, "{params}");
            assert!(!Password::typed("correct horse battery").unwrap().has(&digest));
        }
    }

    #[test]
    fn the_spelling_of_a_character_does_not_matter_and_lengths_do() {
        let composed = Password::chosen("caf\u{e9} au lait ;").unwrap();
        assert!(Password::typed("cafe\u{301} au lait ;").unwrap().has(&composed.hash().unwrap()));
        for wrong in ["", "short", "eleven char", &"x".repeat(BYTES_MAX + 1)] {
            assert_eq!(Password::chosen(wrong).err().unwrap().field.as_deref(), Some("password"), "{wrong}");
        }
        assert!(Password::chosen("twelve chars").is_ok() && Password::typed("short").is_some());
    }
}
