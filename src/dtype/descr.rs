//! Descriptions of structured types: what NumPy's `dtype.descr` prints.
//!
//! ```text
//! fields = "[" field ("," field)* [","] "]"
//! field  = "(" name "," type ["," shape] [","] ")"
//! name   = string | "(" string "," string [","] ")"      a title and a name
//! type   = string | fields
//! shape  = integer | "(" [integer ("," integer)* [","]] ")"
//! ```
//!
//! Only the size is computed; the description itself stays the text that it was. An empty name is padding.

use std::collections::HashSet;

use super::notation::parse_scalar;
use crate::error::{Error, Result};
use crate::shape::MAX_NDIM;

/// How deep structures may lie in each other. A limit keeps a hostile description from using up the stack.
const MAX_DEPTH: usize = 32;

/// Bytes in an item with this description. The caller judges whether the size is one that an item may have.
pub(super) fn size(descr: &str) -> Result<u64> {
    let mut parser = Parser { text: descr, position: 0 };
    let size = parser.fields(0)?;
    parser.skip_space();
    if parser.position != descr.len() {
        return Err(parser.error("expected nothing more"));
    }
    Ok(size)
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes; always at a character boundary, since it only moves past ASCII characters and whole strings.
    position: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, what: &str) -> Error {
        let column = self.text.get(..self.position).map_or(0, |before| before.chars().count()) + 1;
        Error::invalid(format!("structured dtype, character {column}: {what}"))
    }

    fn too_large(&self) -> Error {
        Error::TooLarge { what: "the item size of a structured dtype passes 64 bits".to_owned() }
    }

    fn skip_space(&mut self) {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or(&[]);
        self.position += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) {
            return Ok(());
        }
        Err(self.error(&format!("expected '{}'", char::from(byte))))
    }

    /// The items of a Python list or tuple up to `close`, whose opening has been taken.
    fn items(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while !self.take(close) {
            item(self)?;
            if !self.take(b',') {
                return self.expect(close);
            }
        }
        Ok(())
    }

    fn fields(&mut self, depth: usize) -> Result<u64> {
        if depth == MAX_DEPTH {
            return Err(self.error(&format!("structures lie more than {MAX_DEPTH} deep in each other")));
        }
        self.expect(b'[')?;
        let mut names = HashSet::new();
        let mut total = 0u64;
        self.items(b']', |parser| {
            let size = parser.field(depth, &mut names)?;
            total = total.checked_add(size).ok_or_else(|| parser.too_large())?;
            Ok(())
        })?;
        Ok(total)
    }

    fn field(&mut self, depth: usize, names: &mut HashSet<&'a str>) -> Result<u64> {
        self.expect(b'(')?;
        if self.take(b'(') {
            self.name(names)?;
            self.expect(b',')?;
            self.name(names)?;
            self.take(b',');
            self.expect(b')')?;
        } else {
            self.name(names)?;
        }
        self.expect(b',')?;
        let mut size = match self.peek() {
            Some(b'[') => self.fields(depth + 1)?,
            _ => self.scalar()?,
        };
        if self.take(b',') && self.peek() != Some(b')') {
            let count = self.count()?;
            size = size.checked_mul(count).ok_or_else(|| self.too_large())?;
            self.take(b',');
        }
        self.expect(b')')?;
        Ok(size)
    }

    /// A name or a title. Names are compared as they are written: an escape in one hides at most a clash that NumPy
    /// then reports itself.
    fn name(&mut self, names: &mut HashSet<&'a str>) -> Result<()> {
        let name = self.string()?;
        if !name.is_empty() && !names.insert(name) {
            return Err(self.error(&format!("the name '{name}' occurs twice")));
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<u64> {
        let code = self.string()?;
        let (dtype, _) = parse_scalar(code).map_err(|error| match error {
            Error::InvalidArgument { what } => self.error(&what),
            other => other,
        })?;
        Ok(dtype.byte_count())
    }

    /// A Python string in single or double quotes, without them; escapes stay as they are.
    fn string(&mut self) -> Result<&'a str> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.error("expected a string in quotes"));
        };
        let start = self.position + 1;
        let mut escaped = false;
        for (offset, byte) in self.text.as_bytes().iter().enumerate().skip(start) {
            match *byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                byte if byte == quote => {
                    self.position = offset + 1;
                    return Ok(self.text.get(start..offset).unwrap_or(""));
                }
                _ => {}
            }
        }
        Err(self.error("the string has no closing quote"))
    }

    /// Items of a field that is an array itself: a length, or a tuple of lengths.
    fn count(&mut self) -> Result<u64> {
        if !self.take(b'(') {
            return self.integer();
        }
        let mut ndim = 0;
        let mut count = Some(1u64);
        let mut empty = false;
        self.items(b')', |parser| {
            let len = parser.integer()?;
            ndim += 1;
            if ndim > MAX_NDIM {
                return Err(parser.error(&format!("a field has more than {MAX_NDIM} dimensions")));
            }
            empty |= len == 0;
            count = count.and_then(|count| count.checked_mul(len));
            Ok(())
        })?;
        if empty { Ok(0) } else { count.ok_or_else(|| self.too_large()) }
    }

    fn integer(&mut self) -> Result<u64> {
        self.skip_space();
        let rest = self.text.get(self.position..).unwrap_or("");
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value = match rest.get(..digits) {
            None | Some("") => return Err(self.error("expected a length")),
            Some(digits) => digits.parse().map_err(|_| self.too_large())?,
        };
        self.position += digits;
        Ok(value)
    }
}
