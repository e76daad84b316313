//! Python literals, as far as headers of `.npy` files and descriptions of structured dtypes have them.

use std::ops::Range;

/// How deep lists and tuples may lie in each other. A limit keeps a hostile header from using up the stack.
const MAX_DEPTH: usize = 48;

/// A literal of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    /// Without its quotes, escapes resolved.
    Text(String),
    /// Python 2 wrote long integers with an `L`, which is dropped.
    Integer(u64),
    Bool(bool),
    /// A list or a tuple, with the place of each element in the text.
    Sequence(Vec<(Literal, Range<usize>)>),
    /// Keys and values, with the place of each value in the text.
    Dict(Vec<(String, Literal, Range<usize>)>),
}

impl Literal {
    /// Reads a text that is one literal.
    pub(crate) fn parse(text: &str) -> Result<Literal, String> {
        let mut parser = Parser { text, position: 0 };
        let (literal, _) = parser.literal(0)?;
        match parser.peek() {
            None => Ok(literal),
            Some(_) => Err(parser.error("expected nothing more")),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Literal::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_integer(&self) -> Option<u64> {
        if let Literal::Integer(integer) = self { Some(*integer) } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Literal::Bool(it) = self { Some(*it) } else { None }
    }

    /// The elements of a list or tuple.
    pub(crate) fn elements(&self) -> Option<impl ExactSizeIterator<Item = &Literal>> {
        if let Literal::Sequence(elements) = self { Some(elements.iter().map(|(it, _)| it)) } else { None }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes, at a character boundary.
    position: usize,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> String {
        let before = self.text.get(..self.position).unwrap_or(self.text);
        format!("character {}: {what}", before.chars().count() + 1)
    }

    fn rest(&self) -> &str {
        self.text.get(self.position..).unwrap_or("")
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let space = rest.len() - rest.trim_start().len();
        self.position += space;
        self.rest().chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(token);
        self.position += if found { token.len() } else { 0 };
        found
    }

    fn literal(&mut self, depth: usize) -> Result<(Literal, Range<usize>), String> {
        if depth == MAX_DEPTH {
            return Err(self.error("brackets lie too deep in each other"));
        }
        let first = self.peek();
        let start = self.position;
        let literal = match first {
            Some('\'' | '"') => Literal::Text(self.string()?),
            Some('(') => self.sequence("(", ")", depth)?,
            Some('[') => self.sequence("[", "]", depth)?,
            Some('{') => self.dict(depth)?,
            Some('0'..='9') => self.integer()?,
            _ if self.take("True") => Literal::Bool(true),
            _ if self.take("False") => Literal::Bool(false),
            _ => {
                return Err(self.error("expected a string, a number, True, False, a tuple, a list or a dict"));
            }
        };
        Ok((literal, start..self.position))
    }

    fn sequence(&mut self, open: &str, close: &str, depth: usize) -> Result<Literal, String> {
        self.take(open);
        let mut elements = Vec::new();
        while !self.take(close) {
            elements.push(self.literal(depth + 1)?);
            if !self.take(",") {
                if self.take(close) {
                    break;
                }
                return Err(self.error(&format!("expected ',' or '{close}'")));
            }
        }
        Ok(Literal::Sequence(elements))
    }

    fn dict(&mut self, depth: usize) -> Result<Literal, String> {
        self.take("{");
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.literal(depth + 1)?.0;
            let Literal::Text(key) = key else { return Err(self.error("expected a key that is a string")) };
            if !self.take(":") {
                return Err(self.error("expected ':'"));
            }
            let (value, place) = self.literal(depth + 1)?;
            entries.push((key, value, place));
            if !self.take(",") {
                if self.take("}") {
                    break;
                }
                return Err(self.error("expected ',' or '}'"));
            }
        }
        Ok(Literal::Dict(entries))
    }

    fn integer(&mut self) -> Result<Literal, String> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest().get(..digits).unwrap_or("").parse();
        let number = number.map_err(|_| self.error("the number does not fit in 64 bits"))?;
        self.position += digits;
        if self.rest().starts_with('L') {
            self.position += 1;
        }
        Ok(Literal::Integer(number))
    }

    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        let quote = characters.next().map(|(_, quote)| quote);
        while let Some((at, character)) = characters.next() {
            match character {
                _ if Some(character) == quote => {
                    self.position += at + character.len_utf8();
                    return Ok(text);
                }
                '\\' => match escape(&mut characters) {
                    Some(character) => text.push(character),
                    None => return Err(self.error("the string has an escape that is not known")),
                },
                _ => text.push(character),
            }
        }
        Err(self.error("the string has no closing quote"))
    }
}

/// The character behind a backslash.
fn escape(characters: &mut std::str::CharIndices<'_>) -> Option<char> {
    let digits = match characters.next()?.1 {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        same @ ('\\' | '\'' | '"') => return Some(same),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0u32;
    for _ in 0..digits {
        code = code.checked_mul(16)?.checked_add(characters.next()?.1.to_digit(16)?)?;
    }
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_all_kinds_are_read() {
        let text = "{'a': (3L, 4,), \"b\": [('x', '<f4'), ('\\u00e9\\n', '|u1', (2,))], 'c': True, }";
        let Ok(Literal::Dict(entries)) = Literal::parse(text) else { panic!("not a dict") };
        assert_eq!(
            entries[0].1.elements().unwrap().filter_map(Literal::as_integer).collect::<Vec<_>>(),
            [3, 4]
        );
        assert_eq!(&text[entries[1].2.clone()], "[('x', '<f4'), ('\\u00e9\\n', '|u1', (2,))]");
        let second = entries[1].1.elements().unwrap().nth(1).unwrap();
        assert_eq!(second.elements().unwrap().next().unwrap().as_text(), Some("é\n"));
        assert_eq!(entries[2].1.as_bool(), Some(true));
    }

    #[test]
    fn what_is_no_literal_is_an_error() {
        let deep = "[".repeat(1_000_000);
        for text in [
            "",
            "{",
            "{'a'}",
            "{'a': }",
            "{1: 2}",
            "(1 2)",
            "'a",
            "'\\q'",
            "'\\xg0'",
            "99999999999999999999",
            "-1",
            "1 2",
            &deep,
        ] {
            assert!(Literal::parse(text).is_err(), "{text:.20}");
        }
    }
}
