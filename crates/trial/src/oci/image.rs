//! What an image says of itself, read once before the first trial.
//!
//! Owns the engines' JSON of `image inspect`, which engine has the image, and where its files and its
//! JVM lie on this machine. Facts: the OCI image specification (config.md); podman-inspect(1);
//! annotations.md (labels); the overlay drivers of both engines name their directories, other drivers do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use loadline_analysis::record::version_name;
use loadline_jvm::beneath;
use loadline_jvm::detect::InstalledJdk;
use loadline_protocol::{ContainerEngine, EngineKind, RunRefusal};
use rustix::fs::FileType;
use serde::Deserialize;

use super::engine::{self, EngineError};
use super::layers::GraphDriver;
use crate::pod::{ImageJdk, ImageReading};
use crate::{apart, pagecache};

#[derive(Debug, Clone, PartialEq)]
pub struct EngineImage {
    pub engine: ContainerEngine,
    pub reference: String,
    pub id: String,
    pub pinned: Option<String>,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub directory: PathBuf,
    pub env: BTreeMap<String, String>,
    pub ports: BTreeSet<u16>,
    /// Its stop signal, if it is not SIGTERM.
    pub stop_signal: Option<i32>,
    pub layers: Vec<PathBuf>,
    pub jdk: Option<InstalledJdk>,
    pub version: Option<String>,
    pub revision: Option<String>,
    pub seen: Option<Box<ImageReading>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageNotFound {
    Wrong(RunRefusal),
    /// This machine, its engine or the way to a registry does not allow it.
    Here(RunRefusal),
}

impl From<RunRefusal> for ImageNotFound {
    fn from(refusal: RunRefusal) -> Self {
        Self::Here(refusal)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedImage {
    id: String,
    repo_digests: Option<Vec<String>>,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default)]
    config: InspectedConfig,
    #[serde(default)]
    graph_driver: GraphDriver,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedConfig {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    exposed_ports: Option<BTreeMap<String, serde_json::Value>>,
    stop_signal: Option<String>,
    working_dir: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

/// A short name as docker and compose resolve it: `postgres:17` is `docker.io/library/postgres:17`.
fn with_registry(reference: &str) -> String {
    match reference.split_once('/') {
        None => format!("docker.io/library/{reference}"),
        Some((host, _)) if host == "localhost" || host.contains(['.', ':']) => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
    }
}

impl EngineImage {
    /// Finds an image: in the requested engine, else in the first that has it; pulls it if none
    /// has. Errors: [`ImageNotFound`]: no engine that could be measured from here, no such image,
    /// or an image that does not start on this machine.
    pub fn find_image(reference: &str, wanted: Option<EngineKind>) -> Result<Self, ImageNotFound> {
        refuse_reference(reference).map_err(ImageNotFound::Wrong)?;
        let (usable, refusals): (Vec<_>, Vec<_>) = engine::installed_engines(wanted)
            .into_iter()
            .map(engine::reach_engine)
            .partition(Result::is_ok);
        let usable: Vec<ContainerEngine> = usable.into_iter().flatten().collect();
        let Some(first) = usable.first() else {
            let refusal = refusals.into_iter().find_map(Result::err);
            return Err(refusal.unwrap_or_else(|| no_engine(wanted)).into());
        };
        for engine in &usable {
            if let Ok(text) = inspect_reference(engine, reference) {
                return Self::read(engine, reference, &text);
            }
        }
        let whole = with_registry(reference);
        engine::run(first, &["pull", "--quiet", &whole])
            .and_then(|_| inspect_reference(first, &whole))
            .map_err(|error| not_pulled(first, reference, &error))
            .and_then(|text| Self::read(first, reference, &text))
    }

    /// Whether an engine of this machine has it already.
    pub fn is_local(reference: &str, wanted: Option<EngineKind>) -> Result<bool, RunRefusal> {
        refuse_reference(reference)?;
        let engines = engine::installed_engines(wanted).into_iter();
        let mut usable = engines.filter_map(|kind| engine::reach_engine(kind).ok());
        Ok(usable.any(|engine| inspect_reference(&engine, reference).is_ok()))
    }

    fn read(engine: &ContainerEngine, reference: &str, text: &str) -> Result<Self, ImageNotFound> {
        let what = format!("the image {reference}");
        let kind = engine.kind;
        let mut all: Vec<InspectedImage> = serde_json::from_str(text).map_err(|error| {
            let why = format!("the output of {kind} about it is not understood: {error}");
            let hint = "update it; loadline knows podman 4 and docker 20.10 and later";
            RunRefusal::new(&what, why, hint)
        })?;
        let unknown = format!("{kind} does not know it");
        let inspected = all.pop();
        let inspected =
            inspected.ok_or_else(|| RunRefusal::new(&what, unknown, "check its name"))?;
        refuse_foreign(&what, &inspected).map_err(ImageNotFound::Wrong)?;
        let config = inspected.config;
        let entrypoint = config.entrypoint.unwrap_or_default();
        let cmd = config.cmd.unwrap_or_default();
        let pairs = config.env.iter().flatten();
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let env: BTreeMap<String, String> = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let labels = config.labels.unwrap_or_default();
        let label = |name: &str| {
            let text = labels.get(&format!("org.opencontainers.image.{name}"))?;
            version_name(text).map(str::to_owned)
        };
        let layers = local_layers(engine, &inspected.graph_driver);
        let jdk = jdk_in_layers(&layers, &env, entrypoint.first().or(cmd.first()));
        let ports = config.exposed_ports.unwrap_or_default();
        let ports = ports
            .keys()
            .filter_map(|port| port.split('/').next()?.parse().ok());
        Ok(Self {
            engine: engine.clone(),
            reference: reference.to_owned(),
            id: inspected.id,
            pinned: inspected.repo_digests.into_iter().flatten().next(),
            entrypoint,
            cmd,
            directory: Path::new("/").join(config.working_dir.unwrap_or_default()),
            env,
            ports: ports.collect(),
            stop_signal: config.stop_signal.as_deref().and_then(parse_signal),
            layers,
            jdk,
            version: label("version"),
            revision: label("revision"),
            seen: None,
        }
        .looked_into()?)
    }

    fn looked_into(mut self) -> Result<Self, RunRefusal> {
        if self.engine.apart.is_some() {
            let seen = apart::probe_image(&self.engine, &self.id)?;
            self.jdk = seen.jdk.as_ref().and_then(ImageJdk::to_jdk);
            self.seen = Some(Box::new(seen));
        }
        Ok(self)
    }

    /// All that runs with these arguments; none are the image's own.
    /// Errors: [`RunRefusal`] for an image that says nothing to start and arguments that do not
    /// either.
    pub fn full_command(&self, arguments: &[String]) -> Result<Vec<String>, RunRefusal> {
        let arguments = if arguments.is_empty() {
            &self.cmd
        } else {
            arguments
        };
        let all: Vec<String> = self.entrypoint.iter().chain(arguments).cloned().collect();
        // What a cluster has is not told here.
        if !(all.is_empty() && self.engine.kind != EngineKind::Kubernetes) {
            Ok(all)
        } else {
            Err(RunRefusal::new(
                format!("the image {}", self.reference),
                "it has neither an entry point nor a command",
                "say what to start in it, after --: -- java -jar /app/app.jar",
            ))
        }
    }

    /// Opens a regular file by its path in the image; `None` also if its layers are not on this
    /// machine. A link is resolved in its own layer.
    pub fn open_in_layers(&self, seen: &Path) -> Option<File> {
        let seen = self.directory.join(seen);
        let in_layer = |layer: &PathBuf| beneath::open_in_root(File::open(layer).ok()?, &seen).ok();
        self.layers.iter().find_map(in_layer)
    }

    /// Names in a directory, by its path in the image; none if its layers are not on this machine.
    /// Files removed by an upper layer are left out.
    pub fn names_in(&self, seen: &Path) -> Vec<String> {
        let seen = self.directory.join(seen);
        let (mut names, mut known) = (Vec::new(), BTreeSet::new());
        for layer in &self.layers {
            let entries = File::open(layer).and_then(|layer| beneath::list_in_root(layer, &seen));
            for (name, kind) in entries.unwrap_or_default() {
                let name = name.to_string_lossy().into_owned();
                // The overlay's mark of a removed file (overlayfs.rst, "whiteouts").
                let is_mark = kind == FileType::CharacterDevice;
                if known.insert(name.clone()) && !is_mark {
                    names.push(name);
                }
            }
        }
        names
    }
}

#[cfg(fuzzing)]
pub fn parse_anything(text: &str) {
    for image in serde_json::from_str::<Vec<InspectedImage>>(text).unwrap_or_default() {
        let _ = refuse_foreign("it", &image);
        let _ = image.config.stop_signal.as_deref().and_then(parse_signal);
    }
    let _ = refuse_reference(text);
}

fn inspect_reference(engine: &ContainerEngine, reference: &str) -> Result<String, EngineError> {
    engine::run(engine, &["image", "inspect", reference])
}

fn refuse_reference(reference: &str) -> Result<(), RunRefusal> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let starts = reference.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && reference.chars().all(is_plain) {
        return Ok(());
    }
    Err(RunRefusal::new(
        format!("the image `{reference}`"),
        "that is not an image name",
        "write it as the engine lists it: --image registry/name:tag, name@sha256:DIGEST or an id",
    ))
}

fn no_engine(wanted: Option<EngineKind>) -> RunRefusal {
    let name = wanted.map_or("podman nor docker".to_owned(), |kind| kind.to_string());
    let why = match wanted {
        Some(_) => format!("{name} is not on the path"),
        None => format!("neither {name} is on the path"),
    };
    let hint = match wanted {
        Some(EngineKind::Docker) => {
            "install it (apt-get install docker.io) and start its daemon; or use podman: --engine podman"
        }
        _ => {
            "install one: apt-get install podman runc catatonit; or give the application as a command: -- java -jar app.jar"
        }
    };
    RunRefusal::new("starting an image", why, hint)
}

fn not_pulled(engine: &ContainerEngine, reference: &str, error: &EngineError) -> ImageNotFound {
    // Built on some machine, as podman names it: no registry has it.
    if reference.starts_with("localhost/") {
        return ImageNotFound::Wrong(RunRefusal::new(
            format!("the image {reference}"),
            "it is not on this machine, and no registry has an image of localhost's",
            "check the name and the tag: `podman images` lists those of this machine; root has its own images (sudo podman images)",
        ));
    }
    let said = error.said.to_lowercase();
    let is_name =
        "unknown|not found|denied|unauthorized|short-name|lowercase|invalid reference|not exist";
    // What a full disk breaks may have words of a wrong name.
    let full = engine::full_disk_hint(engine, &error.said);
    let is_wrong = full.is_none() && is_name.split('|').any(|word| said.contains(word));
    let hint = if let Some(hint) = &full {
        hint
    } else if said.contains("unauthorized") || said.contains("denied") {
        "log in with the engine, or check the name; an image that was built here needs the tag it was built with"
    } else {
        "check the name and the tag; `podman images` and `docker images` list those of this machine"
    };
    let refusal = RunRefusal::new(
        format!("the image {reference}"),
        format!("it is not on this machine, and it cannot be pulled: {error}"),
        hint,
    );
    if is_wrong {
        ImageNotFound::Wrong(refusal)
    } else {
        ImageNotFound::Here(refusal)
    }
}

fn refuse_foreign(what: &str, image: &InspectedImage) -> Result<(), RunRefusal> {
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let is_ours = |said: &str, ours: &str| said.is_empty() || said == ours;
    if is_ours(&image.architecture, here) && is_ours(&image.os, "linux") {
        return Ok(());
    }
    let why = format!(
        "it is for {}/{}, and this machine is linux/{here}",
        image.os, image.architecture
    );
    let hint = format!(
        "build or pull it for this machine: --platform linux/{here}; emulation would slow it down"
    );
    Err(RunRefusal::new(what, why, hint))
}

/// Paths of an engine elsewhere are those of its machine, not of this one.
fn local_layers(engine: &ContainerEngine, driver: &GraphDriver) -> Vec<PathBuf> {
    if engine.apart.is_some() {
        return Vec::new();
    }
    driver.layers()
}

/// The JVM in the layers: the only one; among several the one of JAVA_HOME or of the program, else
/// the first. Found by its library, which every layout has, and which shows the home.
fn jdk_in_layers(
    layers: &[PathBuf],
    env: &BTreeMap<String, String>,
    program: Option<&String>,
) -> Option<InstalledJdk> {
    let all = layers.iter().flat_map(|layer| homes(layer, layer));
    choose_jdk(all.collect(), env, program)
}

/// The JDKs below a directory, with the paths at which `root` has them.
fn homes(directory: &Path, root: &Path) -> Vec<(InstalledJdk, PathBuf)> {
    let files = pagecache::files_below(directory, pagecache::WHOLE);
    let libraries = files.iter().filter(|path| path.ends_with("libjvm.so"));
    let Ok(open_root) = File::open(root) else {
        return Vec::new();
    };
    let has_release = |home: &Path| beneath::is_in_root(&open_root, &home.join("release"));
    let home = |library: &PathBuf| {
        let mut homes = library.strip_prefix(root).ok()?.ancestors();
        let home = homes.find(|home| has_release(home))?;
        let jdk = InstalledJdk::inspect_in_root(root, home).ok()?;
        Some((jdk, Path::new("/").join(home)))
    };
    libraries.filter_map(home).collect()
}

fn choose_jdk(
    mut homes: Vec<(InstalledJdk, PathBuf)>,
    env: &BTreeMap<String, String>,
    program: Option<&String>,
) -> Option<InstalledJdk> {
    homes.sort_by(|a, b| a.1.cmp(&b.1));
    let named = env.get("JAVA_HOME").map(PathBuf::from);
    let is_meant = |seen: &Path| {
        named.as_deref() == Some(seen) || program.is_some_and(|p| Path::new(p).starts_with(seen))
    };
    let meant = homes.iter().position(|(_, seen)| is_meant(seen));
    (!homes.is_empty()).then(|| homes.swap_remove(meant.unwrap_or(0)).0)
}

/// The JDK among the files that this process sees, inside an image.
pub(crate) fn jdk_of_this_root(env: &BTreeMap<String, String>) -> Option<InstalledJdk> {
    let own = directories_of_this_root();
    let homes = own.iter().flat_map(|path| homes(path, Path::new("/")));
    choose_jdk(homes.collect(), env, None)
}

/// The directories of the image that this process runs inside of.
pub(crate) fn directories_of_this_root() -> Vec<PathBuf> {
    const NOT_OF_IMAGES: [&str; 6] = ["proc", "sys", "dev", "run", "tmp", "loadline"];
    let below = std::fs::read_dir("/").into_iter().flatten().flatten();
    let own = below.filter(|entry| {
        let name = entry.file_name();
        !NOT_OF_IMAGES.iter().any(|not| name == *not) && entry.file_type().is_ok_and(|t| t.is_dir())
    });
    own.map(|entry| entry.path()).collect()
}

/// A signal by name or number, where it is not SIGTERM. Source: signal(7); the numbers are those of
/// x86 and Arm.
fn parse_signal(text: &str) -> Option<i32> {
    const NAMES: [(&str, i32); 7] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("KILL", 9),
        ("USR1", 10),
        ("USR2", 12),
        ("WINCH", 28),
    ];
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let number = known
        .map(|(_, number)| *number)
        .or_else(|| text.parse().ok());
    number.filter(|number| *number != 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_those_of_docker() {
        for (short, whole) in [
            ("mongo:6.0.18", "docker.io/library/mongo:6.0.18"),
            ("graylog/graylog:6.1", "docker.io/graylog/graylog:6.1"),
            ("quay.io/a/b:1", "quay.io/a/b:1"),
            ("registry:5000/a", "registry:5000/a"),
            ("localhost/a:1", "localhost/a:1"),
        ] {
            assert_eq!(with_registry(short), whole);
        }
    }

    /// `podman image inspect` 4.3.1 and `docker image inspect` 20.10.24 of one image, shortened.
    const PODMAN: &str = r#"[{"Id":"bb0df9b6","Digest":"sha256:2dfd","RepoDigests":["localhost/spring@sha256:2dfd"],"Architecture":"amd64","Os":"linux","Config":{"Labels":{"org.opencontainers.image.version":" 1.4.2","org.opencontainers.image.revision":"a\u001b[2J","x":"y"},"User":"app","ExposedPorts":{"8080/tcp":{}},"Env":["JAVA_HOME=/opt/jre","A=b=c"],"Entrypoint":["/opt/jre/bin/java","-jar","/app/app.jar"],"StopSignal":"SIGQUIT"},"GraphDriver":{"Name":"overlay","Data":{"UpperDir":"/none/diff","WorkDir":"/none/work"}}}]"#;
    const DOCKER: &str = r#"[{"Id":"sha256:be55","Digest":null,"RepoDigests":[],"Architecture":"amd64","Os":"linux","Config":{"User":"app","ExposedPorts":null,"Env":null,"Cmd":["serve"],"Entrypoint":null,"Labels":null},"GraphDriver":{"Data":null,"Name":"overlay2"}}]"#;

    fn refusal(error: ImageNotFound) -> RunRefusal {
        match error {
            ImageNotFound::Wrong(refusal) | ImageNotFound::Here(refusal) => refusal,
        }
    }

    fn read(text: &str) -> Result<EngineImage, RunRefusal> {
        let engine = ContainerEngine {
            kind: EngineKind::Podman,
            program: PathBuf::from("/usr/bin/podman"),
            env: BTreeMap::new(),
            apart: None,
        };
        EngineImage::read(&engine, "spring:1", &text.replace("amd64", architecture()))
            .map_err(refusal)
    }

    fn architecture() -> &'static str {
        match std::env::consts::ARCH {
            "x86_64" => "amd64",
            _ => "arm64",
        }
    }

