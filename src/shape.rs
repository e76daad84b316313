//! Shapes, chunk grids and the limits of both.
//!
//! Everything here counts items, not bytes, unless it says so, and is checked: lengths come from callers and from
//! files alike. [`validate_shapes`] is the one place that judges an array's geometry, on create and on open; what it
//! has let through can be multiplied out without overflow.

use smallvec::SmallVec;

use crate::dtype::MAX_ITEMSIZE;
use crate::error::{Damage, Error};

/// The largest number of dimensions of an array.
pub const MAX_NDIM: usize = 32;

/// The largest length of a dimension, and the largest size of an array or a chunk in bytes.
pub const MAX_LEN: u64 = i64::MAX as u64;

/// The largest size of a block, in bytes.
pub(crate) const MAX_BLOCK_BYTES: u64 = 1 << 24;

/// The largest number of blocks in a chunk.
pub(crate) const MAX_BLOCKS_PER_CHUNK: u64 = 1 << 27;

/// The largest number of bits that number the chunks of an array.
pub(crate) const MAX_KEY_BITS: u32 = 64;

/// What [`default_blocks`] aims at, in bytes.
pub(crate) const DEFAULT_BLOCK_BYTES: u64 = 128 << 10;

/// What [`default_chunks`] aims at, in bytes.
pub(crate) const DEFAULT_CHUNK_BYTES: u64 = 8 << 20;

/// One number per dimension. Four stand in place; more are allocated.
pub(crate) type Dims = SmallVec<[u64; 4]>;

/// Number of items in a box. 0 if any length is 0, even where the other lengths overflow; `None` on overflow.
pub(crate) fn product(lengths: &[u64]) -> Option<u64> {
    if lengths.contains(&0) {
        return Some(0);
    }
    lengths.iter().try_fold(1u64, |product, &length| product.checked_mul(length))
}

/// Items between neighbours along each dimension, in C order. All 0 for an empty box; `None` on overflow.
pub(crate) fn c_strides(shape: &[u64]) -> Option<Dims> {
    let mut strides = Dims::from_elem(0, shape.len());
    if shape.contains(&0) {
        return Some(strides);
    }
    let mut stride = Some(1u64);
    for (out, &length) in strides.iter_mut().zip(shape).rev() {
        *out = stride?;
        stride = stride?.checked_mul(length);
    }
    Some(strides)
}

/// Number of chunks along each dimension of an array, or of blocks along each dimension of a chunk.
pub(crate) fn grid(shape: &[u64], chunk: &[u64]) -> Dims {
    shape.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk.max(1))).collect()
}

/// The part of a chunk at `origin` that lies inside `shape`; 0 along a dimension where none does.
pub(crate) fn clip(origin: &[u64], chunk: &[u64], shape: &[u64]) -> Dims {
    let room = origin.iter().zip(shape).map(|(&origin, &length)| length.saturating_sub(origin));
    room.zip(chunk).map(|(room, &chunk)| room.min(chunk)).collect()
}

/// Position in C order of the item at `coordinates`. `None` if they are outside `shape` or the position overflows.
pub(crate) fn linear_index(coordinates: &[u64], shape: &[u64]) -> Option<u64> {
    if coordinates.len() != shape.len() {
        return None;
    }
    coordinates.iter().zip(shape).try_fold(0u64, |index, (&coordinate, &length)| {
        if coordinate >= length {
            return None;
        }
        index.checked_mul(length)?.checked_add(coordinate)
    })
}

/// Coordinates of the item at a position in C order. `None` if there are not that many items.
pub(crate) fn coordinates(index: u64, shape: &[u64]) -> Option<Dims> {
    let mut coordinates = Dims::from_elem(0, shape.len());
    let mut rest = index;
    for (out, &length) in coordinates.iter_mut().zip(shape).rev() {
        *out = rest.checked_rem(length)?;
        rest /= length;
    }
    (rest == 0).then_some(coordinates)
}

/// Why an array cannot have a geometry. On create it is the caller's [`Error`], on open [`Damage`] of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShapeError {
    /// It can never be right.
    Invalid(String),
    /// It passes a limit.
    TooLarge(String),
}

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::Invalid(what) => Error::InvalidArgument { what },
            ShapeError::TooLarge(what) => Error::TooLarge { what },
        }
    }
}

