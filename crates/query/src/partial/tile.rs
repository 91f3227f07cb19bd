//! A map tile, by partition: its events if they are few, and counts per cell if they are many.
//!
//! Whether a tile draws its events is decided once, over all partitions together. A partition with few events sends
//! them as features, one with many sends counts. If these meet, or there are too many features in total, the
//! partitions that sent features are queried again for counts ([`crate::Tile::density`]).

use super::envelope::{Kind, Opened};
use crate::averages::PartialAverages;
use crate::control::Stats;
use crate::density::PartialGrid;
use crate::mvt::{Feature, Layer};
use crate::tile::{CELLS, Drawing, PartialTile, TILE_EVENTS_MAX, Tile, is_too_much};
use crate::token::{base64url, base64url_decode};
use crate::wire::WireError;
use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ListArray, RecordBatch, UInt8Array, UInt64Array};
use meridian_index::Key;
use meridian_model::Seq;
use std::sync::Arc;

const KIND: Kind = Kind { name: "tile", version: 1 };
const FOUND: &str = "meridian.found";
const NAMES: &str = "meridian.names";
const VALUES: &str = "meridian.values";

impl PartialTile {
    /// Merges all partitions, given in order. `None` if they must be queried again for counts: see the module.
    pub fn merge(parts: Vec<PartialTile>, question: &Tile) -> Result<Option<PartialTile>, WireError> {
        let (mut drawings, mut counted) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                PartialTile::Drawn(drawing) => drawings.push(*drawing),
                other => counted.push(other),
            }
        }
        let mut counted = counted.into_iter();
        match counted.next() {
            None => Ok(draw_all(&drawings, question).map(|all| PartialTile::Drawn(Box::new(all)))),
            Some(mut all) if drawings.is_empty() => {
                for part in counted {
                    match (&mut all, part) {
                        (PartialTile::Counted(all), PartialTile::Counted(part)) => all.merge(&part)?,
                        (PartialTile::Averaged(all), PartialTile::Averaged(part)) => all.merge(&part)?,
                        _ => return Err(KIND.malformed("counts and averages")),
                    }
                }
                Ok(Some(all))
            }
            // Counts and features cannot be merged: the caller queries the partitions that drew again, for counts.
            Some(_) => Ok(None),
        }
    }

    /// Encodes as an Arrow record batch: one row per feature or cell.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let drawing = match self {
            PartialTile::Drawn(drawing) => drawing,
            PartialTile::Counted(grid) => return grid.to_arrow(),
            PartialTile::Averaged(averages) => return averages.to_arrow(),
        };
        let features = drawing.layer.record();
        if features.len() != drawing.places.len() {
            return Err(KIND.malformed("its features were not kept to be merged"));
        }
        let values: Vec<String> = drawing.layer.values().into_iter().map(base64url).collect();
        let json = |texts: serde_json::Result<String>| texts.map_err(|e| KIND.malformed(e.to_string()));
        let mut keys = FixedSizeBinaryBuilder::with_capacity(features.len(), 16);
        for (key, _) in &drawing.places {
            keys.append_value(key.0.to_be_bytes()).map_err(|e| KIND.malformed(e.to_string()))?;
        }
        let mut envelope = KIND.seal(&drawing.stats);
        envelope.says(FOUND, drawing.found);
        envelope.says(NAMES, json(serde_json::to_string(&drawing.layer.names()))?);
        envelope.says(VALUES, json(serde_json::to_string(&values))?);
        envelope.column("key", Arc::new(keys.finish()));
        envelope.column("seq", Arc::new(drawing.places.iter().map(|(_, seq)| seq.0).collect::<UInt64Array>()));
        envelope.column("kind", Arc::new(features.iter().map(|feature| feature.kind).collect::<UInt8Array>()));
        envelope.column("tags", Arc::new(lists(features.iter().map(|feature| &feature.tags))));
        envelope.column("commands", Arc::new(lists(features.iter().map(|feature| &feature.commands))));
        envelope.finish(features.len())
    }

    /// Decodes the output of [`PartialTile::to_arrow`].
    pub fn from_arrow(batch: &RecordBatch) -> Result<PartialTile, WireError> {
        if PartialAverages::is_in(batch) {
            return PartialAverages::from_arrow(batch).map(|averages| PartialTile::Averaged(Box::new(averages)));
        }
        if !KIND.is_of(batch) {
            return PartialGrid::from_arrow(batch, CELLS).map(PartialTile::Counted);
        }
        let opened = KIND.open(batch)?;
        let texts = |name: &str| {
            let texts: Option<Vec<String>> = serde_json::from_str(&opened.said::<String>(name)?).ok();
            texts.ok_or_else(|| opened.malformed(format!("{name} is not a list of texts")))
        };
        let (names, values) = (texts(NAMES)?, texts(VALUES)?);
        let values: Option<Vec<Vec<u8>>> = values.iter().map(|value| base64url_decode(value)).collect();
        let values = values.ok_or_else(|| opened.malformed("a value is not base64url"))?;
        let (keys, seqs) = (opened.sixteens("key")?, opened.numbers::<UInt64Type>("seq")?);
        let kinds = opened.numbers::<UInt8Type>("kind")?;
        let (tags, commands) = (list_column(&opened, "tags")?, list_column(&opened, "commands")?);
        // No name: the tile's layer is created when all partitions are merged.
        let mut layer = Layer::recording("");
        let mut places = Vec::with_capacity(opened.rows());
        for row in 0..opened.rows() {
            let (tags, commands) = (list(tags, row), list(commands, row));
            let (Some(tags), Some(commands)) = (tags, commands) else {
                return Err(opened.malformed("a feature has a value that is not a number"));
            };
            let feature = Feature { kind: kinds.value(row), tags, commands };
            add(&mut layer, &feature, &names, &values).ok_or_else(|| opened.malformed("a tag that says nothing"))?;
            let key = keys.value(row).try_into().map_or_else(|_| Key::default(), |key| Key(u128::from_be_bytes(key)));
            places.push((key, Seq(seqs.value(row))));
        }
        let (found, drawn) = (opened.said(FOUND)?, places.len() as u64);
        Ok(PartialTile::Drawn(Box::new(Drawing { found, drawn, layer, places, stats: opened.stats()? })))
    }
}

