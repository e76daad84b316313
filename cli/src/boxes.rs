//! Cutting an array into boxes of whole chunks, so that arrays of any size are converted in bounded memory.

use brickmap::{Axis, Selection};

/// About how many bytes are converted at once. One chunk is the least.
const BOX_BYTES: u64 = 64 << 20;

/// A box of an array: where it starts, and its lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrayBox {
    pub(crate) origin: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

impl ArrayBox {
    pub(crate) fn selection(&self) -> Selection {
        Selection::new(
            self.origin.iter().zip(&self.shape).map(|(&start, &len)| Axis::from(start..start + len)),
        )
    }
}

/// In which order items stand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOrder {
    /// The last dimension is that of neighbours.
    C,
    /// The first dimension is that of neighbours.
    Fortran,
}

impl MemoryOrder {
    /// The dimensions, that of neighbours first.
    fn near_to_far(self, ndim: usize) -> Vec<usize> {
        match self {
            MemoryOrder::C => (0..ndim).rev().collect(),
            MemoryOrder::Fortran => (0..ndim).collect(),
        }
    }
}

/// Boxes of whole chunks that make up an array of `shape`. They are long in the dimensions of neighbours in `order`, so that
/// they are few runs of memory there.
pub(crate) fn boxes(
    shape: &[u64],
    chunks: &[u64],
    itemsize: usize,
    order: MemoryOrder,
) -> impl Iterator<Item = ArrayBox> {
    let lens = box_shape(shape, chunks, itemsize as u64, order);
    let shape = shape.to_vec();
    let mut next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
    std::iter::from_fn(move || {
        let origin = next.take()?;
        let clipped = origin
            .iter()
            .zip(&lens)
            .zip(&shape)
            .map(|((&start, &len), &whole)| len.min(whole - start))
            .collect();
        let mut after = origin.clone();
        for dim in order.near_to_far(shape.len()) {
            after[dim] += lens[dim];
            if after[dim] < shape[dim] {
                next = Some(after);
                break;
            }
            after[dim] = 0;
        }
        Some(ArrayBox { origin, shape: clipped })
    })
}

fn box_shape(shape: &[u64], chunks: &[u64], itemsize: u64, order: MemoryOrder) -> Vec<u64> {
    let mut lens: Vec<u64> = shape.iter().zip(chunks).map(|(&len, &chunk)| chunk.min(len).max(1)).collect();
    for dim in order.near_to_far(shape.len()) {
        let bytes = lens.iter().fold(itemsize, |bytes, &len| bytes.saturating_mul(len)).max(1);
        let times = (BOX_BYTES / bytes).max(1);
        let wanted = lens[dim].saturating_mul(times);
        if wanted < shape[dim] {
            lens[dim] = wanted;
            break;
        }
        lens[dim] = shape[dim].max(1);
    }
    lens
}

/// Copies the items of a box out of an array in memory; they come out in C order. `items` must hold the whole array.
pub(crate) fn gather(
    items: &[u8],
    array_shape: &[u64],
    itemsize: usize,
    order: MemoryOrder,
    part: &ArrayBox,
) -> Vec<u8> {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let mut from = vec![itemsize; array_shape.len()];
    let mut stride = itemsize;
    for dim in order.near_to_far(array_shape.len()) {
        from[dim] = stride;
        stride = stride.saturating_mul(size(array_shape[dim]));
    }
    let lens: Vec<usize> = part.shape.iter().map(|&len| size(len)).collect();
    let start: usize = part.origin.iter().zip(&from).map(|(&start, stride)| size(start) * stride).sum();
    let mut to = vec![itemsize; lens.len()];
    for dim in (1..lens.len()).rev() {
        to[dim - 1] = to[dim] * lens[dim];
    }
    let mut out = vec![0; lens.iter().product::<usize>() * itemsize];
    let (Some(&first), Some(&last)) = (lens.first(), lens.last()) else {
        out.copy_from_slice(&items[..itemsize]);
        return out;
    };
    if lens.len() == 1 {
        out.copy_from_slice(&items[start..start + first * itemsize]);
        return out;
    }
    let middle = &lens[1..lens.len() - 1];
    let dims = lens.len();
    for n in 0..middle.iter().product() {
        let (mut rest, mut source, mut target) = (n, start, 0);
        for (dim, &len) in middle.iter().enumerate().rev() {
            source += rest % len * from[dim + 1];
            target += rest % len * to[dim + 1];
            rest /= len;
        }
        let plane = Plane {
            rows: first,
            columns: last,
            source_strides: [from[0], from[dims - 1]],
            target_stride: to[0],
        };
        plane.copy(&items[source..], &mut out[target..], itemsize);
    }
    out
}

/// The first and the last dimension. In the target the items of a row are neighbours.
struct Plane {
    rows: usize,
    columns: usize,
    /// From one row to the next, and from one column to the next.
    source_strides: [usize; 2],
    target_stride: usize,
}

