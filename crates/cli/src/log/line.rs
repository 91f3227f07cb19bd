//! One line: as text, or as a JSON object.

use jiff::Timestamp;
use meridian_observe::{Trace, WorkContext};
use serde_json::{Map, Value};
use std::fmt::{self, Write};
use std::str::FromStr;
use tracing::Level;
use tracing::field::{Field, Visit};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object a line, for programs.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err(format!("{text:?}: expected \"text\" or \"json\"")),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Json => "json",
        })
    }
}

/// The content of an event.
#[derive(Debug, Default)]
pub struct Message {
    /// Its message.
    pub text: String,
    /// Its other fields.
    pub fields: Map<String, Value>,
}

impl Message {
    fn add(&mut self, field: &Field, value: Value) {
        // `tracing` passes the message as a field of this name.
        if field.name() == "message" {
            self.text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Message {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}

/// A line to be written.
pub struct Line<'a> {
    pub level: Level,
    pub target: &'a str,
    pub message: &'a Message,
    /// The work of the thread, with its request and trace.
    pub of: WorkContext,
    /// The number of suppressed lines like it.
    pub suppressed: u64,
}

impl Line<'_> {
    /// Formats it as an object without line breaks.
    pub fn as_json(&self) -> String {
        let mut object = Map::new();
        let mut set = |name: &str, value: Value| _ = object.insert(name.to_owned(), value);
        set("time", now().into());
        set("level", self.level.as_str().into());
        set("target", self.target.into());
        set("message", self.message.text.as_str().into());
        for (name, value) in self.names() {
            set(name, value.into());
        }
        if self.suppressed > 0 {
            set("suppressed", self.suppressed.into());
        }
        // In one member, so that a field cannot take the name of another member.
        if !self.message.fields.is_empty() {
            set("fields", Value::Object(self.message.fields.clone()));
        }
        // The encoder escapes line breaks, so a message cannot forge a line.
        Value::Object(object).to_string()
    }

    /// Formats it for people.
    pub fn as_text(&self, colours: bool) -> String {
        let level = self.level.as_str();
        let (colour, end) = match (colours, self.level) {
            (false, _) => ("", ""),
            (true, Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
            (true, Level::WARN) => ("\x1b[33m", "\x1b[0m"),
            (true, _) => ("\x1b[32m", "\x1b[0m"),
        };
        let mut out = format!("{} {colour}{level:>5}{end} {}: {}", now(), self.target, plain(&self.message.text));
        for (name, value) in &self.message.fields {
            let value = value.as_str().map_or_else(|| value.to_string(), |text| plain(text).into_owned());
            let _ = write!(out, " {name}={value}");
        }
        for (name, value) in self.names() {
            let _ = write!(out, " {name}={value}");
        }
        if self.suppressed > 0 {
            let _ = write!(out, " ({} like this suppressed)", self.suppressed);
        }
        out
    }

    /// Returns the names of the request and its trace.
    fn names(&self) -> impl Iterator<Item = (&'static str, String)> {
        let request = self.of.request.as_ref().map(|id| ("request_id", id.to_string()));
        request.into_iter().chain(self.of.trace.as_ref().map(Trace::id).map(|id| ("trace_id", id)))
    }
}

/// Returns the time as RFC 3339 in UTC, with microseconds.
fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// Escapes control characters, since parts of the text come from clients, and it must stay on its line.
fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    match text.contains(char::is_control) {
        true => text.escape_debug().to_string().into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_observe::RequestId;

    fn line<R>(message: &Message, show: impl FnOnce(&Line<'_>) -> R) -> R {
        let of = WorkContext { request: Some(RequestId::Given("abc-1".into())), ..WorkContext::default() };
        show(&Line { level: Level::WARN, target: "meridian_api::request", message, of, suppressed: 7 })
    }

    #[test]
    fn a_line_is_one_object_or_one_line_of_text() {
        let fields = [("status".to_owned(), Value::from(503)), ("path".to_owned(), Value::from("/a\nb"))];
        let message = Message { text: "refused".to_owned(), fields: fields.into_iter().collect() };
        let json = line(&message, |line| line.as_json());
        assert!(!json.contains('\n'));
        let object: Value = serde_json::from_str(&json).unwrap();
        let time = object["time"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.len() == 27 && time.parse::<Timestamp>().is_ok(), "{time}");
        for (name, value) in
            [("level", "WARN"), ("target", "meridian_api::request"), ("message", "refused"), ("request_id", "abc-1")]
        {
            assert_eq!(object[name], value, "{json}");
        }
        assert_eq!(
            (&object["suppressed"], &object["fields"]["status"], object.get("trace_id")),
            (&7.into(), &503.into(), None)
        );
        let text = line(&message, |line| line.as_text(false));
        let rest = text.split_once(' ').unwrap().1;
        assert_eq!(
            rest,
            r" WARN meridian_api::request: refused status=503 path=/a\nb request_id=abc-1 (7 like this suppressed)"
        );
    }
}
