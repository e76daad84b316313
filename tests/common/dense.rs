//! The model: an array in memory, and selections worked out index by index, in the plainest way there is.

use brickmap::Axis;

/// An array in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dense {
    pub(crate) shape: Vec<u64>,
    pub(crate) itemsize: usize,
    pub(crate) bytes: Vec<u8>,
}

/// What a selection means: the indices along each dimension of the array, and the shape of the result.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    pub(crate) indices: Vec<Vec<u64>>,
    pub(crate) shape: Vec<u64>,
}

impl Picked {
    pub(crate) fn len(&self) -> usize {
        self.indices.iter().map(Vec::len).product()
    }
}

/// What NumPy, with `np.ix_` for lists, understands by these entries.
pub(crate) fn pick(axes: &[Axis], array: &[u64]) -> Picked {
    let spoken_of = axes.iter().filter(|axis| !matches!(axis, Axis::Ellipsis | Axis::NewAxis)).count();
    let mut axes = axes.to_vec();
    let whole = vec![Axis::FULL; array.len() - spoken_of];
    match axes.iter().position(|axis| matches!(axis, Axis::Ellipsis)) {
        Some(at) => drop(axes.splice(at..=at, whole)),
        None => axes.extend(whole),
    }
    let mut picked = Picked { indices: Vec::new(), shape: Vec::new() };
    for axis in axes {
        if matches!(axis, Axis::NewAxis) {
            picked.shape.push(1);
            continue;
        }
        let len = array[picked.indices.len()];
        let from_start = |index: i64| if index < 0 { (index + len as i64) as u64 } else { index as u64 };
        let indices = match &axis {
            Axis::Index(index) => vec![from_start(*index)],
            Axis::List(list) => list.iter().map(|index| from_start(*index)).collect(),
            Axis::Range { start, stop, step } => slice(len, *start, *stop, *step),
            other => unreachable!("{other:?}"),
        };
        if !matches!(axis, Axis::Index(_)) {
            picked.shape.push(indices.len() as u64);
        }
        picked.indices.push(indices);
    }
    picked
}

/// Python's `range(len)[start:stop:step]`, by its definition: i = start + n * step, as long as it is before stop.
fn slice(len: u64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<u64> {
    let (len, step) = (i128::from(len), i128::from(step));
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let bound = |bound: i64| {
        let bound = i128::from(bound);
        (if bound < 0 { bound + len } else { bound }).max(low).min(high)
    };
    let (from, to) = if step > 0 { (low, high) } else { (high, low) };
    let (mut at, stop) = (start.map_or(from, bound), stop.map_or(to, bound));
    let mut indices = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        indices.push(at as u64);
        at += step;
    }
    indices
}

impl Dense {
    /// An array whose items are all `item`.
    pub(crate) fn filled(shape: &[u64], item: &[u8]) -> Dense {
        let count = shape.iter().product::<u64>() as usize;
        Dense { shape: shape.to_vec(), itemsize: item.len(), bytes: item.repeat(count) }
    }

    /// The array with another shape: items that are in both stay, the others are `fill`.
    pub(crate) fn resized(&self, shape: &[u64], fill: &[u8]) -> Dense {
        let mut resized = Dense::filled(shape, fill);
        let both: Vec<Vec<u64>> =
            self.shape.iter().zip(shape).map(|(old, new)| (0..*old.min(new)).collect()).collect();
        let both = Picked { indices: both, shape: Vec::new() };
        let items = self.read(&both);
        resized.write(&both, &items);
        resized
    }

    /// Puts rows before row `at`.
    pub(crate) fn insert_rows(&mut self, at: u64, bytes: &[u8]) {
        let row = self.row_bytes();
        if row > 0 {
            let at = at as usize * row;
            self.bytes.splice(at..at, bytes.iter().copied());
            self.shape[0] += (bytes.len() / row) as u64;
        }
    }

    /// Takes rows out.
    pub(crate) fn remove_rows(&mut self, rows: std::ops::Range<u64>) {
        let row = self.row_bytes();
        self.bytes.drain(rows.start as usize * row..rows.end as usize * row);
        self.shape[0] -= rows.end - rows.start;
    }

    /// Bytes of what has one index in the first dimension.
    pub(crate) fn row_bytes(&self) -> usize {
        self.shape[1..].iter().product::<u64>() as usize * self.itemsize
    }

    /// Makes the array longer by `len` places along a dimension, with items that it returns, in C order.
    pub(crate) fn grow(&mut self, axis: usize, len: u64, items: impl FnOnce(usize) -> Vec<u8>) -> Vec<u8> {
        let before = self.shape[axis];
        let mut shape = self.shape.clone();
        shape[axis] += len;
        *self = self.resized(&shape, &vec![0; self.itemsize]);
        let mut indices: Vec<Vec<u64>> = shape.iter().map(|len| (0..*len).collect()).collect();
        indices[axis] = (before..before + len).collect();
        let added = Picked { indices, shape: Vec::new() };
        let items = items(added.len());
        self.write(&added, &items);
        items
    }

    /// The numbers of the selected items in C order of the selection.
    pub(crate) fn numbers(&self, picked: &Picked) -> Vec<usize> {
        fn along(indices: &[Vec<u64>], shape: &[u64], number: u64, out: &mut Vec<usize>) {
            match indices.split_first() {
                None => out.push(number as usize),
                Some((first, rest)) => {
                    for index in first {
                        along(rest, &shape[1..], number * shape[0] + index, out);
                    }
                }
            }
        }
        let mut numbers = Vec::with_capacity(picked.len());
        along(&picked.indices, &self.shape, 0, &mut numbers);
        numbers
    }

    /// The selected items.
    pub(crate) fn read(&self, picked: &Picked) -> Vec<u8> {
        let size = self.itemsize;
        self.numbers(picked)
            .into_iter()
            .flat_map(|n| &self.bytes[n * size..(n + 1) * size])
            .copied()
            .collect()
    }

    /// Sets the selected items, one after the other.
    pub(crate) fn write(&mut self, picked: &Picked, items: &[u8]) {
        let size = self.itemsize;
        for (n, item) in self.numbers(picked).into_iter().zip(items.chunks_exact(size)) {
            self.bytes[n * size..(n + 1) * size].copy_from_slice(item);
        }
    }
}
