//! Reference systems named by files, and the command that converts a file of another one.

use meridian_model::error::shorten;
use meridian_model::{Crs, Invalid};

/// Placeholder in messages for the name of the input, which this crate does not know.
pub const INPUT: &str = "INPUT";

/// Returns the command that converts a file into a readable one, in longitude and latitude.
pub(crate) fn convert() -> String {
    convert_to(if cfg!(feature = "flatgeobuf") { "fgb" } else { "geojsonl" })
}

/// Returns the same command, for a file with this extension.
pub(crate) fn convert_to(ending: &str) -> String {
    format!("convert it: ogr2ogr -t_srs EPSG:4326 converted.{ending} {INPUT}")
}

/// Returns the refusal of a reference system.
pub(crate) fn refused(name: &str) -> Invalid {
    let name = shorten(name);
    Invalid::new(format!("the reference system {name} is not longitude and latitude (EPSG:4326): {}", convert()))
}

/// Refuses a code of a reference system other than longitude and latitude on WGS 84; 0 and less mean that none is
/// given.
#[cfg(any(test, feature = "flatgeobuf", feature = "geopackage"))]
pub(crate) fn check_code(organization: &str, code: i64) -> Result<(), Invalid> {
    let known = code <= 0
        || organization.eq_ignore_ascii_case("EPSG") && code == 4326
        || organization.eq_ignore_ascii_case("OGC") && code == 84;
    if known { Ok(()) } else { Err(refused(&format!("{organization}:{code}"))) }
}

/// Refuses a reference system in well-known text other than longitude and latitude on WGS 84.
pub(crate) fn check_wkt(text: &str) -> Result<(), Invalid> {
    let text = text.trim().trim_start_matches('\u{feff}');
    if text.is_empty() || is_lon_lat(text) {
        return Ok(());
    }
    // Its name is the first text in quotes.
    Err(refused(text.split('"').nth(1).filter(|name| !name.is_empty()).unwrap_or(text)))
}

/// Returns whether a name or a well-known text is that of longitude and latitude on WGS 84.
pub(crate) fn is_lon_lat(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let ends = ["ID[\"EPSG\",4326]]", "AUTHORITY[\"EPSG\",\"4326\"]]", "ID[\"OGC\",\"CRS84\"]]"];
    if matches!(Crs::from_name(text), Some(Crs::Crs84 | Crs::Epsg4326)) || ends.iter().any(|end| bare.ends_with(end)) {
        return true;
    }
    // A .prj file names no code. The datum decides, not the name, which writers spell in several ways.
    let upper = bare.to_ascii_uppercase();
    let geographic = ["GEOGCS[", "GEOGCRS[", "GEODCRS["].iter().any(|head| upper.starts_with(head));
    let datum = ["DATUM[\"D_WGS_1984\"", "DATUM[\"WGS_1984\"", "DATUM[\"WORLDGEODETICSYSTEM1984\""];
    geographic
        && datum.iter().any(|datum| upper.contains(datum))
        && upper.contains("\"DEGREE\"")
        && upper.contains("PRIMEM[\"GREENWICH\",0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wgs_84_is_known_in_every_spelling_and_nothing_else_is() {
        let esri = r#"GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]"#;
        let ogc = r#"GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]"#;
        for good in ["", " ", esri, ogc, "EPSG:4326", "OGC:CRS84"] {
            assert_eq!(check_wkt(good), Ok(()), "{good}");
        }
        let paris = esri.replace("Greenwich\",0.0", "Paris\",2.337229166667");
        let grads = esri.replace("Degree", "Grad");
        let nad = esri.replace("D_WGS_1984", "D_North_American_1983").replace("GCS_WGS_1984", "GCS_NAD83");
        let utm = format!("PROJCS[\"WGS_1984_UTM_Zone_32N\",{esri},PROJECTION[\"Transverse_Mercator\"]]");
        for bad in [paris.as_str(), grads.as_str(), nad.as_str(), utm.as_str(), "EPSG:3857", "nonsense"] {
            let refusal = check_wkt(bad).unwrap_err().to_string();
            assert!(refusal.contains("ogr2ogr -t_srs EPSG:4326"), "{refusal}");
        }
        assert!(check_wkt(&utm).unwrap_err().to_string().contains("WGS_1984_UTM_Zone_32N"));
        assert!(check_code("EPSG", 4326).is_ok() && check_code("epsg", 0).is_ok() && check_code("EPSG", 3857).is_err());
    }
}