impl From<ShapeError> for Damage {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::Invalid(what) | ShapeError::TooLarge(what) => Damage::new(what),
        }
    }
}

/// Judges the geometry of an array.
///
/// Chunks may be longer than the array, blocks may not be longer than chunks: whoever makes an array clamps them
/// first. Chunk and block lengths are at least 1 also where the array's length is 0. An array without items may
/// have lengths whose product overflows, since nothing is ever multiplied out for it; its chunk grid is limited as
/// any other, because a resize can give it items.
///
/// Without a block shape, that of the raw layout, only the rules for chunks hold.
pub(crate) fn validate_shapes(
    itemsize: u64,
    shape: &[u64],
    chunk: &[u64],
    block: Option<&[u64]>,
) -> Result<(), ShapeError> {
    let invalid = |what: String| Err(ShapeError::Invalid(what));
    let too_large = |what: String| Err(ShapeError::TooLarge(what));

    if shape.len() > MAX_NDIM {
        return too_large(format!("{} dimensions; the limit is {MAX_NDIM}", shape.len()));
    }
    let ones = Dims::from_elem(1, shape.len());
    let block_or_item = block.unwrap_or(&ones);
    if chunk.len() != shape.len() || block_or_item.len() != shape.len() {
        return invalid(format!(
            "the shape has {} dimensions, the chunk shape {} and the block shape {}",
            shape.len(),
            chunk.len(),
            block_or_item.len()
        ));
    }
    if itemsize == 0 {
        return invalid("an item size of 0 bytes".to_owned());
    }
    if itemsize > u64::from(MAX_ITEMSIZE) {
        return too_large(format!("an item size of {itemsize} bytes; the limit is {MAX_ITEMSIZE}"));
    }
    if let Some(axis) = shape.iter().position(|&length| length > MAX_LEN) {
        return too_large(format!("a length of {} in dimension {axis}; the limit is {MAX_LEN}", shape[axis]));
    }
    for (axis, (&chunk, &block)) in chunk.iter().zip(block_or_item).enumerate() {
        if chunk == 0 || block == 0 {
            return invalid(format!(
                "a chunk length of {chunk} and a block length of {block} in dimension {axis}; both are at least 1"
            ));
        }
        if block > chunk {
            return invalid(format!(
                "a block length of {block} in dimension {axis}, more than the chunk's {chunk}"
            ));
        }
    }
    if bytes(shape, itemsize).is_none_or(|bytes| bytes > MAX_LEN) {
        return too_large(format!("an array of shape {shape:?} has more than {MAX_LEN} bytes"));
    }
    if let Some(block) = block
        && bytes(block, itemsize).is_none_or(|bytes| bytes > MAX_BLOCK_BYTES)
    {
        return too_large(format!("a block of shape {block:?} has more than {MAX_BLOCK_BYTES} bytes"));
    }
    if bytes(chunk, itemsize).is_none_or(|bytes| bytes > MAX_LEN) {
        return too_large(format!("a chunk of shape {chunk:?} has more than {MAX_LEN} bytes"));
    }
    if let Some(block) = block
        && product(&grid(chunk, block)).is_none_or(|blocks| blocks > MAX_BLOCKS_PER_CHUNK)
    {
        return too_large(format!(
            "a chunk of shape {chunk:?} has more than {MAX_BLOCKS_PER_CHUNK} blocks of shape {block:?}"
        ));
    }
    let bits: u32 = grid(shape, chunk).iter().map(|&chunks| key_bits(chunks)).sum();
    if bits > MAX_KEY_BITS {
        return too_large(format!(
            "numbering the chunks of shape {chunk:?} in an array of shape {shape:?} takes {bits} bits; \
             the limit is {MAX_KEY_BITS}; use larger chunks"
        ));
    }
    Ok(())
}

fn bytes(shape: &[u64], itemsize: u64) -> Option<u64> {
    product(shape)?.checked_mul(itemsize)
}

/// Bits that number `count` things: `ceil(log2(count))`, 0 for none or one.
pub(crate) fn key_bits(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}

