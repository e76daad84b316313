//! Every way of reading a selection gives what plain indexing of an array in memory gives.

mod common;

use brickmap::{
    Array, Axis, Backend, Codec, Dtype, Element, Error, OpenOptions, Selection, Store, StridedMut,
};
use common::dense::{Dense, Picked, pick};
use common::draw::{self, Case, Drawn, Values, Written};
use common::{Aligned, Random, cases, check, typed};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;
use std::mem::MaybeUninit;
use std::path::Path;

/// An opened store, and whether its bytes are in memory.
struct Opened {
    store: Store,
    in_memory: bool,
}

/// Opens a file in different ways: by map, by reads and in memory; on one thread, on two and on rayon's; with a cache,
/// with one that is too small, and with none.
fn openings(path: &Path) -> Vec<Opened> {
    let options = OpenOptions::new;
    let mapped = options().open(path).unwrap();
    let alone = options().threads(1).cache_bytes(0).open(path).unwrap();
    let pread = options().backend(Backend::Pread).threads(2).cache_bytes(100_000).open(path).unwrap();
    let memory = options().threads(1).cache_bytes(1 << 20).from_bytes(Aligned::read(path)).unwrap();
    let stores = [(mapped, true), (alone, true), (pread, false), (memory, true)];
    stores.into_iter().map(|(store, in_memory)| Opened { store, in_memory }).collect()
}

fn create(path: &Path, seed: u64) -> Store {
    let backend = if seed.is_multiple_of(2) { Backend::Mmap } else { Backend::Pread };
    OpenOptions::new().backend(backend).threads(1 + seed as usize / 2 % 2).create(path).unwrap()
}

/// One selection of one array, and what must come out.
struct Read<'a> {
    array: &'a Array,
    selection: Selection,
    picked: Picked,
    dense: &'a Dense,
    due: Vec<u8>,
    seed: u64,
    /// Whether a view is there if the selection is one run of items.
    viewable: bool,
}

impl Read<'_> {
    fn all_ways(&self) {
        let Read { array, selection, due, .. } = self;
        assert_eq!(selection.shape(array.shape()).unwrap(), self.picked.shape, "shape of {selection:?}");
        // A block enters the cache when it is met again, and comes out of it from then on.
        for sight in ["first", "second", "third"] {
            assert!(array.read_bytes(selection).unwrap() == *due, "{sight} sight of {selection:?}");
        }
        let mut uninit = vec![MaybeUninit::new(0xA5u8); due.len()];
        array.read_bytes_into(selection, &mut uninit).unwrap();
        // SAFETY: every byte was initialised above.
        let bytes: Vec<u8> = uninit.iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert!(bytes == *due, "read_bytes_into of {selection:?}");
        typed!(array.dtype(), typed_ways(self));
    }
}

fn bytes<T: Element>(items: &[T]) -> &[u8] {
    bytemuck::cast_slice(items)
}

fn typed_ways<T: Element>(read: &Read<'_>) {
    let Read { array, selection, picked, dense, due, seed, .. } = read;
    assert!(bytes(&array.read::<T>(selection).unwrap()) == *due, "read of {selection:?}");
    let mut items = vec![T::zeroed(); picked.len()];
    array.read_into(selection, &mut items).unwrap();
    assert!(bytes(&items) == *due, "read_into of {selection:?}");
    strided::<T>(read);
    if let Some(number) = dense.numbers(picked).first() {
        let (mut rest, mut index) = (*number as u64, Vec::new());
        for (dim, &len) in dense.shape.iter().enumerate().rev() {
            // Some of them counted from the end.
            let at = (rest % len) as i64;
            index.insert(0, if (seed >> dim) % 2 == 0 { at } else { at - len as i64 });
            rest /= len;
        }
        assert_eq!(bytes(&[array.get::<T>(&index).unwrap()]), &due[..size_of::<T>()], "get of {index:?}");
    }
    view::<T>(read);
}

/// Into memory with permuted, reversed and padded dimensions; what is between the items must stay as it is.
fn strided<T: Element>(Read { array, selection, picked, due, seed, .. }: &Read<'_>) {
    const UNTOUCHED: u8 = 0x5A;
    let (mut random, shape, size) = (Random(*seed), &picked.shape, size_of::<T>());
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    if random.below(3) > 0 {
        for n in (1..order.len()).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
    }
    let mut strides = vec![0isize; shape.len()];
    let (mut reach, mut offset) = (1, random.below(3));
    for dim in order {
        let stride = reach + [0, 0, 1, 5][random.below(4) as usize];
        let across = stride * shape[dim].saturating_sub(1);
        reach += across;
        strides[dim] = stride as isize;
        if random.below(3) == 0 {
            strides[dim] = -strides[dim];
            offset += across;
        }
    }
    let mut memory = vec![T::zeroed(); (offset + reach + random.below(3)) as usize];
    bytemuck::cast_slice_mut::<T, u8>(&mut memory).fill(UNTOUCHED);
    let mut expected = bytes(&memory).to_vec();
    for (n, item) in due.chunks_exact(size).enumerate() {
        let (mut rest, mut at) = (n as u64, offset as isize);
        for (len, stride) in shape.iter().zip(&strides).rev() {
            at += (rest % len) as isize * stride;
            rest /= len;
        }
        expected[at as usize * size..][..size].copy_from_slice(item);
    }
    let destination = StridedMut::new(&mut memory, offset as usize, shape, &strides).unwrap();
    array.read_strided(selection, destination).unwrap();
    assert!(
        bytes(&memory) == expected,
        "{selection:?} into {shape:?} with strides {strides:?} from {offset}"
    );
}

