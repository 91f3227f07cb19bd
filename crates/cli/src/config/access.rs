//! The settings of issuers of JSON Web Tokens, where users may sign in.

use super::setting::Setting;
use crate::units;
use meridian_admission::identity::jwt::{IssuerSettings, KeySource, Rule, SignInSettings, is_trusted_url};
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_model::schema::validate_name;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// Max issuers, and max rules of one.
const ISSUERS_MAX: usize = 100;
const RULES_MAX: usize = 1_000;

pub(super) const SETTINGS: &[Setting] = &[Setting {
    key: "access.issuers",
    help: "Trusted issuers of JSON Web Tokens; in place of this line, a section [[access.issuers]] for each: see docs/access.md.",
    get: |c| c.issuers.clone(),
    set: |c, v| {
        c.server.issuers = issuers(v)?;
        c.issuers = v.clone();
        Ok(())
    },
}];

/// An issuer, as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerText {
    name: String,
    issuer: String,
    audience: Option<OneOrMore>,
    /// A URL, or a file.
    keys: Option<String>,
    secret: Option<PathBuf>,
    skew: Option<String>,
    refresh: Option<String>,
    refresh_min: Option<String>,
    #[serde(default)]
    rules: Vec<RuleText>,
    sign_in: Option<SignInText>,
}

/// The sign-in of an issuer, as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInText {
    client_id: String,
    client_secret: Option<PathBuf>,
    title: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(BTreeSet<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    claim: Option<String>,
    value: Option<String>,
    tenant: Option<String>,
    role: String,
    collections: Option<String>,
}

fn issuers(value: &Value) -> Result<Vec<IssuerSettings>, String> {
    let list = value.as_array().ok_or("expected sections, as in [[access.issuers]]")?;
    if list.len() > ISSUERS_MAX {
        return Err(format!("there are {} issuers: expected at most {ISSUERS_MAX}", list.len()));
    }
    let mut all: Vec<IssuerSettings> = Vec::new();
    for (n, one) in list.iter().enumerate() {
        let text: Result<IssuerText, _> = one.clone().try_into();
        let text = text.map_err(|e: toml::de::Error| format!("issuer {}: {}", n + 1, e.message()))?;
        let name = text.name.clone();
        let issuer = issuer(text).map_err(|why| format!("issuer {name:?}: {why}"))?;
        // Names are in the ids of callers, and `iss` selects the keys: both must be unambiguous.
        if all.iter().any(|other| other.name == issuer.name || other.issuer == issuer.issuer) {
            return Err(format!("issuer {name:?}: there is another with this name or this issuer"));
        }
        all.push(issuer);
    }
    Ok(all)
}

fn issuer(text: IssuerText) -> Result<IssuerSettings, String> {
    validate_name("name", &text.name).map_err(|e| e.to_string())?;
    if text.issuer.is_empty() {
        return Err("issuer: expected what its tokens have as the claim iss".to_owned());
    }
    let audiences = match text.audience {
        None => BTreeSet::new(),
        Some(OneOrMore::One(audience)) => BTreeSet::from([audience]),
        Some(OneOrMore::More(audiences)) => audiences,
    };
    if audiences.is_empty() && text.sign_in.is_none() || audiences.contains("") {
        return Err("audience: expected what its tokens for this server have in the claim aud".to_owned());
    }
    let keys = match (text.keys, text.secret) {
        (Some(keys), None) => key_set(keys)?,
        (None, Some(secret)) => KeySource::Secret(secret),
        (None, None) if is_trusted_url(&text.issuer) => KeySource::Discovered,
        (None, None) => {
            return Err("issuer: expected an https URL, under which its keys are found, or keys or secret".to_owned());
        }
        (Some(_), Some(_)) => {
            return Err("expected either keys (an https URL or a file) or secret (a file)".to_owned());
        }
    };
    // Sign-in needs the endpoints of the discovery document, which also names the keys.
    if text.sign_in.is_some() && keys != KeySource::Discovered {
        return Err("sign_in: the issuer says where its keys are: leave out keys and secret".to_owned());
    }
    let sign_in = text.sign_in.map(|sign_in| self::sign_in(sign_in, &text.name)).transpose();
    let sign_in = sign_in.map_err(|why| format!("sign_in: {why}"))?;
    let skew = within("skew", text.skew, "60s", ["0s", "1h"])?;
    let refresh = within("refresh", text.refresh, "15m", ["10s", "7d"])?;
    let refresh_min = within("refresh_min", text.refresh_min, "30s", ["1s", "1h"])?;
    // A regular reading below the min interval would be put off each time.
    if refresh < refresh_min {
        return Err("refresh: must be at least refresh_min".to_owned());
    }
    if text.rules.is_empty() || text.rules.len() > RULES_MAX {
        return Err(format!(
            "rules: expected 1 to {RULES_MAX}, each a section [[access.issuers.rules]]; without one its tokens give nothing"
        ));
    }
    let rules = text.rules.into_iter().enumerate();
    let rules = rules.map(|(n, text)| rule(text).map_err(|why| format!("rule {}: {why}", n + 1)));
    let rules = rules.collect::<Result<_, _>>()?;
    let (name, issuer) = (text.name, text.issuer);
    Ok(IssuerSettings { name, issuer, audiences, keys, skew, refresh, refresh_min, rules, sign_in })
}

