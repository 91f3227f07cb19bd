//! The definition of a saved search, read from JSON when it is created and when it is recovered.

use super::settings::SavedSettings;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::View;
use meridian_federation::Question;
use meridian_federation::Settings;
use meridian_federation::fetch::may_call;
use meridian_federation::provider::LocalProvider;
use meridian_model::policy::access::Pattern;
use meridian_model::{FenceTransition, Invalid};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Max length of a name, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of a question that count as one saved search. Most take fewer; large polygons take memory and time like many.
const COUNTED_BYTES: usize = 2 << 10;

/// Returns the number that a saved search counts as, by the bytes of its question as text.
pub(super) fn counted(question_bytes: usize) -> usize {
    question_bytes.div_ceil(COUNTED_BYTES).max(1)
}

/// Max interval between two polls.
const POLL_MAX_S: u64 = 31 * 86_400;
/// Min and max length of a webhook's secret, in bytes.
const SECRET_BYTES: (usize, usize) = (8, 200);

/// Where packets are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The URL that packets are sent to.
    pub url: Url,
    /// Key of the signatures.
    pub secret: String,
}

impl fmt::Debug for Webhook {
    /// Names the host alone: the rest of the URL may hold a secret too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a webhook at {:?}", self.url.host_str())
    }
}

/// A saved search as its client defines it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// For people.
    pub name: String,
    /// The question as given, without `when`. Kept as text, which takes a tenth of the memory of a tree of values.
    asked: Box<str>,
    /// The same question, parsed.
    pub question: Question,
    /// The events to report of moving objects; `None` to report every matching event.
    pub when: Option<Vec<FenceTransition>>,
    /// The webhook.
    pub webhook: Option<Webhook>,
    /// The polling interval of remote providers.
    pub poll: Option<Duration>,
    /// The tenant of its creator. It receives the events of this tenant only.
    pub tenant: Arc<str>,
    /// The collections that its creator may read, which it may read as well.
    pub collections: Pattern,
}

