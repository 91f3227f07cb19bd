//! The `Authorization` header of a request.

/// The credential of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential<'a> {
    /// No credential.
    Absent,
    /// A token, sent as `Bearer` or as the password of `Basic` with any user name (RFC 6750, RFC 7617).
    Token(std::borrow::Cow<'a, str>),
    /// Neither of these.
    Malformed,
}

impl<'a> Credential<'a> {
    /// Parses the value of an `Authorization` header.
    pub fn of_header(value: &'a [u8]) -> Credential<'a> {
        let Ok(text) = std::str::from_utf8(value) else { return Credential::Malformed };
        let Some((scheme, rest)) = text.split_once(' ') else { return Credential::Malformed };
        let rest = rest.trim_matches(' ');
        if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
            return Credential::Token(rest.into());
        }
        if scheme.eq_ignore_ascii_case("basic") {
            return Credential::of_basic(rest).unwrap_or(Credential::Malformed);
        }
        Credential::Malformed
    }

    fn of_basic(encoded: &str) -> Option<Credential<'a>> {
        let pair = data_encoding::BASE64.decode(encoded.as_bytes()).ok()?;
        let (_, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
        Some(Credential::Token(password.to_owned().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_comes_as_bearer_or_as_the_password_of_basic() {
        let token = |text: &'static str| Credential::Token(text.into());
        assert_eq!(Credential::of_header(b"Bearer mrd_1_2"), token("mrd_1_2"));
        assert_eq!(Credential::of_header(b"bearer  mrd_1_2 "), token("mrd_1_2"));
        // base64("gdal:mrd_1_2")
        assert_eq!(Credential::of_header(b"Basic Z2RhbDptcmRfMV8y"), token("mrd_1_2"));
        for wrong in ["", "Bearer", "Bearer ", "Basic", "Basic !", "Basic Z2RhbA==", "Digest a", "mrd_1_2"] {
            assert_eq!(Credential::of_header(wrong.as_bytes()), Credential::Malformed, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_header_is_too_strange(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Credential::of_header(&value);
            let _ = Credential::of_header(&[b"Basic ", &value[..]].concat());
        }
    }
}
