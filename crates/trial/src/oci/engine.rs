//! The engine's program: where it is, how it is called, what it says.
//!
//! Owns its command line up to the subcommand, and whether the cgroups of its containers are within
//! reach. Goes through the program and not the socket behind it: the program knows
//! contexts, credentials and settings. Facts: podman(1), docker(1); podman's default of crun does
//! not start on a machine with both versions of cgroups (buildbuddy-io/buildbuddy PR 6857).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use loadline_cgroup::{CgroupLayout, HierarchyMode};
use loadline_protocol::{ContainerEngine, EngineKind, RunRefusal};

/// Of loadline's environment, what an engine's program needs to find its daemon, settings and
/// helpers.
const INHERITED: &str = "PATH HOME USER TMPDIR XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME DOCKER_HOST \
    DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH SSH_AUTH_SOCK CONTAINER_HOST \
    CONTAINER_CONNECTION CONTAINERS_CONF CONTAINERS_STORAGE_CONF CONTAINERS_REGISTRIES_CONF";

/// The runtime that starts containers on every layout of cgroups.
const RUNTIME: &str = "runc";

const MOST_OUTPUT: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
#[error("`{engine} {subcommand}`: {said}")]
pub struct EngineError {
    engine: EngineKind,
    subcommand: String,
    /// The last line that it wrote to its standard error, or why it did not start.
    pub said: String,
}

/// The engines of this machine that are asked for; `None` is any, those without a daemon first.
pub fn installed_engines(wanted: Option<EngineKind>) -> Vec<ContainerEngine> {
    let env: BTreeMap<String, String> = INHERITED
        .split(' ')
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect();
    let path = env.get("PATH").cloned().unwrap_or_default();
    let kinds = EngineKind::ALL.into_iter();
    let kinds = kinds.filter(|kind| wanted.is_none_or(|wanted| wanted == *kind));
    let engine = |kind: EngineKind| {
        Some(ContainerEngine {
            kind,
            program: which(&path, kind.program_name())?,
            env: env.clone(),
            apart: None,
        })
    };
    kinds.filter_map(engine).collect()
}

/// An engine that answers, and whether it is remote: then loadline makes no cgroup for its
/// containers and reads theirs from a second container. Errors: [`RunRefusal`]: it does not answer.
pub fn reach_engine(engine: ContainerEngine) -> Result<ContainerEngine, RunRefusal> {
    let elsewhere = remote_location(&engine);
    let said = match engine.kind {
        EngineKind::Docker => Some("{{.CgroupDriver}} {{.OperatingSystem}}"),
        EngineKind::Podman if elsewhere.is_some() => Some("{{.Host.OS}}"),
        EngineKind::Podman | EngineKind::Kubernetes => None,
    };
    let said = said.map(|format| ask_daemon(&engine, format, elsewhere.is_some()));
    let daemon = match engine.kind {
        EngineKind::Docker => out_of_reach(&said.transpose()?.unwrap_or_default()),
        EngineKind::Podman | EngineKind::Kubernetes => said.transpose()?.and(None),
    };
    let apart = elsewhere.or(daemon).or_else(hidden_cgroup_reason);
    Ok(ContainerEngine { apart, ..engine })
}

fn ask_daemon(
    engine: &ContainerEngine,
    format: &str,
    is_elsewhere: bool,
) -> Result<String, RunRefusal> {
    let said = run(engine, &["info", "--format", format]).map_err(|error| {
        let is_root = rustix::process::geteuid().is_root();
        let what = format!("starting containers with {}", engine.kind);
        let hint = if is_elsewhere {
            format!(
                "`{} info` must work first; is the machine up, and the address right?",
                engine.kind
            )
        } else {
            daemon_hint(&error.said, is_root).to_owned()
        };
        RunRefusal::new(what, &error, hint)
    })?;
    Ok(said.trim().to_owned())
}

/// Why a daemon's containers are out of reach of this machine's cgroups, by what it says of itself.
fn out_of_reach(said: &str) -> Option<String> {
    let (driver, system) = said.split_once(' ').unwrap_or((said, ""));
    if system.contains("Docker Desktop") {
        return Some("Docker Desktop starts containers in a virtual machine".to_owned());
    }
    (driver != "cgroupfs").then(|| format!("its daemon leaves cgroups to {driver}"))
}

fn hidden_cgroup_reason() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("loadline is not root".to_owned());
    }
    let layout = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"));
    let allowed = layout.and_then(|layout| layout.check_permission());
    allowed
        .err()
        .map(|_| "the cgroups of this machine cannot be made or seen from here".to_owned())
}

