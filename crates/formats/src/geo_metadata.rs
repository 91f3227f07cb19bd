//! What GeoParquet and GeoArrow say about the geometry of a file.

use arrow_schema::{DataType, Schema as ArrowSchema};
use meridian_model::{Crs, Invalid};
use serde_json::Value;

/// The geometry column of a file and the columns that only repeat it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GeoColumns {
    /// The column of geometry, where the file names one.
    pub(crate) geometry: Option<String>,
    /// Columns of boxes around the geometry, which carry nothing of their own.
    pub(crate) covering: Vec<String>,
}

impl GeoColumns {
    /// Reads the `geo` metadata of GeoParquet, if there is any, and else the extension types of GeoArrow.
    pub(crate) fn of(schema: &ArrowSchema, geo: Option<&str>) -> Result<GeoColumns, Invalid> {
        let mut columns = GeoColumns::default();
        if let Some(text) = geo {
            columns.read_geo(text)?;
        }
        for field in schema.fields() {
            let extension = field.metadata().get("ARROW:extension:name").map(String::as_str);
            if columns.geometry.is_none() && extension.is_some_and(|n| n.starts_with("geoarrow.") || n == "ogc.wkb") {
                if let Some(text) = field.metadata().get("ARROW:extension:metadata")
                    && let Ok(metadata) = serde_json::from_str::<Value>(text)
                {
                    check_crs(&metadata["crs"], field.name())?;
                }
                columns.geometry = Some(field.name().clone());
            }
            if is_box(field.data_type()) && !columns.covering.contains(field.name()) {
                columns.covering.push(field.name().clone());
            }
        }
        Ok(columns)
    }

    fn read_geo(&mut self, text: &str) -> Result<(), Invalid> {
        let wrong = |what: &str| Invalid::field("geo", format!("the GeoParquet metadata {what}"));
        let geo: Value = serde_json::from_str(text).map_err(|_| wrong("is not JSON"))?;
        let primary = geo["primary_column"].as_str().ok_or_else(|| wrong("names no primary_column"))?;
        let column = &geo["columns"][primary];
        let encoding = column["encoding"].as_str().ok_or_else(|| wrong("does not say how the geometry is encoded"))?;
        if !matches!(encoding, "WKB" | "point") {
            return Err(Invalid::field(primary, format!("geometry encoded as {encoding}: expected WKB or point")));
        }
        if column["edges"].as_str() == Some("spherical") {
            return Err(Invalid::field(primary, "edges on the sphere are not supported: expected planar edges"));
        }
        check_crs(&column["crs"], primary)?;
        self.geometry = Some(primary.to_owned());
        if let Some(covering) = column["covering"]["bbox"]["xmin"][0].as_str() {
            self.covering.push(covering.to_owned());
        }
        Ok(())
    }
}

/// Refuses a reference system other than longitude and latitude; none means that in both standards. In both, the
/// longitude comes first whatever the order of the system's axes.
fn check_crs(crs: &Value, column: &str) -> Result<(), Invalid> {
    let known = match crs {
        Value::Null => true,
        Value::String(name) => name.is_empty() || names_lon_lat(name),
        projjson => {
            let id = &projjson["id"];
            let code = id["code"].as_str().map_or_else(|| id["code"].to_string(), str::to_owned);
            match id["authority"].as_str() {
                Some(authority) => names_lon_lat(&format!("{authority}:{code}")),
                // A system without an id is known by its name alone.
                None => matches!(projjson["name"].as_str(), Some("WGS 84" | "WGS84" | "WGS 84 (CRS84)")),
            }
        }
    };
    if known {
        return Ok(());
    }
    let name = crs["name"].as_str().or(crs.as_str()).unwrap_or("of another name");
    let name = crate::values::shorten(name);
    Err(Invalid::field(column, format!("the reference system {name} is not supported: expected CRS84 or EPSG:4326")))
}

/// Whether a name or a WKT text is that of CRS84 or EPSG:4326.
fn names_lon_lat(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let ends = ["ID[\"EPSG\",4326]]", "AUTHORITY[\"EPSG\",\"4326\"]]", "ID[\"OGC\",\"CRS84\"]]"];
    matches!(Crs::from_name(text), Some(Crs::Crs84 | Crs::Epsg4326)) || ends.iter().any(|end| bare.ends_with(end))
}

fn is_box(kind: &DataType) -> bool {
    let DataType::Struct(parts) = kind else { return false };
    ["xmin", "ymin", "xmax", "ymax"].iter().all(|side| parts.iter().any(|p| p.name() == side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            // A system of another datum lies up to some hundred metres off.
            json!({"type": "GeographicCRS", "name": "NAD27"}),
        ] {
            assert!(check_crs(&bad, "geometry").is_err(), "{bad}");
        }
    }
}
