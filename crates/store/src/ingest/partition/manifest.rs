//! Changes to the schema or settings of a partition, by its manifest.

use super::Partition;
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::options::Settings;
use crate::part::Context;
use crate::seams::CommitError;
use meridian_model::Schema;
use meridian_model::policy::owner::first_of_next_epoch;
use std::sync::atomic::Ordering;

impl Partition {
    /// Changes the schema (by adding optional fields) or the settings, durably.
    pub(crate) fn change(&mut self, schema: Option<Schema>, settings: Option<Settings>) -> Result<(), StoreError> {
        if let Some(why) = &self.refuses {
            if self.reopens {
                return Err(StoreError::Busy(why.clone()));
            }
            return Err(StoreError::Invalid(meridian_model::Invalid::new(format!(
                "the collection is read-only: {why}"
            ))));
        }
        let mut changed = self.manifest.clone();
        changed.schema = schema.unwrap_or(changed.schema);
        changed.settings = settings.unwrap_or(changed.settings);
        // A manifest takes a number of its own, which shows the newer of two.
        changed.next_file = self.shared.number_file() + 1;
        // Durable before visible: a write in the new schema may be acknowledged as soon as the context is replaced.
        self.write_manifest(&changed)?;
        self.context = Context::of(&changed, &self.shared.counters);
        self.manifest = changed;
        self.publish();
        Ok(())
    }

    /// Claims an epoch of file numbers for this process, before it names its first file.
    ///
    /// # Errors
    /// [`CommitError::Unknown`] is harmless: both manifests name the same files, and the next attempt follows whichever
    /// stands.
    pub(crate) fn claim_numbers(&mut self) -> Result<(), CommitError> {
        if self.claimed {
            return Ok(());
        }
        // The max of both, because failed jobs may have used numbers that no manifest has.
        let next_file = first_of_next_epoch(self.manifest.next_file.max(self.shared.next_file.load(Ordering::Relaxed)));
        let manifest = Manifest { next_file, ..self.manifest.clone() };
        self.write_manifest(&manifest)?;
        self.shared.next_file.store(next_file, Ordering::Relaxed);
        self.manifest = manifest;
        self.claimed = true;
        Ok(())
    }

    /// Does the same while the partition is served: if another process owns it, this one stops.
    pub(crate) fn claim_or_stop(&mut self) -> Result<(), StoreError> {
        if self.is_halted() {
            return Err(StoreError::Closed);
        }
        self.claim_numbers().map_err(|failed| match failed {
            CommitError::Unknown(error) => error,
            failed => self.after_failed_commit(failed),
        })
    }

    /// Writes a manifest, and its copy if an ephemeral collection keeps its definition.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), CommitError> {
        if self.is_committing {
            // It would lack what the other one names. Callers hold the lock of commits, so none comes here.
            return Err(CommitError::Clean(StoreError::Busy("a manifest is being committed: try again".to_owned())));
        }
        // The catalog decides which process owns the collection: a commit that does not follow the current version is
        // refused there.
        let bytes = self.catalog.commit(manifest)?;
        self.shared.counters.add_sidecar_bytes(bytes);
        if let Some(definition) = &self.definition
            && (manifest.schema != self.manifest.schema || manifest.settings != self.manifest.settings)
        {
            definition.commit(&manifest.without_events())?;
        }
        Ok(())
    }
}
