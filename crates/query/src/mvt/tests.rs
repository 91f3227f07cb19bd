//! Tiles read back by an independent decoder.

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

/// Decodes a tile of one layer strictly by the specification: its name, extent and features.
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
