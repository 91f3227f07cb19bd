//! Hilbert curves in two and three dimensions, by lookup tables.
//!
//! The curve is that of Hamilton and Rau-Chaplin ("Compact Hilbert indices", 2008). The state is an entry corner `e`
//! and a direction `d`. One level of the curve turns the bits of the coordinates at that level into one digit of the
//! index and the next state. The tables, made at compile time, take four levels at once in two dimensions and two
//! levels at once in three.
//!
//! In every curve here the cells below `2^k` in all coordinates are the first cells of the curve. So a small corner
//! of the big grid is itself a complete Hilbert curve, which the tests rely on.

/// Bits of each coordinate of [`hilbert_2d`].
pub const BITS_2D: u32 = 31;
/// Bits of each coordinate of [`hilbert_3d`].
pub const BITS_3D: u32 = 21;

/// Levels per lookup, and lookups needed for all bits (leading zero levels fill up the last one).
const STEP_2D: u32 = 4;
const STEPS_2D: u32 = BITS_2D.div_ceil(STEP_2D);
const STEP_3D: u32 = 2;
const STEPS_3D: u32 = BITS_3D.div_ceil(STEP_3D);

/// By state and coordinate bits: digits of the index in the low byte, next state above it.
static TABLE_2D: [[u16; 256]; 8] = table(2, STEP_2D);
static TABLE_3D: [[u16; 64]; 24] = table(3, STEP_3D);

const fn rotate_left(bits: u32, by: u32, n: u32) -> u32 {
    let by = by % n;
    (bits << by | bits >> (n - by)) & ((1 << n) - 1)
}

const fn rotate_right(bits: u32, by: u32, n: u32) -> u32 {
    rotate_left(bits, n - by % n, n)
}

/// One level in `n` dimensions: from the state `e * n + d` and one bit of each coordinate to a digit and the next
/// state.
const fn level(n: u32, state: u32, bits: u32) -> (u32, u32) {
    let (e, d) = (state / n, state % n);
    let turned = rotate_right(bits ^ e, d + 1, n);
    // The rank of `turned` in the Gray code; four bits are enough for two and three dimensions.
    let mut rank = turned;
    rank ^= rank >> 1;
    rank ^= rank >> 2;
    let entry = if rank == 0 {
        0
    } else {
        let even = (rank - 1) & !1;
        even ^ even >> 1
    };
    let direction = if rank == 0 {
        0
    } else if rank.is_multiple_of(2) {
        (rank - 1).trailing_ones() % n
    } else {
        rank.trailing_ones() % n
    };
    (rank, (e ^ rotate_left(entry, d + 1, n)) * n + (d + direction + 1) % n)
}

/// The table for `n` dimensions and `step` bits of each coordinate at a time; the first coordinate has the highest
/// bits.
const fn table<const BITS: usize, const STATES: usize>(n: u32, step: u32) -> [[u16; BITS]; STATES] {
    let mut table = [[0; BITS]; STATES];
    let mut first = 0;
    while first < STATES {
        let mut bits = 0;
        while bits < BITS {
            let (mut state, mut digits, mut shift) = (first as u32, 0, step);
            while shift > 0 {
                shift -= 1;
                let (mut corner, mut axis) = (0, 0);
                while axis < n {
                    corner |= (bits as u32 >> ((n - 1 - axis) * step + shift) & 1) << axis;
                    axis += 1;
                }
                let (digit, next) = level(n, state, corner);
                digits = digits << n | digit;
                state = next;
            }
            table[first][bits] = (state << 8 | digits) as u16;
            bits += 1;
        }
        first += 1;
    }
    table
}

/// Position of a cell on the two-dimensional curve; coordinates have [`BITS_2D`] bits, the result twice as many.
#[inline]
pub fn hilbert_2d(x: u32, y: u32) -> u64 {
    debug_assert!(x >> BITS_2D == 0 && y >> BITS_2D == 0);
    let (mut state, mut index) = (0usize, 0u64);
    for step in (0..STEPS_2D).rev() {
        let shift = step * STEP_2D;
        let entry = TABLE_2D[state & 7][((x >> shift & 15) << 4 | y >> shift & 15) as usize];
        // Four levels at a time: each lookup depends on the state of the previous one, so their number is the cost.
        index = index << 8 | u64::from(entry & 0xff);
        state = usize::from(entry >> 8);
    }
    index
}

