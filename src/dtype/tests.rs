//! Notation, descriptions and the form on disk.

use proptest::prelude::*;

use super::*;
use crate::error::Damage;

fn unit(multiplier: u32, base: TimeBase) -> TimeUnit {
    TimeUnit::new(multiplier, base).unwrap()
}

fn structured(descr: &str) -> Dtype {
    Dtype::Void(VoidType::structured(descr).unwrap())
}

fn encoded(dtype: &Dtype) -> Vec<u8> {
    let mut bytes = Vec::new();
    dtype.encode(&mut bytes);
    bytes
}

/// The error that decoding gives, which has to speak of `about`.
fn refuse(bytes: &[u8], about: &str) {
    let Err(Damage(what)) = Dtype::decode(bytes) else {
        panic!("{bytes:?} was decoded; expected an error about '{about}'");
    };
    assert!(what.contains(about), "{bytes:?}: '{what}' does not contain '{about}'");
}

fn refuse_text(text: &str, about: &str) {
    let error = Dtype::parse(text).expect_err(text).to_string();
    assert!(error.contains(about), "'{text}': '{error}' does not contain '{about}'");
}

#[test]
fn prints_numpy_notation() {
    let cases = [
        (Dtype::Bool, "|b1", 1),
        (Dtype::I8, "|i1", 1),
        (Dtype::I16, "<i2", 2),
        (Dtype::I32, "<i4", 4),
        (Dtype::I64, "<i8", 8),
        (Dtype::U8, "|u1", 1),
        (Dtype::U16, "<u2", 2),
        (Dtype::U32, "<u4", 4),
        (Dtype::U64, "<u8", 8),
        (Dtype::F16, "<f2", 2),
        (Dtype::F32, "<f4", 4),
        (Dtype::F64, "<f8", 8),
        (Dtype::Complex64, "<c8", 8),
        (Dtype::Complex128, "<c16", 16),
        (Dtype::Datetime64(TimeBase::Nanosecond.into()), "<M8[ns]", 8),
        (Dtype::Datetime64(unit(25, TimeBase::Microsecond)), "<M8[25us]", 8),
        (Dtype::Datetime64(TimeBase::Generic.into()), "<M8", 8),
        (Dtype::Timedelta64(TimeBase::Minute.into()), "<m8[m]", 8),
        (Dtype::Timedelta64(TimeBase::Month.into()), "<m8[M]", 8),
        (Dtype::Bytes(5), "|S5", 5),
        (Dtype::Unicode(7), "<U7", 28),
        (Dtype::Void(VoidType::opaque(12).unwrap()), "|V12", 12),
        (structured("[('a', '<f4'), ('b', '>i2', (3,))]"), "[('a', '<f4'), ('b', '>i2', (3,))]", 10),
    ];
    for (dtype, text, itemsize) in cases {
        assert_eq!(dtype.to_string(), text);
        assert_eq!(dtype.itemsize(), itemsize, "{text}");
        assert_eq!(text.parse::<Dtype>().unwrap(), dtype);
    }
}

#[test]
fn parses_names_and_orders() {
    let cases = [
        ("bool", Dtype::Bool),
        ("int8", Dtype::I8),
        ("int16", Dtype::I16),
        ("int32", Dtype::I32),
        ("int64", Dtype::I64),
        ("uint8", Dtype::U8),
        ("uint16", Dtype::U16),
        ("uint32", Dtype::U32),
        ("uint64", Dtype::U64),
        ("float16", Dtype::F16),
        ("float32", Dtype::F32),
        ("float64", Dtype::F64),
        ("complex64", Dtype::Complex64),
        ("complex128", Dtype::Complex128),
        ("datetime64", Dtype::Datetime64(TimeBase::Generic.into())),
        ("datetime64[ns]", Dtype::Datetime64(TimeBase::Nanosecond.into())),
        ("timedelta64[10ms]", Dtype::Timedelta64(unit(10, TimeBase::Millisecond))),
        ("=f4", Dtype::F32),
        ("f4", Dtype::F32),
        (" <f4 ", Dtype::F32),
        ("u8", Dtype::U64),
        // One byte has no order, nor have opaque bytes.
        (">i1", Dtype::I8),
        (">b1", Dtype::Bool),
        (">S5", Dtype::Bytes(5)),
        (">V5", Dtype::Void(VoidType::opaque(5).unwrap())),
    ];
    for (text, dtype) in cases {
        assert_eq!(Dtype::parse(text).unwrap(), dtype, "{text}");
    }
}