fn sign_in(text: SignInText, name: &str) -> Result<SignInSettings, String> {
    if !cfg!(feature = "openid") {
        return Err("this program was built without it: it needs the feature `openid`".to_owned());
    }
    if text.client_id.is_empty() {
        return Err("client_id: expected the name of this server at the issuer".to_owned());
    }
    // They are sent as one text, separated by spaces.
    if let Some(scope) = text.scopes.iter().find(|s| s.is_empty() || s.contains(char::is_whitespace)) {
        return Err(format!("scopes: {scope:?}: expected a list of words, without openid"));
    }
    let session = within("session", text.session, "12h", ["1m", "365d"])?;
    let (client_id, client_secret, scopes) = (text.client_id, text.client_secret, text.scopes);
    Ok(SignInSettings { client_id, client_secret, title: text.title.unwrap_or(name.to_owned()), scopes, session })
}

/// Parses a source of keys. A URL must be https: keys that come over a network without TLS could be forged.
fn key_set(text: String) -> Result<KeySource, String> {
    match text.split_once("://") {
        Some(_) if is_trusted_url(&text) => Ok(KeySource::Url(text)),
        Some(_) => Err(format!("keys: {text:?}: expected an https URL, or a file")),
        None => Ok(KeySource::File(PathBuf::from(text))),
    }
}

fn rule(text: RuleText) -> Result<Rule, String> {
    let role: Role = text.role.parse().map_err(|e: meridian_model::Invalid| e.to_string())?;
    let collections: Pattern = match &text.collections {
        Some(pattern) => pattern.parse().map_err(|e: meridian_model::Invalid| e.to_string())?,
        None => Pattern::all(),
    };
    // A rule for every token must be explicit: a forgotten value would grant its rights to all.
    if text.claim.is_some() != text.value.is_some() {
        return Err("expected claim and value, or neither for every token".to_owned());
    }
    match (&text.tenant, role) {
        (Some(_), Role::Operator) => return Err("tenant: an operator belongs to none: leave it out".to_owned()),
        (None, Role::Operator) => {}
        (None, _) => return Err("tenant: expected the tenant that its holders belong to".to_owned()),
        (Some(tenant), _) => validate_name("tenant", tenant).map_err(|e| e.to_string())?,
    }
    let grant = Grant { role, collections };
    grant.check().map_err(|e| e.to_string())?;
    let (claim, value) = (text.claim, text.value.unwrap_or_default());
    Ok(Rule { claim, value, tenant: text.tenant, grant })
}

