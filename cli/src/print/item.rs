//! What one item is made of.

use crate::npy::Literal;
use brickmap::{ByteOrder, Dtype};

/// What one item of an array, or of a field of a structure, is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Anything but a structure.
    Plain(Dtype, ByteOrder),
    /// The fields of a structure, with a size that is that of all of them.
    Fields(Vec<Field>, usize),
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(super) name: String,
    pub(super) item: Item,
    /// Of the array that the field is; none for a single item.
    pub(super) shape: Vec<u64>,
    /// Where it starts in the structure.
    pub(super) offset: usize,
    /// How many items it has.
    pub(super) count: usize,
}

impl Item {
    /// What items of `dtype` are made of. A structure whose description cannot be taken apart is opaque bytes.
    pub(crate) fn of(dtype: &Dtype) -> Item {
        let Dtype::Void(void) = dtype else { return Item::Plain(dtype.clone(), ByteOrder::Little) };
        let fields =
            void.descr().and_then(|descr| Literal::parse(descr).ok()).and_then(|descr| fields(&descr));
        match fields {
            Some(item) if item.size() == dtype.itemsize() => item,
            _ => Item::Plain(dtype.clone(), ByteOrder::Little),
        }
    }

    /// Bytes of an item; at least 1.
    pub(super) fn size(&self) -> usize {
        match self {
            Item::Plain(dtype, _) => dtype.itemsize(),
            Item::Fields(_, size) => *size,
        }
    }

    /// The bytes of an item as little-endian words.
    pub(super) fn in_order<'a>(
        dtype: &Dtype,
        order: ByteOrder,
        item: &'a [u8],
    ) -> std::borrow::Cow<'a, [u8]> {
        if order == ByteOrder::Little {
            return item.into();
        }
        let mut swapped = item.to_vec();
        dtype.swap_bytes(&mut swapped);
        swapped.into()
    }
}

impl Field {
    /// The bytes of the field in a structure.
    pub(super) fn of<'a>(&self, structure: &'a [u8]) -> &'a [u8] {
        structure.get(self.offset..self.offset + self.count * self.item.size()).unwrap_or_default()
    }
}

/// The fields of a structure. Padding and fields without bytes are left out.
fn fields(descr: &Literal) -> Option<Item> {
    let mut fields = Vec::new();
    let mut offset = 0usize;
    for field in descr.elements()? {
        let mut parts = field.elements()?;
        // A name, or a title and a name.
        let name = match parts.next()? {
            Literal::Text(name) => name,
            pair => pair.elements()?.nth(1)?.as_text()?,
        };
        let item = match parts.next()? {
            Literal::Text(text) => match Dtype::parse_with_order(text) {
                Ok((dtype, order)) => Some(Item::Plain(dtype, order)),
                // Of the types that fields have, only those of no bytes cannot be read on their own.
                Err(_) => None,
            },
            inner => Some(self::fields(inner)?),
        };
        let shape = match parts.next() {
            None => Vec::new(),
            Some(Literal::Integer(len)) => vec![*len],
            Some(lens) => lens.elements()?.map(Literal::as_integer).collect::<Option<_>>()?,
        };
        let count =
            shape.iter().try_fold(1usize, |count, &len| count.checked_mul(usize::try_from(len).ok()?));
        let Some(item) = item else { continue };
        let field = Field { name: name.to_owned(), item, shape, offset, count: count? };
        offset = offset.checked_add(field.count.checked_mul(field.item.size())?)?;
        if !field.name.is_empty() && field.count > 0 {
            fields.push(field);
        }
    }
    (offset > 0).then_some(Item::Fields(fields, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickmap::VoidType;

    #[test]
    fn structures_are_taken_apart() {
        let descr = "[('a', '|u1'), ('', '|V3'), (('title', 'b'), '>i4', (2, 3)), ('e', '|S0'), ('c', [('d', '<f8')])]";
        let dtype = Dtype::Void(VoidType::structured(descr).unwrap());
        let Item::Fields(fields, size) = Item::of(&dtype) else { panic!("not a structure") };
        assert_eq!(size, dtype.itemsize());
        let places: Vec<_> =
            fields.iter().map(|field| (&field.name[..], field.offset, field.count)).collect();
        assert_eq!(places, [("a", 0, 1), ("b", 4, 6), ("c", 28, 1)]);
    }
}
