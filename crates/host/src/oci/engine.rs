//! The engine's program: where it is, how it is called, what it says.
//!
//! Owns its command line up to the subcommand and the refusal of an engine whose containers loadline
//! could not see from here. Goes through the program and not the socket behind it: the program knows
//! contexts, credentials and settings. Facts: podman(1), docker(1); podman's default of crun does
//! not start on a machine with both versions of cgroups (buildbuddy-io/buildbuddy PR 6857).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loadline_cgroup::{Layout, Mode};
use loadline_trial::{Engine, EngineKind, Refusal};

/// Of loadline's environment, what an engine's program needs to find its daemon, settings and
/// helpers.
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
];

/// The runtime that starts containers on every layout of cgroups.
const RUNTIME: &str = "runc";

/// A call of an engine that failed.
#[derive(Debug, thiserror::Error)]
#[error("`{engine} {subcommand}`: {said}")]
pub struct EngineError {
    engine: EngineKind,
    subcommand: String,
    /// The last line that it wrote to its standard error, or why it did not start.
    pub said: String,
}

/// The engines of this machine that are asked for; `None` is any, those without a daemon first.
pub fn installed(wanted: Option<EngineKind>) -> Vec<Engine> {
    let env: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    let path = env.get("PATH").cloned().unwrap_or_default();
    let kinds = EngineKind::ALL.into_iter();
    let kinds = kinds.filter(|kind| wanted.is_none_or(|wanted| wanted == *kind));
    let engine = |kind: EngineKind| {
        Some(Engine {
            kind,
            program: which(&path, kind.name())?,
            env: env.clone(),
        })
    };
    kinds.filter_map(engine).collect()
}

/// Why containers of this engine could not be measured from here, if they could not.
///
/// # Errors
/// [`Refusal`]: it is on another machine, does not answer, or leaves its cgroups to systemd.
pub fn check(engine: &Engine) -> Result<(), Refusal> {
    let what = format!("starting containers with {}", engine.kind);
    if let Some(host) = remote(engine) {
        let why = format!("it starts them at {host}, where loadline cannot read their cgroups");
        let hint = "run loadline on that machine, or take DOCKER_HOST, DOCKER_CONTEXT and CONTAINER_HOST away";
        return Err(Refusal::new(what, why, hint));
    }
    if engine.kind == EngineKind::Podman {
        return Ok(());
    }
    let driver = run(engine, &["info", "--format", "{{.CgroupDriver}}"]);
    let is_root = rustix::process::geteuid().is_root();
    let driver =
        driver.map_err(|error| Refusal::new(&what, &error, daemon_hint(&error.said, is_root)))?;
    match driver.trim() {
        "cgroupfs" => Ok(()),
        other => Err(Refusal::new(
            what,
            format!(
                "its daemon leaves cgroups to {other}, and loadline makes that of a trial itself"
            ),
            "use podman: --engine podman; or set \"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json and restart docker",
        )),
    }
}

fn daemon_hint(said: &str, is_root: bool) -> &'static str {
    match (said.contains("permission denied"), is_root) {
        (true, false) => "its socket lets only root and the group docker in: run loadline as root",
        (true, true) => {
            "root without all of its rights (a container, a service with fewer capabilities) is let in by what `ls -lZ` says of the socket only: run loadline with them (sudo on the machine, --privileged in a container); or use podman: --engine podman"
        }
        (false, _) => {
            "start it: systemctl start docker, or dockerd by hand; or use podman: --engine podman"
        }
    }
}

/// What to do where a disk of an engine is full; `None` where that is not what it said.
pub fn full_disk_hint(engine: &Engine, said: &str) -> Option<String> {
    let said = said.to_lowercase();
    let is_full = said.contains("no space left") || said.contains("disk quota exceeded");
    is_full.then(|| {
        let kept = match kept_in(engine) {
            Some(place) => format!("in {place}"),
            None => "where it keeps images".to_owned(),
        };
        let through = match engine.kind {
            EngineKind::Podman => {
                let unpacked = engine.env.get("TMPDIR").map_or("/var/tmp", String::as_str);
                format!(", and in {unpacked} (TMPDIR), where podman puts what it pulls first")
            }
            EngineKind::Docker | EngineKind::Kubernetes => String::new(),
        };
        format!(
            "free some space {kept}{through}, then call loadline again; `{} image prune` removes images without a name",
            engine.kind
        )
    })
}

/// The directory of an engine's images.
fn kept_in(engine: &Engine) -> Option<String> {
    let format = match engine.kind {
        EngineKind::Podman => "{{.Store.GraphRoot}}",
        EngineKind::Docker => "{{.DockerRootDir}}",
        EngineKind::Kubernetes => return None,
    };
    let place = run(engine, &["info", "--format", format]).ok()?;
    let place = place.trim();
    place.starts_with('/').then(|| place.to_owned())
}

