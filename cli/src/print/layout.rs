//! Words into brackets and lines, as NumPy lays out arrays.

use super::Summary;

/// Length of a line.
const WIDTH: usize = 75;

/// The text of an array. `words` are the items that are shown, in C order of `shape`; where that is shorter than
/// `full_shape`, `...` stands for the others.
pub(crate) fn layout(words: &[String], shape: &[u64], full_shape: &[u64], separator: &str) -> String {
    if full_shape.contains(&0) {
        return "[]".into();
    }
    let mut layout = Layout { words: words.iter(), separator };
    layout.nested(shape, full_shape, 1, WIDTH)
}

struct Layout<'a> {
    words: std::slice::Iter<'a, String>,
    separator: &'a str,
}

impl Layout<'_> {
    /// The brackets of the dimensions `shape`, whose lines after the first are pushed in by `indent`.
    fn nested(&mut self, shape: &[u64], full_shape: &[u64], indent: usize, width: usize) -> String {
        let (Some((&len, inner)), Some((&full, full_inner))) =
            (shape.split_first(), full_shape.split_first())
        else {
            return self.words.next().cloned().unwrap_or_default();
        };
        let gap = (len < full && Summary::shortens(full)).then_some(len / 2);
        if inner.is_empty() {
            return self.row(len, gap, indent, width);
        }
        let mut text = String::from("[");
        let separator =
            format!("{}{}{}", self.separator.trim_end(), "\n".repeat(inner.len()), " ".repeat(indent));
        for n in 0..len {
            if n > 0 {
                text.push_str(&separator);
            }
            if gap == Some(n) {
                text.push_str("...");
                text.push_str(&separator);
            }
            text.push_str(&self.nested(inner, full_inner, indent + 1, width.saturating_sub(1)));
        }
        text.push(']');
        text
    }

    /// The brackets of the innermost dimension, in lines.
    fn row(&mut self, len: u64, gap: Option<u64>, indent: usize, width: usize) -> String {
        let width = width.saturating_sub(self.separator.trim_end().len().max(1));
        let (mut text, mut line) = (String::new(), " ".repeat(indent));
        let mut add = |word: &str, last: bool| {
            let separator = if last { "" } else { self.separator };
            if line.chars().count() + word.chars().count() > width && line.len() > indent {
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(indent);
            }
            line.push_str(word);
            line.push_str(separator);
        };
        for n in 0..len {
            if gap == Some(n) {
                add("...", false);
            }
            add(self.words.next().map_or("", String::as_str), n + 1 == len);
        }
        text.push_str(&line);
        format!("[{}]", text.get(indent..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: u64) -> Vec<String> {
        (0..count).map(|n| format!("{n:>2}")).collect()
    }

    #[test]
    fn arrays_look_as_in_numpy() {
        assert_eq!(layout(&words(1), &[], &[], " "), " 0");
        assert_eq!(layout(&words(0), &[3, 0], &[3, 0], " "), "[]");
        assert_eq!(layout(&words(4), &[2, 2], &[2, 2], " "), "[[ 0  1]\n [ 2  3]]");
        assert_eq!(layout(&words(4), &[2, 1, 2], &[2, 1, 2], " "), "[[[ 0  1]]\n\n [[ 2  3]]]");
        assert_eq!(layout(&words(6), &[6], &[1001], " "), "[ 0  1  2 ...  3  4  5]");
        let text = layout(&words(36), &[6, 6], &[100, 100], " ");
        assert_eq!(text.lines().nth(3), Some(" ..."));
        assert_eq!(text.lines().next(), Some("[[ 0  1  2 ...  3  4  5]"));
        let text = layout(&words(30), &[30], &[30], " ");
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [72, 19]);
    }
}
