//! NumPy's slice syntax as text, for the command line.
//!
//! ```text
//! selection = [ "[" ] entry ("," entry)* [","] [ "]" ]
//! entry     = integer | slice | list | "..." | "None" | "newaxis" | "np.newaxis"
//! slice     = [integer] ":" [integer] [ ":" [integer] ]
//! list      = "[" [ integer ("," integer)* [","] ] "]"
//! ```

use std::str::FromStr;

use super::{Axis, Selection};
use crate::error::{Error, Result};

/// Reads what stands between the brackets of `array[...]` in Python: `10:20, ::-1, 5, ..., [1, 2, 5], None`.
///
/// The brackets themselves may be there: `[1, 2]` are two indices, `[[1, 2]]` is one list. An empty text is the
/// whole array.
impl FromStr for Selection {
    type Err = Error;

    /// # Errors
    ///
    /// [`Error::InvalidArgument`], which says at which character.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = Parser { text, position: 0 };
        let bracketed = has_outer_brackets(text);
        if bracketed {
            parser.take("[");
        }
        let mut axes = Vec::new();
        while !(parser.at_end() || bracketed && parser.starts_with("]")) {
            axes.push(parser.entry()?);
            if !parser.take(",") {
                break;
            }
        }
        if bracketed && axes.is_empty() {
            return Err(parser.error("expected an entry; write [...] for the whole array, [[]] for no index"));
        }
        if bracketed && !parser.take("]") {
            return Err(parser.error("expected ',' or ']'"));
        }
        if !parser.at_end() {
            return Err(parser.error("expected ',' or the end"));
        }
        Ok(Selection { axes })
    }
}

/// Whether the bracket that opens the text is closed by the one that ends it.
fn has_outer_brackets(text: &str) -> bool {
    let Some(inside) = text.trim().strip_prefix('[') else {
        return false;
    };
    let mut depth = 1usize;
    for (offset, byte) in inside.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return offset + 1 == inside.len();
        }
    }
    // Not closed at all: then it is the inner one of the two that is easier to point at, if there are two.
    inside.trim_start().starts_with('[')
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes, at a character boundary.
    position: usize,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> Error {
        let before = self.text.get(..self.position).unwrap_or(self.text);
        let place = match self.text.get(self.position..).and_then(|rest| rest.chars().next()) {
            Some(character) => format!("at character {} ('{character}')", before.chars().count() + 1),
            None => "at the end".to_owned(),
        };
        Error::invalid(format!("selection '{}', {place}: {what}", self.text))
    }

    /// What is left, without leading white space.
    fn rest(&mut self) -> &str {
        let rest = self.text.get(self.position..).unwrap_or("");
        let trimmed = rest.trim_start();
        self.position += rest.len() - trimmed.len();
        trimmed
    }

    fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn starts_with(&mut self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.starts_with(token);
        self.position += if found { token.len() } else { 0 };
        found
    }

    fn entry(&mut self) -> Result<Axis> {
        if self.take("...") {
            return Ok(Axis::Ellipsis);
        }
        if self.take("None") || self.take("np.newaxis") || self.take("newaxis") {
            return Ok(Axis::NewAxis);
        }
        if self.take("[") {
            return self.list();
        }
        let start = self.integer()?;
        if !self.take(":") {
            return start.map(Axis::Index).ok_or_else(|| {
                self.error(
                    "expected an index, a slice such as 2:10:2, a list such as [1, 5], '...' or 'None'",
                )
            });
        }
        let stop = self.integer()?;
        let mut step = 1;
        if self.take(":") {
            self.rest();
            let position = self.position;
            step = self.integer()?.unwrap_or(1);
            if step == 0 {
                self.position = position;
                return Err(self.error("the step is 0"));
            }
        }
        Ok(Axis::Range { start, stop, step })
    }

    /// The rest of a list whose opening bracket has been taken.
    fn list(&mut self) -> Result<Axis> {
        let mut indices = Vec::new();
        while !self.take("]") {
            indices.push(self.integer()?.ok_or_else(|| self.error("expected an index or ']'"))?);
            if !self.take(",") && !self.starts_with("]") {
                return Err(self.error("expected ',' or ']'"));
            }
        }
        Ok(Axis::List(indices))
    }

    fn integer(&mut self) -> Result<Option<i64>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Ok(None);
        }
        let parsed = rest.get(..sign + digits).unwrap_or("").parse();
        let value = parsed.map_err(|_| self.error("the number does not fit in 64 bits"))?;
        self.position += sign + digits;
        Ok(Some(value))
    }
}
