//! Writes Mapbox Vector Tiles, version 2.1: a small hand-written encoder of their protobuf.
//!
//! The format has four message types with a dozen fields ("vector_tile.proto" of the specification). Writing them by
//! hand is less code than a generated codec, and geometry goes straight into the tile. Coordinates are whole tile
//! units, x to the east and y to the south, from the tile's north-west corner.

mod commands;
mod dictionary;
mod protobuf;

use commands::{path_commands, point_commands};
use dictionary::Dictionary;
use protobuf::{put_bytes, put_packed, put_value, put_varint};

/// Units along a side of a tile.
pub const EXTENT: u32 = 4096;

/// A property value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// A 64-bit float.
    Float(f64),
    /// A signed integer.
    Int(i64),
    /// True or false.
    Bool(bool),
}

/// Geometry of a feature in tile units.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// One or several points.
    Points(Vec<(i32, i32)>),
    /// Lines of at least two distinct vertices each.
    Lines(Vec<Vec<(i32, i32)>>),
    /// Polygons as rings without the closing vertex, each outer ring followed by its holes. Outer rings
    /// run clockwise as drawn (y to the south), holes the other way.
    Polygons(Vec<Vec<(i32, i32)>>),
}

/// A feature of a layer in its encoded parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// 1 for points, 2 for lines, 3 for polygons.
    pub kind: u8,
    /// Alternating indexes of names and values.
    pub tags: Vec<u32>,
    /// Encoded geometry.
    pub commands: Vec<u32>,
}

/// Builds one layer of a tile.
#[derive(Debug)]
pub struct Layer {
    features: Vec<u8>,
    names: Dictionary,
    values: Dictionary,
    name: String,
    /// Tags of the current feature.
    tags: Vec<u32>,
    /// Memory for one value or feature at a time.
    scratch: Vec<u8>,
    /// The features so far, if they will be merged with those of other partitions.
    record: Option<Vec<Feature>>,
}

impl Layer {
    /// An empty layer.
    pub fn new(name: &str) -> Layer {
        Layer {
            features: Vec::new(),
            names: Dictionary::new(3),
            values: Dictionary::new(4),
            name: name.to_owned(),
            tags: Vec::new(),
            scratch: Vec::new(),
            record: None,
        }
    }

    /// An empty layer that records its features for a merge.
    pub fn recording(name: &str) -> Layer {
        Layer { record: Some(Vec::new()), ..Layer::new(name) }
    }

    /// The recorded features.
    pub fn record(&self) -> &[Feature] {
        self.record.as_deref().unwrap_or_default()
    }

    /// Names of properties by index.
    pub fn names(&self) -> Vec<&str> {
        // Every entry was text when it was added.
        self.names.entries().map(|name| std::str::from_utf8(name).unwrap_or_default()).collect()
    }

    /// Encoded values by index.
    pub fn values(&self) -> Vec<&[u8]> {
        self.values.entries().collect()
    }

    /// Estimated size of the layer in bytes.
    pub fn bytes(&self) -> usize {
        self.features.len() + self.names.encoded().len() + self.values.encoded().len() + self.name.len() + 16
    }

    /// Adds a property to the current feature.
    pub fn property(&mut self, key: &str, value: Value<'_>) {
        // One buffer for all properties of a tile: most values are known already, and are encoded only for the
        // lookup.
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        put_value(&mut encoded, value);
        self.tag(key, &encoded);
        self.scratch = encoded;
    }

    /// Adds an encoded property to the current feature.
    pub fn tag(&mut self, key: &str, value: &[u8]) {
        let (key, value) = (self.names.number(key.as_bytes()), self.values.number(value));
        self.tags.extend([key, value]);
    }

    /// Ends the current feature with its geometry; a geometry without vertices drops the feature.
    pub fn feature(&mut self, shape: &Shape) {
        let (kind, commands) = match shape {
            Shape::Points(points) => (1, point_commands(points)),
            Shape::Lines(lines) => (2, path_commands(lines, 2, false)),
            Shape::Polygons(rings) => (3, path_commands(rings, 3, true)),
        };
        self.encoded(kind, &commands);
    }

    /// The same with an encoded geometry.
    pub fn encoded(&mut self, kind: u8, commands: &[u32]) {
        // A geometry that simplified to nothing yields no feature; its tags are dropped below like those of any
        // other.
        if !commands.is_empty() {
            let mut feature = std::mem::take(&mut self.scratch);
            feature.clear();
            put_packed(&mut feature, 2, &self.tags);
            put_varint(&mut feature, 3 << 3);
            put_varint(&mut feature, kind.into());
            put_packed(&mut feature, 4, commands);
            put_bytes(&mut self.features, 2, &feature);
            self.scratch = feature;
        }
        if let Some(record) = &mut self.record {
            record.push(Feature { kind, tags: self.tags.clone(), commands: commands.to_vec() });
        }
        self.tags.clear();
    }

    /// The encoded tile with this layer; empty if the layer has no feature.
    pub fn into_tile(self) -> Vec<u8> {
        if self.features.is_empty() {
            return Vec::new();
        }
        let mut layer = Vec::with_capacity(self.bytes() + 16);
        put_varint(&mut layer, 15 << 3);
        put_varint(&mut layer, 2);
        put_bytes(&mut layer, 1, self.name.as_bytes());
        layer.extend_from_slice(&self.features);
        layer.extend_from_slice(self.names.encoded());
        layer.extend_from_slice(self.values.encoded());
        put_varint(&mut layer, 5 << 3);
        put_varint(&mut layer, u64::from(EXTENT));
        let mut tile = Vec::with_capacity(layer.len() + 8);
        put_bytes(&mut tile, 3, &layer);
        tile
    }
}

#[cfg(test)]
pub(crate) mod tests;