fn daemon_hint(said: &str, is_root: bool) -> &'static str {
    match (said.contains("permission denied"), is_root) {
        (true, false) => "its socket lets only root and the group docker in: run loadline as root",
        (true, true) => {
            "root without full capabilities (in a container or a restricted service) needs access to the socket (see `ls -lZ`): run loadline with all capabilities (sudo on the machine, --privileged in a container); or use podman: --engine podman"
        }
        (false, _) => {
            "start it: systemctl start docker, or dockerd by hand; or use podman: --engine podman"
        }
    }
}

/// What to do where a disk of an engine is full; `None` where that is not what it said.
pub fn full_disk_hint(engine: &ContainerEngine, said: &str) -> Option<String> {
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
            "free some space {kept}{through}, then run loadline again; `{} image prune` removes images without a name",
            engine.kind
        )
    })
}

fn kept_in(engine: &ContainerEngine) -> Option<String> {
    let format = match engine.kind {
        EngineKind::Podman => "{{.Store.GraphRoot}}",
        EngineKind::Docker => "{{.DockerRootDir}}",
        EngineKind::Kubernetes => return None,
    };
    let place = run(engine, &["info", "--format", format]).ok()?;
    let place = place.trim();
    place.starts_with('/').then(|| place.to_owned())
}

fn remote_location(engine: &ContainerEngine) -> Option<String> {
    let given = |name: &str| engine.env.get(name).filter(|value| !value.is_empty());
    let host = match engine.kind {
        EngineKind::Kubernetes => return None,
        // A service has its own settings, wherever it is.
        EngineKind::Podman => podman_service(engine)?.to_owned(),
        EngineKind::Docker => match given("DOCKER_HOST") {
            Some(host) => host.clone(),
            None => {
                let format = "{{.Endpoints.docker.Host}}";
                run(engine, &["context", "inspect", "--format", format]).ok()?
            }
        },
    };
    let host = host.trim();
    let is_here = engine.kind == EngineKind::Docker && host.starts_with("unix://");
    (!host.is_empty() && !is_here).then(|| format!("it starts containers through {host}"))
}

fn podman_service(engine: &ContainerEngine) -> Option<&str> {
    let given = |name: &str| engine.env.get(name).map(String::as_str);
    let both = ["CONTAINER_HOST", "CONTAINER_CONNECTION"];
    let mut set = both.into_iter().filter_map(given);
    set.find(|value| !value.is_empty())
}

pub fn engine_command(engine: &ContainerEngine) -> Command {
    let mut command = Command::new(&engine.program);
    command.env_clear().envs(&engine.env).current_dir("/");
    if engine.kind == EngineKind::Podman && podman_service(engine).is_none() {
        if engine.apart.is_none() {
            // The cgroup of a trial is loadline's, not systemd's.
            command.arg("--cgroup-manager=cgroupfs");
        }
        if needs_runtime(engine) {
            command.arg(format!("--runtime={RUNTIME}"));
        }
    }
    command.stdin(Stdio::null());
    command
}

fn needs_runtime(engine: &ContainerEngine) -> bool {
    let layout = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"));
    let path = engine.env.get("PATH").map_or("", String::as_str);
    layout.is_ok_and(|layout| layout.mode() != HierarchyMode::V2) && which(path, RUNTIME).is_some()
}

