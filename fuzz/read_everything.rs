//! Reads all that a store has, through every call that reads, whatever its bytes are.
//!
//! Errors are what damaged bytes should give, and nobody looks at them. What must not happen is a panic, a hang or a large
//! allocation; nor that two ways to read the same items give different ones.

use brickmap::{Array, Axis, Element, EntryKind, OpenOptions, Ragged, Selection, Store, StridedMut};
use std::mem::MaybeUninit;

/// Bytes of one result, about: selections are cut down to it, since a small file can describe a large array.
const RESULT_BYTES: u64 = 32 << 10;
/// Bytes of all results of one store, about.
const ALL_BYTES: u64 = 1 << 20;
/// Items of one result: each may be in a chunk of its own.
const RESULT_ITEMS: u64 = 1024;

/// Opens a store of these bytes with and without a cache of blocks, and reads both.
pub(crate) fn read_everything(bytes: &[u8]) {
    let plain = OpenOptions::new().cache_bytes(0).threads(1).from_bytes(bytes.to_vec());
    let cached = Store::from_bytes(bytes.to_vec());
    let (Ok(plain), Ok(cached)) = (&plain, &cached) else {
        assert!(plain.is_err() && cached.is_err(), "a store that opens with some options only");
        return;
    };
    let _ = plain.refresh();
    let _ = (plain.file_id(), plain.path(), plain.verify());
    let snapshot = plain.snapshot();
    let _ = (
        snapshot.generation(),
        snapshot.file_bytes(),
        snapshot.attributes(""),
        snapshot.array("no such array"),
    );
    let mut budget = ALL_BYTES;
    for entry in snapshot.entries().unwrap_or_default() {
        let path = &entry.path;
        let _ = (snapshot.kind(path), snapshot.attributes(path));
        match entry.kind {
            EntryKind::Group => drop(snapshot.entries_below(path)),
            EntryKind::Array => {
                if let (Ok(plain), Ok(cached)) = (plain.array(path), cached.array(path)) {
                    read_array(&plain, &cached, &mut budget);
                }
            }
            EntryKind::Ragged => {
                if let (Ok(plain), Ok(cached)) = (plain.ragged(path), cached.ragged(path)) {
                    read_ragged(&plain, &cached, &mut budget);
                }
            }
            _ => assert!(snapshot.array(path).is_err()),
        }
        if budget == 0 {
            return;
        }
    }
}

fn read_array(plain: &Array, cached: &Array, budget: &mut u64) {
    let description = format!("{plain:?} {:?} {:?}", plain.codec(), plain.fill_value());
    let _ = (plain.nbytes(), plain.stored_bytes(), plain.stored_chunks(), plain.ndim(), plain.chunks());
    for selection in selections(plain.shape(), plain.dtype().itemsize() as u64) {
        let Ok(bytes) = plain.read_bytes(&selection) else { continue };
        // From the cache and not yet from there.
        for _ in 0..3 {
            let again = cached.read_bytes(&selection).expect("what was read once is there");
            assert!(bytes == again, "{description}: {selection:?} gives other bytes with a cache");
        }
        let mut memory = vec![MaybeUninit::uninit(); bytes.len()];
        plain.read_bytes_into(&selection, &mut memory).expect("what was read once is there");
        read_typed_as_any(plain, &selection, &bytes);
        *budget = budget.saturating_sub(bytes.len() as u64);
        if *budget == 0 {
            return;
        }
    }
}

/// Selections of an array of this shape: whole where it is small, from both ends, with steps, with lists.
fn selections(shape: &[u64], itemsize: u64) -> Vec<Selection> {
    let most = (RESULT_BYTES / itemsize).clamp(1, RESULT_ITEMS);
    let index = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    // As many of the last dimensions as are whole in a small result, then a part of the one before.
    let mut left = most;
    let mut counts = vec![0; shape.len()];
    for (count, &len) in counts.iter_mut().zip(shape).rev() {
        *count = len.min(left);
        left = (left / len.max(1)).max(1);
    }
    let dims = || counts.iter().map(|&count| index(count)).zip(shape.iter().map(|&len| index(len)));
    let range = |start, stop, step| Axis::Range { start: Some(start), stop, step };
    let backwards = |(count, len): (i64, i64)| {
        let step = (len / count.max(1)).max(1);
        range(-1, None, step.saturating_neg())
    };
    let list = |(_, len): (i64, i64)| if len == 0 { vec![] } else { vec![len - 1, 0, len / 2, 0, -1] };
    // Lists are long only in few dimensions: their product is read.
    let lists = |few: usize| {
        let listed = dims().enumerate().map(move |(dim, pair)| match dim {
            dim if dim < few => Axis::List(list(pair)),
            _ if pair.1 == 0 => Axis::FULL,
            _ => Axis::Index(pair.1 / 2),
        });
        Selection::new(listed.collect::<Vec<_>>())
    };
    let mut selections = vec![
        Selection::new(dims().map(|(count, _)| range(0, Some(count), 1))),
        Selection::new(dims().map(|(count, len)| range(len - count, None, 1))),
        Selection::new(dims().map(backwards)),
        lists(2),
        lists(0),
        Selection::new([Axis::NewAxis, Axis::Ellipsis].into_iter().chain(lists(1).axes().iter().cloned())),
    ];
    if shape
        .iter()
        .try_fold(1u64, |product, &len| product.checked_mul(len))
        .is_some_and(|items| items <= most)
    {
        selections.push(Selection::all());
    }
    // With large items the lists are too much.
    selections.retain(|selection| {
        let items = selection.shape(shape).map(|shape| shape.iter().product::<u64>());
        items.is_ok_and(|items| items <= most.max(1))
    });
    selections
}

