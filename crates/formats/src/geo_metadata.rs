//! Metadata of GeoParquet and GeoArrow about the geometry of a file.

use crate::options::ReadOptions;
use crate::reference::is_lon_lat;
use arrow_schema::{DataType, Schema as ArrowSchema};
use meridian_model::Invalid;
use serde_json::Value;

/// The geometry column of a file, and the columns that only repeat it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GeoColumns {
    /// The geometry column, if the file names one.
    pub(crate) geometry: Option<String>,
    /// Bounding-box columns, which add nothing.
    pub(crate) covering: Vec<String>,
}

impl GeoColumns {
    /// Reads the `geo` metadata of GeoParquet, if present, else the extension types of GeoArrow. Checks only the column
    /// that these options take.
    pub(crate) fn of(schema: &ArrowSchema, geo: Option<&str>, options: &ReadOptions) -> Result<GeoColumns, Invalid> {
        let mut columns = GeoColumns::default();
        if let Some(text) = geo {
            columns.read_geo(text, options)?;
        }
        for field in schema.fields() {
            let extension = field.metadata().get("ARROW:extension:name").map(String::as_str);
            if geo.is_none() && extension.is_some_and(|n| n.starts_with("geoarrow.") || n == "ogc.wkb") {
                let declared = columns.geometry.get_or_insert_with(|| field.name().clone());
                if options.geometry_of(declared) == Some(field.name().as_str())
                    && let Some(text) = field.metadata().get("ARROW:extension:metadata")
                    && let Ok(metadata) = serde_json::from_str::<Value>(text)
                {
                    check_crs(&metadata["crs"], field.name())?;
                }
            }
            if is_box(field.data_type()) && !columns.covering.contains(field.name()) {
                columns.covering.push(field.name().clone());
            }
        }
        Ok(columns)
    }

    fn read_geo(&mut self, text: &str, options: &ReadOptions) -> Result<(), Invalid> {
        let wrong = |what: &str| Invalid::field("geo", format!("the GeoParquet metadata {what}"));
        let geo: Value = serde_json::from_str(text).map_err(|_| wrong("is not JSON"))?;
        let primary = geo["primary_column"].as_str().ok_or_else(|| wrong("names no primary_column"))?;
        let columns = &geo["columns"];
        // A column that an option names need not be described: it may be text.
        let taken = options.geometry_of(primary).filter(|name| *name == primary || columns[*name].is_object());
        if let Some(name) = taken {
            let column = &columns[name];
            let encoding = column["encoding"].as_str();
            let encoding = encoding.ok_or_else(|| wrong("does not say how the geometry is encoded"))?;
            if !matches!(encoding, "WKB" | "point") {
                return Err(Invalid::field(name, format!("geometry encoded as {encoding}: expected WKB or point")));
            }
            if column["edges"].as_str() == Some("spherical") {
                return Err(Invalid::field(name, "edges on the sphere are not supported: expected planar edges"));
            }
            check_crs(&column["crs"], name)?;
        }
        self.geometry = Some(primary.to_owned());
        if let Some(covering) = columns[primary]["covering"]["bbox"]["xmin"][0].as_str() {
            self.covering.push(covering.to_owned());
        }
        Ok(())
    }
}

/// Refuses a reference system other than longitude and latitude, which is the default in both standards. In both, the
/// longitude comes first whatever the system's axis order.
fn check_crs(crs: &Value, column: &str) -> Result<(), Invalid> {
    let known = match crs {
        Value::Null => true,
        Value::String(name) => name.is_empty() || is_lon_lat(name),
        projjson => {
            let id = &projjson["id"];
            let code = id["code"].as_str().map_or_else(|| id["code"].to_string(), str::to_owned);
            match id["authority"].as_str() {
                Some(authority) => is_lon_lat(&format!("{authority}:{code}")),
                // A system without an id is identified only by its name.
                None => matches!(projjson["name"].as_str(), Some("WGS 84" | "WGS84" | "WGS 84 (CRS84)")),
            }
        }
    };
    if known {
        return Ok(());
    }
    let name = crs["name"].as_str().or(crs.as_str()).unwrap_or("of another name");
    let name = meridian_model::error::shorten(name);
    Err(Invalid::field(
        column,
        format!(
            "the reference system {name} is not supported: expected CRS84 or EPSG:4326; {}",
            crate::reference::convert()
        ),
    ))
}

