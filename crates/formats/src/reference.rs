//! Reference systems named by files, and the commands that convert files.

use meridian_model::error::shorten;
use meridian_model::{Crs, Invalid};

/// Placeholder in messages for the name of the input, which this crate does not know. A path after it, with a slash,
/// names a file in the input, which is an archive.
pub const INPUT: &str = "INPUT";

/// The extension of a file of one layer.
pub(crate) const ONE_LAYER: &str = if cfg!(feature = "flatgeobuf") { "fgb" } else { "geojsonl" };
/// The extension of a file of several layers, of which the load asks for one.
pub(crate) const LAYERS: &str = if cfg!(feature = "geopackage") { "gpkg" } else { "geojsonl" };

/// Returns the line of ogr2ogr that makes a file with this extension of the input.
pub(crate) fn ogr2ogr(options: &str, ending: &str) -> String {
    let program = ["ogr2ogr", options].join(" ");
    format!("{} converted.{ending} {INPUT}", program.trim_end())
}

/// Returns the command that converts a file into a readable one, in longitude and latitude.
pub(crate) fn convert() -> String {
    convert_to(ONE_LAYER)
}

/// Returns the same command, for a file with this extension.
pub(crate) fn convert_to(ending: &str) -> String {
    format!("convert it: {}", ogr2ogr("-t_srs EPSG:4326", ending))
}

/// Returns the refusal of a type of geometry, with the line that makes straight lines or polygons of it.
pub(crate) fn not_stored(kind: &str) -> String {
    let line = match kind {
        // Into one layer of polygons ogr2ogr converts these only without heights, which it would drop in silence.
        "PolyhedralSurface" | "TIN" => ogr2ogr("-nlt MULTIPOLYGON", LAYERS),
        _ => ogr2ogr("-nlt CONVERT_TO_LINEAR", ONE_LAYER),
    };
    format!("a geometry {kind} is not supported: {line}")
}

/// Returns the refusal of a reference system.
pub(crate) fn refused(name: &str) -> Invalid {
    let parts: Vec<&str> = name.split([':', '/']).collect();
    let name = match parts[..] {
        // A URN or a URI.
        [.., "crs", authority, _, code] => shorten(&format!("{authority}:{code}")),
        _ => shorten(name),
    };
    Invalid::new(format!("the reference system {name} is not longitude and latitude (EPSG:4326): {}", convert()))
}

/// Codes of longitude and latitude on WGS 84, without and with heights.
pub(crate) const WGS_84: [i64; 2] = [4326, 4979];

/// Refuses a code of a reference system other than longitude and latitude on WGS 84; 0 and less mean that none is
/// given.
#[cfg(any(test, feature = "flatgeobuf", feature = "geopackage"))]
pub(crate) fn check_code(organization: &str, code: i64) -> Result<(), Invalid> {
    let known = code <= 0
        || organization.eq_ignore_ascii_case("EPSG") && WGS_84.contains(&code)
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

/// Returns whether a name is that of longitude and latitude on WGS 84, with heights or without.
pub(crate) fn is_name_of_lon_lat(name: &str) -> bool {
    let with_heights = [("4979", "4326"), ("CRS84h", "CRS84")];
    let flat = with_heights.iter().find_map(|(own, flat)| Some(format!("{}{flat}", name.strip_suffix(own)?)));
    matches!(Crs::from_name(flat.as_deref().unwrap_or(name)), Some(Crs::Crs84 | Crs::Epsg4326))
}

/// Returns whether a name or a well-known text is that of longitude and latitude on WGS 84.
pub(crate) fn is_lon_lat(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let by_code = |code: i64| [format!("ID[\"EPSG\",{code}]]"), format!("AUTHORITY[\"EPSG\",\"{code}\"]]")];
    let ends_with_code = WGS_84.into_iter().flat_map(by_code).any(|end| bare.ends_with(&end));
    if is_name_of_lon_lat(text) || ends_with_code || bare.ends_with("ID[\"OGC\",\"CRS84\"]]") {
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
        let ensemble =
            r#"GEOGCRS["WGS 84",ENSEMBLE["World Geodetic System 1984 ensemble"],CS[ellipsoidal,3],ID["EPSG",4979]]"#;
        let named = ["EPSG:4326", "OGC:CRS84", "EPSG:4979", "urn:ogc:def:crs:EPSG::4979", "OGC:CRS84h"];
        for good in ["", " ", esri, ogc, ensemble].into_iter().chain(named) {
            assert_eq!(check_wkt(good), Ok(()), "{good}");
        }
        let paris = esri.replace("Greenwich\",0.0", "Paris\",2.337229166667");
        let grads = esri.replace("Degree", "Grad");
        let nad = esri.replace("D_WGS_1984", "D_North_American_1983").replace("GCS_WGS_1984", "GCS_NAD83");
        let utm = format!("PROJCS[\"WGS_1984_UTM_Zone_32N\",{esri},PROJECTION[\"Transverse_Mercator\"]]");
        for bad in [paris.as_str(), grads.as_str(), nad.as_str(), utm.as_str(), "EPSG:3857", "EPSG:14979", "nonsense"] {
            let refusal = check_wkt(bad).unwrap_err().to_string();
            assert!(refusal.contains("ogr2ogr -t_srs EPSG:4326"), "{refusal}");
        }
        assert!(check_wkt(&utm).unwrap_err().to_string().contains("WGS_1984_UTM_Zone_32N"));
        assert!(check_code("EPSG", 3857).is_err() && check_code("NONE", 4979).is_err());
        assert!([("EPSG", 4326), ("EPSG", 4979), ("epsg", 0)].iter().all(|(of, code)| check_code(of, *code).is_ok()));
        for name in ["urn:ogc:def:crs:EPSG::25832", "http://www.opengis.net/def/crs/EPSG/0/25832", "EPSG:25832"] {
            assert!(refused(name).detail.starts_with("the reference system EPSG:25832 is not"), "{name}");
        }
    }
}