fn within(name: &str, text: Option<String>, default: &str, [min, max]: [&str; 2]) -> Result<Duration, String> {
    let text = text.as_deref().unwrap_or(default);
    let value = units::duration(text).map_err(|e| format!("{name}: {e}"))?;
    match units::duration(min)? <= value && value <= units::duration(max)? {
        true => Ok(value),
        false => Err(format!("{name}: {text:?} is outside {min} to {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "login"
        issuer = "https://login.example.org/"
        audience = "meridian"
        keys = "https://login.example.org/jwks.json"
        [[rules]]
        claim = "groups"
        value = "gis"
        tenant = "harbour"
        role = "writer"
        collections = "ships*"
        [[rules]]
        role = "operator"
        claim = "groups"
        value = "operations"
    "#;

    fn read(text: &str) -> Result<Vec<IssuerSettings>, String> {
        let table: toml::Table = text.parse().unwrap();
        issuers(&Value::Array(vec![Value::Table(table)]))
    }

    #[test]
    fn an_issuer_has_keys_an_audience_and_rules() {
        let one = read(GOOD).unwrap().remove(0);
        assert_eq!(one.keys, KeySource::Url("https://login.example.org/jwks.json".to_owned()));
        assert_eq!((one.skew, one.refresh), (Duration::from_secs(60), Duration::from_secs(900)));
        assert_eq!(one.rules[0].tenant.as_deref(), Some("harbour"));
        assert!(one.rules[0].grant.collections.covers("ships-2") && one.rules[1].grant.role == Role::Operator);
        let file = GOOD.replace("keys = \"https://login.example.org/jwks.json\"", "secret = \"/etc/key\"");
        assert_eq!(read(&file).unwrap()[0].keys, KeySource::Secret("/etc/key".into()));
        assert!(read(&GOOD.replace("https://login.example.org/jwks.json", "http://127.0.0.1:8080/keys")).is_ok());
        let keys = "keys = \"https://login.example.org/jwks.json\"";
        assert_eq!(read(&GOOD.replace(keys, "")).unwrap()[0].keys, KeySource::Discovered);
        let people = GOOD.replace(keys, "[sign_in]\nclient_id = \"meridian\"").replace("audience = \"meridian\"", "");
        let sign_in = read(&people).unwrap().remove(0).sign_in.unwrap();
        assert_eq!((&*sign_in.title, sign_in.session), ("login", Duration::from_secs(12 * 3600)));
    }

    #[test]
    fn mistakes_name_the_issuer_the_rule_and_the_field() {
        for (from, to, words) in [
            ("audience = \"meridian\"", "", ["\"login\"", "audience"]),
            ("audience = \"meridian\"", "audience = []", ["\"login\"", "audience"]),
            ("keys = ", "key = ", ["issuer 1", "key"]),
            ("keys = \"https", "keys = \"http", ["\"login\"", "https URL"]),
            ("keys = \"https://login.", "keys = \"http://127.0.0.1.", ["\"login\"", "https URL"]),
            ("name = \"login\"", "name = \"log in\"", ["\"log in\"", "name"]),
            ("role = \"writer\"", "role = \"owner\"", ["rule 1", "not a role"]),
            ("tenant = \"harbour\"", "", ["rule 1", "tenant"]),
            ("role = \"operator\"", "role = \"operator\"\ntenant = \"a\"", ["rule 2", "belongs to none"]),
            ("role = \"operator\"", "role = \"operator\"\ncollections = \"a\"", ["rule 2", "covers every collection"]),
            ("value = \"gis\"", "", ["rule 1", "claim and value"]),
            ("collections = \"ships*\"", "collections = \"a b\"", ["rule 1", "is not a name"]),
            ("audience =", "skew = \"2h\"\naudience =", ["\"login\"", "skew"]),
            ("audience =", "refresh = \"10s\"\naudience =", ["\"login\"", "refresh_min"]),
            ("audience =", "secret = \"/etc/key\"\naudience =", ["\"login\"", "either keys"]),
            ("[[rules]]", "[sign_in]\nclient_id = \"meridian\"\n[[rules]]", ["\"login\"", "leave out keys"]),
            (
                "keys = \"https://login.example.org/jwks.json\"",
                "[sign_in]\nclient_id = \"\"",
                ["\"login\"", "client_id"],
            ),
        ] {
            let error = read(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{to}: {error}");
        }
        let twice: Vec<Value> = vec![Value::Table(GOOD.parse().unwrap()), Value::Table(GOOD.parse().unwrap())];
        assert!(issuers(&Value::Array(twice)).unwrap_err().contains("another"));
    }
}