/// The block shape for an array or chunk of shape `shape`, of at most `target` bytes where one item is not larger.
///
/// Starting from one item, the shortest side is doubled again and again, up to the array's own length, as long as
/// the block stays within the target. The last side counts half, so that it comes out longest (rows are read
/// best): 128 KiB of `f32` in three dimensions give (16, 32, 64), one dimension gives a run, and a table of shape
/// (n, 3) keeps its rows whole. Sides are powers of two except where they are the array's own length.
///
/// A dimension of length 0 is taken as one that will grow, without limit.
pub(crate) fn default_blocks(shape: &[u64], itemsize: u64, target: u64) -> Dims {
    let items = target.min(MAX_BLOCK_BYTES) / itemsize.max(1);
    grow(shape, &Dims::from_elem(1, shape.len()), items, true, u64::MAX)
}

/// The chunk shape for an array of shape `shape` whose blocks are `block`, of at most `target` bytes where one block
/// is not larger.
///
/// A whole number of blocks along each dimension: starting from one block, the shortest side is doubled, up to the
/// array's own length rounded up to a block, as long as the chunk stays within the target. All sides count the
/// same, since chunks are the unit of writing and of the offsets index, not of decoding.
///
/// A dimension of length 0 is taken as one that will grow, without limit.
pub(crate) fn default_chunks(shape: &[u64], block: &[u64], itemsize: u64, target: u64) -> Dims {
    let items = target.min(MAX_LEN) / itemsize.max(1);
    grow(shape, block, items, false, MAX_BLOCKS_PER_CHUNK)
}

/// A side of a box that [`grow`] makes: `units` times `unit`, at most `limit` rounded up to a unit.
struct Side {
    unit: u64,
    units: u64,
    limit: u64,
    full: bool,
}

impl Side {
    fn length(&self) -> u64 {
        self.unit.saturating_mul(self.units)
    }

    /// What [`units`](Self::units) is after doubling.
    fn doubled(&self) -> u64 {
        self.units.saturating_mul(2).min(self.limit.div_ceil(self.unit))
    }
}

