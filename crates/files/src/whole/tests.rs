use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::process::{Command, Stdio};

use super::*;

const OTHER: u32 = 64_998;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether this test can give files to another user.
fn is_root_or_skip(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIP {test}: not root");
    }
    is_root
}

/// A directory of another user with these permissions, and a file of root's next to it.
fn theirs(mode: u32) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).expect("a directory");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(mode)).expect("it is ours");
    chown(&theirs, Some(OTHER), Some(OTHER)).expect("root may");
    let victim = place.path().join("victim");
    fs::write(&victim, "root's").expect("writable");
    (place, theirs, victim)
}

fn give(link: &Path) {
    std::os::unix::fs::lchown(link, Some(OTHER), Some(OTHER)).expect("root may");
}

#[test]
fn a_file_is_replaced_and_nothing_else_is_left() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = place.path().join("report.html");
    for text in ["first, longer", "second"] {
        write(&file, text.as_bytes()).expect("it is writable");
        assert_eq!(fs::read_to_string(&file).expect("a file"), text);
    }
    assert_eq!(names(place.path()), ["report.html"]);
}

#[test]
fn a_link_in_a_directory_of_ones_own_stays_one_and_what_it_names_is_written() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(place.path().join("sub")).expect("a directory");
    symlink("sub", place.path().join("way")).expect("a link");
    let (link, file) = (place.path().join("way/link"), place.path().join("sub/file"));
    symlink("../way/./file", &link).expect("a link");
    for text in ["to a file that is not there", "to an existing file"] {
        write(&link, text.as_bytes()).expect("it is writable");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("a file"), text);
    }
    assert_eq!(names(&place.path().join("sub")), ["file", "link"]);
}

#[test]
fn links_in_a_circle_end() {
    let place = tempfile::tempdir().expect("a temporary directory");
    symlink("b", place.path().join("a")).expect("a link");
    symlink("a", place.path().join("b")).expect("a link");
    let refused = write(&place.path().join("a"), b"x").expect_err("a circle");
    assert!(refused.why.contains("symbolic links"), "{refused}");
}

#[test]
fn a_device_and_a_pipe_stay_what_they_are() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let link = place.path().join("null");
    symlink("/dev/null", &link).expect("a link");
    for path in [link.as_path(), Path::new("/dev/null")] {
        write(path, b"x").expect("it takes everything");
    }
    assert!(link.is_symlink());
    let null = fs::symlink_metadata("/dev/null").expect("it is there");
    assert!(null.file_type().is_char_device());
    assert_eq!(names(place.path()), ["null"]);

    let pipe = place.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is everywhere").success());
    let reader = Command::new("cat")
        .arg(&pipe)
        .stdout(Stdio::piped())
        .spawn();
    let reader = reader.expect("cat is everywhere");
    write(&pipe, b"through it").expect("there is a reader");
    let read = reader.wait_with_output().expect("it ends");
    assert_eq!(read.stdout, b"through it");
    assert!(
        fs::metadata(&pipe)
            .expect("it is there")
            .file_type()
            .is_fifo()
    );
}

#[test]
fn a_descriptor_is_written_through_and_its_file_keeps_what_it_has() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("output");
    fs::write(&output, "before ").expect("writable");
    let file = File::open(&output).expect("a file");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let inode = file.metadata().expect("a file").ino();
    write(Path::new(&path), b"after").expect("it is writable");
    assert_eq!(fs::read(&output).expect("a file"), b"before after");
    assert_eq!(fs::metadata(&output).expect("a file").ino(), inode);
}

#[test]
fn a_planted_link_is_not_followed_on_the_way_or_at_its_end() {
    if !is_root_or_skip("a_planted_link_is_not_followed_on_the_way_or_at_its_end") {
        return;
    }
    // The directory of an application, and one like /tmp.
    for (mode, owner) in [(0o755, OTHER), (0o1777, 0), (0o777, 0)] {
        let (place, theirs, victim) = theirs(mode);
        chown(&theirs, Some(owner), Some(owner)).expect("root may");
        symlink(&victim, theirs.join("report.html")).expect("a link");
        symlink(place.path(), theirs.join("way")).expect("a link");
        for name in ["report.html", "way"] {
            give(&theirs.join(name));
        }
        for name in ["report.html", "way/victim", "way/new"] {
            create(&theirs.join(name)).expect_err("a planted link");
            let refused = write(&theirs.join(name), b"x").expect_err("a planted link");
            assert!(
                refused.why.contains("it is a link that users other"),
                "{refused}"
            );
            assert!(refused.path.starts_with(&theirs), "{refused}");
            assert!(refused.hint.contains("give its target"));
        }
        assert_eq!(fs::read(&victim).expect("a file"), b"root's");
        assert_eq!(names(place.path()), ["theirs", "victim"]);
        // A file of theirs is replaced, as the user of that directory could have done.
        write(&theirs.join("new"), b"x").expect("it is root's to write");
        assert_eq!(names(&theirs), ["new", "report.html", "way"]);
    }
}