impl Plane {
    fn copy(&self, source: &[u8], target: &mut [u8], itemsize: usize) {
        match itemsize {
            _ if self.source_strides[1] == itemsize => self.each_row(source, target, itemsize),
            1 => self.tiles::<1>(source, target),
            2 => self.tiles::<2>(source, target),
            4 => self.tiles::<4>(source, target),
            8 => self.tiles::<8>(source, target),
            16 => self.tiles::<16>(source, target),
            _ => self.each_item(source, target, itemsize),
        }
    }

    /// Items of a row are neighbours in the source too.
    fn each_row(&self, source: &[u8], target: &mut [u8], itemsize: usize) {
        let len = self.columns * itemsize;
        for row in 0..self.rows {
            let (from, to) = (row * self.source_strides[0], row * self.target_stride);
            target[to..to + len].copy_from_slice(&source[from..from + len]);
        }
    }

    /// In tiles that stay in the cache while they are gone through across the direction of neighbours.
    fn tiles<const SIZE: usize>(&self, source: &[u8], target: &mut [u8]) {
        const TILE: usize = 32;
        for row in (0..self.rows).step_by(TILE) {
            for column in (0..self.columns).step_by(TILE) {
                for row in row..self.rows.min(row + TILE) {
                    for column in column..self.columns.min(column + TILE) {
                        let from = row * self.source_strides[0] + column * self.source_strides[1];
                        let to = row * self.target_stride + column * SIZE;
                        target[to..to + SIZE].copy_from_slice(&source[from..from + SIZE]);
                    }
                }
            }
        }
    }

    fn each_item(&self, source: &[u8], target: &mut [u8], itemsize: usize) {
        for row in 0..self.rows {
            for column in 0..self.columns {
                let from = row * self.source_strides[0] + column * self.source_strides[1];
                let to = row * self.target_stride + column * itemsize;
                target[to..to + itemsize].copy_from_slice(&source[from..from + itemsize]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_whole_chunks_and_cover_the_array_once() {
        let cases: [(&[u64], &[u64], usize); 6] = [
            (&[], &[], 4),
            (&[0, 5], &[2, 2], 4),
            (&[10], &[20], 8),
            (&[700, 700, 700], &[64, 256, 256], 4),
            (&[5, 1 << 20, 33], &[2, 1 << 18, 16], 8),
            (&[1 << 34], &[1 << 30], 1),
        ];
        for (shape, chunks, itemsize) in cases {
            for order in [MemoryOrder::C, MemoryOrder::Fortran] {
                let mut items = 0;
                for part in boxes(shape, chunks, itemsize, order) {
                    let chunk_bytes = chunks.iter().product::<u64>() * itemsize as u64;
                    assert!(
                        part.shape.iter().product::<u64>() * itemsize as u64 <= BOX_BYTES.max(chunk_bytes)
                    );
                    for dim in 0..shape.len() {
                        assert_eq!(part.origin[dim] % chunks[dim], 0);
                        let end = part.origin[dim] + part.shape[dim];
                        assert!(end == shape[dim] || end % chunks[dim] == 0);
                    }
                    items += part.shape.iter().product::<u64>();
                }
                assert_eq!(items, shape.iter().product::<u64>(), "{shape:?}");
            }
        }
    }

    /// The number, in `order`, of the item at `index`.
    fn number(index: &[u64], shape: &[u64], order: MemoryOrder) -> usize {
        let far_to_near = order.near_to_far(shape.len()).into_iter().rev();
        far_to_near.fold(0, |number, dim| number * shape[dim] as usize + index[dim] as usize)
    }

    /// The indices of all items of a shape, in C order.
    fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
        shape.iter().fold(vec![vec![]], |indices, &len| {
            indices.iter().flat_map(|index| (0..len).map(|at| [&index[..], &[at]].concat())).collect()
        })
    }

    #[test]
    fn boxes_come_out_of_both_orders() {
        for (shape, itemsize) in
            [(vec![], 4), (vec![7], 2), (vec![40, 50], 4), (vec![3, 4, 5], 1), (vec![3, 40, 2, 35], 3)]
        {
            for order in [MemoryOrder::C, MemoryOrder::Fortran] {
                let all = indices(&shape);
                // The first byte of each item is its number in C order.
                let mut items = vec![0u8; all.len() * itemsize];
                for (n, index) in all.iter().enumerate() {
                    items[number(index, &shape, order) * itemsize] = n as u8;
                }
                let origin: Vec<u64> = shape.iter().map(|len| len / 3).collect();
                let part = ArrayBox {
                    shape: shape.iter().zip(&origin).map(|(len, start)| len - start).collect(),
                    origin,
                };
                let gathered = gather(&items, &shape, itemsize, order, &part);
                let expected = indices(&part.shape).into_iter().map(|index| {
                    let index: Vec<u64> =
                        index.iter().zip(&part.origin).map(|(at, start)| at + start).collect();
                    number(&index, &shape, MemoryOrder::C) as u8
                });
                let numbers = gathered.iter().step_by(itemsize).copied();
                assert!(numbers.eq(expected), "{shape:?} {order:?}");
            }
        }
    }
}
