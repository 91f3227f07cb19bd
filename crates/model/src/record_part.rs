//! The part of a record in a backup.

/// The part of a record beside the collections that goes into a backup, decided by the crate that writes the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordPart {
    /// The part that every holder of the backup may read: the record, or a copy without its secret; `None` for
    /// nothing.
    pub plain: Option<Vec<u8>>,
    /// The kind of the record's secret, in the plural. The record is sealed if a key is configured; otherwise the
    /// secret is omitted and counted.
    pub secret: Option<&'static str>,
}

impl RecordPart {
    /// Excludes the record from the backup.
    pub fn absent() -> RecordPart {
        RecordPart::default()
    }

    /// A record without a secret.
    pub fn plain(content: &[u8]) -> RecordPart {
        RecordPart { plain: Some(content.to_vec()), secret: None }
    }

    /// A record with a secret of this kind; `plain` is the record without it.
    pub fn secret(kind: &'static str, plain: Option<Vec<u8>>) -> RecordPart {
        RecordPart { plain, secret: Some(kind) }
    }
}
