//! Guesses from a service's own directory: its start command, its address, its shipped limits.
//!
//! Owns the guesses of `loadline init`, each with its source. Reads files of known names in the
//! directory and in a few known subdirectories, each up to a bound; runs nothing, builds nothing,
//! writes nothing. Facts: the default layouts of Maven ("Introduction to the Standard Directory
//! Layout"), Gradle ("The Java Plugin", `build/libs`) and Quarkus ("Maven tooling",
//! `quarkus-app/quarkus-run.jar`); Spring Boot, "Common Application Properties".

mod built;
mod deployed;
mod served;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loadline_protocol::RunRefusal;
use loadline_sizing::options::words;

pub use built::BuildTool;
pub use deployed::{ComposedApp, DeployedManifest};

const LARGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectGuess<T> {
    pub value: T,
    /// The file that says it, or `default` with why.
    pub from: String,
}

impl<T> ProjectGuess<T> {
    pub fn new(value: T, from: impl Into<String>) -> Self {
        Self {
            value,
            from: from.into(),
        }
    }
}

pub type Limits = (ProjectGuess<String>, ProjectGuess<String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartMethod {
    Command(Vec<String>),
    Image(String),
}

#[derive(Debug, Clone, Default)]
pub struct ProjectOverrides {
    pub starts: Option<StartMethod>,
    pub url: Option<String>,
    pub ready: Option<String>,
    pub rate: Option<String>,
    pub slo: Option<String>,
    pub cpu: Option<String>,
    pub memory: Option<String>,
    pub manifest: Option<PathBuf>,
    /// Whether the application runs to its end.
    pub ends: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLoad {
    pub url: ProjectGuess<String>,
    /// Requests a second.
    pub rate: ProjectGuess<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub tool: Option<ProjectGuess<BuildTool>>,
    pub starts: ProjectGuess<StartMethod>,
    /// `None` for a job, which nothing calls.
    pub load: Option<ProjectLoad>,
    /// The path that answers when it is ready; `None` uses the load's.
    pub ready: Option<ProjectGuess<String>>,
    pub slo: ProjectGuess<String>,
    pub limits: Option<Limits>,
    pub manifest: Option<ProjectGuess<DeployedManifest>>,
    pub needs: Option<ProjectGuess<ComposedApp>>,
    pub left_out: Vec<String>,
}

const RATE: &str = "50/s";
const SLO: &str = "p99<250ms,errors<1%";
const JOB_SLO: &str = "exit=0";
const CPU: &str = "1";
const MEMORY: &str = "512Mi";

impl Project {
    /// Looks at a directory.
    /// Errors: [`RunRefusal`] when nothing in it can be started, or what the caller named cannot be
    /// read.
    pub fn inspect_directory(
        directory: &Path,
        told: &ProjectOverrides,
    ) -> Result<Self, RunRefusal> {
        let place = ProjectDirectory { directory };
        let mut left_out = Vec::new();
        let tool = built::find_tool(&place);
        let composed = deployed::read_compose(&place, &mut left_out);
        let manifest = deployed::find_manifest(&place, told.manifest.as_deref(), &mut left_out)?;
        let starts = match &told.starts {
            Some(starts) => ProjectGuess::new(starts.clone(), "given"),
            None => guess_start(&place, tool.as_ref(), manifest.as_ref(), composed.as_ref())?,
        };
        let ends = told.ends || manifest.as_ref().is_some_and(|m| m.value.ends);
        if ends {
            refuse_load(told, manifest.as_ref())?;
        }
        let served = served::find_endpoint(&place, manifest.as_ref(), composed.as_ref());
        let ready = match &told.ready {
            Some(path) => Some(ProjectGuess::new(path.clone(), "given")),
            None => served.ready.clone().filter(|_| !ends),
        };
        let load = (!ends).then(|| ProjectLoad {
            url: guess_url(told, &served),
            rate: given_or(told.rate.as_ref(), RATE, "write what your users send"),
        });
        let (slo, add) = match ends {
            true => (
                JOB_SLO,
                "add time<10m, or slower<10% than with the most memory",
            ),
            false => (SLO, "write what you promise them"),
        };
        let limits = guess_limits(&place, told, manifest.as_ref(), composed.as_ref())?;
        Ok(Self {
            load,
            slo: given_or(told.slo.as_ref(), slo, add),
            needs: needed_services(&starts.value, composed),
            tool,
            starts,
            ready,
            limits,
            manifest,
            left_out,
        })
    }
}

fn given_or(told: Option<&String>, default: &str, what: &str) -> ProjectGuess<String> {
    match told {
        Some(text) => ProjectGuess::new(text.clone(), "given"),
        None => ProjectGuess::new(default.to_owned(), format!("default: {what}")),
    }
}

fn refuse_load(
    told: &ProjectOverrides,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
) -> Result<(), RunRefusal> {
    let given = [
        ("--url", &told.url),
        ("--ready", &told.ready),
        ("--rate", &told.rate),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((flag, _)) => Err(RunRefusal::new(
            manifest.map_or("the job".to_owned(), |m| m.value.workload.clone()),
            format!("it runs to its end, and nothing calls it: {flag} is for a service"),
            format!("leave out {flag}, or name the manifest of a service: --manifest FILE"),
        )),
        None => Ok(()),
    }
}

fn guess_start(
    place: &ProjectDirectory<'_>,
    tool: Option<&ProjectGuess<BuildTool>>,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
    composed: Option<&ProjectGuess<ComposedApp>>,
) -> Result<ProjectGuess<StartMethod>, RunRefusal> {
    if let Some(jar) = built::find_jar(place, tool)? {
        let options = dockerfile_options(place);
        let from = match options.is_empty() {
            true => jar.from,
            false => format!("{}, with the JVM options of the Dockerfile", jar.from),
        };
        let mut command = vec!["java".to_owned()];
        command.extend(options);
        command.extend(["-jar".to_owned(), jar.value]);
        return Ok(ProjectGuess::new(StartMethod::Command(command), from));
    }
    let of_manifest = manifest.and_then(|m| Some((m.value.image.clone()?, &m.from)));
    let of_compose = composed.and_then(|c| Some((c.value.image.clone()?, &c.from)));
    // A project that builds a jar is measured by its own build, not by an earlier image.
    if let (Some((image, from)), None) = (of_manifest.or(of_compose), tool) {
        return Ok(ProjectGuess::new(StartMethod::Image(image), from.clone()));
    }
    if let (Some(manifest), None) = (manifest, tool) {
        return Err(RunRefusal::new(
            place.directory_name(),
            format!("{} names no image that can be pulled", manifest.from),
            "name it: loadline init --image NAME",
        ));
    }
    if place.has_file("Dockerfile") && tool.is_none() {
        return Err(RunRefusal::new(
            place.directory_name(),
            "it has a Dockerfile, but nothing names the image",
            "build it and name it: docker build -t NAME . && loadline init --image NAME",
        ));
    }
    Err(match tool {
        Some(tool) => RunRefusal::new(
            place.directory_name(),
            format!(
                "{} builds it, and no jar is built yet",
                tool.value.tool_name()
            ),
            format!(
                "{}, then loadline init again; or say what starts it: loadline init -- java -jar PATH",
                tool.value.build_command(place)
            ),
        ),
        None if let Some((file, services)) = deployed::compose_services(place) => RunRefusal::new(
            place.directory_name(),
            format!(
                "several services of {file} may be the application: {}",
                services.join(", ")
            ),
            format!(
                "say which: loadline size --compose {file} --service {}",
                services.first().map_or("NAME", String::as_str)
            ),
        ),
        None => RunRefusal::new(
            place.directory_name(),
            "no jar, image, manifest or build file was found in it",
            "go to the service's own directory, or say what starts it: loadline init -- java -jar PATH, or --image NAME",
        ),
    })
}

/// JVM options of what a Dockerfile starts, and of its environment.
fn dockerfile_options(place: &ProjectDirectory<'_>) -> Vec<String> {
    let text = place.read_small_text("Dockerfile").unwrap_or_default();
    let text = text.replace("\\\n", " ");
    // The options of an earlier stage are those of the build.
    let begins_stage = |line: &str| {
        line.trim_start()
            .get(..5)
            .is_some_and(|w| w.eq_ignore_ascii_case("FROM "))
    };
    let from = text
        .lines()
        .collect::<Vec<_>>()
        .into_iter()
        .rposition(begins_stage)
        .unwrap_or_default();
    let counts = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        ["ENTRYPOINT", "CMD", "ENV"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    };
    let lines = text.lines().skip(from).filter(counts);
    let options = lines
        .flat_map(words::find_jvm_options)
        .filter(|option| !option.contains('$'));
    options.map(str::to_owned).collect()
}

fn guess_url(told: &ProjectOverrides, served: &served::ServedEndpoint) -> ProjectGuess<String> {
    let port = served.port.value;
    let from = &served.port.from;
    match (&told.url, &served.ready) {
        (Some(url), _) if url.starts_with('/') => ProjectGuess::new(
            format!("http://localhost:{port}{url}"),
            format!("path given, port {port}: {from}"),
        ),
        (Some(url), _) => ProjectGuess::new(url.clone(), "given"),
        (None, ready) => {
            // Readiness on a separate port is no request of the load.
            let path = ready.as_ref().map(|ready| ready.value.as_str());
            let path = path.filter(|path| path.starts_with('/'));
            let root = format!("{}/", served.root);
            let path = path.unwrap_or(&root);
            ProjectGuess::new(
                format!("http://localhost:{port}{path}"),
                format!(
                    "port {port}: {from}; the path is not a request of your users: give theirs, or a profile of your access log"
                ),
            )
        }
    }
}

/// Those that are given, else none where a manifest has them, else a beginning.
fn guess_limits(
    place: &ProjectDirectory<'_>,
    told: &ProjectOverrides,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
    composed: Option<&ProjectGuess<ComposedApp>>,
) -> Result<Option<Limits>, RunRefusal> {
    let of_compose = composed.map(|c| (&c.value.limits, &c.value.file));
    let of = |told: Option<&String>, at: usize, default: &str| match (told, of_compose) {
        (Some(text), _) => ProjectGuess::new(text.clone(), "given"),
        (None, Some((limits, file))) if let Some(limit) = &limits[at] => {
            ProjectGuess::new(limit.clone(), format!("the limit in {file}"))
        }
        _ => ProjectGuess::new(
            default.to_owned(),
            "default: nothing says what is shipped; `loadline size` finds it",
        ),
    };
    let shipped = manifest.filter(|m| m.value.has_memory);
    let is_given = told.cpu.is_some() || told.memory.is_some();
    match shipped {
        Some(manifest) if is_given => Err(RunRefusal::new(
            place.directory_name(),
            format!("limits are given, but {} already sets them", manifest.from),
            "leave out --cpu and --memory: two copies would drift apart",
        )),
        Some(_) => Ok(None),
        None => Ok(Some((
            of(told.cpu.as_ref(), 0, CPU),
            of(told.memory.as_ref(), 1, MEMORY),
        ))),
    }
}

/// The other services, unless the application is one of that compose file.
fn needed_services(
    starts: &StartMethod,
    composed: Option<ProjectGuess<ComposedApp>>,
) -> Option<ProjectGuess<ComposedApp>> {
    let is_needed = |c: &ProjectGuess<ComposedApp>| !c.value.needs.is_empty();
    composed.filter(is_needed).map(|mut composed| {
        if matches!(starts, StartMethod::Command(_)) {
            composed.value.application = None;
        }
        composed
    })
}

struct ProjectDirectory<'a> {
    directory: &'a Path,
}

impl ProjectDirectory<'_> {
    fn has_file(&self, name: &str) -> bool {
        self.directory.join(name).is_file()
    }

    fn read_small_text(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = File::open(self.directory.join(name)).ok()?;
        let is_file = file.metadata().ok()?.is_file();
        if !is_file {
            return None;
        }
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn directory_name(&self) -> String {
        format!("the project in {}", self.directory.display())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Experiment;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        place
    }

    fn looked(place: &tempfile::TempDir, told: &ProjectOverrides) -> Result<Project, RunRefusal> {
        Project::inspect_directory(place.path(), told)
    }

    fn url(found: &Project) -> &str {
        found.load.as_ref().map_or("", |load| &load.url.value)
    }

    fn written(place: &tempfile::TempDir, project: &Project) -> (String, Experiment) {
        let text = project.to_toml();
        let path = place.path().join("loadline.toml");
        let read = Experiment::from_file_text(&text, &path, place.path());
        (text.clone(), read.unwrap_or_else(|e| panic!("{e}\n{text}")))
    }

    #[test]
    fn the_load_goes_to_the_service_s_port_and_readiness_to_the_management_s() {
        let deploy = "apiVersion: v1\nkind: Service\nmetadata: {name: o}\nspec: {ports: [{port: 80, targetPort: web}]}\n---\n\
            apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: r/o:1, \
            ports: [{name: mgmt, containerPort: 8081}, {name: web, containerPort: 8080}], \
            readinessProbe: {httpGet: {path: /ready, port: mgmt}}}]}}}";
        let place = project(&[("k8s/deploy.yaml", deploy)]);
        let told = ProjectOverrides {
            url: Some("/owners".to_owned()),
            ..ProjectOverrides::default()
        };
        let found = looked(&place, &told).expect("it is found");
        assert_eq!(url(&found), "http://localhost:8080/owners");
        let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
        assert_eq!(url(&found), "http://localhost:8080/");
        assert_eq!(found.ready.map(|r| r.value), Some(":8081/ready".to_owned()));

        let unlisted = deploy.replace("{name: web, containerPort: 8080}", "");
        let by_number = unlisted.replace("targetPort: web", "targetPort: 8085");
        let by_variable = by_number.replace(
            "image:",
            "env: [{name: SERVER_PORT, value: '8181'}], image:",
        );
        for (text, port) in [(by_number, 8085), (by_variable, 8181)] {
            let place = project(&[("k8s/deploy.yaml", &text)]);
            let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
            assert_eq!(url(&found), format!("http://localhost:{port}/"));
        }
        let place = project(&[(
            "k8s/deploy.yaml",
            &deploy.replace("r/o:1", "'${REGISTRY}/o'"),
        )]);
        let refused = looked(&place, &ProjectOverrides::default()).expect_err("no image");
        assert_eq!(
            refused.why,
            "Deployment/o in k8s/deploy.yaml names no image that can be pulled"
        );

        let settings = "server.port=8080\nmanagement.server.port=9001\n";
        let docker = "FROM maven AS build\nENV MAVEN_OPTS=-Xmx1g\nFROM x\nENV A=b\nENTRYPOINT [\"java\", \"-Xmx256m\", \"-jar\", \"/a.jar\"]\n";
        let place = project(&[
            ("pom.xml", POM),
            ("target/a.jar", ""),
            ("Dockerfile", docker),
            ("src/main/resources/application.properties", settings),
        ]);
        let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
        assert_eq!(url(&found), "http://localhost:8080/");
        let (_, experiment) = written(&place, &found);
        let ready = loadline_protocol::Readiness::Http {
            port: 9001,
            path: "/actuator/health".to_owned(),
        };
        assert_eq!(experiment.app.readiness, ready);
        assert_eq!(
            experiment.app.command,
            ["java", "-Xmx256m", "-jar", "target/a.jar"]
        );
    }

    #[test]
    fn a_project_of_a_compose_file_alone_is_its_one_application() {
        let compose = "services: {orders: {image: 'r/orders:1', depends_on: [db], ports: ['80:8090']}, db: {image: 'postgres:17'}}";
        let place = project(&[("compose.yaml", compose)]);
        let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
        assert_eq!(
            found.starts.value,
            StartMethod::Image("r/orders:1".to_owned())
        );
        assert_eq!(url(&found), "http://localhost:8090/");
        for (limits, expected) in [
            ("mem_limit: 1.5g, cpus: 1.5", ["1.5", "1536Mi"]),
            (
                "deploy: {resources: {limits: {cpus: '0.5', memory: 768M}}}",
                ["0.5", "768Mi"],
            ),
            ("mem_limit: '${M}'", ["1", "512Mi"]),
        ] {
            let text = format!("services: {{orders: {{image: 'r/orders:1', {limits}}}}}");
            let place = project(&[("compose.yaml", &text)]);
            let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
            let limits = found.limits.map(|(cpu, memory)| [cpu.value, memory.value]);
            assert_eq!(limits, Some(expected.map(str::to_owned)), "{text}");
        }
        let two = "services: {orders: {image: 'r/orders:1'}, carts: {image: 'r/carts:1'}}";
        let refused = looked(
            &project(&[("compose.yaml", two)]),
            &ProjectOverrides::default(),
        )
        .expect_err("two");
        assert!(
            refused.hint.contains("--compose compose.yaml --service"),
            "{}",
            refused.hint
        );
    }

    const POM: &str = "<project><parent><version>3.5.0</version></parent>\
        <artifactId>orders</artifactId><version>1</version><dependencies><dependency>\
        <artifactId>spring-boot-starter-actuator</artifactId></dependency></dependencies></project>";

    const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders}\n\
        spec:\n  template:\n    spec:\n      containers:\n      - name: orders\n        image: registry/orders:1.4\n        \
        ports: [{name: http, containerPort: 9090}]\n        \
        env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx200m}]\n        \
        resources: {limits: {cpu: 500m, memory: 300Mi}}\n        \
        readinessProbe: {httpGet: {path: /ready, port: http}}\n";

    #[test]
    fn a_maven_project_with_a_manifest_is_taken_from_both() {
        let place = project(&[
            ("pom.xml", POM),
            ("target/orders-1.jar", "x"),
            ("target/orders-1-sources.jar", "x"),
            ("target/original-orders-1.jar", "x"),
            (
                "src/main/resources/application.properties",
                "server.port = 9090\n",
            ),
            ("k8s/deploy.yaml", DEPLOYMENT),
        ]);
        let twice = ProjectOverrides {
            memory: Some("1Gi".to_owned()),
            ..ProjectOverrides::default()
        };
        let refused = looked(&place, &twice).expect_err("two sizes");
        assert!(refused.why.contains("already sets them"), "{refused}");
        let found = looked(&place, &ProjectOverrides::default()).expect("a project");
        let (text, experiment) = written(&place, &found);
        insta::assert_snapshot!(text, @r#"
        # What this service promises, and how it is tried: `loadline verify` reads it.
        # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

        slo = "p99<250ms,errors<1%" # default: write what you promise them

        # Limits, JVM options, environment and probes are read from it.
        manifest = "k8s/deploy.yaml" # Deployment/orders in k8s/deploy.yaml

        [app]
        command = ["java", "-jar", "target/orders-1.jar"] # the only jar in target, built by Maven
        directory = "." # where this file lies

        [load]
        url = "http://localhost:9090/ready" # port 9090: the probe in k8s/deploy.yaml; the path is not a request of your users: give theirs, or a profile of your access log
        rate = "50/s" # default: write what your users send
        "#);
        assert_eq!(
            experiment.base.memory.map(|m| m.to_string()),
            Some("300Mi".to_owned())
        );
        assert_eq!(
            experiment.base.cpu.map(|c| c.to_string()),
            Some("500m".to_owned())
        );
        assert_eq!(experiment.app.env["JAVA_TOOL_OPTIONS"], "-Xmx200m");
    }

    #[test]
    fn the_load_goes_below_the_path_of_the_application() {
        for setting in [
            "server.servlet.context-path=/shop",
            "spring.webflux.base-path=shop/",
            "quarkus.http.root-path=${ROOT:/shop}",
        ] {
            let place = project(&[
                ("pom.xml", "<project/>"),
                ("target/a.jar", "x"),
                ("src/main/resources/application.properties", setting),
            ]);
            let found = looked(&place, &ProjectOverrides::default()).expect("a project");
            let text = found.to_toml();
            assert!(text.contains("\"http://localhost:8080/shop/\""), "{text}");
        }
    }

    #[test]
    fn a_gradle_project_has_its_jar_its_port_and_what_it_needs() {
        let compose = "services:\n  app:\n    build: .\n    depends_on: [db]\n    ports: ['8085:8085']\n  \
                       db:\n    image: postgres:17\n    expose: [5432]\n  adminer:\n    image: adminer\n";
        let place = project(&[
            (
                "build.gradle.kts",
                "dependencies { implementation(\"org.springframework.boot:spring-boot-starter-actuator\") }",
            ),
            ("gradlew", ""),
            ("build/libs/shop-2-plain.jar", "x"),
            ("build/libs/shop-2.jar", "x"),
            (
                "src/main/resources/application.yml",
                "server:\n  port: 8085\n  servlet:\n    context-path: /shop\n",
            ),
            ("compose.yaml", compose),
        ]);
        let told = ProjectOverrides {
            url: Some("/items?page=1".to_owned()),
            memory: Some("256Mi".to_owned()),
            ..ProjectOverrides::default()
        };
        let found = looked(&place, &told).expect("a project");
        let text = found.to_toml();
        insta::assert_snapshot!(text, @r#"
        # What this service promises, and how it is tried: `loadline verify` reads it.
        # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

        slo = "p99<250ms,errors<1%" # default: write what you promise them

        [app]
        command = ["java", "-jar", "build/libs/shop-2.jar"] # the only jar in build/libs, built by Gradle
        directory = "." # where this file lies
        ready = { http = "/shop/actuator/health" } # spring-boot-starter-actuator in build.gradle.kts

        # What it needs next to it.
        [compose]
        file = "compose.yaml" # the service app of compose.yaml
        services = ["db"]

        [load]
        url = "http://localhost:8085/items?page=1" # path given, port 8085: src/main/resources/application.yml
        rate = "50/s" # default: write what your users send

        [limits]
        cpu = "1" # default: nothing says what is shipped; `loadline size` finds it
        memory = "256Mi" # given
        "#);
        let read = crate::ExperimentFile::from_toml(&text, Path::new("loadline.toml"));
        read.expect("an experiment file");
    }

    #[test]
    fn an_image_alone_is_taken_from_the_manifest() {
        let place = project(&[("deploy/app.yaml", DEPLOYMENT), ("Dockerfile", "FROM x\n")]);
        let found = looked(&place, &ProjectOverrides::default()).expect("a project");
        assert_eq!(
            found.starts.value,
            StartMethod::Image("registry/orders:1.4".to_owned())
        );
        let (text, experiment) = written(&place, &found);
        assert!(
            text.contains("ready") && !text.contains("[limits]"),
            "{text}"
        );
        assert!(experiment.app.image.is_some());
    }

    #[test]
    fn a_job_has_no_load_and_no_probe() {
        let job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: {spec: \
            {containers: [{name: app, image: r/nightly:1, args: [--day, today], env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx200m}], \
            resources: {limits: {cpu: 1, memory: 300Mi}}, readinessProbe: {httpGet: {path: /, port: 80}}}]}}}}}\n";
        let place = project(&[("k8s/nightly.yaml", job)]);
        let found = looked(&place, &ProjectOverrides::default()).expect("a project");
        let (text, experiment) = written(&place, &found);
        insta::assert_snapshot!(text, @r#"
        # What this service promises, and how it is tried: `loadline verify` reads it.
        # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

        slo = "exit=0" # default: add time<10m, or slower<10% than with the most memory

        # Limits, JVM options, environment and probes are read from it.
        manifest = "k8s/nightly.yaml" # CronJob/nightly in k8s/nightly.yaml

        [app]
        image = "r/nightly:1" # CronJob/nightly in k8s/nightly.yaml
        ends = true # a job: judged by its exit, its time and its memory
        "#);
        assert_eq!(experiment.app.command, ["--day", "today"]);
        let called = ProjectOverrides {
            url: Some("/".to_owned()),
            ..ProjectOverrides::default()
        };
        let refused = looked(&place, &called).expect_err("a load");
        assert!(refused.hint.contains("leave out --url"), "{refused}");
        let jar = project(&[("pom.xml", "<project/>"), ("target/a.jar", "x")]);
        let told = ProjectOverrides {
            ends: true,
            ..ProjectOverrides::default()
        };
        let (text, _) = written(&jar, &looked(&jar, &told).expect("a project"));
        assert!(
            text.contains("ends = true") && !text.contains("[load]"),
            "{text}"
        );
    }

    #[test]
    fn what_is_missing_is_said_with_what_makes_it() {
        let maven = project(&[("pom.xml", POM), ("mvnw", "")]);
        let refused = looked(&maven, &ProjectOverrides::default()).expect_err("no jar");
        assert!(refused.why.contains("no jar is built"), "{refused}");
        assert!(refused.hint.contains("./mvnw package"), "{}", refused.hint);
        let image = project(&[("Dockerfile", "FROM x\n")]);
        let refused = looked(&image, &ProjectOverrides::default()).expect_err("no name");
        assert!(refused.hint.contains("--image"), "{}", refused.hint);
        let empty = project(&[]);
        let refused = looked(&empty, &ProjectOverrides::default()).expect_err("nothing");
        assert!(refused.why.contains("no jar"), "{refused}");
        let two = project(&[
            ("pom.xml", POM),
            ("target/a.jar", "x"),
            ("target/b.jar", "x"),
        ]);
        let refused = looked(&two, &ProjectOverrides::default()).expect_err("two jars");
        assert!(refused.why.contains("a.jar, target/b.jar"), "{refused}");
    }
}