    #[test]
    fn both_engines_say_what_an_image_starts() {
        let podman = read(PODMAN).expect("it is understood");
        let command = podman
            .full_command(&["--debug".to_owned()])
            .expect("a command");
        assert_eq!(
            command,
            ["/opt/jre/bin/java", "-jar", "/app/app.jar", "--debug"]
        );
        assert_eq!(
            podman.pinned.as_deref(),
            Some("localhost/spring@sha256:2dfd")
        );
        assert_eq!(podman.env["A"], "b=c");
        assert_eq!(
            (podman.stop_signal, podman.ports),
            (Some(3), BTreeSet::from([8080]))
        );
        // What would move a cursor is no name.
        assert_eq!(
            (podman.version.as_deref(), podman.revision),
            (Some("1.4.2"), None)
        );
        let docker = read(DOCKER).expect("it is understood");
        assert_eq!(docker.full_command(&[]), Ok(vec!["serve".to_owned()]));
        assert_eq!((docker.pinned, docker.stop_signal), (None, None));
    }

    #[test]
    fn an_image_that_cannot_start_here_is_refused_with_what_to_do() {
        let foreign = read(&PODMAN.replace("amd64", "s390x")).expect_err("another machine");
        assert!(
            foreign.why.starts_with("it is for linux/s390x"),
            "{foreign}"
        );
        assert!(foreign.hint.contains("--platform"), "{}", foreign.hint);
        let windows = read(&PODMAN.replace("\"linux\"", "\"windows\"")).expect_err("no Linux");
        assert!(windows.why.starts_with("it is for windows/"), "{windows}");
        let empty = read(&DOCKER.replace("[\"serve\"]", "null")).expect("it is understood");
        let refusal = empty.full_command(&[]).expect_err("nothing to start");
        assert!(refusal.hint.contains("after --"), "{}", refusal.hint);
        assert!(read("{}").is_err() && read("[]").is_err());
    }

