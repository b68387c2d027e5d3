//! Everything besides its configurations that a result depends on: if it is the same, so are the
//! trials.
//!
//! Owns the fingerprint of everything fixed for all trials of a result: the command with the
//! content of the files it names (also in options, arguments, variables and the manifests of jars)
//! and of the directories of its class path, environment, load, SLO, how trials are run and judged,
//! machine, JDKs and loadline's own program. Two results with one fingerprint may use each other's
//! trials. Only the user knows about things outside it (a database, a file that the application
//! opens): reuse is asked for, never assumed.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use loadline_analysis::record::MachineDescription;
use loadline_experiment::Experiment;
use loadline_jvm::cache::jar::Jar;
use loadline_proxy::stub::StubBody;
use loadline_sizing::Bytes;
use sha2::{Digest, Sha256};

use crate::load_command::command_files;

const CLASS_PATHS: [&str; 4] = ["-cp", "-classpath", "--class-path", "--module-path"];

/// The fingerprint, in hexadecimal.
pub fn fingerprint(experiment: &Experiment, machine: &MachineDescription) -> io::Result<String> {
    let (app, load) = (&experiment.app, &experiment.load);
    let mut digest = Sha256::new();
    // The forms for debugging hold every field; they are those of one version, which is hashed too.
    let fixed = [
        format!("{app:?}"),
        format!("{load:?}"),
        format!("{:?}", experiment.dependencies),
        format!("{:?}", experiment.stubs),
        format!("{:?}", experiment.level_images),
        experiment.slo.to_string(),
        format!("{:?}", experiment.training),
        format!("{:?} {}", experiment.sampling, experiment.accept_noise),
        format!("{:?}", machine.machine_kind()),
    ];
    for text in fixed {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    // A pod has no file of this machine, and its image is known by its digest.
    if experiment.cluster.is_none() {
        add_named_files(&mut digest, experiment)?;
    }
    for file in load.spec.content_files() {
        add_file(&mut digest, &file)?;
    }
    match &experiment.cluster {
        None => add_own_program(&mut digest)?,
        // What measures is the image; who starts its pods is this machine or a pod of that image.
        Some(cluster) => {
            digest.update(env!("CARGO_PKG_VERSION"));
            digest.update(&cluster.trial_image);
        }
    }
    let hex = |byte: &u8| format!("{byte:02x}");
    Ok(digest.finalize().iter().map(hex).collect())
}

/// Why a result cannot continue on this ground; `None` if nothing relevant changed. A result
/// without a known ground (`then` is `None`) is compared by its machine only.
pub fn explain_change(
    machines: (&MachineDescription, &MachineDescription),
    then: Option<&str>,
    now: Option<&str>,
) -> Option<&'static str> {
    let (was, is) = machines;
    let is_same_machine = is.kernel == was.kernel
        && is.cpu_model == was.cpu_model
        && is.cpus == was.cpus
        && is_same_memory(was.memory, is.memory)
        && is.jdks == was.jdks
        && is_same_node(was, is);
    if !is_same_machine {
        return Some(
            "this machine has changed since the result was started (kernel, CPUs, memory, JDKs or container runtime); trials of two machines are not mixed",
        );
    }
    (then.is_some() && then != now).then_some(
        "something that trials depend on has changed since the result was started (a file of the application, or loadline itself); old and new trials are not mixed",
    )
}

fn is_same_node(was: &MachineDescription, is: &MachineDescription) -> bool {
    match (was.first_node(), is.first_node()) {
        (Some(was), Some(is)) => is.differences_from(&was).is_empty(),
        (was, is) => was.is_some() == is.is_some(),
    }
}

/// Whether two readings can come from one machine: the memory that a kernel reserves differs a
/// little from boot to boot.
fn is_same_memory(was: Option<Bytes>, is: Option<Bytes>) -> bool {
    const PARTS: u64 = 100;
    match (was, is) {
        (Some(was), Some(is)) => was.as_bytes().abs_diff(is.as_bytes()) <= was.as_bytes() / PARTS,
        (was, is) => was == is,
    }
}

/// Two builds of one version may judge differently.
fn add_own_program(digest: &mut Sha256) -> io::Result<()> {
    // By content, not by name: a process that has left its image has no path.
    let program = fs::metadata("/proc/self/exe")?;
    let built = program.modified()?.duration_since(UNIX_EPOCH);
    digest.update(program.len().to_le_bytes());
    digest.update(built.unwrap_or_default().as_nanos().to_le_bytes());
    Ok(())
}

