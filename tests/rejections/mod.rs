//! The table of each section: what a forged file breaks, and what must come of it.

pub(crate) mod catalog;
pub(crate) mod chunks;
pub(crate) mod head;
pub(crate) mod whole_files;

use crate::everything::{Outcome, read_everything};
use crate::forge::*;
use brickmap::{Error, Finding, Store};

/// The error that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    NotAStore,
    Unsupported,
    Corrupt,
}

/// A change of some bytes that needs nothing else.
pub(crate) type Plain = fn(&mut Vec<u8>);

pub(crate) struct Case {
    /// A sentence of SPEC.md.
    pub(crate) rule: &'static str,
    /// Which part of the forged file is changed, and how.
    pub(crate) part: &'static str,
    pub(crate) change: Plain,
    /// The read that must fail, as `everything` names it; or `open`.
    pub(crate) read: &'static str,
    pub(crate) due: Due,
    /// What the message must contain.
    pub(crate) says: &'static [&'static str],
}

pub(crate) const fn case(
    rule: &'static str,
    part: &'static str,
    change: Plain,
    read: &'static str,
    due: Due,
    says: &'static [&'static str],
) -> Case {
    Case { rule, part, change, read, due, says }
}

/// What came of reading the sample file with a change.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// The reads that failed, by name.
    pub(crate) errors: Vec<(String, Error)>,
    pub(crate) wrong: Vec<String>,
    /// What `verify` found.
    pub(crate) findings: Vec<Finding>,
}

pub(crate) fn outcomes(part: &str, change: Change<'_>) -> Outcomes {
    let mut forge = Forge::new();
    if !part.is_empty() {
        forge.change(part, change);
    }
    let (file, contents) = sample_with(forge);
    let mut outcomes = Outcomes::default();
    match Store::from_bytes(file) {
        Err(error) => outcomes.errors.push(("open".to_owned(), error)),
        Ok(store) => {
            read_everything(&store, &contents, &mut |what, outcome| match outcome {
                Outcome::Right => {}
                Outcome::Wrong(parts) => outcomes.wrong.push(format!("{what}: {parts}")),
                Outcome::Failed(error) => outcomes.errors.push((what.to_owned(), error)),
            });
            outcomes.findings = store.verify().unwrap().findings;
        }
    }
    outcomes
}

pub(crate) fn due_of(error: &Error) -> Option<Due> {
    match error {
        Error::NotAStore { .. } => Some(Due::NotAStore),
        Error::Unsupported { .. } => Some(Due::Unsupported),
        Error::Corrupt { .. } => Some(Due::Corrupt),
        _ => None,
    }
}

/// Checks the cases. With `local`, damage in one array must be none of another, nor of the list of names.
pub(crate) fn check(cases: &[Case], local: bool) {
    let mut failures = Vec::new();
    for case in cases {
        let Outcomes { errors, wrong, findings } = outcomes(case.part, &case.change);
        let mut fail = |why: String| failures.push(format!("\"{}\" ({}): {why}", case.rule, case.part));
        match errors.iter().find(|(read, _)| read == case.read) {
            None => fail(format!("'{}' did not fail; what failed: {errors:?}, wrong: {wrong:?}", case.read)),
            Some((_, error)) => {
                let text = error.to_string();
                if due_of(error) != Some(case.due) {
                    fail(format!("{:?} is due, not {error:?}", case.due));
                }
                for says in case.says.iter().filter(|says| !text.contains(**says)) {
                    fail(format!("the message does not say '{says}': {text}"));
                }
            }
        }
        if case.read != "open" && findings.is_empty() {
            fail("verify finds nothing".into());
        }
        if local && (case.read.starts_with("array") || case.read.starts_with("ragged")) {
            for (read, error) in errors.iter().filter(|(read, _)| read != case.read) {
                fail(format!("'{read}' failed too: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Changes after which everything must read as before.
pub(crate) fn check_harmless(cases: &[(&str, &str, Plain)]) {
    for (rule, part, change) in cases {
        let outcomes = outcomes(part, change);
        assert!(outcomes.errors.is_empty() && outcomes.wrong.is_empty(), "\"{rule}\" ({part}): {outcomes:?}");
    }
}

pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_sample_file_without_a_change_reads_as_it_should() {
    let outcomes = outcomes("", &|_| {});
    assert!(
        outcomes.errors.is_empty() && outcomes.wrong.is_empty() && outcomes.findings.is_empty(),
        "{outcomes:?}"
    );
}

/// Flips a bit.
pub(crate) fn flip(bytes: &mut [u8], at: usize) {
    bytes[at] ^= 1;
}

/// All tables quote SPEC.md.
#[test]
fn every_rule_that_is_quoted_stands_in_the_specification() {
    let specification = words(include_str!("../../SPEC.md"));
    let tables = [
        head::PAGES,
        head::POINTERS,
        catalog::TREES,
        catalog::RECORDS,
        catalog::DTYPES,
        chunks::INDEXES,
        chunks::CHUNKS,
        chunks::BLOCKS,
        chunks::RAW,
        chunks::PIECES_PAGES,
    ];
    let rules = tables.iter().flat_map(|cases| cases.iter().map(|case| case.rule));
    let rules = rules
        .chain(head::HARMLESS.iter().map(|(rule, ..)| *rule))
        .chain(whole_files::WHOLE_FILES.iter().map(|(rule, ..)| *rule));
    for rule in rules {
        assert!(specification.contains(&words(rule)), "SPEC.md does not say \"{rule}\"");
    }
}