    #[test]
    fn names_in_an_image_are_those_of_all_its_layers() {
        let place = tempfile::tempdir().expect("a directory");
        let layers = ["upper", "lower"].map(|name| place.path().join(name));
        for (layer, name) in layers.iter().zip(["b", "a"]) {
            std::fs::create_dir_all(layer.join("opt/scc")).expect("a directory");
            std::fs::write(layer.join("opt/scc").join(name), "").expect("a file");
        }
        // What it leads to on this machine is not the image's.
        std::os::unix::fs::symlink("/etc", layers[0].join("link")).expect("a link");
        let image = EngineImage {
            layers: layers.to_vec(),
            ..read(DOCKER).expect("it is understood")
        };
        let mut names = image.names_in(Path::new("/opt/scc"));
        names.sort();
        assert_eq!(names, ["a", "b"]);
        assert!(image.names_in(Path::new("/link")).is_empty());
        assert!(image.names_in(Path::new("/none")).is_empty());
        let mark = layers[0].join("opt/scc/a");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &mark,
            FileType::CharacterDevice,
            rustix::fs::Mode::empty(),
            0,
        );
        match made {
            Ok(()) => assert_eq!(image.names_in(Path::new("/opt/scc")), ["b"]),
            Err(error) => println!("SKIP a mark of the overlay: {error}"),
        }
    }

