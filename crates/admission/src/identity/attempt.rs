//! A sign-in attempt at an issuer: the state that the server and the browser share until the browser returns.
//!
//! All of it is derived from one random secret and a timestamp, which only the browser keeps. Attempts therefore take
//! no memory here, and no table of attempts can fill up.

use super::secret::{self, Parts};

/// Prefix of the text form of an attempt.
const PREFIX: &str = "mra_";
/// Max age of an attempt, in microseconds.
const AGE_MAX: u64 = 600_000_000;

/// A sign-in attempt at an issuer.
#[derive(Clone)]
pub struct SignInAttempt {
    secret: String,
    /// When the attempt began, in microseconds since 1970.
    begun: i64,
}

impl SignInAttempt {
    /// Starts a new attempt.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(now: i64) -> Result<SignInAttempt, getrandom::Error> {
        secret::make(PREFIX).map(|made| SignInAttempt { secret: made.text, begun: now })
    }

    /// Parses the attempt that a browser presents; `None` if it is invalid or too old.
    pub fn read(text: &str, now: i64) -> Option<SignInAttempt> {
        let (secret, begun) = text.rsplit_once('_')?;
        Parts::read(PREFIX, secret)?;
        let begun: i64 = begun.parse().ok()?;
        (now.abs_diff(begun) < AGE_MAX).then(|| SignInAttempt { secret: secret.to_owned(), begun })
    }

    /// Returns the text that the browser keeps.
    pub fn text(&self) -> String {
        format!("{}_{}", self.secret, self.begun)
    }

    /// Returns the parameter `state`, which the issuer returns through the browser. It is bound to the issuer, so that
    /// one issuer cannot pass on the response of another (RFC 9700, 4.4).
    pub fn state(&self, issuer: &str) -> String {
        self.derive(&format!("state {issuer}"))
    }

    /// Returns the nonce that the ID token must hold; it binds the token to this browser.
    pub fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// Returns the PKCE code verifier (RFC 7636).
    pub fn verifier(&self) -> String {
        self.derive("verifier")
    }

    /// Derives a value bound to the timestamp as well, so that a browser cannot change the time of an attempt.
    fn derive(&self, purpose: &str) -> String {
        let parts = Parts::read(PREFIX, &self.secret);
        parts.map(|parts| parts.derive(&format!("{purpose} {}", self.begun))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_belongs_to_one_browser_one_issuer_and_ten_minutes() {
        let (now, age) = (1_795_478_400_000_000, AGE_MAX as i64);
        let attempt = SignInAttempt::new(now).unwrap();
        let text = attempt.text();
        let again = SignInAttempt::read(&text, now + age - 1).unwrap();
        assert_eq!((again.state("one"), again.nonce()), (attempt.state("one"), attempt.nonce()));
        let other = SignInAttempt::new(now).unwrap();
        let derived = [attempt.state("one"), attempt.state("two"), attempt.nonce(), attempt.verifier(), other.nonce()];
        for (n, one) in derived.iter().enumerate() {
            assert!(one.len() == 64 && !text.contains(one) && !derived[..n].contains(one), "{n}");
        }
        assert!(SignInAttempt::read(&text, now + age).is_none());
        // A browser cannot extend it.
        let longer = SignInAttempt::read(&format!("{}_{}", attempt.secret, now + age), now + age).unwrap();
        assert_ne!(longer.state("one"), attempt.state("one"));
        for wrong in
            ["", "mra_", &attempt.secret, &text.replace("mra_", "mrs_"), &format!("{text}0"), &format!("{text}x")]
        {
            assert!(SignInAttempt::read(wrong, now).is_none(), "{wrong}");
        }
    }
}