impl Definition {
    /// The members of a definition as JSON. Those of a question may be beside them.
    pub const MEMBERS: [&'static str; 4] = ["name", "question", "webhook", "poll_s"];

    /// Reads a definition, of the default tenant. The question is the member `question`, or its members are at the same
    /// level as `name`. An error names the member.
    pub fn read(value: &Value, settings: &Settings, saved: &SavedSettings) -> Result<Definition, Invalid> {
        let expected = "expected an object such as {\"name\":\"floods\",\"question\":{\"keywords\":\"flood\"}}";
        let given = value.as_object().ok_or_else(|| Invalid::new(expected))?;
        let mut asked = match given.get("question") {
            None => Map::new(),
            Some(Value::Object(question)) => question.clone(),
            Some(_) => return Err(Invalid::field("question", "expected an object such as {\"keywords\":\"flood\"}")),
        };
        for (name, value) in given.iter().filter(|(name, _)| !Definition::MEMBERS.contains(&name.as_str())) {
            if asked.insert(name.clone(), value.clone()).is_some() {
                return Err(Invalid::field(name, "it is given in the question and beside it: expected one of them"));
            }
        }
        let when =
            asked.shift_remove("when").filter(|when| !when.is_null()).map(|when| read_when(&when)).transpose()?;
        let question = Question::read(&Value::Object(asked.clone()), settings)?;
        let name = match given.get("name") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(name)) if name.len() <= NAME_BYTES_MAX => name.trim().to_owned(),
            Some(_) => {
                return Err(Invalid::field("name", format_args!("expected a text of at most {NAME_BYTES_MAX} bytes")));
            }
        };
        let webhook = given.get("webhook").filter(|hook| !hook.is_null());
        let poll = given.get("poll_s").filter(|poll| !poll.is_null());
        Ok(Definition {
            name,
            webhook: webhook.map(|hook| read_webhook(hook, saved)).transpose()?,
            poll: poll.map(|poll| read_poll(poll, saved)).transpose()?,
            asked: Value::Object(asked).to_string().into(),
            question,
            when,
            tenant: DEFAULT_TENANT.into(),
            collections: Pattern::all(),
        })
    }

    /// Returns the number it counts as: one for each started unit of its question's bytes.
    pub fn counts_as(&self) -> usize {
        counted(self.question_bytes())
    }

    /// Returns the bytes of its question as text.
    pub fn question_bytes(&self) -> usize {
        self.asked.len()
    }

    /// Replaces an address by a circle, with its radius in metres.
    pub fn set_place(&mut self, (lon, lat): (f64, f64), radius_m: f64) {
        let mut asked = self.asked();
        asked.shift_remove("address");
        asked.insert("near".to_owned(), json!([lon, lat]));
        asked.insert("radius".to_owned(), json!(radius_m));
        self.asked = Value::Object(asked).to_string().into();
    }

    fn asked(&self) -> Map<String, Value> {
        // Cannot fail: the text was written from a value.
        serde_json::from_str(&self.asked).unwrap_or_default()
    }

    /// Returns true if it searches the collections of this server.
    pub fn reads_collections(&self) -> bool {
        let own = |names: &Vec<String>| names.iter().any(|name| name == LocalProvider::NAME);
        self.question.providers.as_ref().is_none_or(own)
    }

    /// Returns true if it receives the events of a collection of its tenant.
    pub fn covers(&self, collection: &str) -> bool {
        self.collections.covers(collection)
    }

    /// Returns true if a caller may see it: one of its tenant who may read everything that it reads.
    pub fn is_seen_by(&self, view: &View) -> bool {
        view.tenant() == &*self.tenant && view.caller().grant.collections.includes(&self.collections)
    }

    /// Returns true if it reports moving objects.
    pub fn is_fence(&self) -> bool {
        self.when.is_some()
    }

    /// Returns the definition as shown to clients, without the secret.
    pub fn shown(&self) -> Map<String, Value> {
        let mut question = self.asked();
        if let Some(when) = &self.when {
            question.insert("when".to_owned(), when.iter().map(|w| w.word()).collect());
        }
        let mut shown = Map::new();
        shown.insert("name".to_owned(), self.name.as_str().into());
        shown.insert("question".to_owned(), question.into());
        if let Some(poll) = self.poll {
            shown.insert("poll_s".to_owned(), poll.as_secs().into());
        }
        if let Some(webhook) = &self.webhook {
            shown.insert("webhook".to_owned(), json!({ "url": webhook.url.as_str() }));
        }
        shown
    }

    /// Returns the definition in the form that [`Definition::read`] accepts.
    pub fn written(&self) -> Map<String, Value> {
        let mut written = self.shown();
        if let Some(webhook) = &self.webhook {
            written.insert("webhook".to_owned(), json!({ "url": webhook.url.as_str(), "secret": webhook.secret }));
        }
        written
    }
}

fn read_when(value: &Value) -> Result<Vec<FenceTransition>, Invalid> {
    let wrong = || Invalid::field("when", format_args!("{value}: expected an array of enter, inside and exit"));
    let words = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    words.ok_or_else(wrong).and_then(FenceTransition::read)
}

fn read_webhook(value: &Value, settings: &SavedSettings) -> Result<Webhook, Invalid> {
    let wrong = |detail: String| Invalid::field("webhook", detail);
    let members = value.as_object().ok_or_else(|| wrong("expected an object with url and secret".to_owned()))?;
    if let Some(unknown) = members.keys().find(|name| !matches!(name.as_str(), "url" | "secret")) {
        return Err(wrong(format!("{unknown}: a webhook has no such member: expected url and secret")));
    }
    let text = |name: &str| {
        let text = members.get(name).and_then(Value::as_str).filter(|text| text.len() <= 2_000);
        text.ok_or_else(|| wrong(format!("{name} is missing: expected a text")))
    };
    let url = text("url")?;
    let url = Url::parse(url)
        .map_err(|e| wrong(format!("{url:?} is not an address ({e}): expected an http or https one")))?;
    if !settings.webhook.allow_private {
        may_call(&url).map_err(|why| wrong(format!("{why}: expected a public address")))?;
    } else if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("{}: expected an http or https address", url.scheme())));
    }
    let (secret, (min, max)) = (text("secret")?, SECRET_BYTES);
    if !(min..=max).contains(&secret.len()) {
        return Err(wrong(format!("a secret of {} bytes: expected {min} to {max}", secret.len())));
    }
    Ok(Webhook { url, secret: secret.to_owned() })
}

