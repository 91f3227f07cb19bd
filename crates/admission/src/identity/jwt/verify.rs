//! Verification of tokens.

use super::super::{Unknown, equal};
use super::claims::Claims;
use super::{Issuer, Verified};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, dangerous};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::time::Duration;

/// Max bytes of a subject, since subjects are logged.
const SUBJECT_BYTES_MAX: usize = 255;
/// Max value of a time claim, in seconds since 1970: the year 9999.
const SECONDS_MAX: f64 = 253_402_300_799.0;
/// Token types that are credentials. An issuer uses other types for other purposes (RFC 8725, 3.11).
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// The purpose for which a token is presented.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected<'a> {
    /// Presented as the credential of a request.
    Credential,
    /// Presented as the response to a sign-in attempt.
    IdToken {
        /// The client id of this server at the issuer.
        client_id: &'a str,
        /// The nonce of the attempt.
        nonce: &'a str,
    },
}

/// Verifies a token of one of these issuers, at a time in microseconds since 1970. `admit` may refuse it before its
/// signature is checked, which is the costly part.
pub(super) fn verify(
    issuers: &[Issuer],
    text: &str,
    expected: Expected<'_>,
    now: i64,
    admit: &mut dyn FnMut() -> Result<(), Unknown>,
) -> Result<Verified, Unknown> {
    let header = jsonwebtoken::decode_header(text).map_err(|_| Unknown::Jwt("its head cannot be read"))?;
    check_header(&header)?;
    // Before verification, this claim only selects whose keys to try.
    let Claims(claims) =
        dangerous::insecure_decode_claims(text).map_err(|_| Unknown::Jwt("its claims cannot be read"))?;
    let of_it = |issuer: &&Issuer| claims.get("iss").is_some_and(|iss| *iss == *issuer.settings.issuer);
    let issuer = issuers.iter().find(of_it).ok_or(Unknown::Jwt("its issuer is not trusted"))?;
    let keys = issuer.keys.load();
    let fitting = keys.fitting(header.kid.as_deref(), header.alg);
    if fitting.is_empty() {
        issuer.wants_keys.notify_one();
        return Err(Unknown::Jwt("its key is not known, or not for its algorithm"));
    }
    admit()?;
    let settings = &issuer.settings;
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[&settings.issuer]);
    validation.aud = Some(match expected {
        Expected::Credential => settings.audiences.iter().cloned().collect::<HashSet<_>>(),
        Expected::IdToken { client_id, .. } => HashSet::from([client_id.to_owned()]),
    });
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    // The library would read the machine's clock; the caller passes the time.
    validation.validate_exp = false;
    let mut decoded = Err(ErrorKind::InvalidSignature);
    for key in fitting {
        decoded = jsonwebtoken::decode::<Claims>(text, &key.key, &validation).map_err(|e| e.kind().clone());
        if !matches!(decoded, Err(ErrorKind::InvalidSignature)) {
            break;
        }
    }
    let Claims(claims) = decoded.map_err(|kind| why(&kind))?.claims;
    let skew = micros(settings.skew);
    let expires = time(&claims, "exp")?.ok_or(Unknown::Jwt("it does not expire"))?.saturating_add(skew);
    if now >= expires {
        return Err(Unknown::Expired);
    }
    if time(&claims, "nbf")?.is_some_and(|begins| now < begins.saturating_sub(skew)) {
        return Err(Unknown::Jwt("it is not valid yet"));
    }
    if let Expected::IdToken { client_id, nonce } = expected {
        check_id_token(&claims, client_id, nonce)?;
        let issued = time(&claims, "iat")?.ok_or(Unknown::Jwt("it does not say when it was issued"))?;
        if now < issued.saturating_sub(skew) {
            return Err(Unknown::Jwt("it was issued in the future"));
        }
    }
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    if subject.is_empty() || subject.len() > SUBJECT_BYTES_MAX || subject.chars().any(misleads) {
        return Err(Unknown::Jwt("its subject is not a short text"));
    }
    let rule = settings.rules.iter().find(|rule| rule.matches(&claims)).ok_or(Unknown::NoRule)?;
    let name = format!("jwt:{}:{subject}", settings.name);
    Ok(Verified { name, tenant: rule.tenant.clone(), grant: rule.grant.clone(), expires })
}

/// Returns whether a character changes how a line of a log or an audit looks. Such characters are controls, and those
/// that reverse the direction of text (Unicode Technical Report 36, 2.5).
fn misleads(character: char) -> bool {
    let turns =
        matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control()
}

fn why(kind: &ErrorKind) -> Unknown {
    Unknown::Jwt(match kind {
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::InvalidAudience => "it is for another audience",
        _ => "iss, sub, aud or exp is missing or malformed",
    })
}

/// Rejects a header that requires more than a plain signature. Keys embedded or linked in it are ignored.
fn check_header(header: &Header) -> Result<(), Unknown> {
    // RFC 7515, 4.1.11: extensions marked as critical that this program does not understand.
    if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
        return Err(Unknown::Jwt("its head asks for what is not supported"));
    }
    let Some(named) = &header.typ else { return Ok(()) };
    let named = named.to_ascii_lowercase();
    match TYPES.contains(&named.strip_prefix("application/").unwrap_or(&named)) {
        true => Ok(()),
        false => Err(Unknown::Jwt("its type is not that of a credential")),
    }
}

/// Performs further checks of an ID token (OpenID Connect Core, 3.1.3.7).
fn check_id_token(claims: &Map<String, Value>, client_id: &str, nonce: &str) -> Result<(), Unknown> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if !text("nonce").is_some_and(|named| equal(named, nonce)) {
        return Err(Unknown::Jwt("it answers another attempt to sign in"));
    }
    // A token for several audiences must name the party that it was issued to.
    let for_several = claims.get("aud").and_then(Value::as_array).is_some_and(|several| several.len() > 1);
    let party = claims.get("azp");
    match party.is_none() && !for_several || party.is_some_and(|party| *party == *client_id) {
        true => Ok(()),
        false => Err(Unknown::Jwt("it was issued for another party")),
    }
}

/// Parses a time claim, given in seconds with optional decimals (RFC 7519, 2). Returns microseconds since 1970.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, Unknown> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    match value.as_f64() {
        Some(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Some((seconds * 1e6) as i64)),
        _ => Err(Unknown::Jwt("a claim of time is not a number of seconds since 1970")),
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