#[test]
fn ones_own_link_in_a_directory_like_tmp_is_followed() {
    if !is_root_or_skip("ones_own_link_in_a_directory_like_tmp_is_followed") {
        return;
    }
    let (_place, theirs, victim) = theirs(0o1777);
    chown(&theirs, Some(0), Some(0)).expect("root may");
    symlink(&victim, theirs.join("own")).expect("a link");
    write(&theirs.join("own"), b"wanted").expect("root made the link");
    assert_eq!(fs::read(&victim).expect("a file"), b"wanted");
}

#[test]
fn a_planted_pipe_is_not_waited_for() {
    if !is_root_or_skip("a_planted_pipe_is_not_waited_for") {
        return;
    }
    let (_place, theirs, _victim) = theirs(0o755);
    let pipe = theirs.join("report.html");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is everywhere").success());
    give(&pipe);
    let refused = write(&pipe, b"x").expect_err("nobody reads it").to_string();
    assert!(refused.contains("user 64998 put it there"), "{refused}");
}

#[test]
fn what_cannot_be_filled_leaves_what_was_there() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("a"), "old").expect("writable");
    let directory = Directory::open_or_make(place.path()).expect("it is ours");
    let full = |file: &mut File| {
        file.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    };
    let refused = directory
        .write_pending("a", 0o600, full)
        .expect_err("no space");
    assert_eq!(refused.kind, Some(io::ErrorKind::StorageFull));
    assert!(refused.path.ends_with("a"), "{refused}");
    assert_eq!(names(place.path()), ["a"]);
    assert_eq!(fs::read(place.path().join("a")).expect("a file"), b"old");
    let part = directory.write_pending("a", 0o600, |file| file.write_all(b"new"));
    part.and_then(PendingFile::put_in_place)
        .expect("there is space");
    let file = fs::metadata(place.path().join("a")).expect("a file");
    assert_eq!((file.len(), file.mode() & 0o777), (3, 0o600));
}

#[test]
fn a_directory_is_refused_by_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for path in [place.path(), Path::new("/"), Path::new(".."), Path::new("")] {
        let refused = write(path, b"x").expect_err("a directory");
        assert_eq!(refused.path.file_name(), path.file_name(), "{refused}");
    }
}

#[test]
fn a_file_that_is_written_as_it_comes_takes_the_place_of_what_had_the_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (file, other) = (place.path().join("a.csv"), place.path().join("other"));
    fs::write(&other, "of another name").expect("writable");
    fs::hard_link(&other, &file).expect("a second name");
    let mut opened = create(&file).expect("it is writable");
    assert_eq!(fs::read(&file).expect("it is there"), b"");
    opened.write_all(b"a,b").expect("there is space");
    assert_eq!(fs::read(&file).expect("it is there"), b"a,b");
    assert_eq!(fs::read(&other).expect("a file"), b"of another name");
    assert_eq!(names(place.path()), ["a.csv", "other"]);
    create(Path::new("/dev/null")).expect("a device is opened as it is");
}

#[test]
fn what_a_killed_writer_left_is_removed_by_the_next_one_and_a_living_one_s_is_not() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = Directory::open_or_make(place.path()).expect("it is there");
    let file = place.path().join("a.csv");
    let living = directory
        .write_pending("b.csv", READABLE, |_| Ok(()))
        .expect("new");
    // As a kill leaves it: neither renamed nor removed, and unlocked.
    let dead = place.path().join(".loadline-0123456789abcdef.part");
    fs::write(&dead, "half of i").expect("writable");
    let users = place.path().join(".loadline-notes");
    fs::write(&users, "not loadline's").expect("writable");
    write(&file, b"whole").expect("it is writable");
    assert!(!dead.exists() && users.exists());
    living.put_in_place().expect("it is still there");
    assert_eq!(names(place.path()), [".loadline-notes", "a.csv", "b.csv"]);
}