fn read_poll(value: &Value, settings: &SavedSettings) -> Result<Duration, Invalid> {
    let min = settings.poll_min.as_secs().max(1);
    let seconds = value.as_u64().filter(|s| (min..=POLL_MAX_S).contains(s));
    let wrong = || Invalid::field("poll_s", format_args!("{value}: expected whole seconds from {min} to {POLL_MAX_S}"));
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_secret_is_not_shown() {
        let (settings, saved) = (Settings::default(), SavedSettings::default());
        let nested = json!({"name": "a", "question": {"keywords": "flood", "when": ["exit", "enter"]},
            "webhook": {"url": "https://example.org/x", "secret": "longer than eight"}, "poll_s": 60});
        let definition = Definition::read(&nested, &settings, &saved).expect("a definition");
        assert!(definition.is_fence() && definition.reads_collections());
        let flat = json!({"name": "a", "keywords": "flood", "when": ["enter", "exit"],
            "webhook": {"url": "https://example.org/x", "secret": "longer than eight"}, "poll_s": 60});
        let same = Definition::read(&flat, &settings, &saved).expect("a definition");
        assert_eq!(definition.written(), same.written());
        let again = Definition::read(&Value::Object(same.written()), &settings, &saved).expect("reads back");
        assert_eq!(again.written(), same.written());
        assert!(!Value::Object(same.shown()).to_string().contains("longer than"));
        let told = format!("{same:?}");
        assert!(told.contains("example.org") && !told.contains("longer than") && !told.contains("org/x"), "{told}");
        let outside = json!({"keywords": "flood", "providers": ["usgs-earthquakes"]});
        assert!(!Definition::read(&outside, &settings, &saved).expect("a definition").reads_collections());
    }

    #[test]
    fn every_mistake_names_its_member() {
        let hook = |hook: Value| json!({"keywords": "a", "webhook": hook});
        for (given, field, part) in [
            (json!([]), None, "expected an object"),
            (json!({"name": "a"}), Some("keywords"), "the question is empty"),
            (json!({"name": 5, "keywords": "a"}), Some("name"), "a text"),
            (json!({"question": 5}), Some("question"), "an object"),
            (json!({"question": {"keywords": "a"}, "keywords": "b"}), Some("keywords"), "beside it"),
            (json!({"keywords": "a", "colour": "red"}), Some("colour"), "no such member"),
            (json!({"keywords": "a", "when": []}), Some("when"), "enter, inside and exit"),
            (json!({"keywords": "a", "when": ["leave"]}), Some("when"), "enter, inside and exit"),
            (json!({"keywords": "a", "poll_s": 5}), Some("poll_s"), "from 60"),
            (json!({"keywords": "a", "poll_s": "often"}), Some("poll_s"), "whole seconds"),
            (hook(json!("x")), Some("webhook"), "url and secret"),
            (hook(json!({"url": "https://example.org/"})), Some("webhook"), "secret is missing"),
            (hook(json!({"url": "https://example.org/", "secret": "short"})), Some("webhook"), "8 to 200"),
            (hook(json!({"url": "here", "secret": "longer than eight"})), Some("webhook"), "not an address"),
            (hook(json!({"url": "ftp://a/", "secret": "longer than eight"})), Some("webhook"), "http"),
            (hook(json!({"url": "http://127.1/", "secret": "longer than eight"})), Some("webhook"), "private"),
            (hook(json!({"url": "https://a/", "method": "PUT"})), Some("webhook"), "method"),
        ] {
            let mistake = Definition::read(&given, &Settings::default(), &SavedSettings::default())
                .expect_err(&given.to_string());
            assert_eq!(mistake.field.as_deref(), field, "{given}");
            assert!(mistake.detail.contains(part), "{given}: {mistake}");
        }
    }
}
