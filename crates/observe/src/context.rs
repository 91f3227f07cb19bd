//! W3C Trace Context (level 1, version 00): the headers through which programs propagate a trace.

use std::sync::Arc;

/// The header with trace, span and flags.
pub const TRACEPARENT: &str = "traceparent";
/// The header with vendor-specific entries, passed on unchanged.
pub const TRACESTATE: &str = "tracestate";

/// Max length of a `tracestate` that is passed on. The standard allows dropping a longer one (3.3.1.5).
const STATE_MAX: usize = 512;

/// The remote span that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The trace id; not 0.
    pub trace: u128,
    /// The span id; not 0.
    pub span: u64,
    /// Whether the caller records the trace.
    pub sampled: bool,
    /// The vendor-specific entries.
    pub state: Option<Arc<str>>,
}

impl Parent {
    /// Parses the headers. Returns `None` if `traceparent` is invalid, so that a new trace begins.
    pub fn parse(traceparent: &[u8], tracestate: Option<&[u8]>) -> Option<Parent> {
        let text = std::str::from_utf8(traceparent).ok()?;
        // A later version may append fields; ff is forbidden.
        let (version, rest) = (hex(text.get(..2)?)?, text.get(2..)?);
        let is_complete = match version {
            0 => text.len() == 55,
            0xff => false,
            _ => text.len() == 55 || text.as_bytes().get(55) == Some(&b'-'),
        };
        let (trace, span, flags) = (rest.get(1..33)?, rest.get(34..50)?, rest.get(51..53)?);
        let dashes = [0, 33, 50].iter().all(|at| rest.as_bytes()[*at] == b'-');
        let (trace, span, flags) = (hex(trace)?, hex(span)? as u64, hex(flags)?);
        // An all-zero id is invalid (3.2.2.3 and 3.2.2.4).
        if !is_complete || !dashes || trace == 0 || span == 0 {
            return None;
        }
        let state = tracestate.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let state = state.filter(|text| (1..=STATE_MAX).contains(&text.len())).map(Arc::from);
        Some(Parent { trace, span, sampled: flags & 1 == 1, state })
    }

    /// Returns the value of `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Parses lower-case hexadecimal digits.
fn hex(text: &str) -> Option<u128> {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_hex { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Option<Parent> {
        Parent::parse(text.as_bytes(), Some(b"vendor=1"))
    }

    #[test]
    fn the_standards_examples_are_read() {
        let parent = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!((parent.trace, parent.span), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7));
        assert!(parent.sampled && parent.state.as_deref() == Some("vendor=1"));
        assert!(!parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").unwrap().sampled);
        // Unknown flags are ignored; a later version may be longer.
        assert!(parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff").unwrap().sampled);
        assert!(parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let long = vec![b'a'; STATE_MAX + 1];
        let parent = Parent::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some(&long)).unwrap();
        assert_eq!(parent.state, None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(trace in 1_u128.., span in 1_u64.., sampled: bool) {
            let parent = Parent { trace, span, sampled, state: Some("vendor=1".into()) };
            prop_assert_eq!(parse(&parent.traceparent()), Some(parent));
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Parent::parse(&bytes, Some(&bytes));
        }
    }
}
