//! Builds a manifest from the existing files.

use super::survey::{FoundSegment, ReadContext};
use super::{PartitionRepair, SEGMENTS};
use crate::catalog::disk::{COPY, MANIFEST, read_manifest};
use crate::catalog::sidecars::files_of;
use crate::error::StoreError;
use crate::ingest::idempotency;
use crate::log::Log;
use crate::manifest::{KeysEntry, Manifest};
use crate::options::Settings;
use crate::part::segment::SegmentAccess;
use crate::paths::partition_dir;
use crate::recovery::leftovers::number_of;
use crate::recovery::log_dir;
use crate::seams::files::names;
use crate::stats::Counters;
use meridian_model::seq::SeqLayout;
use meridian_model::{Schema, Seq};
use std::path::PathBuf;
use std::sync::Arc;

impl PartitionRepair<'_> {
    /// Builds a manifest from the files and writes it. An older manifest or copy supplies what the files do not hold.
    pub(super) fn rebuild(&mut self, definition: Option<Manifest>) -> Result<(), StoreError> {
        let common = self.common;
        let place = SegmentAccess {
            objects: self.objects(),
            removal: None,
            cache: common.cache.clone(),
            counters: Arc::new(Counters::default()),
        };
        // With a new seed, hashes of ids in old indexes are wrong; the survey then rebuilds those indexes.
        let seed = definition.as_ref().map_or_else(|| common.seams.random.next_u64(), |manifest| manifest.seed);
        let reading = ReadContext {
            place,
            seed,
            seed_known: definition.is_some(),
            schema: definition.as_ref().map(|manifest| manifest.schema.clone()),
        };
        let found = self.survey(&reading)?;
        // Positions of unusable keys still count: no acknowledged position may be assigned again.
        let (keys, keys_last) = if reading.seed_known { self.keys()? } else { self.forget_keys()? };
        let last = found.iter().map(|segment| Seq(segment.seq_max).position()).max().unwrap_or(0).max(keys_last);
        let common_to_all = definition.clone().or_else(|| self.sibling());
        let flushed = self.flushed(last.max(definition.as_ref().map_or(0, |manifest| manifest.flushed)))?;
        let manifest = Manifest {
            tenant: self.tenant.to_owned(),
            collection: self.name.to_owned(),
            partition: self.of.0,
            schema: self.schema(definition.as_ref(), common_to_all.as_ref(), &found)?,
            settings: self.settings(common_to_all.as_ref()),
            seed,
            created: common_to_all.as_ref().map_or_else(|| common.seams.clock.now(), |manifest| manifest.created),
            began: common_to_all.as_ref().and_then(|manifest| manifest.began),
            flushed,
            // Earlier snapshots may have shown events that are gone.
            dropped_seq: Seq::end_of(flushed).0,
            next_file: self.next_file()?.max(definition.as_ref().map_or(0, |manifest| manifest.next_file)),
            segments: found.into_iter().map(|segment| segment.meta).collect(),
            keys,
            hidden: None,
            log: None,
            seq_layout: SeqLayout::of(self.of.1 as usize),
            imported: common_to_all.as_ref().and_then(|manifest| manifest.imported.clone()),
            making: false,
            listed: definition.map(|manifest| manifest.listed).unwrap_or_default(),
            copied: true,
        };
        self.write_rebuilt(&manifest)
    }

    fn write_rebuilt(&mut self, manifest: &Manifest) -> Result<(), StoreError> {
        let mut partition = self.prepare(manifest.clone())?;
        partition.open_files(false)?;
        self.mark(&mut partition)?;
        self.keep_manifests()?;
        // Dead rows are first merged into a separate file, which is none of these.
        self.set_aside(SEGMENTS, |name| !files_of(manifest).contains(name) && !name.ends_with(".dead"))?;
        let mut segments = partition.segments.clone();
        let saved = partition.save(&partition.entries, &mut segments, manifest.flushed);
        let written = saved?;
        self.report.done("a new manifest names what was found".to_owned());
        self.set_aside(SEGMENTS, |name| !files_of(&written).contains(name))
    }

    /// Returns the manifest of another partition with the most fields: all share schema, settings and creation time.
    fn sibling(&self) -> Option<Manifest> {
        let others = (0..self.of.1).filter(|other| *other != self.of.0);
        let dirs = others.map(|other| partition_dir(self.root, self.tenant, self.name, other));
        let read =
            |dir: PathBuf| [MANIFEST, COPY].iter().find_map(|name| read_manifest(self.disk(), &dir.join(name)).ok());
        dirs.filter_map(read).max_by_key(|manifest| manifest.schema.fields.len())
    }

    /// Returns the schema of an older manifest, or the newest that a segment was written in: fields are only ever
    /// added. Without a manifest, that of another partition counts too.
    fn schema(
        &mut self,
        definition: Option<&Manifest>,
        sibling: Option<&Manifest>,
        found: &[FoundSegment],
    ) -> Result<Schema, StoreError> {
        let written = found.iter().map(|segment| &segment.schema).max_by_key(|schema| schema.fields.len());
        match (definition, written) {
            (Some(manifest), written) => {
                let longer = written.filter(|schema| schema.fields.len() > manifest.schema.fields.len());
                Ok(longer.unwrap_or(&manifest.schema).clone())
            }
            (None, Some(written)) => {
                self.report
                    .missing("deleted and replaced events are back if no file with their deaths is left".to_owned());
                let longer = sibling.filter(|manifest| manifest.schema.fields.len() > written.fields.len());
                if sibling.is_none() {
                    self.report
                        .missing("fields that were added since the newest segment was written, if any".to_owned());
                }
                Ok(longer.map_or(written, |manifest| &manifest.schema).clone())
            }
            (None, None) => {
                let detail = "no manifest and no segment in it reads, so nothing says what its events are";
                Err(StoreError::corrupt(self.dir, detail))
            }
        }
    }

    fn settings(&mut self, definition: Option<&Manifest>) -> Settings {
        definition.map_or_else(
            || {
                self.report.missing(
                    "its settings: retention is off now, durability local, and it counts as made now".to_owned(),
                );
                Settings { partitions: self.of.1 as u16, ..Settings::default() }
            },
            |manifest| manifest.settings.clone(),
        )
    }

    /// Returns the readable files of idempotency keys, and the newest position in them.
    fn keys(&mut self) -> Result<(Vec<KeysEntry>, u64), StoreError> {
        let (dir, objects) = (self.dir.join("segments"), self.objects());
        let (mut keys, mut last) = (Vec::new(), 0);
        for name in names(self.disk(), &dir)?.into_iter().filter(|name| name.ends_with(".keys")) {
            match (number_of(&name), idempotency::read(objects.as_ref(), &name)) {
                (Some(file), Ok(found)) => {
                    last = found.iter().map(|(_, what)| what.position).fold(last, u64::max);
                    let newest = found.iter().map(|(_, what)| what.time).max().unwrap_or(0);
                    keys.push(KeysEntry { file, newest, count: found.len() as u64 });
                }
                (_, Err(newer @ StoreError::NewerFormat { .. })) => return Err(newer),
                (_, Err(e)) => {
                    self.report
                        .missing(format!("idempotency keys, so that what is sent again may be stored twice: {e}"));
                }
                (None, Ok(_)) => {}
            }
        }
        Ok((keys, last))
    }

    /// Drops all keys: they are hashed under the seed, and useless without it.
    fn forget_keys(&mut self) -> Result<(Vec<KeysEntry>, u64), StoreError> {
        let (keys, last) = self.keys()?;
        if !keys.is_empty() {
            self.report.missing("all idempotency keys: what is sent again may be stored twice".to_owned());
        }
        Ok((Vec::new(), last))
    }

    /// Returns the position up to which the segments hold all writes: the log continues after it.
    fn flushed(&mut self, last: u64) -> Result<u64, StoreError> {
        let disk = &self.common.seams.disk;
        let (_, found) = Log::open(disk, &log_dir(self.dir), self.common.options.log_file_bytes, 0)?;
        let Some(first) = found.records.first().map(|record| record.position).filter(|first| *first > last + 1) else {
            return Ok(last);
        };
        self.report.missing(format!(
            "writes {} to {}, unless they were deletions: no file that reads tells of them",
            last + 1,
            first - 1
        ));
        Ok(first - 1)
    }
}
