//! The part of saved searches' records in a backup.

use super::checkpoint::{self, Checkpoint};
use super::claim::{self, RunRecord};
use super::clean_state::{self, CleanState};
use super::records::{SEEN, is_id};
use super::slot::Slot;
use meridian_model::RecordPart;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Decides which part of each record is backed up.
pub struct BackupParts {
    /// The only tenant, with the ids of its saved searches; `None` for all.
    only: Option<(String, BTreeSet<String>)>,
}

impl BackupParts {
    /// For one tenant, with the ids of its saved searches; `None` for all.
    pub(super) fn new(only: Option<(String, BTreeSet<String>)>) -> BackupParts {
        BackupParts { only }
    }

    /// Returns the part of this record to back up. A webhook is left out entirely: its address may be as secret as its
    /// key.
    pub fn of(&self, name: &str, content: &[u8]) -> RecordPart {
        let id = name.strip_suffix(SEEN).unwrap_or(name);
        // Every slot has its own records in addition to those of each saved search.
        match (&self.only, Slot::without(name)) {
            (Some((_, ids)), _) if is_id(id) && !ids.contains(id) => RecordPart::absent(),
            _ if is_id(name) => without_webhook(content),
            (None, claim::RECORD) => reduced(content, RunRecord::moved),
            (None, _) => RecordPart::plain(content),
            (Some((tenant, ids)), checkpoint::RECORD) => reduced(content, |all: Checkpoint| all.only(tenant, ids)),
            (Some((tenant, ids)), clean_state::RECORD) => reduced(content, |all: CleanState| all.only(tenant, ids)),
            (Some(_), _) if is_id(id) => RecordPart::plain(content),
            (Some(_), _) => RecordPart::absent(),
        }
    }
}

fn without_webhook(content: &[u8]) -> RecordPart {
    // An unreadable record may hold anything.
    let Ok(mut members) = serde_json::from_slice::<Map<String, Value>>(content) else {
        return RecordPart::secret("saved searches", None);
    };
    match members.shift_remove("webhook") {
        None => RecordPart::plain(content),
        Some(_) => RecordPart::secret("webhooks", serde_json::to_vec(&members).ok()),
    }
}

/// Reduces a record of all tenants to a part.
fn reduced<T: serde::Serialize + serde::de::DeserializeOwned>(content: &[u8], only: impl Fn(T) -> T) -> RecordPart {
    let part = serde_json::from_slice(content).and_then(|all| serde_json::to_vec(&only(all)));
    RecordPart { plain: part.ok(), secret: None }
}
