//! The part of a record in a backup.

/// The part of a record beside the collections in a backup: decided by the crate that writes the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordPart {
    /// The part that every holder of the backup may read: the record, or one like it without its secret; `None` for nothing.
    pub plain: Option<Vec<u8>>,
    /// The kind of the secret that the record holds, in the plural. The record is sealed where there is a
    /// key; otherwise the secret is left out and counted.
    pub secret: Option<&'static str>,
}

impl RecordPart {
    /// The record is no part of the backup.
    pub fn absent() -> RecordPart {
        RecordPart::default()
    }

    /// The record has no secret.
    pub fn plain(content: &[u8]) -> RecordPart {
        RecordPart { plain: Some(content.to_vec()), secret: None }
    }

    /// The record has a secret of this kind, and `plain` is what it is without.
    pub fn secret(kind: &'static str, plain: Option<Vec<u8>>) -> RecordPart {
        RecordPart { plain, secret: Some(kind) }
    }
}