/// Adds the files and directories that commands name.
fn add_named_files(digest: &mut Sha256, experiment: &Experiment) -> io::Result<()> {
    let (app, load) = (&experiment.app, &experiment.load.spec);
    for word in candidate_file_names(experiment) {
        // `a.jar:b.jar`, `-javaagent:a.jar=x`, `--config=x.yml`, `@options`.
        for part in word.split([':', '=', ',']) {
            add_named(digest, &app.directory, part.trim_start_matches('@'))?;
        }
    }
    for pair in app.command.windows(2) {
        if CLASS_PATHS.contains(&pair[0].as_str()) {
            // `classes:lib/*`
            for part in pair[1].split(':').filter(|part| !part.is_empty()) {
                let part = part.strip_suffix("/*").unwrap_or(part);
                add_directory(digest, &app.directory.join(part))?;
            }
        }
    }
    let commands = [&load.command, &load.drive, &load.backlog].into_iter();
    for file in commands.flat_map(|words| command_files(words, &app.directory)) {
        add_file(digest, &file)?;
    }
    Ok(())
}

fn candidate_file_names(experiment: &Experiment) -> Vec<String> {
    let mut words = experiment.app.command.clone();
    for dependency in &experiment.dependencies {
        let commands = [&dependency.command, &dependency.seed, &dependency.reset];
        words.extend(commands.into_iter().flatten().cloned());
        let volumes = dependency.volumes.iter();
        words.extend(volumes.map(|(source, _)| source.display().to_string()));
    }
    for answer in experiment.stubs.iter().flat_map(|stub| &stub.answers) {
        if let StubBody::File(path) = &answer.body {
            words.push(path.display().to_string());
        }
    }
    let volumes = experiment.app.volumes.iter();
    words.extend(volumes.map(|(source, _)| source.display().to_string()));
    let mut values: Vec<String> = experiment.app.env.values().cloned().collect();
    for configuration in experiment.configurations() {
        words.extend(configuration.jvm_options.into_iter().map(|o| o.text));
        let application = configuration.application;
        words.extend(application.map(|a| a.command).unwrap_or_default());
        words.extend(configuration.args);
        values.extend(configuration.env.into_values());
    }
    for value in values {
        words.extend(value.split_whitespace().map(str::to_owned));
    }
    words.sort();
    words.dedup();
    words
}

/// Adds a file, and for a jar the files that its manifest names; a word that names no file adds
/// nothing.
fn add_named(digest: &mut Sha256, directory: &Path, name: &str) -> io::Result<()> {
    let path = directory.join(name);
    add_file(digest, &path)?;
    if !name.ends_with(".jar") {
        return Ok(());
    }
    // A file that is no jar names nothing.
    let jar = Jar::read(&path).unwrap_or_default();
    let beside = path.parent().unwrap_or(directory);
    for neighbour in jar.class_path {
        add_file(digest, &beside.join(neighbour))?;
    }
    Ok(())
}

/// Adds all files below a directory, in the order of their names; nothing for anything else.
fn add_directory(digest: &mut Sha256, path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(path)?;
    let mut entries: Vec<DirEntry> = entries.collect::<io::Result<_>>()?;
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        // A link to a directory may lead in a circle; one to a file is read.
        if entry.file_type()?.is_dir() {
            add_directory(digest, &entry.path())?;
        } else {
            add_file(digest, &entry.path())?;
        }
    }
    Ok(())
}