/// Draws the features of several partitions in natural order, as a single one would; `None` if there are too many.
fn draw_all(drawings: &[Drawing], question: &Tile) -> Option<Drawing> {
    let found = drawings.iter().fold(0u64, |all, drawing| all.saturating_add(drawing.found));
    if found > TILE_EVENTS_MAX as u64 {
        return None;
    }
    let tables: Vec<(Vec<&str>, Vec<&[u8]>)> = drawings.iter().map(|d| (d.layer.names(), d.layer.values())).collect();
    let mut order: Vec<((Key, Seq), usize, usize)> = Vec::new();
    for (part, drawing) in drawings.iter().enumerate() {
        order.extend(drawing.places.iter().enumerate().map(|(row, place)| (*place, part, row)));
    }
    // In natural order over all partitions, so the tile does not depend on how its events are distributed.
    order.sort_unstable();
    let mut all = Drawing {
        found,
        drawn: 0,
        layer: Layer::recording(&question.layer),
        places: Vec::with_capacity(order.len()),
        stats: Stats::default(),
    };
    for (place, part, row) in order {
        let feature = drawings[part].layer.record().get(row)?;
        add(&mut all.layer, feature, &tables[part].0, &tables[part].1)?;
        all.places.push(place);
        all.drawn += 1;
        if is_too_much(all.drawn, &all.layer) {
            return None;
        }
    }
    drawings.iter().for_each(|drawing| all.stats.merge(&drawing.stats));
    Some(all)
}

/// Adds a feature to a layer, with tags as indexes into these names and values; `None` if an index is out of range.
fn add(layer: &mut Layer, feature: &Feature, names: &[impl AsRef<str>], values: &[impl AsRef<[u8]>]) -> Option<()> {
    let (pairs, rest) = feature.tags.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    // From another server, so indices are checked rather than trusted.
    let known = |[name, value]: &[u32; 2]| Some((names.get(*name as usize)?, values.get(*value as usize)?));
    let tags: Vec<_> = pairs.iter().map(known).collect::<Option<_>>()?;
    tags.into_iter().for_each(|(name, value)| layer.tag(name.as_ref(), value.as_ref()));
    layer.encoded(feature.kind, &feature.commands);
    Some(())
}

fn lists<'a>(lists: impl Iterator<Item = &'a Vec<u32>>) -> ListArray {
    let mut builder = ListBuilder::new(UInt32Builder::new());
    for list in lists {
        builder.values().append_slice(list);
        builder.append(true);
    }
    builder.finish()
}

fn list_column<'a>(opened: &Opened<'a>, name: &str) -> Result<&'a ListArray, WireError> {
    opened.column(name, false, |column| column.as_list_opt::<i32>())
}

fn list(lists: &ListArray, row: usize) -> Option<Vec<u32>> {
    let list = lists.value(row);
    list.as_primitive_opt::<UInt32Type>().filter(|list| list.null_count() == 0).map(|list| list.values().to_vec())
}
