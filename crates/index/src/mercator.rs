//! Cells of the Web-Mercator square (EPSG:3857), which map tiles subdivide.

use std::f64::consts::PI;

/// Latitude of the square's upper edge in degrees: atan(sinh π). No tile reaches beyond it.
pub const MERCATOR_LAT_MAX: f64 = 85.051_128_779_806_6;

/// Max levels that [`mercator_cell`] distinguishes.
const LEVEL_MAX: u32 = 31;

/// Column (from west) and row (from north) of the cell that contains a position, with `2^level` cells a side.
///
/// `None` beyond [`MERCATOR_LAT_MAX`]. The square's east and south edges belong to its last cells. Levels above 31
/// count as 31. Code that counts positions beside a [`crate::CountPyramid`] must use this function, so that positions
/// at an edge fall into the same cell.
pub fn mercator_cell(lon: f64, lat: f64, level: u32) -> Option<(u32, u32)> {
    if !(-MERCATOR_LAT_MAX..=MERCATOR_LAT_MAX).contains(&lat) {
        return None;
    }
    // At level 32 cell numbers would not fit in 32 bits.
    let side = 1u32 << level.min(LEVEL_MAX);
    let sin = lat.to_radians().sin();
    let x = lon / 360.0 + 0.5;
    let y = 0.5 - ((1.0 + sin) / (1.0 - sin)).ln() / (4.0 * PI);
    let cell = |part: f64| ((part * f64::from(side)) as u32).min(side - 1);
    Some((cell(x), cell(y)))
}

/// Interleaves the low 16 bits of column and row: cells of one coarser cell are consecutive.
pub(crate) fn interleave(x: u32, y: u32) -> u32 {
    spread(x) | spread(y) << 1
}

/// Column and row of an interleaved cell.
pub(crate) fn split(cell: u32) -> (u32, u32) {
    (gather(cell), gather(cell >> 1))
}

/// Spreads bit `i` to bit `2 i`, for the low 16 bits.
fn spread(bits: u32) -> u32 {
    let bits = bits & 0xffff;
    let bits = (bits | bits << 8) & 0x00ff_00ff;
    let bits = (bits | bits << 4) & 0x0f0f_0f0f;
    let bits = (bits | bits << 2) & 0x3333_3333;
    (bits | bits << 1) & 0x5555_5555
}

/// Compacts bit `2 i` to bit `i`.
fn gather(bits: u32) -> u32 {
    let bits = bits & 0x5555_5555;
    let bits = (bits | bits >> 1) & 0x3333_3333;
    let bits = (bits | bits >> 2) & 0x0f0f_0f0f;
    let bits = (bits | bits >> 4) & 0x00ff_00ff;
    (bits | bits >> 8) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_cells() {
        // From OpenStreetMap's slippy map tables: Berlin at zoom 10, and the corners of the square.
        assert_eq!(mercator_cell(13.3777, 52.5163, 10), Some((550, 335)));
        assert_eq!(mercator_cell(-180.0, MERCATOR_LAT_MAX, 5), Some((0, 0)));
        assert_eq!(mercator_cell(180.0, -MERCATOR_LAT_MAX, 5), Some((31, 31)));
        assert_eq!(mercator_cell(0.0, 0.0, 1), Some((1, 1)));
        assert_eq!(mercator_cell(0.0, 0.0, 0), Some((0, 0)));
        assert_eq!(mercator_cell(0.0, 90.0, 3), None);
        assert_eq!(mercator_cell(0.0, f64::NAN, 3), None);
    }

    #[test]
    fn a_coarser_cell_is_the_finer_cell_shortened() {
        for i in 0..2000 {
            let (lon, lat) = (f64::from(i) * 0.1799 - 180.0, f64::from(i) * 0.085 - 85.0);
            let (x, y) = mercator_cell(lon, lat, 12).unwrap();
            for level in 0..12 {
                assert_eq!(mercator_cell(lon, lat, level), Some((x >> (12 - level), y >> (12 - level))));
            }
        }
    }

    #[test]
    fn interleaving_is_undone() {
        for x in (0..65536).step_by(251) {
            for y in (0..65536).step_by(257) {
                assert_eq!(split(interleave(x, y)), (x, y));
            }
        }
    }
}
