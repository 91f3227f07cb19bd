//! Which certificate names may call a server of roles: patterns for DNS names and for URIs.

use std::fmt;
use std::str::FromStr;

/// A pattern for names in certificates, such as `gateway-*.example.org` or `spiffe://example.org/meridian/*`.
///
/// `*` stands for one or more characters of one part: between dots in a DNS name, between slashes in a URI. So no
/// pattern matches a subdomain of the one that it names. DNS names are case-insensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    /// Whether a certificate's name matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let (is_uri, separator) = kind(&self.0);
        if kind(name).0 != is_uri {
            return false;
        }
        let (mut wanted, mut found) = (self.0.split(separator), name.split(separator));
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return true,
                (Some(wanted), Some(found)) if part_matches(wanted, found, is_uri) => {}
                _ => return false,
            }
        }
    }
}

/// Whether a name is a URI, and the separator of its parts.
fn kind(name: &str) -> (bool, char) {
    if name.contains("://") { (true, '/') } else { (false, '.') }
}

fn part_matches(pattern: &str, part: &str, with_case: bool) -> bool {
    let equal = |one: &str, other: &str| if with_case { one == other } else { one.eq_ignore_ascii_case(other) };
    match pattern.split_once('*') {
        None => equal(pattern, part),
        Some((start, end)) => {
            part.len() > start.len() + end.len()
                && part.get(..start.len()).is_some_and(|found| equal(start, found))
                && part.get(part.len() - end.len()..).is_some_and(|found| equal(end, found))
        }
    }
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<NamePattern, String> {
        let wrong = |why: &str| {
            let expected =
                "expected a DNS name such as gateway-*.example.org, or a URI such as spiffe://example.org/meridian/*";
            Err(format!("{text:?}: {why}: {expected}"))
        };
        let (is_uri, separator) = kind(text);
        if text.split(separator).any(|part| part.matches('*').count() > 1) {
            return wrong("a part has more than one *");
        }
        // The scheme and the empty part after it.
        let parts = text.split(separator).skip(if is_uri { 2 } else { 0 });
        if parts.clone().any(str::is_empty) {
            return wrong("a part is empty");
        }
        // A company's authority signs for all of it, so such a pattern restricts nothing useful.
        if parts.clone().all(|part| part == "*") {
            return wrong("it describes names of anybody");
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
        if !is_uri && !text.chars().all(is_name) {
            return wrong("it is no name");
        }
        if !is_uri && text.parse::<std::net::IpAddr>().is_ok() {
            return wrong("addresses are not compared");
        }
        Ok(NamePattern(text.to_owned()))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<NamePattern>().unwrap().matches(name)
    }

    #[test]
    fn a_star_stands_for_a_part_and_never_for_a_separator() {
        for (pattern, name) in [
            ("gateway.example.org", "gateway.example.org"),
            ("gateway.example.org", "Gateway.EXAMPLE.org"),
            ("gateway-*.example.org", "gateway-1.example.org"),
            ("*.meridian.svc", "gateway.meridian.svc"),
            ("a-*-z.example.org", "a-1-z.example.org"),
            ("spiffe://example.org/meridian/*", "spiffe://example.org/meridian/gateway"),
            ("spiffe://example.org/*/sa/gateway", "spiffe://example.org/ns-1/sa/gateway"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("gateway.example.org", "gateway.example.org.evil.org"),
            ("gateway.example.org", "evil.gateway.example.org"),
            ("*.example.org", "a.b.example.org"),
            ("*.example.org", "example.org"),
            ("*.example.org", ".example.org"),
            ("gateway-*.example.org", "gateway-.example.org"),
            ("gateway-*.example.org", "gateway-1.evil.example.org"),
            // A certificate for a whole domain identifies no particular process.
            ("gateway-*.example.org", "*.example.org"),
            ("ab*ba.example.org", "aba.example.org"),
            ("spiffe://example.org/meridian/*", "spiffe://example.org/meridian/a/b"),
            ("spiffe://example.org/meridian/*", "spiffe://example.org/Meridian/a"),
            ("spiffe://example.org/meridian/*", "spiffe://evil.org/meridian/a"),
            ("*.example.org", "spiffe://a.example.org"),
            ("é*.example.org", "x.example.org"),
        ] {
            assert!(!pattern.parse::<NamePattern>().is_ok_and(|parsed| parsed.matches(name)), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_refused() {
        for (text, why) in [
            ("", "empty"),
            ("a..b", "empty"),
            ("*", "anybody"),
            ("*.*", "anybody"),
            ("spiffe://*/*", "anybody"),
            ("**.example.org", "more than one"),
            ("10.0.0.7", "addresses"),
            ("gateway 1", "no name"),
            ("a,b", "no name"),
        ] {
            let said = text.parse::<NamePattern>().unwrap_err();
            assert!(said.contains(why) && said.contains("expected a DNS name"), "{text}: {said}");
        }
    }

    /// Reference for [`NamePattern::matches`]: goes through both texts character by character.
    fn matches_by_chars(pattern: &str, name: &str) -> bool {
        let is_uri = pattern.contains("://");
        let chars = |text: &str| -> Vec<char> {
            if is_uri { text.chars().collect() } else { text.to_ascii_lowercase().chars().collect() }
        };
        let separator = if is_uri { '/' } else { '.' };
        name.contains("://") == is_uri && chars_match(&chars(pattern), &chars(name), separator)
    }

    fn chars_match(pattern: &[char], name: &[char], separator: char) -> bool {
        match (pattern, name) {
            (['*', rest @ ..], [sign, others @ ..]) => {
                *sign != separator && (chars_match(rest, others, separator) || chars_match(pattern, others, separator))
            }
            ([wanted, rest @ ..], [sign, others @ ..]) => wanted == sign && chars_match(rest, others, separator),
            _ => pattern.is_empty() && name.is_empty(),
        }
    }

    proptest! {
        /// Checks against the reference, with names made from the pattern and with any others. Only a pattern that
        /// restricts nothing is refused. The text of a pattern parses to the same pattern.
        #[test]
        fn a_pattern_matches_as_its_characters_do(
            is_uri in any::<bool>(),
            parts in prop::collection::vec("[abA]{1,2}|[abA]?[*][abA]?", 1..4),
            fill in "[abAé./]{0,2}",
            other in "(s://)?[abAé]{1,2}([./][abAé]{0,2}){0,3}",
        ) {
            let (scheme, separator) = if is_uri { ("s://", "/") } else { ("", ".") };
            let text = format!("{}{}", scheme, parts.join(separator));
            let parsed = text.parse::<NamePattern>();
            prop_assert_eq!(parsed.is_err(), parts.iter().all(|part| part == "*"), "{}", text);
            if let Ok(pattern) = parsed {
                prop_assert_eq!(pattern.to_string().parse::<NamePattern>(), Ok(pattern.clone()));
                for name in [text.replace('*', &fill), other] {
                    prop_assert_eq!(pattern.matches(&name), matches_by_chars(&text, &name), "{} {}", text, name);
                }
            }
        }
    }
}
