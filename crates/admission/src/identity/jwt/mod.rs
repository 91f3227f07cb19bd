//! Callers with a JSON Web Token (RFC 7519) of an issuer that the operator trusts.
//!
//! A token is trusted once one of the issuer's keys verifies its signature. The operator's rules alone decide what its holder
//! may do. `discovery.rs` finds an issuer, `keys.rs` reads its keys, `verify.rs` checks a token. `rules.rs` has the rules,
//! `signatures.rs` the cryptography. Keys are read again periodically ([`Issuers::take_keys`]).

mod discovery;
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
use keys::KeySet;
use meridian_model::policy::access::Grant;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use verify::Expected;

/// Max bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Max tokens that are remembered as verified, of all issuers together.
const VERIFIED_MAX: usize = 10_000;

/// An issuer, as the operator describes it.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Names it in logs and callers: `jwt:NAME:SUBJECT`.
    pub name: String,
    /// The required value of the claim `iss`.
    pub issuer: String,
    /// One of these must be in the claim `aud`.
    pub audiences: BTreeSet<String>,
    /// Where its keys are.
    pub keys: KeySource,
    /// How far the issuer's clock may be off.
    pub skew: Duration,
    /// How often keys are read again.
    pub refresh: Duration,
    /// Min time between two readings, if tokens name unknown keys or a reading failed.
    pub refresh_min: Duration,
    /// The rights that its tokens give. The first matching rule counts; a token without one gives nothing.
    pub rules: Vec<Rule>,
    /// How users sign in there; `None` if they cannot.
    pub sign_in: Option<SignInSettings>,
}

/// How users sign in at an issuer, by OpenID Connect.
#[derive(Debug, Clone)]
pub struct SignInSettings {
    /// The name of this server at the issuer, and the claim `aud` of its ID tokens.
    pub client_id: String,
    /// The file with the secret of this server at the issuer; none for a public client.
    pub client_secret: Option<PathBuf>,
    /// The issuer's name on pages.
    pub title: String,
    /// Scopes besides `openid`, for the claims that rules need.
    pub scopes: Vec<String>,
    /// Max duration of a session, after which the issuer is asked again.
    pub session: Duration,
}

/// All issuers, and their verified tokens.
pub struct Issuers {
    all: Vec<Issuer>,
    /// Callers by the SHA-256 of their token, so that a token is verified once.
    verified: Cache<[u8; 32], Remembered>,
    /// Counts changes of keys: what an older number remembers is verified again.
    keys_version: AtomicU64,
    /// For each tenant a flag that its callers share, set when the tenant is suspended. The rules bound their number.
    ends: Mutex<HashMap<Arc<str>, Arc<AtomicBool>>>,
}

/// A caller whose token was verified by the keys of a version.
#[derive(Clone)]
struct Remembered {
    caller: Caller,
    keys_version: u64,
}

/// An issuer and its keys.
pub struct Issuer {
    settings: IssuerSettings,
    /// Digest of what gives rights to its users: of two servers with the same stamp, one's session counts at the other.
    stamp: String,
    keys: ArcSwap<KeySet>,
    /// Known once its discovery document and its keys were read.
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
    /// When it expires in microseconds since 1970, the skew included.
    pub expires: i64,
}

