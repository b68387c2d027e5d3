//! Which files the application needs, and how it can reach them as an ordinary user.
//!
//! loadline runs as root, the application does not: a checkout below /root (mode 0700) is closed
//! to it. Owns the decision what to hide and what to keep visible ([`FilesystemView`]); init carries it
//! out. Rights are read from mode bits; an ACL that grants more only makes the view stricter.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::protocol::{FilesystemView, VisiblePath};
use crate::program::{ProgramSpec, is_script};

const READ: u32 = 0o4;
const WRITE: u32 = 0o2;
const SEARCH: u32 = 0o1;
/// Sticky bit: in such a directory only the owner of a file may move it. Source: inode(7).
const STICKY: u32 = 0o1000;

/// What is read of a start script, bytes.
const LONGEST_SCRIPT: u64 = 64 * 1024;

/// Links in a row that the kernel follows. Source: path_resolution(7).
const LINKS: u32 = 40;

/// Where services of the machine and sessions of its users listen: hidden completely, because any
/// package may listen there. A process may ask its user's service manager for a process outside
/// every limit, and that user's agents for signatures; a container engine's socket gives the whole
/// machine; a resolver is a way out of a network with a loopback only. Source: file-hierarchy(7).
const SERVICES: [&str; 3] = ["/run", "/var/run", "/dev/log"];

/// Parts that programs need: system directories that a distribution links there (NixOS).
const SYSTEM: &str = "/run/current-system";

/// What names the servers of the machine's network; often a link to a resolver's file in `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// Devices that are everybody's. Source: moby, `oci/defaults.go`.
const DEVICES: &str = "full null ptmx pts random tty urandom zero";

