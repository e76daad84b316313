//! New stores: they appear whole under their name or not at all, and take the place of old ones with their first commit.

mod processes;

use brickmap::{ArraySpec, Dtype, Durability, Error, OpenOptions, Selection, Store};
#[cfg(target_os = "linux")]
use processes::{calls_on, system_calls};
use processes::{hear, say, start};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ITEMS: u64 = 10_000;

fn commit(store: &Store, value: u32) {
    let mut writer = store.writer().unwrap();
    if writer.kind("a").unwrap().is_none() {
        writer.create_array("a", &ArraySpec::new(Dtype::U32, [ITEMS])).unwrap();
    }
    writer.write("a", &Selection::all(), &vec![value; ITEMS as usize]).unwrap();
    writer.commit().unwrap();
}

fn value(store: &Store) -> u32 {
    let items: Vec<u32> = store.array("a").unwrap().read(&Selection::all()).unwrap();
    assert!(items.iter().all(|item| *item == items[0]));
    items[0]
}

/// A folder with a store in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    commit(&Store::create(&path).unwrap(), 1);
    (folder, path)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Not a test of its own: what the other processes of the tests below do.
#[test]
fn parts() {
    let Some((part, path)) = processes::my_part() else { return };
    match part.as_str() {
        "replace-and-wait" => {
            let store = Store::replace(&path).unwrap();
            let mut writer = store.writer().unwrap();
            writer.create_group("unfinished").unwrap();
            say("\nwaiting");
            let _ = std::io::stdin().read(&mut [0]);
        }
        "name-after-a-failure" => {
            let store = OpenOptions::new().create_on_commit(&path).unwrap();
            let mut writer = store.writer().unwrap();
            writer.create_array("a", &ArraySpec::new(Dtype::U32, [ITEMS])).unwrap();
            let stop = |_| std::ops::ControlFlow::Break(());
            let options = brickmap::WriteOptions::new().progress(&stop);
            writer.write_with("a", &Selection::all(), &vec![0u32; ITEMS as usize], options).unwrap_err();
            drop(writer);
            commit(&store, 1);
        }
        "replace" => commit(&OpenOptions::new().durability(Durability::None).replace(&path).unwrap(), 2),
        part => panic!("no part '{part}'"),
    }
}

#[test]
fn what_is_there_stays_until_the_first_commit() {
    let (folder, path) = folder();
    let reader = Store::open(&path).unwrap();
    let store = Store::replace(&path).unwrap();
    assert_eq!(value(&Store::open(&path).unwrap()), 1);
    reader.refresh().unwrap();
    assert!(matches!(
        OpenOptions::new().write(true).open(&path).unwrap().writer(),
        Err(Error::Locked { .. })
    ));
    // Writers of the new store come and go.
    drop(store.writer().unwrap());
    assert!(matches!(Store::replace(&path), Err(Error::Locked { .. })));
    commit(&store, 2);
    assert_eq!((value(&Store::open(&path).unwrap()), value(&reader)), (2, 1));
    assert!(matches!(reader.refresh(), Err(Error::Replaced { .. })));
    store.refresh().unwrap();
    commit(&store, 3);
    assert_eq!(value(&Store::open(&path).unwrap()), 3);
    assert_eq!(names(folder.path()), ["a.brick"]);
    commit(&OpenOptions::new().write(true).open(&path).unwrap(), 4);
}

#[test]
fn without_a_commit_nothing_is_replaced_and_nothing_left() {
    let (folder, path) = folder();
    let store = Store::replace(&path).unwrap();
    let mut writer = store.writer().unwrap();
    writer.create_group("not committed").unwrap();
    assert_eq!(names(folder.path()), [".a.brick.brick-new", "a.brick"]);
    drop((writer, store));
    assert_eq!(names(folder.path()), ["a.brick"]);
    assert_eq!(value(&Store::open(&path).unwrap()), 1);
    drop(Store::replace(folder.path().join("b.brick")).unwrap());
    assert_eq!(names(folder.path()), ["a.brick"]);
    commit(&OpenOptions::new().write(true).open(&path).unwrap(), 4);
}

#[test]
fn a_commit_without_changes_takes_the_place_too() {
    let (_folder, path) = folder();
    let store = Store::replace(&path).unwrap();
    store.writer().unwrap().commit().unwrap();
    assert!(Store::open(&path).unwrap().snapshot().entries().unwrap().is_empty());
}

