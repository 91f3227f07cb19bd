//! Signed requests: some sources require a hash over the request and a secret.

use super::template::Template;
use md5::{Digest, Md5};
use serde::Deserialize;

/// `[request.sign]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignFile {
    name: String,
    secret: String,
    #[serde(default)]
    without: Vec<String>,
}

/// The signature of Odnoklassniki and older Facebook-like APIs: MD5, in lower-case hexadecimal digits. It covers each
/// `name=value` of the query, sorted by name and concatenated, and then the secret
/// (<https://apiok.ru/en/dev/methods>). MD5 is weak, but these sources require it.
#[derive(Debug, Clone)]
pub struct Sign {
    /// The parameter that holds the signature.
    pub name: String,
    secret: Template,
    without: Vec<String>,
}

impl Sign {
    /// Parses the settings; `secret` parses a template that names credentials.
    pub fn new(file: &SignFile, secret: &dyn Fn(&str, &str) -> Result<Template, String>) -> Result<Sign, String> {
        if file.name.is_empty() {
            return Err("request.sign.name: it is empty: expected the name of a parameter".to_owned());
        }
        let (name, without) = (file.name.clone(), file.without.clone());
        Ok(Sign { name, secret: secret("request.sign.secret", &file.secret)?, without })
    }

    /// Returns the signature of a query; `None` without the secret.
    pub fn of(&self, query: &[(String, String)], value: &dyn Fn(&str, &str) -> Option<String>) -> Option<String> {
        let mut signed: Vec<String> = query
            .iter()
            .filter(|(name, _)| !self.without.contains(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        signed.sort_unstable();
        let text = signed.concat() + &self.secret.fill(value)?;
        Some(Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_signed_in_the_order_of_its_names() {
        let file =
            SignFile { name: "sig".to_owned(), secret: "{env.S}".to_owned(), without: vec!["access_token".to_owned()] };
        let sign = Sign::new(&file, &|_, text| Template::parse(text, |_| true)).expect("a signature");
        let query = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let secret = |_: &str, _: &str| Some("c".to_owned());
        // MD5 of "a=1b=2c", and of "abc" (RFC 1321, A.5) where only the secret is signed.
        let of = |list: &[(&str, &str)]| sign.of(&query(list), &secret).expect("a signature");
        assert_eq!(of(&[("b", "2"), ("access_token", "x"), ("a", "1")]), of(&[("a", "1"), ("b", "2")]));
        assert_ne!(of(&[("a", "1"), ("b", "2")]), of(&[("a", "2"), ("b", "1")]));
        assert_eq!(sign.of(&[], &|_, _| Some("abc".to_owned())).as_deref(), Some("900150983cd24fb0d6963f7d28e17f72"));
        assert_eq!(sign.of(&[], &|_, _| None), None);
    }
}