fn is_box(kind: &DataType) -> bool {
    let DataType::Struct(parts) = kind else { return false };
    ["xmin", "ymin", "xmax", "ymax"].iter().all(|side| parts.iter().any(|p| p.name() == side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, Fields};
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;
    use std::collections::HashMap;

    fn of(schema: &ArrowSchema, geo: Option<&str>) -> Result<GeoColumns, Invalid> {
        GeoColumns::of(schema, geo, &ReadOptions::default())
    }

    /// A value of the metadata, and whether it is accepted.
    fn one_of(good: Vec<Value>, bad: Vec<Value>) -> impl Strategy<Value = (Value, bool)> {
        prop_oneof![3 => select(good).prop_map(|v| (v, true)), 1 => select(bad).prop_map(|v| (v, false))]
    }

    fn encodings() -> impl Strategy<Value = (Value, bool)> {
        one_of(vec![json!("WKB"), json!("point")], vec![json!("wkb"), json!("polygon"), json!(1), Value::Null])
    }

    fn edges() -> impl Strategy<Value = (Value, bool)> {
        one_of(vec![Value::Null, json!("planar")], vec![json!("spherical")])
    }

    fn systems() -> impl Strategy<Value = (Value, bool)> {
        let good = vec![Value::Null, json!("OGC:CRS84"), json!({"id": {"authority": "EPSG", "code": 4326}})];
        one_of(good, vec![json!("EPSG:3857"), json!({"id": {"authority": "EPSG", "code": 3857}}), json!(7), json!({})])
    }

    /// Any JSON, with the keys to which GeoParquet gives a meaning.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~]{0,8}".prop_map(Value::from),
            select(vec!["geometry", "WKB", "point", "OGC:CRS84", "planar"]).prop_map(Value::from),
        ];
        let name = select(vec![
            "primary_column",
            "columns",
            "geometry",
            "encoding",
            "edges",
            "crs",
            "id",
            "covering",
            "bbox",
            "xmin",
        ]);
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                3 => prop::collection::hash_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn metadata_are_taken_where_every_part_of_them_is(
            name in "[a-z ]{1,6}",
            (encoding, edges, crs) in (encodings(), edges(), systems()),
            covering in prop::option::of("[a-z]{1,4}"),
            is_there in prop::bool::weighted(0.9),
        ) {
            let mut column = json!({"encoding": encoding.0, "edges": edges.0, "crs": crs.0});
            if let Some(covering) = &covering {
                column["covering"] = json!({"bbox": {"xmin": [covering, "xmin"]}});
            }
            let described = if is_there { name.clone() } else { format!("{name}x") };
            let geo = json!({"version": "1.1.0", "primary_column": name, "columns": {described: column}});
            let read = of(&ArrowSchema::empty(), Some(&geo.to_string()));
            prop_assert_eq!(read.is_ok(), is_there && encoding.1 && edges.1 && crs.1, "{}", geo);
            if let Ok(read) = read {
                prop_assert_eq!(read, GeoColumns { geometry: Some(name), covering: covering.into_iter().collect() });
            }
        }

        #[test]
        fn no_metadata_make_it_panic(geo in any_json(), cut in any::<prop::sample::Index>()) {
            let text = geo.to_string();
            if let Ok(columns) = of(&ArrowSchema::empty(), Some(&text)) {
                prop_assert_eq!(columns.geometry.as_deref(), geo["primary_column"].as_str());
            }
            let cut = text.floor_char_boundary(cut.index(text.len()));
            let _ = of(&ArrowSchema::empty(), Some(&text[..cut]));
        }

        /// Finds the geometry by the extension types of GeoArrow, if the file's own metadata do not name it.
        #[test]
        fn geoarrow_tells_the_first_geometry_and_every_box(
            kinds in prop::collection::vec((select(vec!["geoarrow.wkb", "geoarrow.point", "ogc.wkb", "arrow.json", ""]), systems()), 0..5),
            boxes in prop::collection::vec(0usize..5, 0..4),
        ) {
            let box_of = |sides: usize| {
                let sides = ["xmin", "ymin", "xmax", "ymax"][..sides.min(4)].iter();
                DataType::Struct(sides.map(|side| Field::new(*side, DataType::Float64, true)).collect::<Fields>())
            };
            let geometry = kinds.iter().enumerate().map(|(i, (kind, (crs, _)))| {
                let metadata = [
                    ("ARROW:extension:name".to_owned(), (*kind).to_owned()),
                    ("ARROW:extension:metadata".to_owned(), json!({"crs": crs}).to_string()),
                ];
                Field::new(format!("g{i}"), DataType::Binary, true).with_metadata(HashMap::from(metadata))
            });
            let boxes_of = boxes.iter().enumerate().map(|(i, sides)| Field::new(format!("b{i}"), box_of(*sides), true));
            let schema = ArrowSchema::new(geometry.chain(boxes_of).collect::<Vec<_>>());
            let first = kinds.iter().position(|(kind, _)| kind.starts_with("geoarrow.") || *kind == "ogc.wkb");
            let read = of(&schema, None);
            prop_assert_eq!(read.is_ok(), first.is_none_or(|first| kinds[first].1.1));
            if let Ok(read) = read {
                prop_assert_eq!(read.geometry, first.map(|first| format!("g{first}")));
                let whole = boxes.iter().enumerate().filter(|(_, sides)| **sides == 4).map(|(i, _)| format!("b{i}"));
                prop_assert_eq!(read.covering, whole.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn systems_are_known_by_their_whole_names() {
        let id = |authority: &str, code: Value| json!({"type": "GeographicCRS", "name": "x", "id": {"authority": authority, "code": code}});
        for good in [
            Value::Null,
            json!("OGC:CRS84"),
            json!("EPSG:4326"),
            json!("GEOGCRS[\"WGS 84\", ID[\"EPSG\", 4326]]"),
            id("OGC", json!("CRS84")),
            id("EPSG", json!(4326)),
            json!({"type": "GeographicCRS", "name": "WGS 84"}),
        ] {
            assert!(check_crs(&good, "geometry").is_ok(), "{good}");
        }
        for bad in [
            json!("EPSG:43261"),
            json!("EPSG:3857"),
            json!("GEOGCRS[\"NAD27\", ID[\"EPSG\", 4267]]"),
            id("EPSG", json!(4267)),
            id("ESRI", json!(4326)),
            // A system of another datum may be off by some hundred metres.
            json!({"type": "GeographicCRS", "name": "NAD27"}),
        ] {
            assert!(check_crs(&bad, "geometry").is_err(), "{bad}");
        }
    }
}
