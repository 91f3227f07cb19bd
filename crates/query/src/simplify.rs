//! Line simplification: Douglas and Peucker, in the plane and on the globe.
//!
//! Douglas, Peucker: "Algorithms for the reduction of the number of points required to represent a digitized line or
//! its caricature" (1973). Every omitted vertex lies within the tolerance of the remaining line. Ends are always
//! kept.

use meridian_model::sphere::{EARTH_RADIUS_M, unit_vector};

/// Selects the vertices of a line of (x, y) to keep, in the units of the coordinates. A winding line may take time
/// quadratic in its length: `tick` is called at intervals and returns whether to continue.
pub fn keep_planar<E>(line: &[(f64, f64)], tolerance: f64, tick: &dyn Fn() -> Result<(), E>) -> Result<Vec<bool>, E> {
    let squared = tolerance * tolerance;
    keep(line.len(), squared, tick, |from, to| {
        let (ax, ay) = line[from];
        let (dx, dy) = (line[to].0 - ax, line[to].1 - ay);
        let length = dx * dx + dy * dy;
        move |i: usize| {
            let (px, py) = (line[i].0 - ax, line[i].1 - ay);
            let along = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
            let (ex, ey) = (px - along * dx, py - along * dy);
            ex * ex + ey * ey
        }
    })
}

/// Selects the vertices of a line of (longitude, latitude) in degrees to keep, within a tolerance in metres.
///
/// Distances are to the great-circle arc between the kept neighbours, so that a line over a pole or the antimeridian
/// needs no special case. `tick` as for [`keep_planar`].
pub fn keep_on_sphere<E>(
    line: &[(f64, f64)],
    tolerance_m: f64,
    tick: &dyn Fn() -> Result<(), E>,
) -> Result<Vec<bool>, E> {
    let vectors: Vec<[f64; 3]> = line.iter().map(|&(lon, lat)| unit_vector(lon, lat)).collect();
    keep(line.len(), tolerance_m, tick, |from, to| {
        let arc = Arc::between(vectors[from], vectors[to]);
        let vectors = &vectors;
        move |i: usize| arc.distance_m(vectors[i])
    })
}

/// The shorter great-circle arc between two places.
#[derive(Clone, Copy)]
struct Arc {
    a: [f64; 3],
    b: [f64; 3],
    /// Unit normal of the arc's plane; `None` if the ends coincide or are antipodes.
    normal: Option<[f64; 3]>,
}

impl Arc {
    fn between(a: [f64; 3], b: [f64; 3]) -> Arc {
        let n = cross(a, b);
        let length = dot(n, n).sqrt();
        Arc { a, b, normal: (length > 1e-15).then(|| n.map(|x| x / length)) }
    }