/// A view is there exactly if the items are one run, in memory; and it has these items.
fn view<T: Element>(Read { array, selection, picked, dense, due, viewable, .. }: &Read<'_>) {
    let listed = selection.axes().iter().any(|axis| matches!(axis, Axis::List(_)));
    let run =
        due.is_empty() || !listed && dense.numbers(picked).windows(2).all(|pair| pair[0] + 1 == pair[1]);
    for view in [array.view::<T>(selection), array.view_checked::<T>(selection)] {
        match view {
            Ok(items) => {
                assert!(array.is_raw() && run, "a view of {selection:?}");
                assert!(bytes(items) == *due, "view of {selection:?}");
            }
            Err(Error::InvalidState { what }) => {
                assert!(!(array.is_raw() && *viewable), "no view of {selection:?}: {what}");
            }
            Err(Error::InvalidArgument { what }) => {
                assert!(array.is_raw() && !run, "no view of {selection:?}: {what}")
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether the chunks of a raw array follow each other without padding, once it has been written whole.
fn is_one_run(case: &Case, array: &Array) -> bool {
    let whole = !matches!(case.written, Written::Part(_));
    let rows = array.chunks().first().copied().unwrap_or(1);
    // Chunks are cut to the array, which may be shorter in the other dimensions.
    let row: u64 = array.shape().iter().skip(1).product();
    let chunk_bytes = rows * row * array.dtype().itemsize() as u64;
    whole && (array.shape().first().is_none_or(|len| *len <= rows) || chunk_bytes.is_multiple_of(64))
}

/// Writes all cases to one store and reads them back in every way.
fn round_trip(cases: &[Case]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slices.brick");
    let seed = cases.first().map_or(0, |case| case.seed);
    let store = create(&path, seed);
    let mut writer = store.writer().unwrap();
    let made: Vec<Dense> =
        cases.iter().enumerate().map(|(n, case)| case.create(&mut writer, &format!("group/{n}"))).collect();
    for (n, (case, dense)) in cases.iter().zip(&made).enumerate() {
        for axes in &case.selections {
            let due = dense.read(&pick(axes, &dense.shape));
            typed!(case.array.dtype, staged(&mut writer, &format!("group/{n}"), axes, &due));
        }
    }
    writer.commit().unwrap();
    for opened in openings(&path) {
        for (n, (case, dense)) in cases.iter().zip(&made).enumerate() {
            let array = opened.store.array(&format!("group/{n}")).unwrap();
            assert_eq!((array.dtype(), array.shape()), (&case.array.dtype, &case.array.shape[..]));
            for (k, axes) in case.selections.iter().enumerate() {
                let picked = pick(axes, &dense.shape);
                let read = Read {
                    array: &array,
                    selection: Selection::from(axes.clone()),
                    due: dense.read(&picked),
                    picked,
                    dense,
                    seed: case.seed.wrapping_add(k as u64),
                    viewable: opened.in_memory && is_one_run(case, &array),
                };
                read.all_ways();
            }
        }
    }
}

fn staged<T: Element>(writer: &mut brickmap::Writer, path: &str, axes: &[Axis], due: &[u8]) {
    let items = writer.read::<T>(path, &Selection::from(axes.to_vec())).unwrap();
    assert!(bytes(&items) == due, "staged {axes:?} of {path}");
}

#[test]
fn every_way_of_reading_a_selection_matches_dense_indexing() {
    check("slices_match_dense", cases(100), vec(draw::case(), 1..20), |cases| round_trip(&cases));
}

/// Arrays of some MB are read and written by several threads at once, and their raw chunks in several pieces.
#[test]
fn large_arrays_match_dense_indexing() {
    check("large_slices_match_dense", cases(16), draw::large_case(), |case| round_trip(&[case]));
}

/// Raw chunks are checked and copied some spans at a time; a row that is longer than that is taken in parts, and of
/// items that lie far apart each is taken alone.
#[test]
fn raw_chunks_with_long_rows_match_dense_indexing() {
    let shapes: [&[u64]; 5] =
        [&[500_000], &[2, 300_000], &[1, 2, 3, 60_000], &[3, 1, 40, 3000], &[1, 400_000, 1]];
    let drawn = (
        select(shapes.to_vec()),
        select(vec![Dtype::F64, Dtype::U16]),
        vec(draw::selection(), 3),
        any::<u64>(),
    );
    check("long_raw_rows", cases(8), drawn, |(shape, dtype, selections, seed)| {
        let array = Drawn {
            dtype,
            shape: shape.to_vec(),
            chunks: Some(shape.to_vec()),
            blocks: None,
            codec: Codec::Raw,
            fill: None,
        };
        let mut selections: Vec<_> = selections.iter().map(|selection| selection.axes(shape)).collect();
        selections.push(Vec::new());
        round_trip(&[Case { array, written: Written::Whole, values: Values::Random, seed, selections }]);
    });
}