#[test]
fn a_store_that_is_being_written_is_not_replaced() {
    let (folder, path) = folder();
    let store = OpenOptions::new().write(true).open(&path).unwrap();
    let writer = store.writer().unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(Store::replace(&path), Err(Error::Locked { .. })));
    assert!(matches!(Store::create(&path), Err(Error::AlreadyExists { .. })));
    assert_eq!(names(folder.path()), ["a.brick"]);
    assert!(std::fs::read(&path).unwrap() == before, "nothing was touched");
    // Waiting for it works.
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || commit(&OpenOptions::new().lock_timeout(Duration::from_secs(60)).replace(path).unwrap(), 2)
    });
    std::thread::sleep(Duration::from_millis(30));
    drop(writer);
    waiting.join().unwrap();
    assert_eq!(value(&Store::open(&path).unwrap()), 2);
}

#[test]
fn a_writer_that_waited_while_its_file_was_replaced_is_told() {
    let (_folder, path) = folder();
    let new = Store::replace(&path).unwrap();
    let old = OpenOptions::new().write(true).lock_timeout(Duration::from_secs(60)).open(&path).unwrap();
    let waiting = std::thread::spawn(move || old.writer().map(drop));
    std::thread::sleep(Duration::from_millis(30));
    commit(&new, 2);
    assert!(matches!(waiting.join().unwrap(), Err(Error::Replaced { .. })));
}

#[test]
fn a_name_that_is_not_free_any_more_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    let store = Store::replace(&path).unwrap();
    assert!(!path.exists());
    std::fs::write(&path, "somebody else's").unwrap();
    let error = store.writer().unwrap().commit().unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
    drop(store);
    assert_eq!(names(folder.path()), ["a.brick"]);
    // A file of whatever kind can be replaced; a folder, and what may not be written, cannot.
    commit(&Store::replace(&path).unwrap(), 2);
    assert_eq!(value(&Store::open(&path).unwrap()), 2);
    assert!(matches!(Store::replace(folder.path()), Err(Error::Io { .. })));
    assert!(matches!(Store::replace(folder.path().join("none/a.brick")), Err(Error::Io { .. })));
}

#[test]
fn a_file_that_was_removed_meanwhile_is_not_replaced() {
    let (folder, path) = folder();
    let store = Store::replace(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(store.writer().unwrap().commit(), Err(Error::Replaced { .. })));
    drop(store);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = folder();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.brick");
    std::os::unix::fs::symlink("a.brick", &link).unwrap();
    commit(&Store::replace(&link).unwrap(), 2);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("a.brick"));
    assert_eq!(value(&Store::open(&path).unwrap()), 2);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    // A link to a name that is free.
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(Store::create(&link), Err(Error::AlreadyExists { .. })));
    commit(&Store::replace(&link).unwrap(), 3);
    assert_eq!(value(&Store::open(&path).unwrap()), 3);
    assert_eq!(names(folder.path()), ["a.brick", "link.brick"]);
}