/// Position of a cell on the three-dimensional curve; coordinates have [`BITS_3D`] bits, the result three times as
/// many.
#[inline]
pub fn hilbert_3d(x: u32, y: u32, z: u32) -> u64 {
    debug_assert!(x >> BITS_3D == 0 && y >> BITS_3D == 0 && z >> BITS_3D == 0);
    let (mut state, mut index) = (0usize, 0u64);
    for step in (0..STEPS_3D).rev() {
        let shift = step * STEP_3D;
        let bits = (x >> shift & 3) << 4 | (y >> shift & 3) << 2 | z >> shift & 3;
        let entry = TABLE_3D[state][bits as usize];
        index = index << 6 | u64::from(entry & 0xff);
        state = usize::from(entry >> 8);
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that positions 0..count occur once each and that neighbours on the curve are neighbours in the grid.
    fn check_curve<const N: usize>(mut cells: Vec<(u64, [i64; N])>) {
        cells.sort_unstable();
        for (place, (index, _)) in cells.iter().enumerate() {
            assert_eq!(*index, place as u64);
        }
        for pair in cells.windows(2) {
            let steps: i64 = (0..N).map(|i| (pair[0].1[i] - pair[1].1[i]).abs()).sum();
            assert_eq!(steps, 1, "{pair:?}");
        }
    }

    #[test]
    fn small_corners_are_whole_curves_of_unit_steps() {
        for k in 0..8 {
            let side = 0..1u32 << k;
            let cells = side.clone().flat_map(|x| side.clone().map(move |y| (x, y)));
            check_curve(cells.map(|(x, y)| (hilbert_2d(x, y), [x.into(), y.into()])).collect());
        }
        for k in 0..6 {
            let side = 0..1u32 << k;
            let cells =
                side.clone().flat_map(|x| (0..1u32 << k).flat_map(move |y| (0..1u32 << k).map(move |z| (x, y, z))));
            check_curve(cells.map(|(x, y, z)| (hilbert_3d(x, y, z), [x.into(), y.into(), z.into()])).collect());
        }
    }

    #[test]
    fn the_far_corners_stay_in_range() {
        let (far2, far3) = ((1 << BITS_2D) - 1, (1 << BITS_3D) - 1);
        for bits in 0..8u32 {
            let pick = |i: u32, far: u32| if bits >> i & 1 == 1 { far } else { 0 };
            assert!(hilbert_2d(pick(0, far2), pick(1, far2)) >> (2 * BITS_2D) == 0);
            assert!(hilbert_3d(pick(0, far3), pick(1, far3), pick(2, far3)) >> (3 * BITS_3D) == 0);
        }
    }

    /// Walks the curve over aligned blocks anywhere in the grid: each is a run of unit steps.
    #[test]
    fn blocks_far_from_the_origin_are_runs_of_unit_steps() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..200 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = |shift: u32, bits: u32| ((seed >> shift) as u32) & ((1 << bits) - 1) & !7;
            let (x, y) = (at(1, BITS_2D), at(33, BITS_2D));
            let cells = (0..64u32).map(|i| (x + i % 8, y + i / 8));
            let mut runs: Vec<_> = cells.map(|(x, y)| (hilbert_2d(x, y), [x.into(), y.into()])).collect();
            let min = runs.iter().map(|r| r.0).min().unwrap();
            runs.iter_mut().for_each(|r| r.0 -= min);
            check_curve::<2>(runs);
            let (x, y, z) = (at(1, BITS_3D), at(22, BITS_3D), at(43, BITS_3D));
            let cells = (0..512u32).map(|i| (x + i % 8, y + i / 8 % 8, z + i / 64));
            let mut runs: Vec<_> =
                cells.map(|(x, y, z)| (hilbert_3d(x, y, z), [x.into(), y.into(), z.into()])).collect();
            let min = runs.iter().map(|r| r.0).min().unwrap();
            runs.iter_mut().for_each(|r| r.0 -= min);
            check_curve::<3>(runs);
        }
    }
}
