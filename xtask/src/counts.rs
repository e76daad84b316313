//! Numbers of tests, as test runners print them.

use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Counts {
    /// What a line of output counts: the last line of a test program of Rust's, or of pytest.
    ///
    /// ```text
    /// test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
    /// ======== 12 passed, 1 skipped in 0.52s ========
    /// ```
    pub(crate) fn of_line(line: &str) -> Option<Counts> {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            let (_, numbers) = result.split_once(". ")?;
            return Some(Counts::of_numbers(numbers, ';'));
        }
        let summary = line.strip_prefix("==")?.strip_suffix("==")?.trim_matches('=').trim();
        let (numbers, time) = summary.rsplit_once(" in ")?;
        let counted = numbers.starts_with(|first: char| first.is_ascii_digit());
        let timed = time.starts_with(|first: char| first.is_ascii_digit());
        (counted && timed).then(|| Counts::of_numbers(numbers, ','))
    }

    fn of_numbers(numbers: &str, separator: char) -> Counts {
        let mut counts = Counts::default();
        for part in numbers.split(separator) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) =
                (words.next().and_then(|it| it.parse::<u64>().ok()), words.next())
            else {
                continue;
            };
            match what {
                "passed" | "xpassed" => counts.passed += number,
                "failed" | "error" | "errors" => counts.failed += number,
                "ignored" | "skipped" | "xfailed" => counts.skipped += number,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Option<Counts> {
        Some(Counts { passed, failed, skipped })
    }

    #[test]
    fn reads_what_rust_tests_print() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s\n";
        assert_eq!(Counts::of_line(line), counts(12, 0, 1));
        let line = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(Counts::of_line(line), counts(1, 2, 0));
    }

    #[test]
    fn reads_what_pytest_prints() {
        assert_eq!(Counts::of_line("======= 7 passed in 0.12s =======\n"), counts(7, 0, 0));
        let line = "=== 1 failed, 3 passed, 2 skipped, 1 deselected, 1 xfailed, 4 warnings, 1 error in 61.30s (0:01:01) ===";
        assert_eq!(Counts::of_line(line), counts(3, 2, 3));
        assert_eq!(Counts::of_line("====== no tests ran in 0.01s ======"), None);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in
            ["", "test a ... ok", "=== FAILURES ===", "running 3 tests", "== 3 passed ==", "==", "====="]
        {
            assert_eq!(Counts::of_line(line), None, "{line}");
        }
    }
}