#[test]
fn names_as_long_as_they_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x".repeat(255));
    commit(&Store::create(&path).unwrap(), 1);
    commit(&Store::replace(&path).unwrap(), 2);
    assert_eq!(value(&Store::open(&path).unwrap()), 2);
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn opening_or_creating_does_what_is_needed() {
    let (folder, path) = folder();
    let store = OpenOptions::new().open_or_create(&path).unwrap();
    assert_eq!(value(&store), 1);
    commit(&store, 2);
    let new = folder.path().join("b.brick");
    commit(&OpenOptions::new().open_or_create(&new).unwrap(), 3);
    assert_eq!(value(&Store::open(&new).unwrap()), 3);
    assert!(matches!(OpenOptions::new().open_or_create(folder.path()), Err(Error::Io { .. })));
    std::fs::write(&new, "no store").unwrap();
    assert!(matches!(OpenOptions::new().open_or_create(&new), Err(Error::NotAStore { .. })));
    // Many at once: each gets the same store.
    let many = folder.path().join("c.brick");
    std::thread::scope(|scope| {
        let open = || {
            OpenOptions::new().lock_timeout(Duration::from_secs(60)).open_or_create(&many).unwrap().file_id()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        let ids: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
    });
    assert_eq!(names(folder.path()), ["a.brick", "b.brick", "c.brick"]);
}

/// Starts to replace the store at `path` in another process, and kills that.
fn kill_while_replacing(path: &Path) {
    let mut other = start("replace-and-wait", path);
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    hear(&mut lines, "waiting");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn fault_7_what_a_killed_process_left_is_removed_by_the_next_writer() {
    let (folder, path) = folder();
    let left = [".a.brick.brick-new", "a.brick"];
    kill_while_replacing(&path);
    assert_eq!(names(folder.path()), left);
    assert_eq!(value(&Store::open(&path).unwrap()), 1);
    // Readers change nothing.
    assert_eq!(names(folder.path()), left);
    commit(&OpenOptions::new().write(true).open(&path).unwrap(), 2);
    assert_eq!(names(folder.path()), ["a.brick"]);
    kill_while_replacing(&path);
    commit(&Store::replace(&path).unwrap(), 3);
    assert_eq!((names(folder.path()), value(&Store::open(&path).unwrap())), (vec!["a.brick".to_owned()], 3));
    std::fs::remove_file(&path).unwrap();
    kill_while_replacing(&path);
    assert_eq!(names(folder.path()), left[..1]);
    commit(&Store::create(&path).unwrap(), 4);
    assert_eq!((names(folder.path()), value(&Store::open(&path).unwrap())), (vec!["a.brick".to_owned()], 4));
}

#[test]
fn fault_16_a_store_that_is_being_made_is_not_made_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    let mut other = start("replace-and-wait", &path);
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    hear(&mut lines, "waiting");
    for outcome in [Store::create(&path), Store::replace(&path)] {
        let Err(Error::Locked { what }) = outcome else { panic!("it is being made") };
        assert!(what.contains(&format!("process {}", other.id())), "{what}");
    }
    assert_eq!(names(folder.path()), [".a.brick.brick-new"]);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_is_synced_after_it_was_taken_though_a_writer_failed_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.brick");
    let Some(calls) = system_calls("name-after-a-failure", &path) else { return };
    let named = calls.iter().position(|call| call.contains("renameat2")).unwrap();
    assert!(calls[named..].iter().any(|call| call.contains(" fsync(")), "{calls:#?}");
}

#[cfg(unix)]
#[test]
fn what_stands_under_the_temporary_name_and_is_no_store_stays() {
    let (folder, path) = folder();
    let temporary = folder.path().join(".a.brick.brick-new");
    std::fs::write(&temporary, "somebody's notes").unwrap();
    commit(&OpenOptions::new().write(true).open(&path).unwrap(), 2);
    let Err(Error::AlreadyExists { name }) = Store::replace(&path) else { panic!("it is in the way") };
    assert!(name.ends_with(".a.brick.brick-new"), "{name}");
    assert_eq!(std::fs::read(&temporary).unwrap(), b"somebody's notes");
    // A link goes, and what it leads to stays.
    let notes = folder.path().join("notes");
    std::fs::rename(&temporary, &notes).unwrap();
    std::os::unix::fs::symlink("notes", &temporary).unwrap();
    assert!(matches!(Store::replace(&path), Err(Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read(&notes).unwrap(), b"somebody's notes");
    std::fs::remove_file(&temporary).unwrap();
    // A second name of the store itself, from where a file is renamed by linking.
    std::fs::hard_link(&path, &temporary).unwrap();
    commit(&Store::replace(&path).unwrap(), 3);
    assert_eq!(value(&Store::open(&path).unwrap()), 3);
    assert_eq!(names(folder.path()), ["a.brick", "notes"]);
}

#[cfg(unix)]
#[test]
fn a_store_that_replaces_a_private_one_is_private_from_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let store = Store::replace(&path).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store.temporary_path().unwrap()), 0o600);
    commit(&store, 2);
    assert_eq!(mode(&path), 0o640);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_store_and_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no mkfifo");
        return;
    }
    let outcomes = [Store::open(&path), Store::replace(&path), OpenOptions::new().write(true).open(&path)];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_replaced_is_synced_before_even_if_nobody_asked() {
    let (folder, path) = folder();
    let Some(calls) = system_calls("replace", &path) else { return };
    let temporary = folder.path().join(".a.brick.brick-new");
    let (opened, on_new) = calls_on(&calls, temporary.to_str().unwrap());
    assert_eq!(opened, 1);
    let position = |what: &str| calls.iter().position(|call| call.contains(what)).unwrap();
    let last_write =
        calls.iter().rposition(|call| on_new.contains(call) && call.contains("pwrite64(")).unwrap();
    let sync = calls.iter().position(|call| on_new.contains(call) && call.contains("fdatasync(")).unwrap();
    let lock = calls.iter().position(|call| on_new.contains(call) && call.contains("F_OFD_SETLK")).unwrap();
    assert!(lock < last_write && last_write < sync && sync < position("rename"), "{calls:#?}");
}
