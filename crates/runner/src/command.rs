//! The command line of one trial: the user's command with a configuration's options put in.
//!
//! Owns where JVM options go: straight behind `java`, before the user's own, so that for the same
//! option the user's wins; for a program that is not `java` (a script) and for an image, a variable
//! that the JVM reads, whoever starts it, or the variable that a run names (`--options-to`). Arguments are never joined or split: what the user typed
//! arrives as it was. Sources: JVM TI specification, JAVA_TOOL_OPTIONS; OpenJ9's documentation,
//! OPENJ9_JAVA_OPTIONS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loadline_analysis::record::Configuration;
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_jvm::log_option::gc_log_options;
use loadline_sizing::Vm;
use loadline_sizing::options::words::join_environment;
pub(crate) use loadline_sizing::options::words::{OPENJ9_OPTIONS, TOOL_OPTIONS};

use loadline_protocol::{AppSpec, RunRefusal};

use loadline_experiment::program::{inherited_variables, locate};
use loadline_experiment::{AppUnderTest, Experiment, ExperimentImage, seen_by};

pub use loadline_experiment::program::CommandError;
use loadline_trial::{application_pauses, is_script};

/// Where the JVM writes its GC log, as the application sees it: its `/tmp` is private.
const GC_LOG: &str = "/tmp/loadline-gc.log";

/// Both, in the order in which an OpenJ9 reads them; the last word counts.
pub(crate) const JVM_VARIABLES: [&str; 2] = [TOOL_OPTIONS, OPENJ9_OPTIONS];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssembledCommand {
    /// The application's start. The program of a command is an absolute path, its environment
    /// complete.
    pub app: AppSpec,
    /// The GC log as the application sees it; `None` without a JVM.
    pub gc_log: Option<PathBuf>,
    pub jdk: Option<InstalledJdk>,
}

impl AssembledCommand {
    pub fn command_line(&self) -> &[String] {
        self.app.command_line()
    }
}

