//! The demo's data: the same numbers each time, on every machine that has the same sine.

use std::thread;

/// Size of the demo's data.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// Shape of the volume.
    pub(super) volume: [usize; 3],
    /// Points of the mesh along each side.
    pub(super) points: usize,
    /// Shape of the arrays that are followed.
    pub(super) step: [u64; 3],
    /// Generations that are followed.
    pub(super) steps: u64,
}

impl Scale {
    pub(super) const FULL: Scale =
        Scale { volume: [300, 512, 512], points: 100, step: [64, 128, 128], steps: 40 };
    /// For tests.
    pub(super) const SMALL: Scale = Scale { volume: [30, 52, 50], points: 8, step: [8, 16, 16], steps: 5 };
}

/// Bits that look random, the same for the same number: the finalizer of SplitMix64.
pub(super) fn scramble(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Nearly normal noise of mean 0 and deviation 1: the sum of four evenly distributed numbers.
fn noise(number: u64) -> f32 {
    let bits = scramble(number);
    let sum: u64 = (0..4).map(|n| (bits >> (16 * n)) & 0xffff).sum();
    // Four of deviation 65536 / sqrt(12).
    (sum as f32 - 131_070.0) / 37_837.0
}

/// A smooth volume with noise of a hundredth, in C order.
pub(super) fn volume(shape: [usize; 3]) -> Vec<f32> {
    let [planes, rows, columns] = shape;
    let wave = |len: usize, period: f32, shift: f32| -> Vec<f32> {
        (0..len).map(|at| (at as f32 / period + shift).sin()).collect()
    };
    let quarter = std::f32::consts::FRAC_PI_2;
    let (z, y, x) = (wave(planes, 20.0, 0.0), wave(rows, 30.0, quarter), wave(columns, 25.0, 0.0));
    let mut items = vec![0.0; planes * rows * columns];
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = planes.div_ceil(threads).max(1) * rows * columns;
    thread::scope(|scope| {
        for (n, part) in items.chunks_mut(share.max(1)).enumerate() {
            let (z, y, x) = (&z, &y, &x);
            scope.spawn(move || {
                for (row_number, row) in (n * share / columns..).zip(part.chunks_mut(columns)) {
                    let (z, y) = (z[row_number / rows], y[row_number % rows]);
                    for (column, item) in row.iter_mut().enumerate() {
                        *item = z + y * x[column] + 0.01 * noise((row_number * columns + column) as u64);
                    }
                }
            });
        }
    });
    items
}

/// A grid of points split into tetrahedra, five for each cube.
pub(super) struct Mesh {
    /// x, y and z of each point.
    pub(super) points: Vec<f32>,
    /// Four points of each tetrahedron.
    pub(super) connectivity: Vec<i64>,
    /// A number for each point.
    pub(super) pressure: Vec<f32>,
}

/// The five tetrahedra of a cube whose corners are numbered x + 2 y + 4 z. Neighbours take the other one, so that the
/// diagonals of the faces between them meet.
const TETRAHEDRA: [[[usize; 4]; 5]; 2] = [
    [[0, 1, 3, 5], [0, 3, 2, 6], [0, 5, 4, 6], [3, 5, 6, 7], [0, 3, 5, 6]],
    [[1, 0, 2, 4], [1, 2, 3, 7], [1, 4, 5, 7], [2, 4, 6, 7], [1, 2, 4, 7]],
];

/// A mesh of `side` points along each side.
pub(super) fn mesh(side: usize) -> Mesh {
    let count = side * side * side;
    let mut mesh = Mesh {
        points: Vec::with_capacity(3 * count),
        connectivity: Vec::new(),
        pressure: Vec::with_capacity(count),
    };
    let cells = side.saturating_sub(1);
    mesh.connectivity.reserve_exact(20 * cells * cells * cells);
    for n in 0..count {
        let [x, y, z] = [n % side, n / side % side, n / (side * side)].map(|at| at as f32);
        mesh.points.extend([x, y, z]);
        mesh.pressure.push(
            (3.0 * x / side as f32).sin() * (2.0 * y / side as f32).cos()
                + z / side as f32
                + 0.01 * noise(n as u64),
        );
    }
    for cell in 0..cells * cells * cells {
        let [x, y, z] = [cell % cells, cell / cells % cells, cell / (cells * cells)];
        for tetrahedron in TETRAHEDRA[(x + y + z) % 2] {
            let corner = |corner: usize| {
                let [x, y, z] = [x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2)];
                ((z * side + y) * side + x) as i64
            };
            mesh.connectivity.extend(tetrahedron.map(corner));
        }
    }
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn noise_is_nearly_normal() {
        let numbers: Vec<f64> = (0..100_000).map(|n| f64::from(noise(n))).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance =
            numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn the_volume_does_not_depend_on_how_it_is_shared_out() {
        let items = volume([7, 3, 5]);
        assert_eq!(items.len(), 105);
        let part = volume([2, 3, 5]);
        assert_eq!(items[..part.len()], part);
    }

    #[test]
    fn faces_of_the_mesh_meet() {
        let mesh = mesh(4);
        let mut faces: HashMap<[i64; 3], u32> = HashMap::new();
        let mut volume = 0.0;
        for cell in mesh.connectivity.chunks_exact(4) {
            for left_out in 0..4 {
                let mut face: Vec<i64> = (0..4).filter(|&n| n != left_out).map(|n| cell[n]).collect();
                face.sort_unstable();
                *faces.entry([face[0], face[1], face[2]]).or_default() += 1;
            }
            let corner = |n: usize| -> [f32; 3] {
                let at = 3 * cell[n] as usize;
                [mesh.points[at], mesh.points[at + 1], mesh.points[at + 2]]
            };
            let [a, b, c] =
                [1, 2, 3].map(|n| std::array::from_fn::<f32, 3, _>(|dim| corner(n)[dim] - corner(0)[dim]));
            let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
            volume += (cross[0] * c[0] + cross[1] * c[1] + cross[2] * c[2]).abs() / 6.0;
        }
        // 3 cubes a side: each inner face belongs to two tetrahedra, and two triangles of each outer square to one.
        assert_eq!(faces.values().filter(|&&count| count == 1).count(), 6 * 9 * 2);
        assert!(faces.values().all(|&count| count <= 2));
        assert!((volume - 27.0).abs() < 1e-4, "{volume}");
    }
}