/// Where containers would be started, if that is not here.
fn remote(engine: &Engine) -> Option<String> {
    let given = |name: &str| engine.env.get(name).filter(|value| !value.is_empty());
    let host = match engine.kind {
        EngineKind::Kubernetes => return Some("a cluster".to_owned()),
        EngineKind::Podman => given("CONTAINER_HOST").cloned()?,
        EngineKind::Docker => match given("DOCKER_HOST") {
            Some(host) => host.clone(),
            None => {
                let host = [
                    "context",
                    "inspect",
                    "--format",
                    "{{.Endpoints.docker.Host}}",
                ];
                run(engine, &host).ok()?
            }
        },
    };
    let host = host.trim();
    (!host.is_empty() && !host.starts_with("unix://")).then(|| host.to_owned())
}

/// Its program with what stands before each subcommand.
pub fn command(engine: &Engine) -> Command {
    let mut command = Command::new(&engine.program);
    command.env_clear().envs(&engine.env).current_dir("/");
    if engine.kind == EngineKind::Podman {
        // The cgroup of a trial is loadline's, not systemd's.
        command.arg("--cgroup-manager=cgroupfs");
        if needs_runtime(engine) {
            command.arg(format!("--runtime={RUNTIME}"));
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Whether podman must be told which runtime to take, and has it.
fn needs_runtime(engine: &Engine) -> bool {
    let layout = Layout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"));
    let path = engine.env.get("PATH").map_or("", String::as_str);
    layout.is_ok_and(|layout| layout.mode() != Mode::V2) && which(path, RUNTIME).is_some()
}

/// Calls it and gives what it wrote to its standard output.
///
/// # Errors
/// [`EngineError`] with the last line of its standard error.
pub fn run<S: AsRef<OsStr>>(engine: &Engine, arguments: &[S]) -> Result<String, EngineError> {
    let failed = |said: String| EngineError {
        engine: engine.kind,
        subcommand: arguments
            .first()
            .map_or_else(String::new, |a| a.as_ref().to_string_lossy().into_owned()),
        said,
    };
    let output = command(engine).args(arguments).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().rfind(|line| !line.trim().is_empty());
    Err(failed(match line {
        Some(line) => crate::output::plain(line.trim()),
        None => format!("it ended with {}", output.status),
    }))
}

/// The program of a name on a path.
fn which(path: &str, name: &str) -> Option<PathBuf> {
    let places = path.split(':').filter(|place| place.starts_with('/'));
    // Where a system's own programs are, which the path of a user may lack.
    let places = places.chain(["/usr/sbin", "/usr/local/sbin"]);
    let mut programs = places.map(|place| Path::new(place).join(name));
    programs.find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(kind: EngineKind, variable: (&str, &str)) -> Engine {
        Engine {
            kind,
            program: PathBuf::from("/bin/false"),
            env: BTreeMap::from([(variable.0.to_owned(), variable.1.to_owned())]),
        }
    }

    #[test]
    fn an_engine_on_another_machine_is_refused_by_where_it_is() {
        for (kind, variable, host) in [
            (EngineKind::Docker, "DOCKER_HOST", "tcp://10.0.0.1:2376"),
            (EngineKind::Docker, "DOCKER_HOST", "ssh://build@host"),
            (
                EngineKind::Podman,
                "CONTAINER_HOST",
                "ssh://core@localhost:53/run/podman.sock",
            ),
        ] {
            let refusal = check(&engine(kind, (variable, host))).expect_err(host);
            assert!(refusal.why.contains(host), "{refusal}");
            assert!(refusal.hint.contains(variable), "{}", refusal.hint);
        }
        let here = engine(
            EngineKind::Podman,
            ("CONTAINER_HOST", "unix:///run/podman.sock"),
        );
        assert_eq!(check(&here), Ok(()));
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_refused_with_what_to_do() {
        let silent = engine(EngineKind::Docker, ("DOCKER_HOST", "unix:///none.sock"));
        let refusal = check(&silent).expect_err("no daemon");
        assert!(refusal.hint.contains("start docker"), "{}", refusal.hint);
        let denied = "dial unix: connect: permission denied";
        assert!(daemon_hint(denied, false).contains("as root"));
        assert!(daemon_hint(denied, true).contains("--privileged"));
    }

    #[test]
    fn what_an_engine_is_shown_as_holds_nothing_of_its_environment() {
        let shown = format!("{:?}", engine(EngineKind::Podman, ("HOME", "/secret")));
        assert_eq!(shown, "podman (/bin/false)");
    }

    #[test]
    fn a_call_that_fails_says_its_last_words() {
        let mut shell = engine(EngineKind::Docker, ("PATH", "/bin:/usr/bin"));
        shell.program = PathBuf::from("/bin/sh");
        let error = run(&shell, &["-c", "echo no such image >&2; exit 1"]).expect_err("it fails");
        assert_eq!(error.to_string(), "`docker -c`: no such image");
        assert_eq!(
            run(&shell, &["-c", "echo yes"]).ok().as_deref(),
            Some("yes\n")
        );
    }
}