#[test]
fn big_endian_is_refused_or_reported() {
    for (text, dtype) in [
        (">f4", Dtype::F32),
        (">c16", Dtype::Complex128),
        (">M8[D]", Dtype::Datetime64(TimeBase::Day.into())),
        (">U3", Dtype::Unicode(3)),
    ] {
        assert_eq!(Dtype::parse_with_order(text).unwrap(), (dtype, ByteOrder::Big));
        refuse_text(text, "big-endian");
    }
    assert_eq!(Dtype::parse_with_order("<f4").unwrap(), (Dtype::F32, ByteOrder::Little));
}

#[test]
fn refuses_text_that_is_no_dtype() {
    for text in ["", "<", "f5", "i", "<i16", "float31", "é", "<é4", ">", "<<f4", "c4", "?"] {
        refuse_text(text, "not known");
    }
    refuse_text("S", "no bytes");
    refuse_text("<U0", "no bytes");
    refuse_text("|V0", "no bytes");
    refuse_text("[]", "no bytes");
    refuse_text("|S16777217", "limit");
    refuse_text("<U4194305", "limit");
    refuse_text("<U4294967295", "limit");
    refuse_text("|S4294967296", "size in dtype");
    refuse_text("|Sx", "expected a size");
    refuse_text("|S-1", "expected a size");
    refuse_text("<f16", "long double");
    refuse_text("|O", "Python objects");
    refuse_text("<M8[xs]", "time units");
    refuse_text("<M8[5]", "time units");
    refuse_text("<M8ns", "brackets");
    refuse_text("<M8[ns", "brackets");
    refuse_text("<M8[0ns]", "at least 1");
    refuse_text("<M8[4294967296ns]", "32 bits");
    assert!(matches!(Dtype::parse("<g16"), Err(Error::InvalidArgument { .. })));
    assert!(matches!(Dtype::parse("|O"), Err(Error::Unsupported { .. })));
    assert!(Dtype::parse("|S16777216").is_ok());
    assert!(Dtype::parse("<U4194304").is_ok());
}

