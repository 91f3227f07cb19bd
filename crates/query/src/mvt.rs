//! Writes Mapbox Vector Tiles, version 2.1: a small hand-written encoder of their protobuf.
//!
//! The format has four message types with a dozen fields ("vector_tile.proto" of the specification). Writing them by hand
//! is less code than a generated codec, and geometry goes straight into the tile.
//! Coordinates are whole tile units, x to the east and y to the south, from the tile's north-west corner.

use std::collections::HashMap;

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
    /// One point or several.
    Points(Vec<(i32, i32)>),
    /// Lines of at least two different vertices each.
    Lines(Vec<Vec<(i32, i32)>>),
    /// Polygons as rings without the closing vertex, each outer ring followed by its holes. Outer rings
    /// run clockwise as drawn (y to the south), holes the other way.
    Polygons(Vec<Vec<(i32, i32)>>),
}

/// A feature of a layer in its encoded parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// 1 of points, 2 of lines, 3 of polygons.
    pub kind: u8,
    /// Numbers of names and values in turn.
    pub tags: Vec<u32>,
    /// Encoded geometry.
    pub commands: Vec<u32>,
}

/// Builds one layer of a tile.
#[derive(Debug)]
pub struct Layer {
    features: Vec<u8>,
    keys: HashMap<String, u32>,
    key_bytes: Vec<u8>,
    values: HashMap<Vec<u8>, u32>,
    value_bytes: Vec<u8>,
    name: String,
    /// Tags of the current feature.
    tags: Vec<u32>,
    scratch: Vec<u8>,
    /// The features so far, where they will be merged with those of other partitions.
    record: Option<Vec<Feature>>,
}

