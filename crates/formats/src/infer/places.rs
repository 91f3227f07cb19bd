//! Notes on columns that look like the place of the events and were not used as one.

use super::column::Column;
use super::kinds;
use super::wording::{but, misfits, mostly, shell};
use crate::reference::{ONE_LAYER, ogr2ogr};
use crate::roles::{LAT, LON, rank};
use meridian_model::error::shorten;

/// The names of one coordinate in several languages, in lower case.
struct Coordinate {
    /// Names that are taken without asking.
    usual: &'static [&'static str],
    /// Words of a name, such as `start_lat`.
    words: &'static [&'static str],
    /// Parts of a word, such as `startlatitude`.
    parts: &'static [&'static str],
    /// Axes and directions: coordinates beside a word of [`POSITION`], such as `Pos E`.
    axes: &'static [&'static str],
    /// Words for a width or a length too: coordinates if the numbers are degrees.
    sizes: &'static [&'static str],
    /// Max degrees.
    edge: f64,
}

const LONGITUDE: Coordinate = Coordinate {
    usual: LON,
    words: &["lon", "lng", "long", "xcoord", "coordx", "xkoord", "rechtswert", "ostwert"],
    parts: &["longitud", "easting", "längengrad", "laengengrad", "lengtegraad", "lengdegrad"],
    axes: &["x", "e", "east", "ost", "est", "este"],
    sizes: &["länge", "laenge", "længde", "lengde", "długość", "dlugosc"],
    edge: 180.0,
};

const LATITUDE: Coordinate = Coordinate {
    usual: LAT,
    words: &["lat", "ycoord", "coordy", "ykoord", "hochwert", "nordwert"],
    parts: &["latitud", "northing", "breitengrad", "breedtegraad", "breddegrad"],
    axes: &["y", "n", "north", "nord", "norte"],
    sizes: &["breite", "bredde", "szerokość", "szerokosc"],
    edge: 90.0,
};

/// Words for a position, beside which an axis or a direction names a coordinate.
const POSITION: &[&str] = &[
    "pos",
    "position",
    "coord",
    "coords",
    "coordinate",
    "coordinates",
    "coordenada",
    "coordonnée",
    "koord",
    "koordinate",
    "gps",
    "geo",
    "loc",
    "location",
    "point",
    "wgs",
    "utm",
    "gk",
];

impl Coordinate {
    /// Returns whether the name of a column, and its numbers, are those of this coordinate.
    fn fits(&self, column: &Column) -> bool {
        let (name, words) = (column.name.to_lowercase(), words(&column.name));
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        // A direction alone, such as `north`; a letter alone may mean anything.
        let is_direction = words.len() == 1 && name.chars().count() > 1;
        rank(&column.name, self.usual).is_some()
            || has(self.words)
            || self.parts.iter().any(|part| name.contains(part))
            || has(self.axes) && (has(POSITION) || is_direction)
            || has(self.sizes) && column.trend.magnitude() <= self.edge
    }
}

/// Splits a name into words in lower case, at other characters than letters and digits and at capitals after small
/// letters. Digits at the end of a word are dropped.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (after_small && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    let bare = words.iter().map(|word| word.trim_end_matches(char::is_numeric).to_owned());
    bare.filter(|word| !word.is_empty()).collect()
}

