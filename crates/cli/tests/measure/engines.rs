//! Container engines for tests: podman, and a dockerd of the test's own where none runs; both with
//! one image that holds a JVM, the smallest workload and the applications of the zoo.
//!
//! The image is packed once from this machine's own files; no registry is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::applications::ping;
use crate::process::{Call, POLL};

/// The image, in both engines. It starts the workload; nothing is its entry point, so that tests can
/// start something else in it.
pub const IMAGE: &str = "localhost/loadline-test:1";

/// What the workload needs of a JDK.
const MODULES: &str = "java.base,java.logging,java.management,jdk.httpserver";

/// An engine with the image. Dropping it removes the image, and ends the daemon that it started.
pub struct Engine {
    pub name: &'static str,
    /// What tells its program where things are.
    variable: Option<(&'static str, String)>,
    daemon: Option<Child>,
}

impl Engine {
    /// podman, or why there is none.
    pub fn podman() -> Result<Self, String> {
        need("podman", "podman runc catatonit")?;
        Self::with_image(Self {
            name: "podman",
            variable: None,
            daemon: None,
        })
    }

    /// podman that keeps its containers in a directory, or why there is none.
    pub fn podman_in(storage: &Path) -> Result<Self, String> {
        need("podman", "podman runc catatonit")?;
        let file = storage.join("storage.conf");
        let at = |name: &str| storage.join(name).display().to_string();
        let text = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            at("graph"),
            at("run")
        );
        fs::write(&file, text).map_err(|e| e.to_string())?;
        Self::with_image(Self {
            name: "podman",
            variable: Some(("CONTAINERS_STORAGE_CONF", file.display().to_string())),
            daemon: None,
        })
    }

    /// podman behind a service of the test's own, or why there is none.
    pub fn podman_service() -> Result<Self, String> {
        need("podman", "podman runc catatonit")?;
        let socket = format!("unix:///run/loadline-podman-{}.sock", std::process::id());
        let service = Command::new("podman")
            .args(["--runtime=runc", "--cgroup-manager=cgroupfs"])
            .args(["system", "service", "--time=0", &socket])
            // Its conmon leaves a file `oom` where it was started.
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let engine = Self {
            name: "podman",
            variable: Some(("CONTAINER_HOST", socket)),
            daemon: Some(service.map_err(|e| e.to_string())?),
        };
        let begin = Instant::now();
        while engine.say(&["version"]).is_err() {
            if begin.elapsed() > Duration::from_secs(30) {
                return Err("podman's service does not start here".to_owned());
            }
            std::thread::sleep(POLL);
        }
        Self::with_image(engine)
    }

    /// docker, with a separate daemon if none answers; or why there is none.
    pub fn docker() -> Result<Self, String> {
        need("docker", "docker.io")?;
        let mut engine = Self {
            name: "docker",
            variable: None,
            daemon: None,
        };
        if engine.say(&["info"]).is_err() {
            need("dockerd", "docker.io")?;
            engine.start_daemon()?;
        }
        let driver = engine.say(&["info", "--format", "{{.CgroupDriver}}"])?;
        if driver.trim() != "cgroupfs" {
            return Err(format!("docker's daemon leaves cgroups to {driver}"));
        }
        Self::with_image(engine)
    }

    fn with_image(engine: Self) -> Result<Self, String> {
        let packed = packed()?;
        let change = "--change=CMD [\"/opt/jre/bin/java\", \"-jar\", \"/app/ping.jar\"]";
        let packed = packed.display().to_string();
        let label = "--change=LABEL org.opencontainers.image.version=1.0-ping";
        let imported = engine.say(&["import", change, label, &packed, IMAGE]);
        // An engine that exists and does not work is no reason to skip.
        imported.unwrap_or_else(|why| panic!("{}: {why}", engine.name));
        Ok(engine)
    }