/// Adds name and content of a regular file; any other word is in the command already.
fn add_file(digest: &mut Sha256, path: &Path) -> io::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let name = path.as_os_str().as_encoded_bytes();
    digest.update((name.len() as u64).to_le_bytes());
    digest.update(name);
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => digest.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use loadline_analysis::record::{ClusterDescription, EnforcedLimits};

    use super::*;

    fn experiment(directory: &Path, rate: &str) -> Experiment {
        let text = format!(
            "slo = \"p99<50ms\"\n[app]\ncommand = [\"java\", \"-cp\", \"a.jar:b.jar\", \"Main\"]\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"{rate}\"\n"
        );
        Experiment::from_file_text(&text, Path::new("test.toml"), directory).expect("it is valid")
    }

    #[test]
    fn it_changes_with_what_matters_and_with_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        std::fs::write(path.join("b.jar"), "one").expect("a file");
        let of = |rate: &str, machine: &MachineDescription| {
            fingerprint(&experiment(path, rate), machine).expect("it is read")
        };
        let machine = MachineDescription::default();
        let first = of("10/s", &machine);
        assert_eq!(first, of("10/s", &machine));
        assert_eq!(first.len(), 64);
        assert_ne!(first, of("20/s", &machine), "another load");
        let newer = MachineDescription {
            loadline: "next".to_owned(),
            ..MachineDescription::default()
        };
        assert_ne!(first, of("10/s", &newer), "another loadline");
        std::fs::write(path.join("b.jar"), "two").expect("a file");
        assert_ne!(first, of("10/s", &machine), "another jar of the same name");
    }

    #[test]
    fn pods_go_on_on_another_node_of_the_same_kind_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let on = |node: &str, periods: u64, class: Option<&str>| MachineDescription {
            cluster: Some(ClusterDescription {
                context: "c".to_owned(),
                namespace: "n".to_owned(),
                version: "v1.34.4".to_owned(),
                node: node.to_owned(),
                runtime: "containerd 1.6.20".to_owned(),
                runtime_class: class.map(str::to_owned),
                os: None,
                enforced: Some(EnforcedLimits {
                    throttled_periods: Some(periods),
                    memory_exit_code: 137,
                }),
                slots: NonZeroU32::MIN,
                share_nodes: NonZeroU32::MIN,
                generators: None,
            }),
            ..MachineDescription::default()
        };
        let was = on("a", 1, None);
        let ground = |machine: &MachineDescription| {
            fingerprint(&experiment(directory.path(), "10/s"), machine).expect("it is read")
        };
        let going_on = |is: &MachineDescription| {
            explain_change((&was, is), Some(&ground(&was)), Some(&ground(is)))
        };
        assert_eq!(going_on(&on("b", 3, None)), None);
        let why = going_on(&on("a", 1, Some("gvisor")));
        assert!(why.is_some_and(|why| why.contains("runtime")), "{why:?}");
    }

    #[test]
    fn pods_stand_on_their_trial_image_and_on_no_file_of_this_machine() {
        let directory = tempfile::tempdir().expect("a directory");
        let ground = |trial_image: &str| {
            let text = format!(
                "slo = \"p99<50ms\"\n[app]\nimage = \"orders:1\"\ncommand = [\"-cp\", \"classes\"]\n[app.env]\nCONFIG = \"x.yml\"\n[kubernetes]\ntrial-image = \"{trial_image}\"\n\
                 [load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n"
            );
            let file = Path::new("test.toml");
            let experiment =
                Experiment::from_file_text(&text, file, directory.path()).expect("it is valid");
            fingerprint(&experiment, &MachineDescription::default()).expect("it is read")
        };
        let was = ground("loadline:1");
        std::fs::write(directory.path().join("x.yml"), "one").expect("a file");
        std::fs::create_dir(directory.path().join("classes")).expect("a directory");
        std::fs::write(directory.path().join("classes/A.class"), "one").expect("a file");
        assert_eq!(
            ground("loadline:1"),
            was,
            "the image has a file of that name, or not"
        );
        assert_ne!(ground("loadline:2"), was);
    }

    #[test]
    fn a_result_goes_on_only_where_it_was_begun() {
        let was = MachineDescription {
            cpus: 4,
            memory: Some(Bytes::from_gib(8)),
            ..MachineDescription::default()
        };
        let same = explain_change((&was, &was), Some("one"), Some("one"));
        assert_eq!(same, None);
        assert_eq!(explain_change((&was, &was), None, Some("one")), None);
        let other_jar = explain_change((&was, &was), Some("one"), Some("two"));
        assert!(other_jar.is_some_and(|why| why.contains("a file of the application")));
        assert!(explain_change((&was, &was), Some("one"), None).is_some());
        let fewer = MachineDescription {
            cpus: 2,
            ..was.clone()
        };
        let less = MachineDescription {
            memory: Some(Bytes::from_gib(4)),
            ..was.clone()
        };
        let another_boot = MachineDescription {
            memory: Some(Bytes::from_bytes((8 << 30) - 300_000)),
            ..was.clone()
        };
        assert_eq!(
            explain_change((&was, &another_boot), Some("one"), Some("one")),
            None
        );
        for is in [fewer, less] {
            let why = explain_change((&was, &is), Some("one"), Some("one"));
            assert!(why.is_some_and(|why| why.contains("this machine")));
        }
    }

    #[test]
    fn it_sees_class_directories_agents_and_argument_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        fs::create_dir_all(path.join("classes/pkg")).expect("a directory");
        fs::create_dir(path.join("lib")).expect("a directory");
        let text = "slo = \"p99<50ms\"\n[app]\ncommand = [\"java\", \"-javaagent:agent.jar=x\", \"@options\", \"-cp\", \"classes:lib/*\", \"Main\"]\nenv = { JAVA_TOOL_OPTIONS = \"-Dx=1 -Dconfig=own.yml\" }\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n";
        let of = || {
            let experiment = Experiment::from_file_text(text, Path::new("test.toml"), path);
            fingerprint(
                &experiment.expect("it is valid"),
                &MachineDescription::default(),
            )
            .expect("read")
        };
        let mut last = of();
        let files = [
            "classes/pkg/Main.class",
            "lib/a.jar",
            "agent.jar",
            "options",
            "own.yml",
        ];
        for name in files {
            for content in ["one", "two"] {
                fs::write(path.join(name), content).expect("a file");
                let now = of();
                assert_ne!(now, last, "{name} is {content}");
                last = now;
            }
        }
        assert_eq!(of(), last);
    }
}