pub fn run<S: AsRef<OsStr>>(
    engine: &ContainerEngine,
    arguments: &[S],
) -> Result<String, EngineError> {
    let output = call(engine, arguments)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same for a container that runs what others wrote: what it says is cut off, and it is ended at the
/// deadline.
pub fn run_within<S: AsRef<OsStr>>(
    engine: &ContainerEngine,
    arguments: &[S],
    deadline: Duration,
) -> Result<String, EngineError> {
    let output = call_by(engine, arguments, |command| {
        bounded_output(command, deadline)
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn bounded_output(command: &mut Command, deadline: Duration) -> io::Result<Output> {
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().map(read_aside).transpose();
    let stderr = child.stderr.take().map(read_aside).transpose();
    let status = loop {
        match child.try_wait() {
            Ok(None) if begin.elapsed() < deadline => std::thread::sleep(POLL),
            Ok(Some(status)) => break Ok(status),
            _ => break Err(io::Error::other("it did not end in time")),
        }
    };
    // If it has ended, this only reaps it. A child may still hold its output.
    let _ = child.kill();
    let _ = child.wait();
    let status = status?;
    let read = |said: Option<Receiver<Vec<u8>>>| {
        let bytes = said.and_then(|said| said.recv_timeout(deadline).ok());
        bytes.ok_or_else(|| io::Error::other("its output did not end in time"))
    };
    Ok(Output {
        status,
        stdout: read(stdout?)?,
        stderr: read(stderr?)?,
    })
}

fn read_aside(from: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (tell, said) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // A failed read keeps the text so far. After the deadline there is no receiver.
        let _ = from.take(MOST_OUTPUT).read_to_end(&mut bytes);
        let _ = tell.send(bytes);
    })?;
    Ok(said)
}

fn call<S: AsRef<OsStr>>(engine: &ContainerEngine, arguments: &[S]) -> Result<Output, EngineError> {
    call_by(engine, arguments, Command::output)
}

fn call_by<S: AsRef<OsStr>>(
    engine: &ContainerEngine,
    arguments: &[S],
    run: impl FnOnce(&mut Command) -> io::Result<Output>,
) -> Result<Output, EngineError> {
    let failed = |said: String| EngineError {
        engine: engine.kind,
        subcommand: arguments
            .first()
            .map_or_else(String::new, |a| a.as_ref().to_string_lossy().into_owned()),
        said,
    };
    let output = run(engine_command(engine).args(arguments));
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(failed(last_words(&output)))
    }
}

fn last_words(output: &Output) -> String {
    // What docker says after the cause.
    const WHOSE: &str = "Error: failed to start containers";
    let said = String::from_utf8_lossy(&output.stderr);
    let is_cause = |line: &&str| !line.trim().is_empty() && !line.starts_with(WHOSE);
    match said.lines().rfind(is_cause) {
        Some(line) => loadline_analysis::foreign_text::indented_line(line.trim()),
        None => format!("it ended with {}", output.status),
    }
}

pub fn call_for_both<S: AsRef<OsStr>>(
    engine: &ContainerEngine,
    arguments: &[S],
) -> Result<String, EngineError> {
    let output = call(engine, arguments)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(text(&output.stdout) + &text(&output.stderr))
}

/// Unpacks an archive into a directory of a container that does not run yet.
pub fn unpack_into(
    engine: &ContainerEngine,
    name: &str,
    to: &str,
    archive: &[u8],
) -> io::Result<()> {
    let mut command = engine_command(engine);
    command.args(["cp", "-", &format!("{name}:{to}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that does not take it says why.
        let _ = input.write_all(archive);
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "`{} cp`: {}",
            engine.kind,
            last_words(&output)
        )))
    }
}

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

    fn engine(kind: EngineKind, variable: (&str, &str)) -> ContainerEngine {
        ContainerEngine {
            kind,
            program: PathBuf::from("/bin/false"),
            env: BTreeMap::from([(variable.0.to_owned(), variable.1.to_owned())]),
            apart: None,
        }
    }

    #[test]
    fn a_container_that_says_too_much_or_never_ends_is_not_waited_for() {
        let said = |script: &str, patience| {
            let mut shell = Command::new("/bin/sh");
            bounded_output(shell.args(["-c", script]), patience)
        };
        let long = Duration::from_secs(60);
        let seen = said("echo seen; echo why >&2; exit 3", long).expect("it ends");
        assert_eq!(
            (seen.status.code(), seen.stdout, seen.stderr),
            (Some(3), b"seen\n".into(), b"why\n".into())
        );
        let endless = said("exec yes", long).expect("nobody reads on, which ends it");
        assert!(!endless.status.success());
        assert_eq!(endless.stdout.len() as u64, MOST_OUTPUT);
        assert!(said("exec sleep 600", Duration::from_millis(50)).is_err());
    }

    #[test]
    fn an_engine_elsewhere_is_apart() {
        for (kind, variable, host) in [
            (EngineKind::Docker, "DOCKER_HOST", "tcp://10.0.0.1:2376"),
            (EngineKind::Docker, "DOCKER_HOST", "ssh://build@host"),
            (
                EngineKind::Podman,
                "CONTAINER_HOST",
                "unix:///run/podman.sock",
            ),
            (EngineKind::Podman, "CONTAINER_CONNECTION", "machine"),
        ] {
            let why = remote_location(&engine(kind, (variable, host))).expect(host);
            assert!(why.ends_with(host), "{why}");
        }
        let here = engine(
            EngineKind::Docker,
            ("DOCKER_HOST", "unix:///run/docker.sock"),
        );
        assert_eq!(remote_location(&here), None);
        let here = engine(EngineKind::Podman, ("CONTAINER_HOST", ""));
        assert_eq!(remote_location(&here), None);
    }

    #[test]
    fn a_daemon_in_a_virtual_machine_or_with_systemd_is_apart() {
        assert_eq!(
            out_of_reach("cgroupfs Debian GNU/Linux 12 (bookworm)"),
            None
        );
        let desktop = out_of_reach("cgroupfs Docker Desktop").unwrap_or_default();
        assert!(desktop.contains("virtual machine"), "{desktop}");
        let systemd = out_of_reach("systemd Ubuntu 24.04").unwrap_or_default();
        assert!(systemd.contains("leaves cgroups to systemd"), "{systemd}");
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_refused_with_what_to_do() {
        let silent = engine(EngineKind::Docker, ("DOCKER_HOST", "unix:///none.sock"));
        let refusal = reach_engine(silent).expect_err("no daemon");
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