/// Finds columns that look like a place and were not used as one, and the note on them.
pub(super) fn placed(columns: &[Column]) -> Option<(Vec<&str>, String)> {
    if let Some(shapes) = columns.iter().find(|c| c.plain > 0 && c.but_few_texts() == kinds::SHAPE) {
        let (what, name) = (misfits(shapes, "geometry", "geometries"), shorten(&shapes.name));
        let taken = format!("--geometry {} --invalid skip takes it and leaves these events out", shell(&shapes.name));
        return Some((vec![&shapes.name], format!("column {name}: {what}, kept as text: {taken}")));
    }
    let like = |coordinate: &Coordinate| {
        let numeric = |c: &&Column| c.values > 0 && c.but_few_texts() & !kinds::NUMBERS == 0;
        columns.iter().filter(numeric).find(|c| coordinate.fits(c))
    };
    let lat = like(&LATITUDE)?;
    let lon = like(&LONGITUDE).filter(|lon| lon.name != lat.name)?;
    let (x, y) = (shorten(&lon.name), shorten(&lat.name));
    let (x_option, y_option) = (shell(&lon.name), shell(&lat.name));
    let names = vec![lon.name.as_str(), lat.name.as_str()];
    if lon.trend.magnitude() > LONGITUDE.edge || lat.trend.magnitude() > LATITUDE.edge {
        let reads = if lon.cells {
            let columns = format!("-oo X_POSSIBLE_NAMES={x_option} -oo Y_POSSIBLE_NAMES={y_option}");
            ogr2ogr(&format!("{columns} -s_srs EPSG:CODE -t_srs EPSG:4326"), ONE_LAYER)
        } else {
            // GDAL makes places of two columns in text tables only.
            "longitude and latitude in degrees are read as places".to_owned()
        };
        let note = format!("columns {x} and {y}: positions of a projected system, not taken: {reads}");
        return Some((names, note));
    }
    let bad: Vec<String> = [lon, lat]
        .iter()
        .filter(|column| column.plain > 0)
        .map(|column| format!("{}: {}", shorten(&column.name), misfits(column, "number", "numbers")))
        .collect();
    let options = format!("--lon {x_option} --lat {y_option}");
    let note = match bad.is_empty() {
        true => format!("columns {x} and {y}: may be positions, not taken: {options} takes them"),
        false => format!(
            "columns {x} and {y}: may be positions, not taken ({}): {options} --invalid skip takes them and leaves these events \
             out",
            bad.join("; ")
        ),
    };
    Some((names, note))
}

/// Returns the note on a field of geometries, beside the geometry of the events.
pub(super) fn of_shapes(column: &Column) -> String {
    let skip = if column.plain > 0 { " --invalid skip" } else { "" };
    format!("looks like geometries, kept as text: --geometry {}{skip} takes them", shell(&column.name))
}

/// Returns the note on texts that look like places.
pub(super) fn of_texts(column: &Column, texts: &[&str]) -> Option<String> {
    if let Some(example) = example(texts, is_pair) {
        return Some(format!(
            "looks like positions such as {example}, kept as text: two columns of numbers, or WKT, are read as places"
        ));
    }
    let named = LONGITUDE.fits(column) || LATITUDE.fits(column);
    if let Some(example) = example(texts, |text| is_degrees(text, named)) {
        return Some(format!(
            "looks like coordinates in degrees such as {example}, kept as text: decimals such as -48.25 are read as places"
        ));
    }
    let wkb = example(texts, is_hex_wkb).map(|example| ("hexadecimal WKB", "-s_srs EPSG:CODE -t_srs", example));
    let (form, system, example) = wkb.or_else(|| Some(("GeoJSON", "-a_srs", example(texts, is_geojson)?)))?;
    let reads = if column.cells {
        let options = format!("-oo GEOM_POSSIBLE_NAMES={} -oo KEEP_GEOM_COLUMNS=NO", shell(&column.name));
        ogr2ogr(&format!("-oo AUTODETECT_TYPE=YES {options} {system} EPSG:4326"), ONE_LAYER)
    } else {
        "objects of GeoJSON in JSON, and WKB in Parquet and Arrow, are read as places".to_owned()
    };
    Some(format!("looks like geometries in {form} such as {example}, kept as text: {reads}"))
}

/// Shows the first text that passes, and one that does not, if all but a few pass.
fn example(texts: &[&str], passes: impl Fn(&str) -> bool) -> Option<String> {
    let first = shorten(mostly(texts, &passes)?);
    Some(format!("{first}{}", but(texts, passes)))
}

