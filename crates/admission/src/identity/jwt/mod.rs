//! Callers with a JSON Web Token (RFC 7519) of an issuer that the operator trusts.
//!
//! A token is trusted once one of the issuer's keys verifies its signature. Only the operator's rules decide what its
//! holder may do. `discovery.rs` finds an issuer, `keys.rs` reads its keys, `verify.rs` checks a token. `rules.rs`
//! holds the rules, `signatures.rs` the cryptography, `failures.rs` bounds the work for forged tokens. Keys are reloaded
//! periodically ([`Issuers::take_keys`]).

mod claims;
mod discovery;
mod failures;
mod keys;
mod rules;
mod signatures;
#[cfg(test)]
mod tests;
mod verify;

pub use discovery::{Endpoints, is_trusted_url};
pub use keys::{DOCUMENT_BYTES_MAX, KeySource};
pub use rules::Rule;

use super::{Caller, Unknown};
use arc_swap::{ArcSwap, ArcSwapOption};
use failures::Failures;
use keys::KeySet;
use meridian_model::policy::access::Grant;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use verify::Expected;

/// Max bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Max number of verified tokens that are cached, across all issuers.
const VERIFIED_MAX: usize = 10_000;

/// An issuer, as configured by the operator.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Names the issuer in logs and callers: `jwt:NAME:SUBJECT`.
    pub name: String,
    /// The required value of the claim `iss`.
    pub issuer: String,
    /// Accepted audiences: the claim `aud` must contain one of them.
    pub audiences: BTreeSet<String>,
    /// Where its keys are.
    pub keys: KeySource,
    /// Max tolerated error of the issuer's clock.
    pub skew: Duration,
    /// How often keys are reloaded.
    pub refresh: Duration,
    /// Min time between two reloads after a token named an unknown key or a reload failed.
    pub refresh_min: Duration,
    /// The rights that its tokens grant. The first matching rule applies; a token that matches none grants nothing.
    pub rules: Vec<Rule>,
    /// How users sign in at this issuer; `None` if they cannot.
    pub sign_in: Option<SignInSettings>,
}

/// How users sign in at an issuer, through OpenID Connect.
#[derive(Debug, Clone)]
pub struct SignInSettings {
    /// The client id of this server at the issuer, and the claim `aud` of its ID tokens.
    pub client_id: String,
    /// The file with the client secret of this server; `None` for a public client.
    pub client_secret: Option<PathBuf>,
    /// The issuer's display name on pages.
    pub title: String,
    /// Scopes besides `openid`, for the claims that rules need.
    pub scopes: Vec<String>,
    /// Max duration of a session, after which the issuer is asked again.
    pub session: Duration,
}

/// All issuers, and a cache of their verified tokens.
pub struct Issuers {
    all: Vec<Issuer>,
    /// Callers by the SHA-256 of their token, so that each token is verified only once.
    verified: Cache<[u8; 32], VerifiedCaller>,
    failures: Failures,
    /// Incremented when keys change; tokens cached under an older version are verified again.
    keys_version: AtomicU64,
    /// One flag per tenant, shared by its callers and set when the tenant is suspended. The rules bound their number.
    ends: Mutex<HashMap<Arc<str>, Arc<AtomicBool>>>,
}

/// A caller whose token was verified with a given version of the keys.
#[derive(Clone)]
struct VerifiedCaller {
    caller: Caller,
    keys_version: u64,
}

/// An issuer and its keys.
pub struct Issuer {
    settings: IssuerSettings,
    /// Digest of everything that determines its users' rights. If two servers have the same stamp, a session of one is
    /// valid at the other.
    stamp: String,
    keys: ArcSwap<KeySet>,
    /// `None` until the discovery document and the keys were loaded.
    endpoints: ArcSwapOption<Endpoints>,
    /// Notified when a token names an unknown key.
    wants_keys: Notify,
}

/// The holder of a verified token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verified {
    /// `jwt:ISSUER:SUBJECT`.
    pub name: String,
    /// `None` for an operator.
    pub tenant: Option<String>,
    pub grant: Grant,
    /// When it expires in microseconds since 1970, including the skew.
    pub expires: i64,
}

impl Issuers {
    /// Creates issuers that have no keys yet.
    pub fn new(all: Vec<IssuerSettings>) -> Issuers {
        signatures::install();
        Issuers {
            all: all.into_iter().map(Issuer::new).collect(),
            verified: Cache::new(VERIFIED_MAX),
            failures: Failures::default(),
            keys_version: AtomicU64::new(0),
            ends: Mutex::default(),
        }
    }