impl Layer {
    /// An empty layer.
    pub fn new(name: &str) -> Layer {
        Layer {
            features: Vec::new(),
            keys: HashMap::new(),
            key_bytes: Vec::new(),
            values: HashMap::new(),
            value_bytes: Vec::new(),
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

    /// Names of properties by number.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<(u32, &str)> = self.keys.iter().map(|(name, number)| (*number, name.as_str())).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Encoded values by number.
    pub fn values(&self) -> Vec<&[u8]> {
        let mut values: Vec<(u32, &[u8])> = self.values.iter().map(|(value, n)| (*n, value.as_slice())).collect();
        values.sort_unstable();
        values.into_iter().map(|(_, value)| value).collect()
    }

    /// Estimated size of the layer in bytes.
    pub fn bytes(&self) -> usize {
        self.features.len() + self.key_bytes.len() + self.value_bytes.len() + self.name.len() + 16
    }

    /// Adds a property to the current feature.
    pub fn property(&mut self, key: &str, value: Value<'_>) {
        // One buffer for all properties of a tile: most values are known already, and are encoded only to be looked
        // up.
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        put_value(&mut encoded, value);
        self.tag(key, &encoded);
        self.scratch = encoded;
    }

    /// Adds an encoded property to the current feature.
    pub fn tag(&mut self, key: &str, value: &[u8]) {
        let key = match self.keys.get(key) {
            Some(&i) => i,
            None => {
                let i = self.keys.len() as u32;
                self.keys.insert(key.to_owned(), i);
                put_bytes(&mut self.key_bytes, 3, key.as_bytes());
                i
            }
        };
        let value = match self.values.get(value) {
            Some(&i) => i,
            None => {
                let i = self.values.len() as u32;
                put_bytes(&mut self.value_bytes, 4, value);
                self.values.insert(value.to_vec(), i);
                i
            }
        };
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
        // A geometry that simplified to nothing gives no feature; its tags are dropped below like those of any other.
        if !commands.is_empty() {
            let mut feature = Vec::with_capacity(commands.len() * 2 + self.tags.len() * 2 + 8);
            put_packed(&mut feature, 2, &self.tags);
            put_varint(&mut feature, 3 << 3);
            put_varint(&mut feature, kind.into());
            put_packed(&mut feature, 4, commands);
            put_bytes(&mut self.features, 2, &feature);
        }
        if let Some(record) = &mut self.record {
            record.push(Feature { kind, tags: self.tags.clone(), commands: commands.to_vec() });
        }
        self.tags.clear();
    }

    /// The bytes of a tile with this layer; empty where the layer has no feature.
    pub fn into_tile(self) -> Vec<u8> {
        if self.features.is_empty() {
            return Vec::new();
        }
        let mut layer = Vec::with_capacity(self.bytes() + 16);
        put_varint(&mut layer, 15 << 3);
        put_varint(&mut layer, 2);
        put_bytes(&mut layer, 1, self.name.as_bytes());
        layer.extend_from_slice(&self.features);
        layer.extend_from_slice(&self.key_bytes);
        layer.extend_from_slice(&self.value_bytes);
        put_varint(&mut layer, 5 << 3);
        put_varint(&mut layer, u64::from(EXTENT));
        let mut tile = Vec::with_capacity(layer.len() + 8);
        put_bytes(&mut tile, 3, &layer);
        tile
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A length-delimited field.
fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_packed(out: &mut Vec<u8>, field: u64, values: &[u32]) {
    if values.is_empty() {
        return;
    }
    let mut packed = Vec::with_capacity(values.len() * 2);
    values.iter().for_each(|&v| put_varint(&mut packed, u64::from(v)));
    put_bytes(out, field, &packed);
}

fn put_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Text(text) => put_bytes(out, 1, text.as_bytes()),
        Value::Float(x) => {
            put_varint(out, 3 << 3 | 1);
            out.extend_from_slice(&x.to_le_bytes());
        }
        Value::Int(n) if n >= 0 => {
            put_varint(out, 5 << 3);
            put_varint(out, n as u64);
        }
        Value::Int(n) => {
            put_varint(out, 6 << 3);
            put_varint(out, (n << 1 ^ n >> 63) as u64);
        }
        Value::Bool(b) => {
            put_varint(out, 7 << 3);
            put_varint(out, u64::from(b));
        }
    }
}

fn command(id: u32, count: usize) -> u32 {
    id | (count as u32) << 3
}

fn zigzag(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

/// Appends the steps between vertices, from `at` on.
fn steps(out: &mut Vec<u32>, at: &mut (i32, i32), vertices: &[(i32, i32)]) {
    for &(x, y) in vertices {
        out.push(zigzag(x - at.0));
        out.push(zigzag(y - at.1));
        *at = (x, y);
    }
}

fn point_commands(points: &[(i32, i32)]) -> Vec<u32> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut out = vec![command(1, points.len())];
    steps(&mut out, &mut (0, 0), points);
    out
}

fn path_commands(paths: &[Vec<(i32, i32)>], length_min: usize, closed: bool) -> Vec<u32> {
    let mut out = Vec::new();
    // The cursor is carried over from path to path (section 4.3): each path starts relative to the end of the one
    // before.
    let mut at = (0, 0);
    // The specification forbids lines of one point and rings of fewer than three, and a renderer may reject the
    // whole tile for one.
    for path in paths.iter().filter(|p| p.len() >= length_min) {
        out.push(command(1, 1));
        steps(&mut out, &mut at, &path[..1]);
        out.push(command(2, path.len() - 1));
        steps(&mut out, &mut at, &path[1..]);
        if closed {
            out.push(command(7, 1));
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A decoded feature: properties in order, geometry type and commands resolved to paths.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Decoded {
        pub properties: Vec<(String, OwnedValue)>,
        pub kind: u64,
        pub paths: Vec<Vec<(i32, i32)>>,
    }

    #[derive(Debug, Clone, PartialEq)]
    pub(crate) enum OwnedValue {
        Text(String),
        Float(f64),
        Int(i64),
        Bool(bool),
    }

    impl Decoded {
        pub(crate) fn get(&self, key: &str) -> Option<&OwnedValue> {
            self.properties.iter().find(|(k, _)| k == key).map(|(_, v)| v)
        }
    }

    /// A field of a message: number, and its number or bytes.
    enum Raw<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn fields(mut bytes: &[u8]) -> Vec<(u64, Raw<'_>)> {
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let raw = match tag & 7 {
                0 => Raw::Number(varint(&mut bytes)),
                1 => {
                    let (head, tail) = bytes.split_at(8);
                    bytes = tail;
                    Raw::Bytes(head)
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (head, tail) = bytes.split_at(length);
                    bytes = tail;
                    Raw::Bytes(head)
                }
                other => panic!("wire type {other}"),
            };
            out.push((tag >> 3, raw));
        }
        out
    }

    fn numbers(bytes: &[u8]) -> Vec<u32> {
        let mut bytes = bytes;
        let mut out = Vec::new();
        while !bytes.is_empty() {
            out.push(varint(&mut bytes) as u32);
        }
        out
    }

    fn unzigzag(value: u32) -> i32 {
        (value >> 1) as i32 ^ -((value & 1) as i32)
    }

    fn paths(commands: &[u32], kind: u64) -> Vec<Vec<(i32, i32)>> {
        let mut out: Vec<Vec<(i32, i32)>> = Vec::new();
        let (mut x, mut y, mut i) = (0, 0, 0);
        while i < commands.len() {
            let (id, count) = (commands[i] & 7, commands[i] >> 3);
            i += 1;
            if id == 7 {
                assert_eq!((kind, count), (3, 1));
                continue;
            }
            for _ in 0..count {
                x += unzigzag(commands[i]);
                y += unzigzag(commands[i + 1]);
                i += 2;
                if id == 1 {
                    out.push(Vec::new());
                }
                out.last_mut().unwrap().push((x, y));
            }
        }
        out
    }

    /// Reads a tile of one layer by the letter of the specification: its name, extent and features.
    pub(crate) fn decode(tile: &[u8]) -> (String, u64, Vec<Decoded>) {
        let layers = fields(tile);
        assert_eq!(layers.len(), 1);
        let Raw::Bytes(layer) = layers[0].1 else { panic!("a layer is a message") };
        assert_eq!(layers[0].0, 3);
        let (mut name, mut extent, mut version) = (String::new(), 0, 0);
        let (mut keys, mut values, mut features) = (Vec::new(), Vec::new(), Vec::new());
        for (field, raw) in fields(layer) {
            match (field, raw) {
                (1, Raw::Bytes(b)) => name = String::from_utf8(b.to_vec()).unwrap(),
                (2, Raw::Bytes(b)) => features.push(b),
                (3, Raw::Bytes(b)) => keys.push(String::from_utf8(b.to_vec()).unwrap()),
                (4, Raw::Bytes(b)) => values.push(match fields(b).remove(0) {
                    (1, Raw::Bytes(b)) => OwnedValue::Text(String::from_utf8(b.to_vec()).unwrap()),
                    (3, Raw::Bytes(b)) => OwnedValue::Float(f64::from_le_bytes(b.try_into().unwrap())),
                    (5, Raw::Number(n)) => OwnedValue::Int(n as i64),
                    (6, Raw::Number(n)) => OwnedValue::Int((n >> 1) as i64 ^ -((n & 1) as i64)),
                    (7, Raw::Number(n)) => OwnedValue::Bool(n == 1),
                    (other, _) => panic!("value field {other}"),
                }),
                (5, Raw::Number(n)) => extent = n,
                (15, Raw::Number(n)) => version = n,
                (other, _) => panic!("layer field {other}"),
            }
        }
        assert_eq!(version, 2);
        let features = features
            .into_iter()
            .map(|feature| {
                let (mut tags, mut kind, mut commands) = (Vec::new(), 0, Vec::new());
                for (field, raw) in fields(feature) {
                    match (field, raw) {
                        (2, Raw::Bytes(b)) => tags = numbers(b),
                        (3, Raw::Number(n)) => kind = n,
                        (4, Raw::Bytes(b)) => commands = numbers(b),
                        (other, _) => panic!("feature field {other}"),
                    }
                }
                let properties =
                    tags.chunks(2).map(|t| (keys[t[0] as usize].clone(), values[t[1] as usize].clone())).collect();
                Decoded { properties, kind, paths: paths(&commands, kind) }
            })
            .collect();
        (name, extent, features)
    }

    #[test]
    fn the_specifications_own_examples() {
        // Section 4.3.5 of the specification.
        assert_eq!(point_commands(&[(25, 17)]), [9, 50, 34]);
        assert_eq!(point_commands(&[(5, 7), (3, 2)]), [17, 10, 14, 3, 9]);
        assert_eq!(path_commands(&[vec![(2, 2), (2, 10), (10, 10)]], 2, false), [9, 4, 4, 18, 0, 16, 16, 0]);
        assert_eq!(
            path_commands(&[vec![(2, 2), (2, 10), (10, 10)], vec![(1, 1), (3, 5)]], 2, false),
            [9, 4, 4, 18, 0, 16, 16, 0, 9, 17, 17, 10, 4, 8]
        );
        assert_eq!(path_commands(&[vec![(3, 6), (8, 12), (20, 34)]], 3, true), [9, 6, 12, 18, 10, 12, 24, 44, 15]);
    }

    #[test]
    fn a_layer_comes_back_as_written() {
        let mut layer = Layer::new("quakes");
        let all = [
            ("place", Value::Text("Île")),
            ("depth", Value::Float(-1.5)),
            ("n", Value::Int(-3)),
            ("m", Value::Int(i64::MAX)),
            ("min", Value::Int(i64::MIN)),
            ("felt", Value::Bool(true)),
        ];
        all.iter().for_each(|(k, v)| layer.property(k, *v));
        layer.feature(&Shape::Points(vec![(-5, 4097)]));
        layer.property("place", Value::Text("Île"));
        layer.feature(&Shape::Polygons(vec![vec![(0, 0), (10, 0), (10, 10), (0, 10)]]));
        layer.property("lost", Value::Bool(false));
        layer.feature(&Shape::Lines(vec![]));
        let (name, extent, features) = decode(&layer.into_tile());
        assert_eq!((name.as_str(), extent, features.len()), ("quakes", 4096, 2));
        assert_eq!(features[0].get("m"), Some(&OwnedValue::Int(i64::MAX)));
        assert_eq!(features[0].get("min"), Some(&OwnedValue::Int(i64::MIN)));
        assert_eq!(features[0].get("depth"), Some(&OwnedValue::Float(-1.5)));
        assert_eq!(features[0].paths, [[(-5, 4097)]]);
        assert_eq!(features[1].properties, [("place".to_owned(), OwnedValue::Text("Île".to_owned()))]);
        assert_eq!(features[1].paths, [[(0, 0), (10, 0), (10, 10), (0, 10)]]);
        assert!(Layer::new("empty").into_tile().is_empty());
    }
}