    fn start_daemon(&mut self) -> Result<(), String> {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dockerd");
        fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        // The path of a socket is short.
        let socket = format!("unix:///run/loadline-test-{}.sock", std::process::id());
        let at = |name: &str| place.join(name).display().to_string();
        let log = fs::File::create(place.join("log")).map_err(|e| e.to_string())?;
        let daemon = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec")])
            .args(["--pidfile", &at("pid"), "-H", &socket])
            .args(["--iptables=false", "--bridge=none"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.daemon = Some(daemon.map_err(|e| e.to_string())?);
        self.variable = Some(("DOCKER_HOST", socket));
        let begin = Instant::now();
        while self.say(&["info"]).is_err() {
            if begin.elapsed() > Duration::from_secs(30) {
                let said = fs::read_to_string(place.join("log")).unwrap_or_default();
                let last = said.lines().next_back().unwrap_or_default().to_owned();
                return Err(format!("dockerd does not start here: {last}"));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// The engine's output; its last line of error when it says no.
    pub fn say(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.name);
        command.args(arguments).stdin(Stdio::null());
        if let Some((name, value)) = &self.variable {
            command.env(name, value);
        }
        let output = command.output().map_err(|e| e.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr).trim().to_owned())
        }
    }

    /// A call of loadline that finds this engine.
    pub fn environment(&self, call: Call) -> Call {
        match &self.variable {
            Some((name, value)) => call.env(name, value),
            None => call,
        }
    }

    /// A call of loadline that takes this engine and the image.
    pub fn call(&self, call: Call) -> Call {
        self.environment(call)
            .args(&["--image", IMAGE, "--engine", self.name])
    }

    /// Containers that some loadline made.
    pub fn containers(&self) -> Vec<String> {
        let filter = "label=loadline.owner";
        let listed = self.say(&["ps", "--all", "--filter", filter, "--format", "{{.Names}}"]);
        let listed = listed.expect("it lists containers");
        listed.lines().map(str::to_owned).collect()
    }
}

impl Engine {
    /// Containers and volumes that some loadline made for which this engine is apart.
    pub fn left_apart(&self) -> Vec<String> {
        let filter = ["--filter", "label=loadline.client", "--format"];
        let listed = |words: &[&str], format: &str| {
            let all = [words, &filter, &[format]].concat();
            let text = self.say(&all).expect("it lists");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let containers = listed(&["ps", "--all"], "{{.Names}}");
        let volumes = listed(&["volume", "ls"], "{{.Name}}");
        [containers, volumes].concat()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A missing image need not be removed.
        let _ = self.say(&["rmi", "--force", IMAGE]);
        if let Some(daemon) = &mut self.daemon {
            let pid = i32::try_from(daemon.id()).ok();
            let pid = pid.and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = daemon.wait();
        }
    }
}

/// An image of loadline itself: the project's Dockerfile, and on it the libraries that a program of
/// a test needs and a release's does not. Dropping it removes it.
pub struct OwnImage<'a> {
    engine: &'a Engine,
}

impl<'a> OwnImage<'a> {
    const BARE: &'static str = "localhost/loadline-bare:1";
    const NAME: &'static str = "localhost/loadline-own:1";

    pub fn build(engine: &'a Engine) -> Result<Self, String> {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-image");
        let _ = fs::remove_dir_all(&place);
        let put = |from: &Path, to: &str| {
            let to = place.join(to);
            fs::create_dir_all(to.parent().expect("it has one")).expect("a directory");
            fs::copy(from, to).expect("it is copied");
        };
        let program = Path::new(env!("CARGO_BIN_EXE_loadline"));
        put(program, "programs/loadline");
        libraries(program)
            .iter()
            .for_each(|library| put(Path::new(library), &format!("libraries{library}")));
        let on = format!("FROM {}\nCOPY libraries /\n", Self::BARE);
        fs::write(place.join("Dockerfile"), on).expect("a file");
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Dockerfile");
        let build = |file: &Path, name: &str, context: &Path| {
            let (file, context) = (file.display().to_string(), context.display().to_string());
            engine.say(&["build", "--file", &file, "--tag", name, &context])
        };
        build(&own, Self::BARE, &place.join("programs"))?;
        build(&place.join("Dockerfile"), Self::NAME, &place)?;
        Ok(Self { engine })
    }

    /// What it prints; what it says where it fails.
    pub fn run(&self, flags: &[&str], arguments: &[&str]) -> Result<String, String> {
        // This machine may not raise its limits, and has two versions of cgroups.
        let mut all = vec!["--runtime=runc", "--cgroup-manager=cgroupfs", "run", "--rm"];
        all.extend(["--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768"]);
        all.extend(flags.iter().chain(&[Self::NAME]).chain(arguments));
        self.engine.say(&all)
    }
}

impl Drop for OwnImage<'_> {
    fn drop(&mut self) {
        let _ = self.engine.say(&["rmi", "--force", Self::NAME, Self::BARE]);
    }
}

/// Where an OpenJ9 of a test lies, on this machine and in its image.
pub const OPENJ9: &str = "/usr/lib/jvm/openj9-25";

/// An image with the smallest workload and a whole OpenJ9. Dropping it removes it.
pub struct OpenJ9Image<'a> {
    engine: &'a Engine,
}

impl<'a> OpenJ9Image<'a> {
    pub const NAME: &'static str = "localhost/loadline-openj9:1";