/// Returns whether a text is two coordinates, each with decimals or in degrees and minutes.
fn is_pair(text: &str) -> bool {
    let bare = text.trim_matches(['(', ')', '[', ']']);
    let Some((one, other)) = bare.split_once([',', ';']).or_else(|| bare.split_once(' ')) else { return false };
    let decimal = |part: &str| part.contains('.') && part.trim().parse::<f64>().is_ok_and(|x| x.abs() <= 180.0);
    let degrees = |part: &str| is_degrees(part.trim(), false);
    (decimal(one) && decimal(other)) || (degrees(one) && degrees(other))
}

/// Returns whether a text is a coordinate such as 48°12'30"N. Without the sign of degrees, or without the letter, it is
/// one only in a column `named` as a coordinate: angles and codes look the same.
fn is_degrees(text: &str, named: bool) -> bool {
    let bare = text.trim_matches(['N', 'S', 'E', 'W', 'O']);
    let (has_letter, has_sign) = (bare.len() < text.len(), bare.matches(['°', 'º']).count() == 1);
    let marks = ['°', 'º', '\'', '’', '′', '"', '”', '″', ':', ' '];
    let parts: Vec<&str> = bare.split(marks).filter(|part| !part.is_empty()).collect();
    let in_range = |(i, part): (usize, &&str)| {
        part.parse::<f64>().is_ok_and(|x| if i == 0 { x.abs() <= 180.0 } else { (0.0..=60.0).contains(&x) })
    };
    let marked = if named { has_letter || has_sign } else { has_letter && has_sign };
    marked && (1..=3).contains(&parts.len()) && parts.iter().enumerate().all(in_range)
}

/// Returns whether a text begins like WKB in hexadecimal digits, as PostGIS writes it.
fn is_hex_wkb(text: &str) -> bool {
    let hex = text.strip_prefix("\\x").unwrap_or(text);
    let (Some(order), Some(code)) = (hex.get(..2), hex.get(2..10)) else { return false };
    let Ok(code) = u32::from_str_radix(code, 16) else { return false };
    let code = if order == "01" { code.swap_bytes() } else { code };
    // The three high bits of PostGIS, or the thousands of ISO, stand for height, measure and system.
    let kind = code & 0x1fff_ffff;
    // A point has 21 bytes.
    let is_long = hex.len() >= 42 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    ["00", "01"].contains(&order) && kind < 4000 && (1..=7).contains(&(kind % 1000)) && is_long
}