/// Reads as every type; all but one say that the dtype is another.
fn read_typed_as_any(array: &Array, selection: &Selection, bytes: &[u8]) {
    read_typed::<u8>(array, selection, bytes);
    read_typed::<u16>(array, selection, bytes);
    read_typed::<u32>(array, selection, bytes);
    read_typed::<u64>(array, selection, bytes);
    read_typed::<i8>(array, selection, bytes);
    read_typed::<i16>(array, selection, bytes);
    read_typed::<i32>(array, selection, bytes);
    read_typed::<i64>(array, selection, bytes);
    read_typed::<f32>(array, selection, bytes);
    read_typed::<f64>(array, selection, bytes);
    read_typed::<[f32; 2]>(array, selection, bytes);
    read_typed::<[f64; 2]>(array, selection, bytes);
}

fn read_typed<T: Element>(array: &Array, selection: &Selection, bytes: &[u8]) {
    if !T::matches(array.dtype()) {
        assert!(array.read::<T>(selection).is_err() && array.view::<T>(selection).is_err());
        return;
    }
    let same = |items: &[T], how: &str| {
        assert!(size_of_val(items) == bytes.len(), "{array:?}: {selection:?} has another length as {how}");
        // Compared by their bytes, since a NaN is not equal to itself.
        assert!(
            bytemuck::cast_slice::<T, u8>(items) == bytes,
            "{array:?}: {selection:?} gives other items as {how}"
        );
    };
    let mut items = array.read::<T>(selection).expect("what was read once is there");
    same(&items, "read");
    array.read_into(selection, &mut items).expect("what was read once is there");
    same(&items, "read_into");
    read_reversed(array, selection, &items);
    if array.ndim() <= 4 && !array.is_empty() {
        let _ = array.get::<T>(&vec![-1; array.ndim()]);
    }
    if array.view::<T>(selection).is_ok() {
        same(array.view_checked(selection).expect("what was read once is there"), "view_checked");
    } else {
        assert!(array.view_checked::<T>(selection).is_err());
    }
}

/// Reads into memory in which the items stand in the opposite order.
fn read_reversed<T: Element>(array: &Array, selection: &Selection, items: &[T]) {
    let Ok(shape) = selection.shape(array.shape()) else { return };
    if items.is_empty() {
        return;
    }
    let mut strides = vec![0isize; shape.len()];
    let mut stride = -1isize;
    for (it, &len) in strides.iter_mut().zip(&shape).rev() {
        *it = stride;
        stride *= isize::try_from(len).expect("results are small");
    }
    let mut reversed = items.to_vec();
    let destination = StridedMut::new(&mut reversed, items.len() - 1, &shape, &strides)
        .expect("it is the whole memory, backwards");
    array.read_strided(selection, destination).expect("what was read once is there");
    let same = reversed.iter().rev().map(bytemuck::bytes_of).eq(items.iter().map(bytemuck::bytes_of));
    assert!(same, "{array:?}: {selection:?} gives other items with strides");
}

fn read_ragged(plain: &Ragged, cached: &Ragged, budget: &mut u64) {
    let _ = (plain.is_strings(), plain.stored_bytes());
    let bytes = plain.value_count().saturating_mul(plain.value_dtype().itemsize() as u64);
    if bytes > RESULT_BYTES {
        return;
    }
    for selection in selections(plain.shape(), 1) {
        if let Ok(strings) = plain.read_strings(&selection) {
            let again = cached.read_strings(&selection).expect("what was read once is there");
            assert_eq!(strings, again);
            assert_eq!(strings.iter().count(), strings.len());
            assert!(strings.get(strings.len()).is_none());
        }
        read_runs::<u8>(plain, &selection);
        read_runs::<i32>(plain, &selection);
        read_runs::<i64>(plain, &selection);
        read_runs::<f32>(plain, &selection);
        read_runs::<f64>(plain, &selection);
        *budget = budget.saturating_sub(bytes.max(1));
        if *budget == 0 {
            return;
        }
    }
}

fn read_runs<T: Element>(ragged: &Ragged, selection: &Selection) {
    if let Ok(runs) = ragged.read_runs::<T>(selection) {
        assert_eq!(
            runs.iter().map(<[T]>::len).sum::<usize>(),
            (0..runs.len()).filter_map(|n| runs.get(n)).flatten().count()
        );
        assert!(runs.get(runs.len()).is_none());
    }
}