    /// Iterates over the issuers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Issuer> {
        self.all.iter()
    }

    /// Iterates over the issuers at which users sign in, with the settings for that.
    pub fn with_sign_in(&self) -> impl Iterator<Item = (&Issuer, &SignInSettings)> {
        self.all.iter().filter_map(|issuer| Some((issuer, issuer.settings.sign_in.as_ref()?)))
    }

    /// Returns whether users sign in at an issuer of this name under rules with this stamp.
    pub(super) fn have_stamp(&self, name: &str, stamp: &str) -> bool {
        self.with_sign_in().any(|(issuer, _)| issuer.settings.name == name && issuer.stamp == stamp)
    }

    /// Returns whether there are no issuers.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Replaces an issuer's keys with those of this document: a JSON Web Key Set (RFC 7517), or the bytes of a secret.
    ///
    /// # Errors
    /// The error in the document; then the old keys stay.
    pub fn take_keys(&self, issuer: &Issuer, document: &[u8]) -> Result<(), String> {
        // Compared first, because each new version discards all cached tokens.
        let keys = KeySet::read(&issuer.settings.keys, document)?;
        if **issuer.keys.load() != keys {
            issuer.keys.store(keys.into());
            // After the keys are stored, so that a reader of the new version finds them.
            self.keys_version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the caller of a token: the cached one if the token was verified before, otherwise the result of `make`.
    /// The signature is not checked if too many tokens from the same address have failed.
    pub(super) fn caller(
        &self,
        text: &str,
        from: Option<IpAddr>,
        now: i64,
        make: impl FnOnce(Verified, Arc<AtomicBool>) -> Result<Caller, Unknown>,
    ) -> Result<Caller, Unknown> {
        // Checked before hashing: a huge header must not cost processor time.
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Unknown::Jwt("it has too many bytes"));
        }
        // Read before the keys: a token verified while they change is verified again next time.
        let keys_version = self.keys_version.load(Ordering::Acquire);
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(remembered) = self.verified.get(&digest)
            && remembered.keys_version == keys_version
            // The token has expired, or its tenant was suspended meanwhile and may be active again.
            && !remembered.caller.is_void(now)
        {
            return Ok(remembered.caller);
        }
        let mut is_checked = false;
        let mut admit = || -> Result<(), Unknown> {
            from.map_or(Ok(()), |from| self.failures.check(from, now)).map_err(Unknown::TooMany)?;
            is_checked = true;
            Ok(())
        };
        let verified = verify::verify(&self.all, text, Expected::Credential, now, &mut admit);
        let made = verified.and_then(|verified| {
            // Before `make` checks for a suspended tenant, so that a later suspension ends the new caller.
            let end = self.end_of(verified.tenant.as_deref().unwrap_or_default());
            make(verified, end)
        });
        if let (Err(_), true, Some(from)) = (&made, is_checked, from) {
            self.failures.count(from, now);
        }
        let caller = made?;
        self.verified.insert(digest, VerifiedCaller { caller: caller.clone(), keys_version });
        Ok(caller)
    }

    /// Ends the work of a tenant's callers. Their tokens stay valid.
    pub(super) fn end(&self, tenant: &str) {
        // Removed, so that callers after the tenant is resumed get a new flag.
        if let Some(end) = self.ends.lock().remove(tenant) {
            end.store(true, Ordering::Relaxed);
        }
    }

    /// Verifies an issuer's ID token for a user who signs in.
    pub(super) fn id_token(
        (issuer, sign_in): (&Issuer, &SignInSettings),
        text: &str,
        nonce: &str,
        now: i64,
    ) -> Result<Verified, Unknown> {
        let expected = Expected::IdToken { client_id: &sign_in.client_id, nonce };
        match text.len() > TOKEN_BYTES_MAX {
            true => Err(Unknown::Jwt("it has too many bytes")),
            false => verify::verify(std::slice::from_ref(issuer), text, expected, now, &mut || Ok(())),
        }
    }

    fn end_of(&self, tenant: &str) -> Arc<AtomicBool> {
        self.ends.lock().entry(tenant.into()).or_default().clone()
    }
}

impl Issuer {
    fn new(settings: IssuerSettings) -> Issuer {
        let (keys, endpoints) = (ArcSwap::default(), ArcSwapOption::default());
        let stamp = rules::stamp(&settings);
        Issuer { settings, stamp, keys, endpoints, wants_keys: Notify::new() }
    }

    /// Returns the URL of its discovery document (OpenID Connect Discovery, 4).
    pub fn discovery_url(&self) -> String {
        discovery::url(&self.settings.issuer)
    }

    /// Parses its discovery document: the URL of its keys, and the URLs for signing in.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn discovered(&self, document: &[u8]) -> Result<(String, Option<Endpoints>), String> {
        let (keys, endpoints) = discovery::read(&self.settings.issuer, document)?;
        if endpoints.is_none() && self.settings.sign_in.is_some() {
            return Err("the discovery document lacks authorization_endpoint or token_endpoint".to_owned());
        }
        Ok((keys, endpoints))
    }

    /// Sets the sign-in URLs, once the keys that verify the issuer's responses are known.
    pub fn take_endpoints(&self, endpoints: Option<Endpoints>) {
        self.endpoints.store(endpoints.map(Arc::new));
    }

    /// Returns its sign-in URLs; `None` until its documents have been read.
    pub fn endpoints(&self) -> Option<Arc<Endpoints>> {
        self.endpoints.load_full()
    }

    /// Returns the operator's settings.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Returns the stamp of its rules, which changes whenever they do.
    pub(super) fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Returns the number of its keys.
    pub fn key_count(&self) -> usize {
        self.keys.load().len()
    }

    /// Requests a reload of its documents.
    pub fn want_keys(&self) {
        // `notify_one` stores a permit: a request during a reload is not lost, and several are merged.
        self.wants_keys.notify_one();
    }

    /// Completes when its documents must be reloaded because a token named an unknown key.
    pub async fn wants_keys(&self) {
        self.wants_keys.notified().await;
    }
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|issuer| &issuer.settings.name)).finish()
    }
}
