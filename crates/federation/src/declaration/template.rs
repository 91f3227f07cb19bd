//! Texts with variables: `{name}` or `{name:format}`.

use std::fmt::Write;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable { name: String, format: String },
}

impl Template {
    /// Parses a template; `known` returns whether a variable exists. Doubled braces are literal.
    pub fn parse(text: &str, known: impl Fn(&str) -> bool) -> Result<Template, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if after.starts_with(brace) {
                plain.push_str(brace);
                rest = &after[1..];
                continue;
            }
            let end = match brace {
                "{" => after.find('}').ok_or_else(|| format!("{text:?}: a brace is opened and not closed"))?,
                _ => {
                    return Err(format!(
                        "{text:?}: a brace is closed that was not opened; a brace itself is written twice"
                    ));
                }
            };
            let (name, format) = after[..end].split_once(':').unwrap_or((&after[..end], ""));
            if !known(name) {
                return Err(format!("{text:?}: there is no variable {name:?}"));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Variable { name: name.to_owned(), format: format.to_owned() });
            rest = &after[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    /// Returns the names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Variable { name, .. } => Some(name.as_str()),
        })
    }

    /// Returns the text with variables replaced by `value`; `None` if one has no value.
    pub fn fill(&self, value: &dyn Fn(&str, &str) -> Option<String>) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable { name, format } => out.push_str(&value(name, format)?),
            }
        }
        Some(out)
    }
}

/// Formats an instant: `unix` (seconds), `unix-ms`, empty for RFC 3339, or a strftime format (UTC).
pub fn instant(micros: i64, format: &str) -> Option<String> {
    let at = jiff::Timestamp::from_microsecond(micros).ok()?;
    match format {
        "unix" => Some(at.as_second().to_string()),
        "unix-ms" => Some(at.as_millisecond().to_string()),
        "" => Some(meridian_model::time::format_instant(micros)),
        letters => {
            let mut out = String::new();
            write!(out, "{}", at.strftime(letters)).ok()?;
            Some(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_or_the_text_is_left_out() {
        let known = |name: &str| ["a", "start"].contains(&name);
        let template = Template::parse("x{a}/{{{start:%Y}}}", known).expect("a template");
        let value = |name: &str, format: &str| match name {
            "a" => Some("1".to_owned()),
            _ => instant(0, format),
        };
        assert_eq!(template.fill(&value).as_deref(), Some("x1/{1970}"));
        assert_eq!(template.fill(&|_, _| None), None);
        for (text, part) in [("{a", "not closed"), ("a}", "not opened"), ("{b}", "no variable \"b\"")] {
            assert!(Template::parse(text, known).expect_err(text).contains(part), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_template_is_its_texts_and_values_in_order(parts in proptest::collection::vec(("[a-z{}/ ä]{0,6}", "[a-c]", "[%YmS-]{0,4}"), 0..6)) {
            let known = |name: &str| ["a", "b", "c"].contains(&name);
            let (mut written, mut filled) = (String::new(), String::new());
            for (text, name, format) in &parts {
                let colon = if format.is_empty() { "" } else { ":" };
                write!(written, "{}{{{name}{colon}{format}}}", text.replace('{', "{{").replace('}', "}}")).unwrap();
                write!(filled, "{text}<{name}|{format}>").unwrap();
            }
            let template = Template::parse(&written, known).unwrap();
            let value = |name: &str, format: &str| Some(format!("<{name}|{format}>"));
            proptest::prop_assert_eq!(template.fill(&value), Some(filled));
            proptest::prop_assert!(template.variables().eq(parts.iter().map(|(_, name, _)| name.as_str())));
        }

        #[test]
        fn any_text_is_a_template_or_has_a_reason(text in "[{}a:/]{0,12}") {
            match Template::parse(&text, |name| name == "a") {
                // Every brace left in a text was doubled in the template.
                Ok(template) => proptest::prop_assert!(template.fill(&|_, _| Some(String::new())).unwrap().len() <= text.len()),
                Err(why) => {
                    let quoted = format!("{text:?}");
                    proptest::prop_assert!(why.starts_with(&quoted));
                }
            }
        }
    }
}
