//! Encodes geometry as tile commands.

fn command(id: u32, count: usize) -> u32 {
    id | (count as u32) << 3
}

fn zigzag(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

/// Appends the steps between vertices, starting at `at`.
fn steps(out: &mut Vec<u32>, at: &mut (i32, i32), vertices: &[(i32, i32)]) {
    for &(x, y) in vertices {
        out.push(zigzag(x - at.0));
        out.push(zigzag(y - at.1));
        *at = (x, y);
    }
}

pub(super) fn point_commands(points: &[(i32, i32)]) -> Vec<u32> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut out = vec![command(1, points.len())];
    steps(&mut out, &mut (0, 0), points);
    out
}

pub(super) fn path_commands(paths: &[Vec<(i32, i32)>], length_min: usize, closed: bool) -> Vec<u32> {
    let mut out = Vec::new();
    // The cursor carries over between paths (section 4.3): each path starts relative to the end of the previous one.
    let mut at = (0, 0);
    // The specification forbids lines of one point and rings of fewer than three, and a renderer may reject the whole
    // tile for one.
    for path in paths.iter().filter(|p| p.len() >= length_min) {
        out.push(command(1, 1));
        steps(&mut out, &mut at, &path[..1]);
        out.push(command(2, path.len() - 1));
        steps(&mut out, &mut at, &path[1..]);
        if closed {
            out.push(command(7, 1));
        }
    }
    out
}