/// Puts a configuration's JDK, options, arguments and environment into the command of its
/// application.
/// Errors: [`CommandError`], before anything is started.
pub fn assemble(
    experiment: &Experiment,
    configuration: &Configuration,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<AssembledCommand, CommandError> {
    let app = experiment.app_of(configuration);
    put_together(&app, configuration, jdks, places)
}

fn put_together(
    app: &AppUnderTest,
    configuration: &Configuration,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<AssembledCommand, CommandError> {
    if let Some(image) = &app.image {
        return in_image(app, image, configuration);
    }
    let mut env = app_environment(app, configuration);
    let program = String::new();
    let split = app.command.split_first();
    let (program, arguments) = split.ok_or(CommandError::NoProgram { program })?;
    let java = java_of(program, app, &env, places);
    let jdk = jdk_of(java.as_deref(), configuration, jdks)?;
    let options = configuration.jvm_options.iter();
    let mut options: Vec<String> = options.map(|option| option.text.clone()).collect();
    let gc_log = add_gc_log(&mut options, jdk.as_ref());
    let mut command = Vec::with_capacity(arguments.len() + options.len() + 2);
    if is_java(program) {
        let java = match (&configuration.jdk, &jdk) {
            (Some(_), Some(jdk)) => jdk.java.clone(),
            _ => locate(program, &app.directory, places)?,
        };
        command.push(java.to_string_lossy().into_owned());
        command.append(&mut options);
        refuse_missing_jar(arguments, &app.directory)?;
    } else {
        let program = locate(program, &app.directory, places)?;
        command.push(program.to_string_lossy().into_owned());
        let variable = match configuration.options_variable.as_deref() {
            None | Some(TOOL_OPTIONS) => options_variable(jdk.as_ref()),
            Some(variable) => variable,
        };
        add_options(&mut env, variable, &options)?;
        if let Some(jdk) = jdk.as_ref().filter(|_| configuration.jdk.is_some()) {
            let path = env.get("PATH").cloned().unwrap_or_default();
            let path = format!("{}/bin:{path}", jdk.home.display());
            env.insert("PATH".to_owned(), path);
            let home = jdk.home.to_string_lossy().into_owned();
            env.insert("JAVA_HOME".to_owned(), home);
        }
    }
    command.extend(arguments.iter().cloned());
    command.extend(configuration.args.iter().cloned());
    Ok(AssembledCommand {
        app: AppSpec::Command {
            command,
            env,
            directory: app.directory.clone(),
        },
        gc_log,
        jdk,
    })
}

fn in_image(
    app: &AppUnderTest,
    image: &ExperimentImage,
    configuration: &Configuration,
) -> Result<AssembledCommand, CommandError> {
    let what = || format!("the image {}", image.reference);
    let found = image.found_image()?;
    let ordered = configuration.jvm_options.iter();
    let ordered: Vec<String> = ordered.map(|option| option.text.clone()).collect();
    if let (Some(first), None) = (ordered.first(), &found.jdk) {
        let why = format!("it has no JVM that could take {first}");
        let hint = "leave the JVM options out, or measure an image with a JVM";
        return Err(RunRefusal::new(what(), why, hint).into());
    }
    let mut env: BTreeMap<String, String> = app.env.clone();
    env.extend(configuration.env.clone());
    let pauses = application_pauses::PATH.to_owned();
    env.insert(application_pauses::VARIABLE.to_owned(), pauses);
    let mut options = ordered.clone();
    let gc_log = add_gc_log(&mut options, found.jdk.as_ref());
    let variable = options_variable(found.jdk.as_ref());
    if let (false, Some(own)) = (options.is_empty(), found.env.get(variable)) {
        let given = env.entry(variable.to_owned());
        given.or_insert_with(|| own.clone());
    }
    add_options(&mut env, variable, &options)?;
    let mut args = match (app.command.is_empty(), configuration.args.is_empty()) {
        (true, false) => found.cmd.clone(),
        _ => app.command.clone(),
    };
    args.extend(configuration.args.iter().cloned());
    let image = loadline_protocol::ImageSpec {
        engine: found.engine.clone(),
        id: found.id.clone(),
        command: found.full_command(&args)?,
        entrypoint: None,
        args,
        volumes: seen_by(&what(), &app.volumes, &app.directory)?,
        env,
        options: ordered,
        user: app.account,
        stop_signal: found.stop_signal,
        layers: found.layers.clone(),
        writable: None,
    };
    Ok(AssembledCommand {
        app: AppSpec::Image(Box::new(image)),
        gc_log,
        jdk: found.jdk.clone(),
    })
}

/// Adds the options that make a JVM write its GC log; gives where, as the application sees it.
fn add_gc_log(options: &mut Vec<String>, jdk: Option<&InstalledJdk>) -> Option<PathBuf> {
    let log = jdk.map(|jdk| gc_log_options(Path::new(GC_LOG), &jdk.version, jdk.kind));
    let log = log.filter(|log| !log.is_empty())?;
    options.extend(log);
    Some(PathBuf::from(GC_LOG))
}

fn app_environment(app: &AppUnderTest, configuration: &Configuration) -> BTreeMap<String, String> {
    let mut env = inherited_variables();
    let pauses = application_pauses::PATH.to_owned();
    env.insert(application_pauses::VARIABLE.to_owned(), pauses);
    env.extend(app.env.clone());
    env.extend(configuration.env.clone());
    env
}

/// The `java` that will run, as far as it can be known: the program itself, or the `java` that a
/// start script finds through its environment. Another program need not have a JVM.
fn java_of(
    program: &str,
    app: &AppUnderTest,
    env: &BTreeMap<String, String>,
    places: &JdkPlaces,
) -> Option<PathBuf> {
    if is_java(program) {
        return places.java_of(program);
    }
    let script = locate(program, &app.directory, places).ok();
    script.filter(|path| is_script(path))?;
    let of_script = JdkPlaces {
        java_home: env.get("JAVA_HOME").map(PathBuf::from),
        path: std::env::split_paths(env.get("PATH").map_or("", String::as_str)).collect(),
        ..JdkPlaces::default()
    };
    of_script.java_of(program)
}

/// The JDK that will run: the configuration's, else the one behind this `java`.
fn jdk_of(
    java: Option<&Path>,
    configuration: &Configuration,
    jdks: &DetectedJdks,
) -> Result<Option<InstalledJdk>, CommandError> {
    if let Some(wanted) = &configuration.jdk {
        let selected = jdks.select(wanted).map(Some);
        return selected.map_err(|e| CommandError::NoJdk {
            why: e.to_string(),
            hint: e.detect_hint(),
        });
    }
    let home = java.and_then(loadline_jvm::detect::places::home_of);
    // A JVM without a readable release file still runs; only its GC log is not asked for.
    Ok(home.and_then(|h| InstalledJdk::inspect(&h).ok()))
}

pub fn is_java(program: &str) -> bool {
    let name = Path::new(program).file_name();
    name.is_some_and(|name| name == "java")
}

/// A jar that is not there would look like an application that fails at every size.
fn refuse_missing_jar(arguments: &[String], directory: &Path) -> Result<(), CommandError> {
    let option = arguments.iter().position(|a| a == "-jar");
    let jar = option.and_then(|i| arguments.get(i + 1));
    match jar.map(|j| directory.join(j)) {
        Some(path) if !path.is_file() => Err(CommandError::NoJar { path }),
        _ => Ok(()),
    }
}

/// The variable with options that win over all other variables that a start script may set.
pub fn options_variable(jdk: Option<&InstalledJdk>) -> &'static str {
    match jdk.map(|jdk| jdk.kind) {
        Some(Vm::OpenJ9) => OPENJ9_OPTIONS,
        _ => TOOL_OPTIONS,
    }
}

/// Appends options that a JVM somewhere below a script will read from this variable.
fn add_options(
    env: &mut BTreeMap<String, String>,
    variable: &str,
    options: &[String],
) -> Result<(), RunRefusal> {
    if options.is_empty() {
        return Ok(());
    }
    let words: Vec<&str> = options.iter().map(String::as_str).collect();
    let own = env.get(variable).map(String::as_str);
    let text = join_environment(variable, own, &words).ok_or_else(|| {
        let why = "it is split at blanks, but a JVM option has blanks or quotes";
        let hint = "leave that option out, or give it to every JVM: --options-to all";
        RunRefusal::new(variable, why, hint)
    })?;
    env.insert(variable.to_owned(), text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use loadline_protocol::{ContainerEngine, EngineKind};
    use loadline_trial::oci;

    /// An experiment with an image that starts `/run.sh serve`.
    fn app(jdk: Option<InstalledJdk>) -> (AppUnderTest, Configuration) {
        let text = "slo = \"p99<50ms\"\napp.image = \"orders:1\"\n[app.env]\nA = \"own\"\n[load]\nurl = \"http://localhost/\"\nrate = \"1/s\"\n[[factor]]\nname = \"options\"\nlevels = [{ label = \"small\", jvm = [\"-Xmx64m\"] }]\n";
        let parsed =
            loadline_experiment::Experiment::from_file_text(text, Path::new("x"), Path::new("/"));
        let experiment = parsed.expect("it is valid");
        let configuration = experiment.configurations().remove(0);
        let mut app = experiment.app;
        let image = app.image.as_mut().expect("it has one");
        image.found = Some(oci::image::EngineImage {
            engine: ContainerEngine {
                kind: EngineKind::Podman,
                program: PathBuf::from("/usr/bin/podman"),
                env: BTreeMap::new(),
                apart: None,
            },
            reference: "orders:1".to_owned(),
            id: "00ff".to_owned(),
            pinned: None,
            entrypoint: vec!["/run.sh".to_owned()],
            cmd: vec!["serve".to_owned()],
            directory: PathBuf::from("/"),
            env: [(TOOL_OPTIONS.to_owned(), "-Dimage=1".to_owned())].into(),
            ports: Default::default(),
            stop_signal: None,
            layers: Vec::new(),
            jdk,
            version: None,
            seen: None,
            revision: None,
        });
        (app, configuration)
    }

    fn jdk() -> InstalledJdk {
        InstalledJdk {
            name: "17".to_owned(),
            home: PathBuf::from("/opt/jre"),
            java: PathBuf::from("/opt/jre/bin/java"),
            version: loadline_jvm::detect::JdkVersion::from_version_text("17.0.1")
                .expect("a version"),
            vendor: "openjdk".to_owned(),
            kind: loadline_sizing::Vm::HotSpot,
            modules: Vec::new(),
        }
    }

    fn assembled(
        app: &AppUnderTest,
        configuration: &Configuration,
    ) -> loadline_protocol::ImageSpec {
        let none = DetectedJdks::scan_places(&JdkPlaces::of_process());
        let assembled = put_together(app, configuration, &none, &JdkPlaces::of_process());
        match assembled.expect("it is assembled").app {
            loadline_protocol::AppSpec::Image(image) => *image,
            loadline_protocol::AppSpec::Command { .. } => panic!("an image is no command"),
        }
    }

    #[test]
    fn options_of_an_image_stand_behind_its_own_and_must_arrive() {
        let (mut app, configuration) = app(Some(jdk()));
        let image = assembled(&app, &configuration);
        let options = &image.env[TOOL_OPTIONS];
        assert!(
            options.starts_with("-Dimage=1 -Xmx64m -Xlog:gc*"),
            "{options}"
        );
        assert_eq!(image.options, ["-Xmx64m"]);
        assert_eq!(image.env["A"], "own");
        assert_eq!(image.command, ["/run.sh", "serve"]);
        assert!(image.args.is_empty(), "its own command stays");
        app.command = vec!["batch".to_owned()];
        let image = assembled(&app, &configuration);
        assert_eq!(
            (image.command, image.args),
            (
                vec!["/run.sh".to_owned(), "batch".to_owned()],
                app.command.clone()
            )
        );
    }

    #[test]
    fn a_start_script_gets_the_options_and_the_log_of_the_jvm_that_it_finds() {
        let files = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str, mode: u32| {
            let path = files.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("an own file");
        };
        write("run", "#!/bin/sh\nexec java\n", 0o755);
        write("native", "\x7fELF", 0o755);
        for (home, variant) in [("hotspot", "Hotspot"), ("openj9", "Openj9")] {
            write(&format!("{home}/bin/java"), "", 0o755);
            let release = format!("JAVA_VERSION=\"25.0.1\"\nJVM_VARIANT=\"{variant}\"\n");
            write(&format!("{home}/release"), &release, 0o644);
        }
        let none = DetectedJdks::scan_places(&JdkPlaces::default());
        let (mut app, configuration) = app(None);
        app.image = None;
        app.directory = files.path().to_owned();
        let mut env = |program: &str, home: &str| {
            app.command = vec![format!("./{program}"), "run".to_owned()];
            let home = files.path().join(home).display().to_string();
            app.env.insert("JAVA_HOME".to_owned(), home);
            let assembled = put_together(&app, &configuration, &none, &JdkPlaces::default());
            let assembled = assembled.expect("it is assembled");
            let loadline_protocol::AppSpec::Command { env, .. } = assembled.app else {
                panic!("a command is no image")
            };
            (assembled.gc_log.is_some(), env)
        };
        let (has_log, hotspot) = env("run", "hotspot");
        let options = &hotspot[TOOL_OPTIONS];
        assert!(
            has_log && options.starts_with("-Xmx64m -Xlog:gc*"),
            "{options}"
        );
        let (has_log, openj9) = env("run", "openj9");
        assert!(has_log && !openj9.contains_key(TOOL_OPTIONS), "{openj9:?}");
        assert_eq!(
            openj9[OPENJ9_OPTIONS],
            format!("-Xmx64m -Xverbosegclog:{GC_LOG}")
        );
        let (has_log, native) = env("native", "openj9");
        assert!(!has_log, "it may not start a JVM");
        assert_eq!(native[TOOL_OPTIONS], "-Xmx64m");
    }

    #[test]
    fn a_run_gets_its_options_in_the_variable_that_it_names() {
        let (mut app, mut configuration) = app(None);
        app.image = None;
        app.directory = PathBuf::from("/");
        app.command = vec!["/bin/sh".to_owned()];
        let none = DetectedJdks::scan_places(&JdkPlaces::default());
        let mut assemble = |variable: &str, option: &str| {
            configuration.options_variable = Some(variable.to_owned());
            configuration.jvm_options[0].text = option.to_owned();
            put_together(&app, &configuration, &none, &JdkPlaces::default())
        };
        for (variable, value) in [
            ("MAVEN_OPTS", "-Xmx64m"),
            ("GRADLE_OPTS", "\"-Dorg.gradle.jvmargs=-Xmx64m\""),
            (TOOL_OPTIONS, "-Xmx64m"),
        ] {
            let assembled = assemble(variable, "-Xmx64m").expect("it is assembled");
            let loadline_protocol::AppSpec::Command { env, .. } = assembled.app else {
                panic!("a command is no image")
            };
            assert_eq!(env[variable], value);
            let is_only = variable == TOOL_OPTIONS || !env.contains_key(TOOL_OPTIONS);
            assert!(is_only, "{env:?}");
        }
        let refused = assemble("MAVEN_OPTS", "-Da=b c").expect_err("mvn would split it");
        assert!(refused.to_string().contains("MAVEN_OPTS"), "{refused}");
    }

    #[test]
    fn an_image_without_a_jvm_takes_no_options_of_one() {
        let (app, mut configuration) = app(None);
        let places = JdkPlaces::of_process();
        let refused = put_together(
            &app,
            &configuration,
            &DetectedJdks::scan_places(&places),
            &places,
        );
        let refusal = refused.expect_err("it has no JVM").to_string();
        assert!(
            refusal.contains("no JVM that could take -Xmx64m"),
            "{refusal}"
        );
        configuration.jvm_options.clear();
        let image = assembled(&app, &configuration);
        assert!(!image.env.contains_key(TOOL_OPTIONS), "{:?}", image.env);
    }
}