impl Issuers {
    /// Issuers without keys yet.
    pub fn new(all: Vec<IssuerSettings>) -> Issuers {
        signatures::install();
        Issuers {
            all: all.into_iter().map(Issuer::new).collect(),
            verified: Cache::new(VERIFIED_MAX),
            keys_version: AtomicU64::new(0),
            ends: Mutex::default(),
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Issuer> {
        self.all.iter()
    }

    /// The issuers at which users sign in, with the settings for that.
    pub fn with_sign_in(&self) -> impl Iterator<Item = (&Issuer, &SignInSettings)> {
        self.all.iter().filter_map(|issuer| Some((issuer, issuer.settings.sign_in.as_ref()?)))
    }

    /// Whether users sign in at an issuer of this name, by rules of this stamp.
    pub(super) fn have_stamp(&self, name: &str, stamp: &str) -> bool {
        self.with_sign_in().any(|(issuer, _)| issuer.settings.name == name && issuer.stamp == stamp)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Replaces an issuer's keys by those of this document: a JSON Web Key Set (RFC 7517), or the bytes of a secret.
    ///
    /// # Errors
    /// The error in it; then the old keys stay.
    pub fn take_keys(&self, issuer: &Issuer, document: &[u8]) -> Result<(), String> {
        // Compared first, since each new version discards all verified tokens.
        let keys = KeySet::read(&issuer.settings.keys, document)?;
        if **issuer.keys.load() != keys {
            issuer.keys.store(keys.into());
            // After the keys: a reader of the new version finds them.
            self.keys_version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// The caller of a token: the remembered one if it was verified before, else the result of `make`.
    pub(super) fn caller(
        &self,
        text: &str,
        now: i64,
        make: impl FnOnce(Verified, Arc<AtomicBool>) -> Result<Caller, Unknown>,
    ) -> Result<Caller, Unknown> {
        // Before the hash: a huge header must not cost processor time.
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Unknown::Jwt("it has too many bytes"));
        }
        // Before the keys: a token that is verified while they change is verified again the next time.
        let keys_version = self.keys_version.load(Ordering::Acquire);
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(remembered) = self.verified.get(&digest)
            && remembered.keys_version == keys_version
            // Expired, or its tenant was suspended since, and may be in use again.
            && !remembered.caller.is_void(now)
        {
            return Ok(remembered.caller);
        }
        let verified = verify::verify(&self.all, text, Expected::Credential, now)?;
        // Before `make` checks whether the tenant is suspended: a later suspension ends the new caller.
        let end = self.end_of(verified.tenant.as_deref().unwrap_or_default());
        let caller = make(verified, end)?;
        self.verified.insert(digest, Remembered { caller: caller.clone(), keys_version });
        Ok(caller)
    }

    /// Ends the work of a tenant's callers. Their tokens stay valid.
    pub(super) fn end(&self, tenant: &str) {
        // Removed, so that callers after a resumption get a new flag.
        if let Some(end) = self.ends.lock().remove(tenant) {
            end.store(true, Ordering::Relaxed);
        }
    }

    /// Verifies an ID token of an issuer, for a user who signs in.
    pub(super) fn id_token(
        (issuer, sign_in): (&Issuer, &SignInSettings),
        text: &str,
        nonce: &str,
        now: i64,
    ) -> Result<Verified, Unknown> {
        let expected = Expected::IdToken { client_id: &sign_in.client_id, nonce };
        match text.len() > TOKEN_BYTES_MAX {
            true => Err(Unknown::Jwt("it has too many bytes")),
            false => verify::verify(std::slice::from_ref(issuer), text, expected, now),
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

    /// Where its discovery document is (OpenID Connect Discovery, 4).
    pub fn discovery_url(&self) -> String {
        discovery::url(&self.settings.issuer)
    }

    /// Reads its discovery document: the URL of its keys, and the URLs for signing in.
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

    /// Sets the URLs for signing in, once the keys that verify its answers are known.
    pub fn take_endpoints(&self, endpoints: Option<Endpoints>) {
        self.endpoints.store(endpoints.map(Arc::new));
    }

    /// Its URLs for signing in; `None` until its documents were read.
    pub fn endpoints(&self) -> Option<Arc<Endpoints>> {
        self.endpoints.load_full()
    }

    /// The operator's settings.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// The stamp of its rules, which is another once they are.
    pub(super) fn stamp(&self) -> &str {
        &self.stamp
    }

    /// How many keys it has.
    pub fn key_count(&self) -> usize {
        self.keys.load().len()
    }

    /// Requests another reading of its documents.
    pub fn want_keys(&self) {
        // `notify_one` keeps a permit: a request during a reading is not lost, and many become one.
        self.wants_keys.notify_one();
    }

    /// Completes when its documents are wanted again: a token named a key that is not known.
    pub async fn wants_keys(&self) {
        self.wants_keys.notified().await;
    }
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|issuer| &issuer.settings.name)).finish()
    }
}