    /// Packs it; or why it cannot be.
    pub fn build(engine: &'a Engine) -> Result<Self, String> {
        if !Path::new(OPENJ9).join("bin/java").is_file() {
            return Err(format!("no OpenJ9 25 in {OPENJ9}"));
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openj9-image");
        let _ = fs::remove_dir_all(&root);
        let put = |from: &Path, to: &str| {
            let to = root.join(to.trim_start_matches('/'));
            fs::create_dir_all(to.parent().expect("it has one")).expect("a directory");
            fs::copy(from, to).expect("it is copied");
        };
        put(&ping()?, "app/ping.jar");
        let java = Path::new(OPENJ9).join("bin/java");
        let machine = fs::read_dir(Path::new(OPENJ9).join("lib/default"));
        let machine = machine.into_iter().flatten().flatten();
        for program in machine.map(|entry| entry.path()).chain([java]) {
            let needed = libraries(&program);
            let own = |library: &&String| !library.starts_with(OPENJ9);
            needed
                .iter()
                .filter(own)
                .for_each(|library| put(Path::new(library), library));
        }
        // Opened where a thread ends, and named by no program.
        let ending = Path::new("/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
        let ending = ending.join("libgcc_s.so.1");
        if ending.is_file() {
            put(&ending, &ending.display().to_string());
        }
        for directory in ["tmp", "etc", "opt"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").expect("a file");
        let packed = root.with_extension("tar");
        let mut tar = Command::new("tar");
        // The JVM lies where it lies here, whatever a link leads to.
        let home = fs::canonicalize(OPENJ9).map_err(|e| e.to_string())?;
        let into = format!(
            "s,^{},{},",
            home.display().to_string().trim_start_matches('/'),
            OPENJ9.trim_start_matches('/')
        );
        tar.args([
            "--owner=0",
            "--group=0",
            "--transform",
            &into,
            "--exclude=jmods",
            "-cf",
        ])
        .arg(&packed)
        .arg("-C")
        .arg(&root)
        .arg(".")
        .args(["-C", "/"])
        .arg(home.strip_prefix("/").expect("it is absolute"));
        let status = tar.status().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err("tar cannot pack the image".to_owned());
        }
        let command = format!("--change=CMD [\"{OPENJ9}/bin/java\", \"-jar\", \"/app/ping.jar\"]");
        let packed = packed.display().to_string();
        engine.say(&["import", &command, &packed, Self::NAME])?;
        Ok(Self { engine })
    }
}

impl Drop for OpenJ9Image<'_> {
    fn drop(&mut self) {
        let _ = self.engine.say(&["rmi", "--force", Self::NAME]);
    }
}

fn need(program: &str, packages: &str) -> Result<(), String> {
    let found = Command::new(program).arg("--version").output();
    let why = |_| format!("no {program} in PATH (Debian packages {packages})");
    found.map(drop).map_err(why)
}

/// The files of the image, packed; made once.
fn packed() -> Result<PathBuf, String> {
    let jar = ping()?;
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    let (root, packed) = (place.join("root"), place.join("root.tar"));
    if !root.join("opt/jre/lib/server/classes.jsa").exists() {
        let _ = fs::remove_dir_all(&place);
        jlink(&root.join("opt/jre"))?;
    }
    let put = |from: &Path, to: &str| {
        let to = root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("it has one")).expect("a directory");
        fs::copy(from, to).expect("it is copied");
    };
    put(&jar, "app/ping.jar");
    // A start script that sets the variables again.
    put(Path::new("/usr/bin/env"), "usr/bin/env");
    let own = std::env::current_exe().expect("this program");
    put(&own, "bin/measure");
    let programs = [
        "opt/jre/bin/java",
        "opt/jre/lib/server/libjvm.so",
        "bin/measure",
        "usr/bin/env",
    ];
    for library in programs
        .iter()
        .flat_map(|program| libraries(&root.join(program)))
    {
        put(Path::new(&library), &library);
    }
    for directory in ["tmp", "etc"] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    // A JVM with a nameless user keeps no counters.
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").expect("a file");
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(&root)
        .args(["--owner=0", "--group=0", "-cf"]);
    let status = tar
        .arg(&packed)
        .arg(".")
        .status()
        .map_err(|e| e.to_string())?;
    status
        .success()
        .then_some(packed)
        .ok_or("tar cannot pack the image".to_owned())
}

/// A runtime of this machine's JDK.
fn jlink(to: &Path) -> Result<(), String> {
    let java = Command::new("sh")
        .args(["-c", "readlink -f \"$(command -v java)\""])
        .output();
    let java = java.map_err(|e| e.to_string())?;
    let java = PathBuf::from(String::from_utf8_lossy(&java.stdout).trim());
    let jlink = java.with_file_name("jlink");
    let output = Command::new(&jlink)
        // A cache of an application's classes lies on top of the JDK's archive.
        .args(["--strip-debug", "--generate-cds-archive"])
        .args(["--add-modules", MODULES, "--output"])
        .arg(to)
        .output()
        .map_err(|e| format!("{}: {e}", jlink.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output
        .status
        .success()
        .then_some(())
        .ok_or(format!("jlink: {said}"))
}

/// Libraries of the system that a program needs, its loader among them.
fn libraries(program: &Path) -> Vec<String> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .expect("ldd is everywhere");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text
        .split_whitespace()
        .map(|word| word.trim_end_matches(':'));
    words
        .filter(|word| word.starts_with("/lib") || word.starts_with("/usr/lib"))
        .map(str::to_owned)
        .collect()
}
