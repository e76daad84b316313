//! Rust types that items can be read into and written from.

use super::Dtype;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that holds one item of an array, bit for bit.
///
/// | type | dtypes |
/// | --- | --- |
/// | `u8` | [`U8`](Dtype::U8), [`Bool`](Dtype::Bool) as bytes 0 and 1 |
/// | `u16`, `u32`, `u64` | the unsigned integer of that width |
/// | `i8`, `i16`, `i32` | the signed integer of that width |
/// | `i64` | [`I64`](Dtype::I64); [`Datetime64`](Dtype::Datetime64) and [`Timedelta64`](Dtype::Timedelta64) as counts |
/// | `half::f16`, `f32`, `f64` | the float of that width |
/// | `[f32; 2]`, `[f64; 2]` | [`Complex64`](Dtype::Complex64), [`Complex128`](Dtype::Complex128) as real and imaginary part |
///
/// Rust's `bool` is none of them: a byte from a file could be neither 0 nor 1, which a `bool` must not be. Strings
/// and structures have no such type; they are read as bytes. Nothing is converted: a type whose dtypes do not
/// include the array's is an error.
///
/// The trait is sealed: a type is added here or not at all.
///
/// ```
/// use brickmap::{Dtype, Element};
///
/// assert!(u8::matches(&Dtype::Bool));
/// assert!(!u8::matches(&Dtype::I8));
/// assert_eq!(<[f32; 2]>::dtype(), Dtype::Complex64);
/// ```
pub trait Element: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The type's name in Rust, for messages.
    const NAME: &'static str;

    /// Whether items of `dtype` can be read as this type.
    fn matches(dtype: &Dtype) -> bool;

    /// The dtype that an array of this type gets unless another is asked for.
    fn dtype() -> Dtype;
}

macro_rules! element {
    ($($type:ty, $natural:expr, $matches:pat,)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const NAME: &'static str = stringify!($type);

            fn matches(dtype: &Dtype) -> bool {
                matches!(dtype, $matches)
            }

            fn dtype() -> Dtype {
                $natural
            }
        }
    )*};
}

element! {
    u8, Dtype::U8, Dtype::U8 | Dtype::Bool,
    u16, Dtype::U16, Dtype::U16,
    u32, Dtype::U32, Dtype::U32,
    u64, Dtype::U64, Dtype::U64,
    i8, Dtype::I8, Dtype::I8,
    i16, Dtype::I16, Dtype::I16,
    i32, Dtype::I32, Dtype::I32,
    i64, Dtype::I64, Dtype::I64 | Dtype::Datetime64(_) | Dtype::Timedelta64(_),
    half::f16, Dtype::F16, Dtype::F16,
    f32, Dtype::F32, Dtype::F32,
    f64, Dtype::F64, Dtype::F64,
    [f32; 2], Dtype::Complex64, Dtype::Complex64,
    [f64; 2], Dtype::Complex128, Dtype::Complex128,
}