#[test]
fn sizes_of_descriptions() {
    let cases = [
        ("[('a', '<f4')]", 4),
        ("[('a', '<f4'), ('b', '>i2', (3,)), ('c', [('x','<i4')]), ('', '|V4')]", 18),
        ("[('a', '<f4', (2, 3)), ('b', '|S3', 2)]", 30),
        ("[('a', [('x', '<f8', (2,)), ('y', '|u1')], (3,))]", 51),
        ("[(('title', 'name'), '<f4')]", 4),
        ("[((\"it's\", 'name',), '<f4',),]", 4),
        ("  [ ( 'a' , '<f4' , ( ) , ) ] ", 4),
        ("[('', '|V3'), ('', '|V4')]", 7),
        ("[('a', '|S0'), ('b', '<i4'), ('c', '<f8', (0, 7))]", 4),
        ("[('größe', 'float64'), ('it\\'s', '|b1')]", 9),
        ("[('t', '<M8[25us]'), ('u', '<U3')]", 20),
    ];
    for (text, size) in cases {
        let void = VoidType::structured(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(void.size(), size, "{text}");
        assert_eq!(void.descr(), Some(text));
        assert_eq!(Dtype::parse(text).unwrap(), Dtype::Void(void));
    }
}

#[test]
fn refuses_descriptions_that_are_wrong() {
    refuse_text("[('a', '<f4')] x", "character 16: expected nothing more");
    refuse_text("[('a', '<f4')", "character 14: expected ']'");
    refuse_text("[('a', '<f4'", "expected ')'");
    refuse_text("[('a')]", "expected ','");
    refuse_text("['a']", "expected '('");
    refuse_text("[('a', '<f4), ]", "no closing quote");
    refuse_text("[(a, '<f4')]", "expected a string");
    refuse_text("[('a', f4)]", "expected a string");
    refuse_text("[('a', 'f5')]", "not known");
    refuse_text("[('a', '|O')]", "Python objects");
    refuse_text("[('a', '<f4', (-1,))]", "expected a length");
    refuse_text("[('a', '<f4', x)]", "expected a length");
    refuse_text("[('a', '<f4'), ('a', '<i4')]", "occurs twice");
    refuse_text("[(('a', 'a'), '<i4')]", "occurs twice");
    refuse_text("[(('a', 'b', 'c'), '<i4')]", "expected ')'");
    refuse_text("[('a', '|S0')]", "no bytes");
    refuse_text("[('a', '|S4096', 4097)]", "limit");
    refuse_text("[('a', '<f8', (4294967296, 4294967296))]", "64 bits");
    refuse_text("[('a', '<f8', 4611686018427387904)]", "64 bits");
    refuse_text("[('a', '<f8', 99999999999999999999)]", "64 bits");
    refuse_text("[('a', '|u1', 18446744073709551615), ('b', '|u1')]", "64 bits");
    refuse_text(&format!("[('a', '<f4', ({}))]", "1,".repeat(33)), "32 dimensions");
    assert_eq!(structured(&format!("[('a', '<f4', ({}))]", "1,".repeat(32))).itemsize(), 4);
    // A length of 0 anywhere makes the field empty, whatever the others are.
    assert_eq!(structured("[('a', '<f8', (4294967296, 4294967296, 0)), ('b', '|u1')]").itemsize(), 1);
}

#[test]
fn depth_of_descriptions_is_limited() {
    let nested = |depth: usize| format!("{}'<f4'{}", "[('a', ".repeat(depth), ")]".repeat(depth));
    assert_eq!(structured(&nested(32)).itemsize(), 4);
    refuse_text(&nested(33), "deep");
    refuse_text(&"[('a', ".repeat(100_000), "deep");
}

#[test]
fn layout_on_disk() {
    let datetime = Dtype::Datetime64(unit(25, TimeBase::Microsecond));
    assert_eq!(encoded(&datetime), [6, 9, 0, 0, 8, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(&Dtype::Unicode(7)), [9, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut expected = vec![10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0];
    expected.extend_from_slice(b"[('a', '<f4')]");
    assert_eq!(encoded(&structured("[('a', '<f4')]")), expected);

    let numbers = [
        (Dtype::Bool, 1, 1),
        (Dtype::I16, 2, 2),
        (Dtype::U32, 3, 4),
        (Dtype::F16, 4, 2),
        (Dtype::Complex128, 5, 16),
        (Dtype::Timedelta64(TimeBase::Attosecond.into()), 7, 8),
        (Dtype::Bytes(3), 8, 3),
    ];
    for (dtype, class, size) in numbers {
        let bytes = encoded(&dtype);
        assert_eq!((bytes[0], bytes[4]), (class, size), "{dtype}");
    }
    for (number, (base, _)) in (0..).zip(TimeBase::ALL) {
        assert_eq!(encoded(&Dtype::Datetime64(base.into()))[1], number);
    }
}

#[test]
fn decoding_ignores_the_reserved_bytes() {
    let mut bytes = encoded(&Dtype::F32);
    bytes[2..4].copy_from_slice(&[7, 9]);
    assert_eq!(Dtype::decode(&bytes).unwrap(), Dtype::F32);
}

/// `dtype` as encoded, with some bytes replaced.
fn patched(dtype: &Dtype, patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = encoded(dtype);
    for (offset, patch) in patches {
        bytes[*offset..offset + patch.len()].copy_from_slice(patch);
    }
    bytes
}

#[test]
fn decoding_refuses_what_encoding_never_writes() {
    let f4 = Dtype::F32;
    let time = Dtype::Datetime64(TimeBase::Day.into());
    let fields = structured("[('a', '<f4')]");
    let opaque = Dtype::Void(VoidType::opaque(4).unwrap());

    refuse(&[], "0 bytes");
    refuse(&encoded(&f4)[..15], "15 bytes");
    refuse(&[encoded(&f4), vec![0]].concat(), "1 follow");
    refuse(&[encoded(&fields), vec![b' ']].concat(), "15 follow");
    refuse(&encoded(&fields)[..29], "13 follow");
    refuse(&patched(&fields, &[(12, &[0xff; 4])]), "4294967295 bytes");

    refuse(&patched(&f4, &[(0, &[0])]), "unknown class 0");
    refuse(&patched(&f4, &[(0, &[11])]), "unknown class 11");
    refuse(&patched(&time, &[(1, &[14])]), "unknown time unit 14");
    refuse(&patched(&time, &[(8, &[0])]), "multiplier 0");
    refuse(&patched(&f4, &[(1, &[1])]), "time unit 1");
    refuse(&patched(&f4, &[(8, &[1])]), "time unit 0 times 1");

    for class in 1..=10 {
        refuse(&patched(&f4, &[(0, &[class]), (4, &[0])]), "item size of 0");
    }
    let over = (MAX_ITEMSIZE + 1).to_le_bytes();
    refuse(&patched(&Dtype::Bytes(1), &[(4, &over)]), "item size of 16777217");
    refuse(&patched(&opaque, &[(4, &over)]), "item size of 16777217");
    for (class, size) in [(1, 2), (2, 3), (2, 16), (3, 5), (4, 1), (4, 16), (5, 4), (5, 32), (9, 3), (9, 6)] {
        refuse(
            &patched(&f4, &[(0, &[class]), (4, &[size])]),
            &format!("item size of {size} in class {class}"),
        );
    }
    refuse(&patched(&time, &[(4, &[4])]), "item size of 4 in class 6");
    refuse(&patched(&time, &[(0, &[7]), (4, &[4])]), "item size of 4 in class 7");

    for class in (1..=9).filter(|class| !matches!(class, 6 | 7)) {
        refuse(&patched(&fields, &[(0, &[class])]), "a description in class");
    }
    refuse(&[patched(&time, &[(12, &[1])]), vec![b'x']].concat(), "a description in class 6");
    refuse(&patched(&fields, &[(4, &[8])]), "its description gives 4");
    refuse(&patched(&fields, &[(18, &[0xff])]), "not UTF-8");
    refuse(&patched(&fields, &[(16, b"x")]), "description that is wrong");
}

#[test]
fn limits_of_the_item_size() {
    for dtype in
        [Dtype::Bytes(0), Dtype::Unicode(0), Dtype::Bytes(MAX_ITEMSIZE + 1), Dtype::Unicode(u32::MAX)]
    {
        assert!(dtype.check().is_err(), "{dtype}");
    }
    for dtype in [Dtype::Bytes(1), Dtype::Bytes(MAX_ITEMSIZE), Dtype::Unicode(MAX_ITEMSIZE / 4)] {
        dtype.check().unwrap();
        assert_eq!(Dtype::decode(&encoded(&dtype)).unwrap(), dtype);
    }
    assert!(VoidType::opaque(0).is_err());
    assert!(VoidType::opaque(MAX_ITEMSIZE + 1).is_err());
    assert!(TimeUnit::new(0, TimeBase::Day).is_err());
}

#[test]
fn components_are_swapped_one_by_one() {
    let swapped = |dtype: Dtype| {
        let mut data: Vec<u8> = (0..17).collect();
        dtype.swap_bytes(&mut data);
        data
    };
    let same: Vec<u8> = (0..17).collect();
    let twos = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 16];
    let fours = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 16];
    let eights = [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 16];
    assert_eq!(swapped(Dtype::U8), same);
    assert_eq!(swapped(Dtype::Bytes(4)), same);
    assert_eq!(swapped(Dtype::Void(VoidType::opaque(4).unwrap())), same);
    assert_eq!(swapped(structured("[('a', '>f4')]")), same);
    assert_eq!(swapped(Dtype::F16), twos);
    assert_eq!(swapped(Dtype::I32), fours);
    assert_eq!(swapped(Dtype::Complex64), fours);
    assert_eq!(swapped(Dtype::Unicode(2)), fours);
    assert_eq!(swapped(Dtype::F64), eights);
    assert_eq!(swapped(Dtype::Complex128), eights);
    assert_eq!(swapped(Dtype::Datetime64(TimeBase::Day.into())), eights);
    assert_eq!(structured("[('a', '>f4', 5)]").component_size(), 20);
}

#[test]
fn elements_have_the_size_of_their_dtypes() {
    fn check<T: Element>(others: &[Dtype]) {
        assert_eq!(size_of::<T>(), T::dtype().itemsize(), "{}", T::NAME);
        for dtype in every_number() {
            let expected = dtype == T::dtype() || others.contains(&dtype);
            assert_eq!(T::matches(&dtype), expected, "{} and {dtype}", T::NAME);
            assert!(!expected || size_of::<T>() == dtype.itemsize());
        }
        assert!(!T::matches(&Dtype::Bytes(1)));
    }
    check::<u8>(&[Dtype::Bool]);
    check::<u16>(&[]);
    check::<u32>(&[]);
    check::<u64>(&[]);
    check::<i8>(&[]);
    check::<i16>(&[]);
    check::<i32>(&[]);
    check::<i64>(&[
        Dtype::Datetime64(TimeBase::Nanosecond.into()),
        Dtype::Timedelta64(TimeBase::Nanosecond.into()),
    ]);
    check::<half::f16>(&[]);
    check::<f32>(&[]);
    check::<f64>(&[]);
    check::<[f32; 2]>(&[]);
    check::<[f64; 2]>(&[]);
}

fn every_number() -> Vec<Dtype> {
    let ns: TimeUnit = TimeBase::Nanosecond.into();
    vec![
        Dtype::Bool,
        Dtype::I8,
        Dtype::I16,
        Dtype::I32,
        Dtype::I64,
        Dtype::U8,
        Dtype::U16,
        Dtype::U32,
        Dtype::U64,
        Dtype::F16,
        Dtype::F32,
        Dtype::F64,
        Dtype::Complex64,
        Dtype::Complex128,
        Dtype::Datetime64(ns),
        Dtype::Timedelta64(ns),
    ]
}

/// A description and its size.
fn any_descr() -> impl Strategy<Value = (String, u64)> {
    let scalar = prop_oneof![
        Just(("'<f4'".to_owned(), 4)),
        Just(("\">i2\"".to_owned(), 2)),
        Just(("'|V3'".to_owned(), 3)),
        (1..50u64).prop_map(|n| (format!("'<U{n}'"), 4 * n)),
    ];
    let field_type = scalar.prop_recursive(3, 12, 3, |inner| {
        prop::collection::vec((inner, prop::collection::vec(0..4u64, 0..3)), 1..4).prop_map(fields_of)
    });
    prop::collection::vec((field_type, prop::collection::vec(0..4u64, 0..3)), 1..4).prop_map(fields_of)
}

fn fields_of(fields: Vec<((String, u64), Vec<u64>)>) -> (String, u64) {
    let mut texts = Vec::new();
    let mut total = 0;
    for (number, ((text, size), shape)) in fields.into_iter().enumerate() {
        total += size * shape.iter().product::<u64>();
        texts.push(match shape.as_slice() {
            [] => format!("('f{number}', {text})"),
            [length] => format!("('f{number}', {text}, {length})"),
            lengths => {
                let lengths: String = lengths.iter().map(|length| format!("{length}, ")).collect();
                format!("(('title {number}', 'ü{number}'), {text}, ({lengths}))")
            }
        });
    }
    (format!("[{}]", texts.join(", ")), total)
}

fn any_dtype() -> impl Strategy<Value = Dtype> {
    let numbers = every_number();
    let unit = (1..=u32::MAX, prop::sample::select(TimeBase::ALL.to_vec()))
        .prop_map(|(multiplier, (base, _))| unit(multiplier, base));
    prop_oneof![
        prop::sample::select(numbers),
        unit.clone().prop_map(Dtype::Datetime64),
        unit.prop_map(Dtype::Timedelta64),
        (1..=MAX_ITEMSIZE).prop_map(Dtype::Bytes),
        (1..=MAX_ITEMSIZE / 4).prop_map(Dtype::Unicode),
        (1..=MAX_ITEMSIZE).prop_map(|size| Dtype::Void(VoidType::opaque(size).unwrap())),
        any_descr()
            .prop_filter("has bytes", |(_, size)| (1..=u64::from(MAX_ITEMSIZE)).contains(size))
            .prop_map(|(text, _)| structured(&text)),
    ]
}

proptest! {
    #[test]
    fn round_trips(dtype in any_dtype()) {
        prop_assert_eq!(&Dtype::decode(&encoded(&dtype)).unwrap(), &dtype);
        prop_assert_eq!(&Dtype::parse(&dtype.to_string()).unwrap(), &dtype);
    }

    #[test]
    fn descriptions_have_the_size_of_their_fields((text, size) in any_descr()) {
        prop_assert_eq!(descr::size(&text).unwrap(), size, "{}", text);
    }

    #[test]
    fn damaged_records_are_refused_or_other_dtypes(dtype in any_dtype(), at in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = encoded(&dtype);
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(other) = Dtype::decode(&bytes) {
            other.check().unwrap();
            bytes[2..4].fill(0);
            prop_assert_eq!(encoded(&other), bytes);
        }
    }

    #[test]
    fn no_text_panics(text in "[\\[('a\",0-9)\\]<>|fiVSUM é\\\\]{0,40}") {
        let _ = Dtype::parse_with_order(&text);
    }
}