/// Hidden on every machine: its services, and devices that its udev rules open to all, such as kvm,
/// fuse and tun.
pub fn machine_paths() -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = SERVICES.map(PathBuf::from).into();
    let mut directories = vec![PathBuf::from("/dev")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let kind = metadata.file_type();
            let is_device = kind.is_char_device() || kind.is_block_device();
            if DEVICES.split(' ').any(|known| entry.file_name() == known) {
                continue;
            } else if is_device && metadata.mode() & (READ | WRITE) != 0 {
                hidden.push(entry.path());
            } else if kind.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    hidden
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {} cannot be {access} by uid {uid}", path.display())]
pub struct UnreachableFile {
    pub what: String,
    pub path: PathBuf,
    pub access: &'static str,
    pub uid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFiles {
    pub program: PathBuf,
    pub jdk: Option<PathBuf>,
    pub named: BTreeSet<PathBuf>,
}

const JVM_VARIABLES: [&str; 5] = [
    "CLASSPATH",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "OPENJ9_JAVA_OPTIONS",
];

impl ProgramFiles {
    /// What it reads, for the page cache: the JDK (or the program), and each named file, with its
    /// directory when it is a jar: the manifest may name neighbours.
    pub fn roots(&self) -> BTreeSet<PathBuf> {
        let mut roots = BTreeSet::from([self.jdk.as_ref().unwrap_or(&self.program).clone()]);
        for path in &self.named {
            let is_jar = path.extension().is_some_and(|e| e == "jar");
            let directory = path.parent().filter(|_| is_jar);
            roots.insert(directory.unwrap_or(path).to_owned());
        }
        roots
    }

    pub fn from_program(spec: &ProgramSpec) -> Result<Self, UnreachableFile> {
        let program = find_program(spec)?;
        let real = fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        let jdk = real
            .parent()
            .filter(|bin| bin.ends_with("bin"))
            .and_then(Path::parent)
            .filter(|home| home.join("lib").is_dir() && real.ends_with("java"))
            .map(Path::to_owned);
        let variables = JVM_VARIABLES.iter().filter_map(|name| spec.env.get(*name));
        let mut named: BTreeSet<_> = (spec.command.iter().skip(1).chain(variables))
            .flat_map(|text| paths_in(text, &spec.directory))
            .collect();
        if is_script(&real) {
            named.extend(installation_root(&real));
            named.extend(java_home(spec));
        }
        Ok(Self {
            program,
            jdk,
            named,
        })
    }
}

/// What a start script in a `bin` belongs to, `lib` and all (Tomcat, Open Liberty, what Gradle
/// installs); `None` where that is the system itself. Source: hier(7).
fn installation_root(script: &Path) -> Option<PathBuf> {
    let bin = script.parent().filter(|bin| bin.ends_with("bin"))?;
    let home = bin.parent()?;
    let is_system = ["/", "/usr", "/usr/local"].map(Path::new).contains(&home);
    (!is_system && home.join("lib").is_dir()).then(|| home.to_owned())
}

/// The JDK of the `java` on a script's PATH; JAVA_HOME is named anyway.
fn java_home(spec: &ProgramSpec) -> Option<PathBuf> {
    let path = spec.env.get("PATH")?;
    let mut found = std::env::split_paths(path).map(|directory| directory.join("java"));
    let java = found.find_map(|java| fs::canonicalize(java).ok())?;
    let home = java.parent()?.parent()?;
    home.join("lib").is_dir().then(|| home.to_owned())
}

fn find_program(spec: &ProgramSpec) -> Result<PathBuf, UnreachableFile> {
    let name = spec.command.first().map_or("", String::as_str);
    let missing = || UnreachableFile {
        what: "the program".to_owned(),
        path: PathBuf::from(name),
        access: "found",
        uid: spec.uid,
    };
    if name.is_empty() {
        return Err(missing());
    }
    if name.contains('/') {
        let path = spec.directory.join(name);
        return path.is_file().then_some(path).ok_or_else(missing);
    }
    let search = spec.env.get("PATH").map_or("/usr/bin:/bin", String::as_str);
    let mut found = std::env::split_paths(search)
        .map(|directory| spec.directory.join(directory).join(name))
        .filter(|path| fs::metadata(path).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0));
    found.next().ok_or_else(missing)
}

/// Existing files in an argument: `app.jar`, `-javaagent:a.jar=port=1`, `-Dx=file:/etc/x`,
/// `lib/*:classes`, `@options`.
fn paths_in(text: &str, directory: &Path) -> Vec<PathBuf> {
    let parts = text.split([':', ',', '=', ';', '@', ' ', '\t']);
    let mut candidates: Vec<&str> = parts.collect();
    candidates.push(text);
    let existing = |candidate: &str| {
        let candidate = candidate.strip_suffix("/*").unwrap_or(candidate);
        let path = directory.join(candidate);
        (!candidate.is_empty() && path.exists()).then_some(path)
    };
    candidates.into_iter().filter_map(existing).collect()
}

/// Plans the view: `replaced` directories, and hidden ones with visible parts; `hidden` is closed
/// to every account. Files that the command names and its user may not read are reported to `warn`:
/// the application may not need them. Errors: When the program, a jar or the working directory is
/// closed to the user.
pub fn build_view(
    spec: &ProgramSpec,
    needs: &ProgramFiles,
    replaced: Vec<(PathBuf, PathBuf)>,
    hidden: impl Iterator<Item = PathBuf>,
    warn: &mut Vec<String>,
) -> Result<FilesystemView, UnreachableFile> {
    // By their real names: /var/run is a link to /run, and a link cannot be covered.
    let hidden = hidden.filter_map(|path| fs::canonicalize(path).ok());
    let hidden: BTreeSet<_> = hidden.collect();
    let mut plan = Planner {
        uid: spec.uid,
        gid: spec.gid,
        covers: replaced.iter().map(|(seen, _)| seen.clone()).collect(),
        masked: hidden.clone(),
        hidden,
        kept: BTreeSet::new(),
        made: Vec::new(),
    };
    plan.keep_directory(Path::new(SYSTEM));
    if let Ok(resolver) = fs::canonicalize(RESOLVER) {
        plan.keep_path(resolver);
    }
    plan.working_directory(&spec.directory)?;
    plan.keep_file("the program", &needs.program)?;
    if let Some(jdk) = &needs.jdk {
        plan.keep_directory(jdk);
    }
    for path in &needs.named {
        let is_jar = path.extension().is_some_and(|extension| extension == "jar");
        if path.is_dir() {
            plan.keep_directory(path);
        } else if let Err(error) = plan.keep_file("the file", path) {
            if is_jar {
                return Err(error);
            }
            warn.push(format!("{error}; the command names it"));
        }
    }
    for script in needs.named.iter().chain([&needs.program]) {
        if is_script(script) {
            plan.keep_files_of_script(script, &spec.directory);
        }
    }
    Ok(plan.finish_view(replaced))
}

struct Planner {
    uid: u32,
    gid: u32,
    covers: Vec<PathBuf>,
    hidden: BTreeSet<PathBuf>,
    masked: BTreeSet<PathBuf>,
    kept: BTreeSet<PathBuf>,
    made: Vec<PathBuf>,
}

impl Planner {
    /// Must be enterable. One that is closed itself (root's home, what `mktemp -d` makes) is shown
    /// empty but for what the command names.
    fn working_directory(&mut self, path: &Path) -> Result<(), UnreachableFile> {
        let unreachable = |access| UnreachableFile {
            what: "the working directory".to_owned(),
            path: path.to_owned(),
            access,
            uid: self.uid,
        };
        if !path.is_dir() {
            return Err(unreachable("found"));
        }
        if self.may_access(path, SEARCH) {
            self.keep_directory(path);
            Ok(())
        } else if self.is_covered(path) {
            self.made.push(path.to_owned());
            Ok(())
        } else if self.closed_ancestor(path).is_none() {
            self.masked.insert(path.to_owned());
            Ok(())
        } else {
            Err(unreachable("entered"))
        }
    }

    fn keep_directory(&mut self, path: &Path) {
        for path in self.both_names(path) {
            if self.may_access(&path, SEARCH) {
                self.keep_path(path);
            }
        }
    }

    /// Keeps a file visible, with its directory where that is open: jars name their neighbours.
    fn keep_file(&mut self, what: &str, path: &Path) -> Result<(), UnreachableFile> {
        for path in self.both_names(path) {
            if !self.may_access(&path, READ) && !self.may_access(&path, SEARCH) {
                return Err(UnreachableFile {
                    what: what.to_owned(),
                    path,
                    access: "read",
                    uid: self.uid,
                });
            }
            let parent = path.parent().map(Path::to_owned);
            match parent.filter(|p| self.may_access(p, READ | SEARCH) && !self.covers.contains(p)) {
                Some(parent) => self.keep_path(parent),
                None => self.keep_path(path),
            }
        }
        Ok(())
    }

    /// Keeps what a start script below a covered directory (a checkout in /tmp) can count on: the tree
    /// that it lies in, and files below it that any script names. A path that it puts together stays
    /// unknown.
    fn keep_files_of_script(&mut self, script: &Path, directory: &Path) {
        let cover = self.covers.iter().find(|c| script.starts_with(c));
        let below = cover.and_then(|cover| script.strip_prefix(cover).ok()?.iter().next());
        if let (Some(cover), Some(first)) = (cover, below) {
            let tree = cover.join(first);
            if tree.is_dir() {
                self.keep_directory(&tree);
            }
        }
        let mut text = String::new();
        let read = fs::File::open(script).map(|file| file.take(LONGEST_SCRIPT));
        let _ = read.and_then(|mut file| file.read_to_string(&mut text));
        let words = text.split(|c: char| c.is_whitespace() || "\"'`()".contains(c));
        for path in words.flat_map(|word| paths_in(word, directory)) {
            if self.is_covered(&path) && path.is_file() {
                // What is closed to the application would be so without loadline, too.
                let _ = self.keep_file("the file", &path);
            }
        }
    }

    fn keep_path(&mut self, path: PathBuf) {
        let closed = self.closed_ancestor(&path);
        if closed.is_some() || self.is_covered(&path) {
            self.kept.insert(path);
        }
        self.masked.extend(closed);
    }

    fn is_covered(&self, path: &Path) -> bool {
        let mut covers = self.covers.iter();
        covers.any(|cover| path.starts_with(cover) && path != cover)
    }

    fn closed_ancestor(&self, path: &Path) -> Option<PathBuf> {
        let above = path.ancestors().skip(1);
        let closed = above.filter(|directory| !self.may_access(directory, SEARCH));
        // The outermost.
        closed.last().map(Path::to_owned)
    }

    /// A path as written and as it really is; neither where the application could have put a link on
    /// the way in an earlier trial: it would name what the application wants to see.
    fn both_names(&self, path: &Path) -> BTreeSet<PathBuf> {
        if !self.could_not_plant(path, LINKS) {
            return BTreeSet::new();
        }
        let real = fs::canonicalize(path).ok();
        real.into_iter().chain([path.to_owned()]).collect()
    }

    /// Whether every link on the way, and every directory that is closed to the application, stands
    /// where it cannot put one; `links` are left.
    fn could_not_plant(&self, path: &Path, links: u32) -> bool {
        path.ancestors().all(|place| {
            let directory = place.parent().unwrap_or(place);
            let Ok(target) = fs::read_link(place) else {
                return !self.could_move(place, directory);
            };
            links > 0
                && !self.may_access(directory, WRITE)
                && self.could_not_plant(&directory.join(target), links - 1)
        })
    }

    /// Whether it could have moved a directory that it may not enter to this place: what lies in it
    /// would get a name that the command names.
    fn could_move(&self, place: &Path, directory: &Path) -> bool {
        let account = (self.uid, self.gid);
        let is_closed =
            fs::metadata(place).is_ok_and(|m| m.is_dir() && !has_access(account, &m, SEARCH));
        let is_sticky = fs::metadata(directory).is_ok_and(|m| m.mode() & STICKY != 0);
        is_closed && !is_sticky && self.may_access(directory, WRITE)
    }

    fn may_access(&self, path: &Path, access: u32) -> bool {
        let is_hidden = access & SEARCH != 0 && self.hidden.contains(path);
        let account = (self.uid, self.gid);
        !is_hidden
            && fs::metadata(path).is_ok_and(|metadata| has_access(account, &metadata, access))
    }

    /// Drops paths below a hidden or kept one. A closed directory inside a kept one is hidden as
    /// well if a path below it is needed.
    fn finish_view(self, replaced: Vec<(PathBuf, PathBuf)>) -> FilesystemView {
        let inside = |p: &PathBuf| p.ancestors().skip(1).any(|a| self.masked.contains(a));
        // What a replaced directory covers needs no further hiding.
        let is_covered = |p: &PathBuf| self.covers.iter().any(|c| p.starts_with(c));
        let outermost = self.masked.iter().filter(|p| !inside(p) && !is_covered(p));
        let mut masked: BTreeSet<PathBuf> = outermost.cloned().collect();
        let mut kept = BTreeSet::new();
        // In the order of paths: an outer directory comes first.
        for path in &self.kept {
            let around = path.ancestors().skip(1).find(|a| kept.contains(*a));
            let closed = around.map(|around| self.closed_between(around, path));
            if closed != Some(None) {
                masked.extend(closed.flatten());
                kept.insert(path.clone());
            }
        }
        let is_shown = |p: &&PathBuf| kept.iter().any(|k: &PathBuf| p.starts_with(k));
        masked.extend(self.hidden.iter().filter(is_shown).cloned());
        FilesystemView {
            replaced,
            kept: kept.into_iter().filter_map(|p| self.pin_path(p)).collect(),
            masked: masked.into_iter().collect(),
            made: self.made,
            copied: Vec::new(),
        }
    }

    /// A path with its present inode; a path that has gone needs no way.
    fn pin_path(&self, path: PathBuf) -> Option<VisiblePath> {
        let metadata = fs::metadata(&path).ok()?;
        Some(VisiblePath {
            device: metadata.dev(),
            inode: metadata.ino(),
            read_only: !metadata.is_dir() && self.closed_ancestor(&path).is_some(),
            path,
        })
    }

    /// The topmost directory below `around` and above `path` that the user may not pass through.
    fn closed_between(&self, around: &Path, path: &Path) -> Option<PathBuf> {
        let below = path.ancestors().skip(1).take_while(|a| *a != around);
        let closed = below.filter(|directory| !self.may_access(directory, SEARCH));
        closed.last().map(Path::to_owned)
    }
}

/// Whether an account without supplementary groups and capabilities has this access, by the mode
/// bits. Source: path_resolution(7), "Permissions".
fn has_access((uid, gid): (u32, u32), metadata: &Metadata, access: u32) -> bool {
    let shift = if metadata.uid() == uid {
        6
    } else if metadata.gid() == gid {
        3
    } else {
        0
    };
    (metadata.mode() >> shift) & access == access
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Nobody's user id; the files of the test belong to whoever runs it.
    const STRANGER: u32 = 64_999;

    fn paths(kept: Vec<VisiblePath>) -> Vec<PathBuf> {
        kept.into_iter().map(|kept| kept.path).collect()
    }

    struct Tree {
        root: tempfile::TempDir,
    }

    impl Tree {
        /// open/ is open, closed/ is a home directory as root has it.
        fn new() -> Self {
            let root = tempfile::tempdir().expect("a temporary directory");
            let tree = Self { root };
            tree.chmod("", 0o755);
            for directory in ["open", "closed", "closed/app", "closed/app/lib", "jdk/bin"] {
                fs::create_dir_all(tree.path(directory)).expect("a directory");
                tree.chmod(directory, 0o755);
            }
            fs::create_dir_all(tree.path("jdk/lib")).expect("a directory");
            for file in [
                "open/a.jar",
                "closed/b.jar",
                "closed/app/c.jar",
                "jdk/bin/java",
            ] {
                fs::write(tree.path(file), "x").expect("a file");
                tree.chmod(file, 0o755);
            }
            tree.chmod("closed", 0o700);
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn chmod(&self, name: &str, mode: u32) {
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode))
                .expect("an own file");
        }

        fn spec(&self, directory: &str, arguments: &[&str]) -> ProgramSpec {
            let java = self.path("jdk/bin/java").display().to_string();
            let command = arguments
                .iter()
                .map(|a| a.replace("ROOT", &self.root.path().display().to_string()));
            ProgramSpec {
                command: [java].into_iter().chain(command).collect(),
                directory: self.path(directory),
                uid: STRANGER,
                gid: STRANGER,
                ..ProgramSpec::default()
            }
        }

        /// The view, with the paths below the tree's root only: (hidden, kept).
        fn view(&self, spec: &ProgramSpec) -> Result<(Vec<String>, Vec<String>), UnreachableFile> {
            let view = build_view(
                spec,
                &ProgramFiles::from_program(spec)?,
                Vec::new(),
                std::iter::empty(),
                &mut Vec::new(),
            )?;
            let names = |paths: Vec<PathBuf>| {
                let name = |p: PathBuf| {
                    let below = p.strip_prefix(self.root.path()).ok()?;
                    Some(below.display().to_string())
                };
                paths.into_iter().filter_map(name).collect()
            };
            Ok((names(view.masked), names(paths(view.kept))))
        }
    }

    #[test]
    fn nothing_is_hidden_when_everything_is_open() {
        let tree = Tree::new();
        let spec = tree.spec("open", &["-jar", "a.jar"]);
        assert_eq!(tree.view(&spec), Ok((vec![], vec![])));
        let needs = ProgramFiles::from_program(&spec).expect("the program is there");
        assert_eq!(needs.jdk, Some(tree.path("jdk")));
    }

    #[test]
    fn a_jar_below_a_closed_home_stays_visible_with_its_neighbours() {
        let tree = Tree::new();
        let spec = tree.spec("open", &["-cp", "ROOT/open:ROOT/closed/app/c.jar", "Main"]);
        let expected = (vec!["closed".to_owned()], vec!["closed/app".to_owned()]);
        assert_eq!(tree.view(&spec), Ok(expected));
    }

    #[test]
    fn of_a_closed_directory_only_the_named_file_stays() {
        let tree = Tree::new();
        for (directory, argument) in [("open", "-Djar=ROOT/closed/b.jar"), ("closed", "b.jar")] {
            let spec = tree.spec(directory, &[argument]);
            let expected = (vec!["closed".to_owned()], vec!["closed/b.jar".to_owned()]);
            assert_eq!(tree.view(&spec), Ok(expected), "{directory}");
        }
    }

    #[test]
    fn a_checkout_below_a_closed_home_is_kept_whole() {
        let tree = Tree::new();
        let spec = tree.spec("closed/app", &["-cp", "lib/*:c.jar"]);
        let expected = (vec!["closed".to_owned()], vec!["closed/app".to_owned()]);
        assert_eq!(tree.view(&spec), Ok(expected));
    }

    #[test]
    fn below_a_replaced_directory_nothing_is_hidden_but_needs_are_kept() {
        let tree = Tree::new();
        let spec = tree.spec("closed/app", &["-jar", "ROOT/open/a.jar"]);
        let needs = ProgramFiles::from_program(&spec).expect("the program is there");
        let replaced = vec![(tree.root.path().to_owned(), PathBuf::from("/private"))];
        let view = build_view(
            &spec,
            &needs,
            replaced.clone(),
            std::iter::empty(),
            &mut Vec::new(),
        )
        .expect("a view");
        assert_eq!(view.masked, Vec::<PathBuf>::new());
        let kept = ["closed/app", "jdk", "open"].map(|name| tree.path(name));
        assert_eq!(
            (paths(view.kept), view.replaced),
            (kept.to_vec(), replaced.clone())
        );
        // A working directory that is closed is there all the same.
        let spec = tree.spec("closed", &["-jar", "ROOT/open/a.jar"]);
        let view = super::build_view(
            &spec,
            &ProgramFiles::from_program(&spec).expect("the program is there"),
            replaced,
            std::iter::empty(),
            &mut Vec::new(),
        )
        .expect("a view");
        assert_eq!(
            (view.masked, view.made),
            (vec![], vec![tree.path("closed")])
        );
    }

    #[test]
    fn a_closed_directory_inside_a_kept_one_lets_through_what_is_needed() {
        let tree = Tree::new();
        fs::create_dir_all(tree.path("closed/app/state/caches")).expect("a directory");
        tree.chmod("closed/app/state", 0o700);
        tree.chmod("closed/app/state/caches", 0o755);
        fs::write(tree.path("closed/app/state/caches/app.jsa"), "x").expect("a file");
        let option = "-XX:SharedArchiveFile=ROOT/closed/app/state/caches/app.jsa";
        let spec = tree.spec("closed/app", &[option, "-jar", "c.jar"]);
        let masked = ["closed", "closed/app/state"].map(str::to_owned).to_vec();
        let kept = ["closed/app", "closed/app/state/caches"];
        let kept = kept.map(str::to_owned).to_vec();
        assert_eq!(tree.view(&spec), Ok((masked, kept)));
    }

    #[test]
    fn a_start_script_below_a_replaced_directory_brings_its_checkout_and_what_it_names() {
        let tree = Tree::new();
        for directory in ["checkout/scripts", "other"] {
            fs::create_dir_all(tree.path(directory)).expect("a directory");
        }
        fs::write(tree.path("checkout/app.jar"), "x").expect("a file");
        fs::write(tree.path("other/b.jar"), "x").expect("a file");
        let script = tree.path("checkout/scripts/start.sh");
        let named = tree.path("other/b.jar");
        let text = format!(
            "#!/bin/sh\ncd ..\njava -cp app.jar:\"{}\" Main\n",
            named.display()
        );
        fs::write(&script, text).expect("a file");
        for name in [
            "checkout",
            "checkout/scripts",
            "checkout/scripts/start.sh",
            "other",
        ] {
            tree.chmod(name, 0o755);
        }
        let spec = ProgramSpec {
            command: vec![script.display().to_string()],
            directory: PathBuf::from("/"),
            ..tree.spec("open", &[])
        };
        let needs = ProgramFiles::from_program(&spec).expect("a script");
        let replaced = vec![(tree.root.path().to_owned(), PathBuf::from("/private"))];
        let view = build_view(&spec, &needs, replaced, std::iter::empty(), &mut Vec::new());
        let kept = paths(view.expect("a view").kept);
        for path in ["checkout", "other"] {
            assert!(kept.contains(&tree.path(path)), "{path}: {kept:?}");
        }
    }

    #[test]
    fn a_start_script_brings_its_installation() {
        let tree = Tree::new();
        for directory in ["closed/app/bin", "open/bin"] {
            fs::create_dir_all(tree.path(directory)).expect("a directory");
            let script = tree.path(directory).join("server");
            fs::write(&script, "#!/bin/sh\n").expect("a file");
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("an own file");
        }
        let of = |script: &str| {
            let mut spec = tree.spec("open", &["run"]);
            spec.command[0] = tree.path(script).display().to_string();
            let path = tree.path("jdk/bin").display().to_string();
            spec.env.insert("PATH".to_owned(), path);
            let needs = ProgramFiles::from_program(&spec).expect("it is there");
            (needs.roots(), tree.view(&spec).expect("a view").1)
        };
        let (roots, kept) = of("closed/app/bin/server");
        for root in ["closed/app", "jdk"] {
            assert!(roots.contains(&tree.path(root)), "{roots:?}");
        }
        assert!(kept.contains(&"closed/app".to_owned()), "{kept:?}");
        let (roots, _) = of("open/bin/server");
        assert!(
            !roots.contains(&tree.path("open")),
            "it has no lib: {roots:?}"
        );
        assert_eq!(installation_root(Path::new("/usr/bin/ldd")), None);
        assert_eq!(installation_root(Path::new("/bin/ldd")), None);
    }

    #[test]
    fn what_cannot_be_helped_is_named() {
        let tree = Tree::new();
        tree.chmod("open/a.jar", 0o600);
        let error = tree.view(&tree.spec("open", &["-jar", "a.jar"])).err();
        let text = error.map(|e| e.to_string()).unwrap_or_default();
        assert!(
            text.starts_with("the file ") && text.ends_with("a.jar cannot be read by uid 64999"),
            "{text}"
        );
        // A file that may not matter is only told.
        std::fs::write(tree.path("open/key"), "x").expect("a file");
        tree.chmod("open/key", 0o600);
        let spec = tree.spec("open", &["-Dkey=key"]);
        let (needs, mut warnings) = (
            ProgramFiles::from_program(&spec).expect("it exists"),
            Vec::new(),
        );
        assert!(build_view(&spec, &needs, Vec::new(), std::iter::empty(), &mut warnings).is_ok());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        tree.chmod("closed/app", 0o700);
        let error = tree.view(&tree.spec("closed/app", &[])).err();
        assert_eq!(error.map(|e| e.access), Some("entered"));
        let mut spec = tree.spec("open", &[]);
        spec.command = vec!["nosuchprogram".to_owned()];
        assert_eq!(
            ProgramFiles::from_program(&spec).err().map(|e| e.access),
            Some("found")
        );
    }

    #[test]
    fn what_is_hidden_is_closed_to_everyone_but_for_what_the_command_names() {
        let tree = Tree::new();
        fs::create_dir(tree.path("open/state")).expect("a directory");
        fs::write(tree.path("open/state/app.jsa"), "x").expect("a file");
        let hidden = || [tree.path("open/state"), tree.path("none")].into_iter();
        let view = |arguments: &[&str]| {
            let spec = tree.spec("open", arguments);
            let needs = ProgramFiles::from_program(&spec).expect("the program is there");
            build_view(&spec, &needs, Vec::new(), hidden(), &mut Vec::new()).expect("a view")
        };
        // A hidden directory inside a kept one inside a closed one.
        let closed = tree.path("closed/app/caches");
        fs::create_dir(&closed).expect("a directory");
        let spec = tree.spec("closed/app", &[]);
        let needs = ProgramFiles::from_program(&spec).expect("the program is there");
        let hidden_below = [closed.clone()].into_iter();
        let seen = super::build_view(&spec, &needs, Vec::new(), hidden_below, &mut Vec::new());
        assert!(seen.is_ok_and(|seen| seen.masked.contains(&closed)));
        let state = tree.path("open/state");
        let seen = view(&[]);
        assert!(seen.masked.contains(&state) && !paths(seen.kept).contains(&state));
        let cache = state.join("app.jsa");
        let seen = view(&["-XX:SharedArchiveFile=ROOT/open/state/app.jsa"]);
        assert!(seen.masked.contains(&state), "{seen:?}");
        assert!(paths(seen.kept).contains(&cache));
    }

    #[test]
    fn a_link_that_the_application_could_plant_opens_nothing() {
        let tree = Tree::new();
        fs::create_dir(tree.path("closed/secrets")).expect("a directory");
        let link = |at: &str| {
            std::os::unix::fs::symlink(tree.path("closed/secrets"), tree.path(at)).expect("a link");
        };
        link("closed/app/planted");
        let kept = |tree: &Tree| {
            let (_, kept) = tree
                .view(&tree.spec("closed/app", &["-cp", "planted/*"]))
                .expect("a view");
            kept.contains(&"closed/secrets".to_owned())
        };
        assert!(kept(&tree), "it stands where only its owner writes");
        tree.chmod("closed/app", 0o777);
        assert!(!kept(&tree));
    }

    #[test]
    fn a_closed_directory_that_the_application_could_move_opens_nothing() {
        let tree = Tree::new();
        fs::create_dir(tree.path("closed/app/moved")).expect("a directory");
        fs::write(tree.path("closed/app/moved/x.jar"), "x").expect("a file");
        tree.chmod("closed/app/moved/x.jar", 0o644);
        tree.chmod("closed/app/moved", 0o700);
        let kept = |tree: &Tree| {
            let view = tree.view(&tree.spec("closed/app", &["-Dx=moved/x.jar"]));
            view.expect("a view")
                .1
                .contains(&"closed/app/moved/x.jar".to_owned())
        };
        assert!(kept(&tree), "only its owner moves it");
        tree.chmod("closed/app", 0o777);
        assert!(!kept(&tree));
        tree.chmod("closed/app", 0o1777);
        assert!(kept(&tree));
    }

    #[test]
    fn a_file_alone_is_read_only_where_its_user_could_not_reach_it() {
        let tree = Tree::new();
        let read_only = |argument: &str, replaced: bool| {
            let spec = tree.spec("open", &[argument]);
            let needs = ProgramFiles::from_program(&spec).expect("the program is there");
            let replaced = replaced.then(|| (tree.path("open"), PathBuf::from("/private")));
            let (replaced, hidden) = (replaced.into_iter().collect(), std::iter::empty());
            let view =
                build_view(&spec, &needs, replaced, hidden, &mut Vec::new()).expect("a view");
            let kept = view
                .kept
                .into_iter()
                .filter(|kept| kept.path != tree.path("jdk"));
            kept.map(|kept| kept.read_only).collect::<Vec<_>>()
        };
        assert_eq!(read_only("-Djar=ROOT/closed/b.jar", false), [true]);
        assert_eq!(
            read_only("-Djar=ROOT/closed/app/c.jar", false),
            [false],
            "a directory"
        );
        assert_eq!(
            read_only("-Djar=ROOT/open/a.jar", true),
            [false],
            "open, but covered"
        );
    }

    #[test]
    fn a_link_into_a_closed_directory_is_kept_under_both_names() {
        let tree = Tree::new();
        std::os::unix::fs::symlink(tree.path("closed/app"), tree.path("closed/link"))
            .expect("a link");
        let spec = tree.spec("closed/link", &[]);
        let expected = (
            vec!["closed".to_owned()],
            vec!["closed/app".to_owned(), "closed/link".to_owned()],
        );
        assert_eq!(tree.view(&spec), Ok(expected));
    }
}