    #[test]
    fn a_path_that_an_engine_elsewhere_says_is_not_looked_at_here() {
        let driver = serde_json::json!({ "Data": { "UpperDir": "/etc" } });
        let driver: GraphDriver = serde_json::from_value(driver).expect("it is understood");
        let mut engine = read(DOCKER).expect("it is understood").engine;
        assert_eq!(local_layers(&engine, &driver), [Path::new("/etc")]);
        engine.apart = Some("it is elsewhere".to_owned());
        assert_eq!(local_layers(&engine, &driver), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_no_name_of_an_image_never_reaches_an_engine() {
        for wrong in ["", "-v", "--privileged", "a b", "a;b", "$(x)", "name\n"] {
            let ImageNotFound::Wrong(refusal) =
                EngineImage::find_image(wrong, None).expect_err(wrong)
            else {
                panic!("{wrong}: it is the name that is wrong");
            };
            assert!(refusal.hint.contains("registry/name:tag"), "{refusal}");
        }
        for right in [
            "spring:1",
            "localhost/a/b:1.2",
            "a@sha256:00ff",
            "host:5000/x",
        ] {
            assert_eq!(refuse_reference(right), Ok(()), "{right}");
        }
    }

    #[test]
    fn a_pull_that_fails_says_what_to_do_about_it() {
        let hint = |said: &str| {
            let mut shell = engine::installed_engines(None).pop()?;
            shell.program = PathBuf::from("/bin/sh");
            let error = engine::run(&shell, &["-c", &format!("echo '{said}' >&2; exit 125")]);
            Some(not_pulled(&shell, "a/b:1", &error.expect_err("it fails")))
        };
        let Some(full) = hint("unknown: write /var/tmp/x: no space left on device") else {
            println!("SKIP a_pull_that_fails_says_what_to_do_about_it: no engine here");
            return;
        };
        let hints = |error: Option<ImageNotFound>, what: &str| {
            error.is_some_and(|error| refusal(error).hint.starts_with(what))
        };
        assert!(matches!(full, ImageNotFound::Here(_)), "{full:?}");
        assert!(hints(Some(full), "free some space"));
        let denied = hint("requested access to the resource is denied");
        assert!(
            matches!(denied, Some(ImageNotFound::Wrong(_))),
            "{denied:?}"
        );
        assert!(hints(denied, "log in"));
        let unknown = hint("manifest unknown");
        assert!(
            matches!(unknown, Some(ImageNotFound::Wrong(_))),
            "{unknown:?}"
        );
        assert!(hints(unknown, "check the name"));
        let capital = hint("repository name must be lowercase");
        assert!(
            matches!(capital, Some(ImageNotFound::Wrong(_))),
            "{capital:?}"
        );
        let unreachable = hint("dial tcp: lookup registry: no such host");
        assert!(
            matches!(unreachable, Some(ImageNotFound::Here(_))),
            "{unreachable:?}"
        );
    }

    #[test]
    fn a_machine_without_an_engine_is_told_which_to_install() {
        let none = no_engine(None);
        assert_eq!(none.why, "neither podman nor docker is on the path");
        assert!(
            none.hint.contains("apt-get install podman"),
            "{}",
            none.hint
        );
        let docker = no_engine(Some(EngineKind::Docker));
        assert_eq!(docker.why, "docker is not on the path");
    }

    #[test]
    fn stop_signals_have_names_and_numbers() {
        assert_eq!(parse_signal("SIGTERM"), None);
        assert_eq!(parse_signal("15"), None);
        assert_eq!(
            (
                parse_signal("SIGINT"),
                parse_signal("INT"),
                parse_signal("2")
            ),
            (Some(2), Some(2), Some(2))
        );
    }

    #[test]
    fn the_jvm_of_an_image_is_found_by_its_library_whatever_the_layout() {
        let root = tempfile::tempdir().expect("a directory");
        for (home, version) in [("opt/a", "17.0.1"), ("layers/paketo/jre", "21.0.2")] {
            let home = root.path().join(home);
            for directory in ["bin", "lib/server"] {
                std::fs::create_dir_all(home.join(directory)).expect("a directory");
            }
            let release = format!("JAVA_VERSION=\"{version}\"\nIMPLEMENTOR=\"x\"\n");
            std::fs::write(home.join("release"), release).expect("a file");
            std::fs::write(home.join("lib/server/libjvm.so"), "").expect("a file");
            std::os::unix::fs::symlink("/bin/true", home.join("bin/java")).expect("a link");
        }
        let layers = [root.path().to_owned()];
        let feature = |env: &[(&str, &str)], program: Option<&str>| {
            let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let jdk = jdk_in_layers(&layers, &env.collect(), program.map(str::to_owned).as_ref());
            jdk.map(|jdk| jdk.version.feature)
        };
        assert_eq!(feature(&[], None), Some(21));
        assert_eq!(feature(&[("JAVA_HOME", "/opt/a")], None), Some(17));
        assert_eq!(feature(&[], Some("/opt/a/bin/java")), Some(17));
        assert_eq!(jdk_in_layers(&[], &BTreeMap::new(), None), None);
    }

    #[test]
    fn what_an_image_plants_in_the_place_of_a_release_file_is_not_followed_or_waited_for() {
        let place = tempfile::tempdir().expect("a directory");
        let (layer, secret) = (place.path().join("layer"), place.path().join("secret"));
        std::fs::write(&secret, "JAVA_VERSION=\"99\"\n").expect("a file");
        let home = layer.join("opt/jre");
        for directory in ["bin", "lib/server"] {
            std::fs::create_dir_all(home.join(directory)).expect("a directory");
        }
        for file in ["bin/java", "lib/server/libjvm.so"] {
            std::fs::write(home.join(file), "").expect("a file");
        }
        let release = home.join("release");
        let found = || jdk_in_layers(std::slice::from_ref(&layer), &BTreeMap::new(), None);
        let link = |to: &Path| std::os::unix::fs::symlink(to, &release).expect("a link");
        let up = Path::new("../../../secret");
        for planted in [&secret, up, Path::new("/proc/kmsg"), Path::new("/dev/zero")] {
            link(planted);
            assert_eq!(found(), None, "{}", planted.display());
            std::fs::remove_file(&release).expect("a link");
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, &release, rustix::fs::Mode::RUSR).expect("a FIFO");
        assert_eq!(found(), None, "a FIFO");
        std::fs::remove_file(&release).expect("a FIFO");
        // A terabyte that begins as such a file does.
        std::fs::write(&release, "JAVA_VERSION=\"17.0.1\"\n").expect("a file");
        let file = File::options().write(true).open(&release).expect("a file");
        file.set_len(1 << 40).expect("a hole");
        assert_eq!(found().map(|jdk| jdk.version.feature), Some(17));
        // A link within the image is the rule, and counts from its root.
        std::fs::rename(&release, layer.join("version")).expect("a file");
        link(Path::new("/version"));
        assert_eq!(found().map(|jdk| jdk.version.feature), Some(17));
    }
}
