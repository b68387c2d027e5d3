//! What an application sees of directories that only others may enter: what its command names, and
//! nothing that it could have given such a name.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::PathBuf;

use crate::lab::{Lab, Spec, UID};
use crate::runner::Case;

pub const CASES: [Case; 2] = [
    ("planted_way", planted_way),
    ("named_file_is_read_only", named_file_is_read_only),
];

/// A home like root's, with a writable directory for the application, and secrets next to it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a directory"));
        fs::create_dir_all(home.path("app")).expect("a directory");
        fs::create_dir_all(home.path("private")).expect("a directory");
        fs::write(home.path("private/token"), "the secret\n").expect("a file");
        home.mode("private/token", 0o666);
        home.mode("private", 0o755);
        let program = home.path("app/program");
        fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy");
        home.mode("app/program", 0o755);
        home.mode("app", 0o777);
        // Wherever temporary directories are, and whatever mode they get.
        home.mode("", 0o700);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn mode(&self, name: &str, mode: u32) {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.path(name), mode).expect("an own file");
    }

    /// What a script prints in a trial, before its application serves.
    fn said(&self, lab: &mut Lab, script: &str) -> Vec<String> {
        let mut spec: Spec = lab.spec(&["serve"]);
        spec.directory = self.path("app");
        let script = format!("{script} ; exec ./program zoo serve");
        spec.command = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
        let trial = lab.run(&spec, None);
        assert!(
            trial.start.ready.is_some(),
            "{:?}",
            trial.evidence.last_output
        );
        trial.evidence.last_output
    }
}

fn has_secret(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains("the secret"))
}

/// Between two trials a name that the command has became a link, as an application can make it where
/// it may write; then a directory that it may not enter was moved there. Neither is shown.
fn planted_way() {
    let mut lab = Lab::new();
    let home = Home::new();
    let script = "cat way/token";
    assert!(
        !has_secret(&home.said(&mut lab, script)),
        "it is not there yet"
    );
    let way = home.path("app/way");
    symlink(home.path("private"), &way).expect("a link");
    lchown(&way, Some(UID), Some(UID)).expect("root may");
    let seen = home.said(&mut lab, script);
    assert!(!has_secret(&seen), "a planted link was followed: {seen:?}");
    fs::remove_file(&way).expect("an own link");
    symlink(home.path("private/token"), home.path("app/token")).expect("a link");
    let seen = home.said(&mut lab, "cat token");
    assert!(!has_secret(&seen), "a planted link was followed: {seen:?}");
    home.mode("private", 0o700);
    fs::rename(home.path("private"), &way).expect("an own directory");
    let seen = home.said(&mut lab, script);
    assert!(!has_secret(&seen), "a moved directory was opened: {seen:?}");
    // Anything else was intended: the application cannot write there.
    home.mode("app", 0o755);
    let seen = home.said(&mut lab, script);
    assert!(
        has_secret(&seen),
        "what the command names is not there: {seen:?}"
    );
    lab.assert_clean();
}

/// A file in a directory that only others may enter can be read once the command names it, and not
/// be written, whatever its own mode is.
fn named_file_is_read_only() {
    let mut lab = Lab::new();
    let home = Home::new();
    home.mode("private", 0o700);
    let named = home.path("private/token");
    chown(&named, Some(UID), Some(UID)).expect("root may");
    let named = named.display();
    let script = format!("cat {named} ; echo changed > {named}");
    let seen = home.said(&mut lab, &script);
    assert!(has_secret(&seen), "{seen:?}");
    let text = fs::read_to_string(home.path("private/token")).expect("a file");
    assert_eq!(text, "the secret\n");
    lab.assert_clean();
}
