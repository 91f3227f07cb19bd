//! Notes on columns that look like the place of the events and were not used as one.

use super::column::Column;
use super::kinds;
use super::wording::{misfits, shell};
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
fn words(name: &str) -> Vec<String> {
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
        let line = format!("-oo X_POSSIBLE_NAMES={x_option} -oo Y_POSSIBLE_NAMES={y_option} -s_srs EPSG:CODE");
        let note = format!(
            "columns {x} and {y}: positions of a projected system, not taken: ogr2ogr {line} -t_srs EPSG:4326 converted.fgb {}",
            crate::reference::INPUT
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the note on two columns with these names and numbers.
    fn note(names: [&str; 2], numbers: [f64; 2]) -> Option<String> {
        let columns = [0, 1].map(|i| {
            let mut column = Column::new(names[i], false);
            (column.kinds, column.values) = (kinds::FLOAT, 1);
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
}