/// Doubles the shortest side of a box of units while it has at most `items` items and `max_units` units. Of equal
/// sides the later one goes first. A side that cannot be doubled is left, and the others go on.
fn grow(shape: &[u64], unit: &[u64], items: u64, last_counts_half: bool, max_units: u64) -> Dims {
    let mut sides: SmallVec<[Side; 4]> = shape
        .iter()
        .zip(unit)
        .map(|(&length, &unit)| {
            let limit = if length == 0 { MAX_LEN } else { length };
            Side { unit: unit.max(1), units: 1, limit, full: false }
        })
        .collect();
    let last = sides.len().saturating_sub(1);
    loop {
        let growing = sides.iter().enumerate().rev().filter(|(_, side)| !side.full);
        let shortest = growing.min_by_key(|(axis, side)| {
            if last_counts_half && *axis == last { side.length() / 2 } else { side.length() }
        });
        let Some((axis, _)) = shortest else {
            return sides.iter().map(Side::length).collect();
        };
        let before = sides[axis].units;
        sides[axis].units = sides[axis].doubled();
        let lengths: Dims = sides.iter().map(Side::length).collect();
        let units: Dims = sides.iter().map(|side| side.units).collect();
        let fits = product(&lengths).is_some_and(|count| count <= items)
            && product(&units).is_some_and(|count| count <= max_units);
        if !fits {
            sides[axis].units = before;
        }
        sides[axis].full = sides[axis].units == before;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn too_large(result: Result<(), ShapeError>, about: &str) {
        let Err(ShapeError::TooLarge(what)) = result else {
            panic!("{result:?}, expected too large: {about}");
        };
        assert!(what.contains(about), "'{what}' does not contain '{about}'");
    }

    fn invalid(result: Result<(), ShapeError>, about: &str) {
        let Err(ShapeError::Invalid(what)) = result else {
            panic!("{result:?}, expected invalid: {about}");
        };
        assert!(what.contains(about), "'{what}' does not contain '{about}'");
    }

    #[test]
    fn products_and_strides() {
        assert_eq!(product(&[]), Some(1));
        assert_eq!(product(&[2, 3, 4]), Some(24));
        assert_eq!(product(&[u64::MAX, 2]), None);
        assert_eq!(product(&[u64::MAX, 2, 0]), Some(0));
        assert_eq!(product(&[0, u64::MAX, 2]), Some(0));
        assert_eq!(c_strides(&[]).unwrap().as_slice(), [0u64; 0]);
        assert_eq!(c_strides(&[2, 3, 4]).unwrap().as_slice(), [12, 4, 1]);
        assert_eq!(c_strides(&[u64::MAX, u64::MAX]).unwrap().as_slice(), [u64::MAX, 1]);
        assert_eq!(c_strides(&[2, u64::MAX, 2]), None);
        assert_eq!(c_strides(&[2, u64::MAX, 2, 0]).unwrap().as_slice(), [0; 4]);
    }

    #[test]
    fn grids_and_clipped_boxes() {
        assert_eq!(grid(&[10, 0, 3, 1], &[4, 4, 3, 9]).as_slice(), [3, 0, 1, 1]);
        assert_eq!(grid(&[MAX_LEN], &[1]).as_slice(), [MAX_LEN]);
        assert_eq!(clip(&[8, 0, 4], &[4, 4, 4], &[10, 3, 4]).as_slice(), [2, 3, 0]);
        assert_eq!(clip(&[u64::MAX], &[4], &[10]).as_slice(), [0]);
    }

    #[test]
    fn positions_in_c_order() {
        assert_eq!(linear_index(&[], &[]), Some(0));
        assert_eq!(linear_index(&[1, 2, 3], &[2, 3, 4]), Some(23));
        assert_eq!(linear_index(&[1, 3, 3], &[2, 3, 4]), None);
        assert_eq!(linear_index(&[1], &[2, 3]), None);
        assert_eq!(linear_index(&[1, 0, 0], &[2, u64::MAX, 2]), None);
        assert_eq!(coordinates(0, &[]).unwrap().as_slice(), [0u64; 0]);
        assert_eq!(coordinates(1, &[]), None);
        assert_eq!(coordinates(23, &[2, 3, 4]).unwrap().as_slice(), [1, 2, 3]);
        assert_eq!(coordinates(24, &[2, 3, 4]), None);
        assert_eq!(coordinates(0, &[2, 0]), None);
    }

    #[test]
    fn bits_that_number_chunks() {
        let expected = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (MAX_LEN, 63), (u64::MAX, 64)];
        for (count, bits) in expected {
            assert_eq!(key_bits(count), bits, "{count}");
        }
    }

    #[test]
    fn geometries_that_are_right() {
        let ok = |itemsize, shape: &[u64], chunk: &[u64], block: &[u64]| {
            assert_eq!(
                validate_shapes(itemsize, shape, chunk, Some(block)),
                Ok(()),
                "{shape:?} {chunk:?} {block:?}"
            );
        };
        ok(4, &[], &[], &[]);
        ok(4, &[0], &[1], &[1]);
        ok(4, &[10], &[100], &[7]);
        ok(1, &[MAX_LEN], &[1 << 51], &[1 << 24]);
        ok(7, &[MAX_LEN / 7], &[1 << 30], &[1 << 20]);
        ok(1 << 24, &[3], &[2], &[1]);
        ok(1, &[3; 32], &[1; 32], &[1; 32]);
        ok(8, &[0, MAX_LEN], &[1, 1], &[1, 1]);
        ok(8, &[0, 1 << 40, 1 << 40], &[1, 1 << 10, 1 << 10], &[1, 1, 1 << 10]);
        ok(1, &[1 << 40], &[1 << 27], &[1]);
    }

    #[test]
    fn geometries_that_are_wrong() {
        invalid(validate_shapes(0, &[4], &[4], Some(&[4])), "item size of 0");
        invalid(validate_shapes(4, &[4], &[4, 4], Some(&[4])), "the chunk shape 2");
        invalid(validate_shapes(4, &[4], &[4], Some(&[])), "the block shape 0");
        invalid(validate_shapes(4, &[4], &[0], Some(&[1])), "chunk length of 0");
        invalid(validate_shapes(4, &[0, 0], &[1, 0], Some(&[1, 0])), "in dimension 1");
        invalid(validate_shapes(4, &[4], &[4], Some(&[0])), "block length of 0");
        invalid(validate_shapes(4, &[4, 4], &[4, 4], Some(&[4, 5])), "block length of 5");
    }

    #[test]
    fn geometries_that_are_too_large() {
        too_large(validate_shapes(1, &[1; 33], &[1; 33], Some(&[1; 33])), "33 dimensions");
        too_large(validate_shapes((1 << 24) + 1, &[1], &[1], Some(&[1])), "item size");
        too_large(validate_shapes(1, &[MAX_LEN + 1, 0], &[1, 1], Some(&[1, 1])), "in dimension 0");
        too_large(validate_shapes(7, &[MAX_LEN / 7 + 1], &[1 << 30], Some(&[1])), "an array of shape");
        too_large(validate_shapes(1, &[1 << 32, 1 << 32], &[1 << 9; 2], Some(&[1; 2])), "an array of shape");
        too_large(validate_shapes(1, &[1 << 25], &[1 << 25], Some(&[(1 << 24) + 1])), "a block of shape");
        too_large(validate_shapes(2, &[1 << 25], &[1 << 25], Some(&[(1 << 23) + 1])), "a block of shape");
        too_large(validate_shapes(4, &[9, 9], &[1 << 16; 2], Some(&[1 << 16; 2])), "a block of shape");
        too_large(validate_shapes(1, &[9], &[MAX_LEN + 1], Some(&[1])), "a chunk of shape");
        too_large(validate_shapes(4, &[9, 9], &[1 << 31; 2], Some(&[1 << 10; 2])), "a chunk of shape");
        too_large(validate_shapes(1, &[1 << 40], &[(1 << 27) + 1], Some(&[1])), "blocks of shape");
        let mut shape = [3; 32];
        shape[7] = 5;
        too_large(validate_shapes(1, &shape, &[1; 32], Some(&[1; 32])), "takes 65 bits");
        too_large(validate_shapes(1, &[0, MAX_LEN, MAX_LEN], &[1; 3], Some(&[1; 3])), "takes 126 bits");
    }

    #[test]
    fn errors_of_both_borders() {
        let error = validate_shapes(4, &[4], &[0], Some(&[1])).unwrap_err();
        assert!(matches!(Error::from(error.clone()), Error::InvalidArgument { .. }));
        assert!(Damage::from(error).0.contains("chunk length of 0"));
        let error = validate_shapes(1, &[1; 33], &[1; 33], Some(&[1; 33])).unwrap_err();
        assert!(matches!(Error::from(error), Error::TooLarge { .. }));
    }

    fn defaults(shape: &[u64], itemsize: u64) -> (Dims, Dims) {
        let block = default_blocks(shape, itemsize, DEFAULT_BLOCK_BYTES);
        let chunk = default_chunks(shape, &block, itemsize, DEFAULT_CHUNK_BYTES);
        (chunk, block)
    }

    #[test]
    fn default_chunks_and_blocks() {
        let check = |itemsize, shape: &[u64], chunk: &[u64], block: &[u64]| {
            let found = defaults(shape, itemsize);
            assert_eq!(
                (found.0.as_slice(), found.1.as_slice()),
                (chunk, block),
                "{shape:?} of {itemsize} bytes"
            );
        };
        check(4, &[], &[], &[]);
        check(4, &[1 << 40], &[1 << 21], &[1 << 15]);
        check(4, &[100], &[100], &[100]);
        check(4, &[1000, 1000, 1000], &[128, 128, 128], &[16, 32, 64]);
        check(4, &[1000, 1000], &[1024, 1024], &[128, 256]);
        // Narrow tables keep their rows whole.
        check(4, &[10_000_000, 3], &[524_288, 3], &[8192, 3]);
        check(8, &[10_000_000, 4], &[262_144, 4], &[4096, 4]);
        // A length of 0 will grow.
        check(4, &[0], &[1 << 21], &[1 << 15]);
        check(4, &[0, 3], &[524_288, 3], &[8192, 3]);
        // Items larger than the targets.
        check(1 << 18, &[100], &[32], &[1]);
        check(1 << 24, &[100, 5], &[1, 1], &[1, 1]);
        check(4, &[1, 1, 1], &[1, 1, 1], &[1, 1, 1]);
        let larger = default_blocks(&[1000, 1000, 1000], 4, 256 << 10);
        assert_eq!(larger.as_slice(), [32, 32, 64]);
    }

    #[test]
    fn default_chunks_around_odd_blocks() {
        let check = |shape: &[u64], block: &[u64], chunk: &[u64]| {
            assert_eq!(default_chunks(shape, block, 4, DEFAULT_CHUNK_BYTES).as_slice(), chunk);
        };
        check(&[100, 100], &[7, 33], &[105, 132]);
        // A block that is larger than the array, or than the target.
        check(&[10], &[64], &[64]);
        check(&[1 << 30], &[1 << 22], &[1 << 22]);
        // Lengths that validate_shapes refuses do no harm.
        check(&[10], &[0], &[10]);
        check(&[10, 10], &[10], &[10]);
        check(&[u64::MAX], &[u64::MAX], &[u64::MAX]);
    }

    /// Shapes of up to 32 dimensions with up to 2^63-1 bytes: lengths small or large, cut off where it is enough.
    fn any_shape() -> impl Strategy<Value = (Vec<u64>, u64)> {
        let length = prop_oneof![1..10u64, 1..2000u64, 1..=1u64 << 40, Just(5), Just(3)];
        let itemsize = prop_oneof![1..20u64, 1..=1u64 << 24, Just(1)];
        (prop::collection::vec(length, 0..=MAX_NDIM), itemsize).prop_map(|(mut shape, itemsize)| {
            while bytes(&shape, itemsize).is_none_or(|bytes| bytes > MAX_LEN) {
                shape.pop();
            }
            (shape, itemsize)
        })
    }

    proptest! {
        #[test]
        fn defaults_are_valid((shape, itemsize) in any_shape(), zero in any::<Option<usize>>()) {
            let (chunk, block) = defaults(&shape, itemsize);
            prop_assert_eq!(validate_shapes(itemsize, &shape, &chunk, Some(&block)), Ok(()));
            prop_assert!(bytes(&block, itemsize).unwrap() <= DEFAULT_BLOCK_BYTES.max(itemsize));
            prop_assert!(bytes(&chunk, itemsize).unwrap() <= DEFAULT_CHUNK_BYTES.max(itemsize));
            let mut largest = true;
            for axis in 0..shape.len() {
                prop_assert_eq!(chunk[axis] % block[axis], 0);
                prop_assert!(block[axis] <= shape[axis]);
                prop_assert!(chunk[axis] <= shape[axis].next_multiple_of(block[axis]));
                largest &= chunk[axis] >= shape[axis];
            }
            // Near the target: doubling the shortest side that can grow passes it.
            prop_assert!(largest || bytes(&chunk, itemsize).unwrap() * 2 > DEFAULT_CHUNK_BYTES);
            // The blocks of a chunk are those that its array would have.
            prop_assert_eq!(&default_blocks(&chunk, itemsize, DEFAULT_BLOCK_BYTES), &block);

            if let Some(axis) = zero.filter(|_| !shape.is_empty()) {
                let mut empty = shape.clone();
                empty[axis % shape.len()] = 0;
                let (chunk, block) = defaults(&empty, itemsize);
                for axis in 0..shape.len() {
                    prop_assert!(1 <= block[axis] && block[axis] <= chunk[axis]);
                }
            }
        }

        #[test]
        fn positions_round_trip(shape in prop::collection::vec(1..9u64, 0..5), position in any::<u64>()) {
            let count = product(&shape).unwrap();
            let position = position % count;
            let found = coordinates(position, &shape).unwrap();
            prop_assert_eq!(linear_index(&found, &shape), Some(position));
            let strides = c_strides(&shape).unwrap();
            prop_assert_eq!(found.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<u64>(), position);
            prop_assert_eq!(coordinates(count + position, &shape), None);
        }

        #[test]
        fn clipped_chunks_tile_the_array(
            axes in prop::collection::vec((0..20u64, 1..9u64), 0..4),
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let chunks = grid(&shape, &chunk);
            let mut items = 0;
            for number in 0..product(&chunks).unwrap() {
                let at = coordinates(number, &chunks).unwrap();
                let origin: Dims = at.iter().zip(&chunk).map(|(at, length)| at * length).collect();
                let part = clip(&origin, &chunk, &shape);
                prop_assert!(part.iter().zip(&chunk).all(|(part, chunk)| (1..=*chunk).contains(part)));
                items += product(&part).unwrap();
            }
            prop_assert_eq!(items, product(&shape).unwrap());
        }
    }
}