/// Returns whether a text begins like a geometry in GeoJSON.
fn is_geojson(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let is_shape = |kind: &str| match kind.strip_prefix("Multi").unwrap_or(kind) {
        "Point" | "LineString" | "Polygon" => true,
        _ => kind == "GeometryCollection",
    };
    match bare.strip_prefix(r#"{"type":""#) {
        Some(rest) => rest.split_once('"').is_some_and(|(kind, _)| is_shape(kind)),
        None => bare.starts_with(r#"{"coordinates":["#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the note on two columns with these names and numbers.
    fn note(names: [&str; 2], numbers: [f64; 2]) -> Option<String> {
        let columns = [0, 1].map(|i| {
            let mut column = Column::new(names[i], false);
            (column.kinds, column.values, column.cells) = (kinds::FLOAT, 1, true);
            column.trend.note(numbers[i]);
            column
        });
        placed(&columns).map(|(_, note)| note)
    }

    #[test]
    fn names_of_positions_in_several_languages_are_known_in_either_order() {
        for [lon, lat] in [
            ["Pos E", "Pos N"],
            ["X_Coord", "Y_Coord"],
            ["xcoord", "ycoord"],
            ["XCoord1", "YCoord1"],
            ["laenge", "breite"],
            ["Länge", "Breite"],
            ["Längengrad", "Breitengrad"],
            ["longitud", "latitud"],
            ["gps.longitude", "gps.latitude"],
            ["easting", "northing"],
            ["east", "north"],
            ["startLng", "startLat"],
            ["pickup_lon", "pickup_lat"],
            ["lon2", "lat2"],
            ["x_wgs84", "y_wgs84"],
        ] {
            let options = format!("--lon {} --lat {} takes them", shell(lon), shell(lat));
            for (names, numbers) in [([lon, lat], [13.4, 52.5]), ([lat, lon], [52.5, 13.4])] {
                let note = note(names, numbers);
                assert!(note.as_ref().is_some_and(|note| note.ends_with(&options)), "{names:?}: {note:?}");
            }
        }
    }

    #[test]
    fn numbers_beyond_degrees_are_projected_positions_or_none() {
        for names in [["rechtswert", "hochwert"], ["Pos E", "Pos N"], ["x_utm", "y_utm"]] {
            let note = note(names, [392_000.5, 5_820_000.0]).unwrap();
            assert!(
                note.contains("projected") && note.contains(&format!("Y_POSSIBLE_NAMES={}", shell(names[1]))),
                "{note}"
            );
        }
        for names in
            [["laenge", "breite"], ["flon", "flat"], ["a_x", "a_y"], ["e", "n"], ["long", "wide"], ["lat", "lat"]]
        {
            assert_eq!(note(names, [1200.0, 800.0]), None, "{names:?}");
        }
        assert_eq!(note(["flat_rate", "talon"], [1.0, 2.0]), None);
        assert_eq!(note(["lat_ms", "throughput"], [1.0, 2.0]), None);
    }

    #[test]
    fn coordinates_in_degrees_have_a_sign_and_a_letter_or_a_name() {
        for text in ["48°12'30\"N", "48° 12' 30.5\" N", "48°12′30″S", "N48°12.5'", "48.2°N", "16°22'00''E", "3º41'O"]
        {
            assert!(is_degrees(text, false) && is_degrees(text, true), "{text}");
        }
        for text in ["48°12'30\"", "28.0N", "48 12 30 N", "-48°12'"] {
            assert!(!is_degrees(text, false) && is_degrees(text, true), "{text}");
        }
        for text in ["48°72'30\"N", "200°N", "12:30", "48", "20°C", "N", "", "NE"] {
            assert!(!is_degrees(text, false) && !is_degrees(text, true), "{text}");
        }
        assert!(!is_degrees("10° 20° N", false));
        assert!(is_pair("48°12'30\"N, 16°22'00\"E") && is_pair("(48.5 16.25)") && is_pair("48°12'N 16°22'E"));
        assert!(!is_pair("48° 12'N") && !is_pair("48°12' 30.5") && !is_pair("48°12'N, 16.5"));
    }

    #[test]
    fn geometries_in_texts_are_known_by_how_they_begin() {
        let position = "0".repeat(32);
        let extended = ["0101000020E6100000", "0020000003000010E6", "\\x0101000000"];
        for start in ["0101000000", "01E9030000", "0000000001"].iter().chain(&extended) {
            assert!(is_hex_wkb(&format!("{start}{position}")), "{start}");
        }
        for start in ["0100000000", "0108000000", "0201000000", "01010000zz", "da39a3ee5e"] {
            assert!(!is_hex_wkb(&format!("{start}{position}")), "{start}");
        }
        assert!(!is_hex_wkb("0101000000") && !is_hex_wkb("0101000000°"));
        for text in [
            r#"{"type":"Point","coordinates":[13,52]}"#,
            r#"{ "type": "MultiPolygon", "coordinates": [[[["#,
            r#"{"type":"GeometryCollection","geometries":["#,
            r#"{"coordinates":[13,52],"type":"Point"}"#,
        ] {
            assert!(is_geojson(text), "{text}");
        }
        for text in [r#"{"type":"Point of sale"}"#, r#"{"type":"Feature","geometry":null}"#, "{}", "Point"] {
            assert!(!is_geojson(text), "{text}");
        }
    }
}