    fn distance_m(&self, p: [f64; 3]) -> f64 {
        let ends = chord(p, self.a).min(chord(p, self.b));
        let ends_m = 2.0 * EARTH_RADIUS_M * (ends / 2.0).min(1.0).asin();
        match self.normal {
            Some(n) if dot(cross(n, self.a), p) >= 0.0 && dot(cross(self.b, n), p) >= 0.0 => {
                ends_m.min(EARTH_RADIUS_M * dot(n, p).abs().min(1.0).asin())
            }
            _ => ends_m,
        }
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn chord(a: [f64; 3], b: [f64; 3]) -> f64 {
    let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    dot(d, d).sqrt()
}

/// Number of distances computed between two readings of the clock.
const MEASURED_UNSEEN: usize = 1 << 16;

/// The algorithm with an explicit stack, so that a line of a million vertices cannot overflow the thread's.
fn keep<D: Fn(usize) -> f64, E>(
    vertices: usize,
    tolerance: f64,
    tick: &dyn Fn() -> Result<(), E>,
    distance: impl Fn(usize, usize) -> D,
) -> Result<Vec<bool>, E> {
    let mut kept = vec![false; vertices];
    if vertices == 0 {
        return Ok(kept);
    }
    let mut measured = 0;
    kept[0] = true;
    kept[vertices - 1] = true;
    let mut spans = vec![(0, vertices - 1)];
    while let Some((from, to)) = spans.pop() {
        if to - from < 2 {
            continue;
        }
        measured += to - from;
        // Counted in distances, not in spans: one span may compute a million.
        if measured > MEASURED_UNSEEN {
            tick()?;
            measured = 0;
        }
        let distance = distance(from, to);
        let mut far = (tolerance, None);
        for i in from + 1..to {
            let d = distance(i);
            if d > far.0 {
                far = (d, Some(i));
            }
        }
        if let Some(i) = far.1 {
            kept[i] = true;
            spans.push((from, i));
            spans.push((i, to));
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::sphere::distance_m;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn never() -> Result<(), Infallible> {
        Ok(())
    }

    fn planar(line: &[(f64, f64)], tolerance: f64) -> Vec<bool> {
        keep_planar(line, tolerance, &never).unwrap()
    }

    fn on_sphere(line: &[(f64, f64)], tolerance_m: f64) -> Vec<bool> {
        keep_on_sphere(line, tolerance_m, &never).unwrap()
    }

    #[test]
    fn a_winding_line_is_given_up_on_the_way() {
        // Each vertex is farther out than all before it: one is split off at a time.
        let line: Vec<(f64, f64)> = (0..4_000)
            .map(|i| (f64::from(i) * 0.01 * if i % 2 == 0 { 1.0 } else { -1.0 }, f64::from(i) * 1e-4))
            .collect();
        let ticks = std::cell::Cell::new(0);
        let tick = || {
            ticks.set(ticks.get() + 1);
            if ticks.get() < 3 { Ok(()) } else { Err("late") }
        };
        assert_eq!(keep_on_sphere(&line, 0.1, &tick), Err("late"));
        ticks.set(0);
        assert_eq!(keep_planar(&line, 0.0, &tick), Err("late"));
    }

    #[test]
    fn a_straight_line_keeps_its_ends_and_a_corner_stays() {
        assert_eq!(planar(&[(0.0, 0.0), (1.0, 0.001), (2.0, 0.0)], 0.01), [true, false, true]);
        assert_eq!(planar(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)], 0.01), [true, true, true]);
        assert_eq!(planar(&[], 1.0), Vec::<bool>::new());
        assert_eq!(planar(&[(5.0, 5.0)], 1.0), [true]);
        // A closed ring: the ends coincide, and the far vertex must stay.
        assert_eq!(planar(&[(0.0, 0.0), (9.0, 0.0), (0.0, 0.0)], 1.0), [true, true, true]);
    }

    #[test]
    fn on_the_globe_a_meridian_over_the_pole_and_the_antimeridian_are_straight() {
        assert_eq!(on_sphere(&[(10.0, 80.0), (10.0, 90.0), (-170.0, 85.0)], 1.0), [true, false, true]);
        assert_eq!(on_sphere(&[(179.0, 0.0), (-180.0, 0.0), (-179.0, 0.0)], 1.0), [true, false, true]);
        // The parallel of 60 degrees is not a great circle: 10 degrees of it bulge by some 12 km.
        assert_eq!(on_sphere(&[(0.0, 60.0), (5.0, 60.0), (10.0, 60.0)], 5_000.0), [true, true, true]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn what_is_left_out_lies_within_the_tolerance(
            line in prop::collection::vec((-20.0..20.0f64, 30.0..50.0f64), 2..60),
            tolerance in 10.0..500_000.0f64,
        ) {
            let kept = on_sphere(&line, tolerance);
            prop_assert!(kept[0] && kept[line.len() - 1]);
            for i in (0..line.len()).filter(|&i| !kept[i]) {
                let before = (0..i).rev().find(|&j| kept[j]).unwrap();
                let after = (i + 1..line.len()).find(|&j| kept[j]).unwrap();
                // Sampled distance to the chord in degrees, slack for its deviation from the great circle.
                let nearest = (0..=400).map(|s| {
                    let f = f64::from(s) / 400.0;
                    let (a, b) = (unit_vector(line[before].0, line[before].1), unit_vector(line[after].0, line[after].1));
                    let v = [0, 1, 2].map(|k| a[k] * (1.0 - f) + b[k] * f);
                    let norm = dot(v, v).sqrt();
                    let (x, y, z) = (v[0] / norm, v[1] / norm, v[2] / norm);
                    distance_m(line[i].0, line[i].1, y.atan2(x).to_degrees(), z.asin().to_degrees())
                }).fold(f64::INFINITY, f64::min);
                let step = distance_m(line[before].0, line[before].1, line[after].0, line[after].1) / 400.0;
                prop_assert!(nearest <= tolerance + step, "{nearest} > {tolerance}");
            }
        }
    }
}
