//! Numbers and strings as JSON text.

/// Which bytes of a string need an escape: 0 for none, `u` for the long form, else the letter after the backslash.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Appends a string in double quotes, escaped.
#[inline]
pub(crate) fn escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[byte as usize];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

/// Appends an integer.
#[inline]
pub(crate) fn int(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Appends the shortest text that reads back as the same float; non-finite ones, which no batch holds, as null.
#[inline]
pub fn float(x: f64, out: &mut Vec<u8>) {
    if x.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(x).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends a coordinate: like [`float`], without the `.0` of whole degrees.
#[inline]
pub(crate) fn coordinate(x: f64, out: &mut Vec<u8>) {
    float(x, out);
    if out.ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            escape(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn floats_read_back(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            for write in [float, coordinate] {
                let mut out = Vec::new();
                write(x, &mut out);
                prop_assert_eq!(std::str::from_utf8(&out).unwrap().parse::<f64>().unwrap().to_bits(), x.to_bits());
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).unwrap().is_number());
            }
        }
    }

    #[test]
    fn whole_degrees_have_no_fraction() {
        for (x, expected) in [(1.0, "1"), (-180.0, "-180"), (0.0, "0"), (2.5, "2.5"), (10.0, "10")] {
            let mut out = Vec::new();
            coordinate(x, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
