//! The target of a call's batches.

use super::super::question::{object, take_text};
use crate::protocol::problem::{Problem, Result};
use arrow_flight::FlightDescriptor;
use arrow_flight::flight_descriptor::DescriptorType;
use meridian_backend::KEY_BYTES_MAX;

/// Max bytes of a collection's name, which is kept for the whole call. A longer one does not fit in a target.
const NAME_BYTES_MAX: usize = 64 << 10;
/// Max bytes of a call's key: the number of a batch adds at most 20 digits.
const CALL_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - 21;

/// Where the batches go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) collection: String,
    pub(super) key: Option<String>,
}

impl Target {
    /// Parses a descriptor: a path naming one collection, or a command with `collection` and `idempotency_key`.
    pub(super) fn of(descriptor: Option<&FlightDescriptor>) -> Result<Target> {
        let wrong = |field: &str, detail: String| Problem::parameter(field, detail);
        let descriptor = descriptor
            .ok_or_else(|| wrong("descriptor", "the first message has no descriptor: expected one".into()))?;
        match DescriptorType::try_from(descriptor.r#type) {
            Ok(DescriptorType::Path) => match descriptor.path.as_slice() {
                [collection] if collection.len() > NAME_BYTES_MAX => {
                    Err(wrong("path", format!("a name of {} bytes: expected that of a collection", collection.len())))
                }
                [collection] => Ok(Target { collection: collection.clone(), key: None }),
                other => Err(wrong("path", format!("{} segments: expected one, a collection", other.len()))),
            },
            Ok(DescriptorType::Cmd) => {
                let mut members = object(&descriptor.cmd)?;
                let collection = take_text(&mut members, "collection")?;
                let key = take_text(&mut members, "idempotency_key")?;
                if let Some(other) = members.keys().next() {
                    return Err(wrong(other, format!("{other:?}: expected collection and idempotency_key")));
                }
                let collection = collection.ok_or_else(|| {
                    wrong("collection", "the command names none: expected \"collection\": NAME".into())
                })?;
                Ok(Target { collection, key })
            }
            _ => Err(wrong("descriptor", "expected a path or a command".into())),
        }
    }
}

/// Checks the key of a call, to which each batch appends its number.
pub(super) fn check_key(key: &str) -> Result<()> {
    let is_printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match is_printable && (1..=CALL_KEY_BYTES_MAX).contains(&key.len()) {
        true => Ok(()),
        false => {
            let detail = format!("expected 1 to {CALL_KEY_BYTES_MAX} printable ASCII characters");
            Err(Problem::parameter("idempotency_key", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_room_for_the_number_of_a_batch() {
        assert!(check_key("load-17").is_ok() && check_key(&"k".repeat(CALL_KEY_BYTES_MAX)).is_ok());
        for wrong in ["", "a\nb", "é", &"k".repeat(CALL_KEY_BYTES_MAX + 1)] {
            assert!(check_key(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_name_of_a_collection_is_bounded() {
        let named = |bytes: usize| Target::of(Some(&FlightDescriptor::new_path(vec!["q".repeat(bytes)])));
        assert!(named(NAME_BYTES_MAX).is_ok());
        assert!(named(NAME_BYTES_MAX + 1).is_err());
    }
}
