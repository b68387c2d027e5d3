//! Reads the manifest that ships the application: limits, JVM options, environment, probes.
//!
//! Owns how a container is embedded in an experiment, so that a size has one source and a stored
//! experiment does not need the manifest. Reports every field that it cannot take. If the
//! experiment sets a limit too, that is refused, because both would have to be kept equal; any
//! other value of the experiment wins. For a workload that runs in a cluster only the fields that
//! loadline itself needs are taken: its pods get the rest by reference. Source: Kubernetes API
//! reference, core/v1 Container and Probe.

use std::path::{Path, PathBuf};

use loadline_protocol::RunRefusal;
use loadline_sizing::{Bytes, Cpus};
use serde_json::{Value, json};

use super::references;
use super::resolve::NO_CPU_LIMIT;
use super::said::{Text, ValueWithOrigin};
use super::wire::{AppTable, ExperimentFile, LimitsTable, ManifestTable, ReadyTable};
use crate::advice::container_options::OPTION_VARIABLES;
use crate::advice::fields::{list_items, list_texts, variables};
use crate::advice::manifest::{ManifestContainer, containers};
use crate::manifest::{self, ManifestFile};

const ORIGIN: &str = "the manifest";

const READY: [&str; 2] = ["readinessProbe", "startupProbe"];

impl ExperimentFile {
    /// Embeds the container of its manifest; the file is relative to `base`. Returns a sentence for
    /// each field that is not taken. Errors: [`RunRefusal`] names the manifest and the unsupported
    /// field.
    pub fn settle_manifest(&mut self, base: &Path) -> Result<Vec<String>, RunRefusal> {
        let Some(table) = self.manifest.take() else {
            return Ok(Vec::new());
        };
        let path: PathBuf = base.join(&table.file).components().collect();
        let shipped = ShippedWorkload {
            found: find_jvm_container(
                &path,
                table.workload.as_deref(),
                table.container.as_deref(),
            )?,
            path,
        };
        let mut left_out = Vec::new();
        shipped.add_limits(&mut self.limits)?;
        shipped.add_start(&mut self.app, &mut left_out);
        shipped.add_environment(&mut self.app, &mut left_out);
        if self.app.ends != Some(true) {
            shipped.add_readiness(&mut self.app);
        }
        Ok(left_out)
    }

    /// Embeds a container of a workload that runs in a cluster, unless the experiment says
    /// otherwise: image, limits, readiness, and the variables that a JVM reads. Pods take
    /// everything else by reference. `name` is in kubectl's form. Returns the container's name.
    pub fn settle_running(
        &mut self,
        name: &str,
        workload: &Value,
        container: Option<&str>,
    ) -> Result<String, RunRefusal> {
        let source = ManifestFile {
            path: PathBuf::from(name),
            documents: vec![workload.clone()],
        };
        let shipped = ShippedWorkload {
            found: choose_container(&source, name, None, container, "name it: --container NAME")?,
            path: source.path,
        };
        if self.limits.cpu.is_none() && !self.has_factor("cpu") {
            self.limits.cpu = shipped
                .found
                .container
                .limits
                .cpu
                .map(|c| text_from_manifest(c.to_string()));
        }
        if self.app.image.is_none() {
            self.app.image = shipped.image_text();
        }
        for name in OPTION_VARIABLES {
            if let Some(value) = shipped.literal(name)
                && !self.app.env.contains_key(name)
            {
                self.app.env.insert(name.to_owned(), value.to_owned());
            }
        }
        if self.app.ends != Some(true) {
            shipped.add_readiness(&mut self.app);
        }
        Ok(shipped.found.container.name)
    }

    fn has_factor(&self, name: &str) -> bool {
        self.factor.iter().any(|factor| *factor.name == name)
    }
}

/// The path and port that a workload's probe asks, where it is one over HTTP.
pub fn find_probe(
    path: &Path,
    workload: &str,
    container: Option<&str>,
) -> Option<(String, Option<u16>)> {
    let found = find_jvm_container(path, Some(workload), container).ok()?;
    let probe = READY.iter().find_map(|kind| found.raw.get(*kind))?;
    http_probe(&found.raw, probe)
}

const SIDE_PORTS: [&str; 7] = [
    "mgmt", "manage", "admin", "actuator", "metrics", "prom", "health",
];

/// Variables that set the port of Spring Boot, Quarkus and Micronaut.
const PORT_VARIABLES: [&str; 3] = ["SERVER_PORT", "QUARKUS_HTTP_PORT", "MICRONAUT_SERVER_PORT"];

/// The port for requests: what a variable sets, the target of the file's Service, or the port named http, never the
/// management port.
pub fn find_http_port(path: &Path, workload: &str, container: Option<&str>) -> Option<u16> {
    let found = find_jvm_container(path, Some(workload), container).ok()?;
    let source = manifest::read_manifest_file(path).ok()?;
    let set = variables(&found.raw).filter(|(name, _)| PORT_VARIABLES.contains(name));
    if let Some(port) = set.filter_map(|(_, value)| value?.parse().ok()).last() {
        return Some(port);
    }
    let port = |port: &Value| {
        let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
        Some((port["name"].as_str().unwrap_or_default().to_owned(), number))
    };
    let ports: Vec<(String, u16)> = list_items(&found.raw, "ports").filter_map(port).collect();
    let is_side = |name: &str| SIDE_PORTS.iter().any(|side| name.contains(side));
    let services = source.documents.iter().filter(|d| d["kind"] == "Service");
    let targets = services.flat_map(|service| list_items(&service["spec"], "ports"));
    let of_service = targets.filter_map(|of| {
        let target = of.get("targetPort").or(of.get("port"))?;
        // A container need not list its ports.
        let unlisted = || port(&json!({"name": of["name"], "containerPort": target}));
        let listed = ports.iter().find(|(name, port)| {
            target.as_str() == Some(name) || target.as_u64() == Some(u64::from(*port))
        });
        listed.cloned().or_else(unlisted)
    });
    let named = |(name, _): &&(String, u16)| name.starts_with("http") || name == "web";
    let named = ports.iter().filter(named).chain(&ports).cloned();
    let mut wanted = of_service.chain(named).filter(|(name, _)| !is_side(name));
    wanted.next().map(|(_, port)| port)
}

/// The workload and container that a table names. Errors: [`RunRefusal`] if there is none, or more
/// than one.
pub fn find_workload_container(
    path: &Path,
    table: &ManifestTable,
) -> Result<(String, String), RunRefusal> {
    let found = find_jvm_container(path, table.workload.as_deref(), table.container.as_deref())?;
    Ok((found.workload, found.container.name))
}

/// Limits of the only container with a JVM, else its requests. Errors: [`RunRefusal`] if there is
/// none, or more than one, or it has no memory limit or request.
pub fn container_size(path: &Path) -> Result<(Option<Cpus>, Bytes), RunRefusal> {
    let found = find_jvm_container(path, None, None)?;
    let (limits, requests) = (found.container.limits, found.container.requests);
    let memory = limits.memory.or(requests.memory).ok_or_else(|| {
        RunRefusal::new(
            format!("the manifest {}", path.display()),
            format!("{} states no memory", found.workload),
            "set resources.limits.memory in it",
        )
    })?;
    Ok((limits.cpu.or(requests.cpu), memory))
}

fn find_jvm_container(
    path: &Path,
    workload: Option<&str>,
    container: Option<&str>,
) -> Result<ManifestContainer, RunRefusal> {
    let source = manifest::read_manifest_file(path)?;
    let what = format!("the manifest {}", path.display());
    let hint =
        "name it: [manifest] file = \"...\", workload = \"Deployment/orders\", container = \"app\"";
    choose_container(&source, &what, workload, container, hint)
}

fn choose_container(
    source: &ManifestFile,
    what: &str,
    workload: Option<&str>,
    container: Option<&str>,
    hint: &str,
) -> Result<ManifestContainer, RunRefusal> {
    let is_it = |found: &ManifestContainer| {
        let short = found.workload.rsplit('/').next();
        workload.is_none_or(|named| named == found.workload || Some(named) == short)
            && match container {
                Some(named) => named == found.container.name,
                None => found.skipped.is_none(),
            }
    };
    let all = containers(std::slice::from_ref(source));
    let names = |found: &[ManifestContainer]| {
        let name = |f: &ManifestContainer| format!("{} container {}", f.workload, f.container.name);
        found.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let mut fitting: Vec<ManifestContainer> = all.iter().filter(|f| is_it(f)).cloned().collect();
    match (fitting.len(), fitting.pop()) {
        (1, Some(one)) => Ok(one),
        (0, _) if all.is_empty() => Err(RunRefusal::new(
            what,
            "no workload in it has containers",
            "name the file that has your Deployment or StatefulSet",
        )),
        (0, _) => Err(RunRefusal::new(
            what,
            format!("it has no such container; there are: {}", names(&all)),
            hint,
        )),
        _ => Err(RunRefusal::new(
            what,
            format!("it has several candidate containers: {}", names(&all)),
            hint,
        )),
    }
}

struct ShippedWorkload {
    path: PathBuf,
    found: ManifestContainer,
}

impl ShippedWorkload {
    fn container_label(&self) -> String {
        format!(
            "{} of the manifest {}",
            self.found.workload,
            self.path.display()
        )
    }

    fn image_text(&self) -> Option<Text> {
        let image = self.found.raw.get("image")?.as_str()?;
        Some(text_from_manifest(image.to_owned()))
    }

    fn literal(&self, name: &str) -> Option<&str> {
        let mut variables = list_items(&self.found.raw, "env");
        variables.find(|v| v["name"] == name)?["value"].as_str()
    }

    fn add_limits(&self, limits: &mut LimitsTable) -> Result<(), RunRefusal> {
        let container = &self.found.container;
        let mut unreadable = container.unreadable.iter();
        if let Some(wrong) = unreadable.find(|wrong| wrong.starts_with("limits")) {
            let why = format!("{wrong} is not a quantity");
            let hint = "write 500m, 1.5, 512Mi or 1Gi";
            return Err(RunRefusal::new(self.container_label(), why, hint));
        }
        // A limit is whole KiB: decimal units are rounded down.
        let memory = container.limits.memory.map(|memory| {
            let whole = memory.as_bytes() / 1024 * 1024;
            Bytes::from_bytes(whole).to_string()
        });
        let cpu = container.limits.cpu.map(|cpu| cpu.to_string());
        for (key, own, shipped) in [
            ("cpu", &mut limits.cpu, cpu),
            ("memory", &mut limits.memory, memory),
        ] {
            match (own.is_some(), shipped) {
                (true, Some(_)) => {
                    return Err(RunRefusal::new(
                        self.container_label(),
                        format!("limits.{key} is both in it and in the experiment"),
                        format!("leave one out: {key} of [limits], or the manifest's"),
                    ));
                }
                (false, Some(text)) => *own = Some(text_from_manifest(text)),
                (_, None) => {}
            }
        }
        // What ships without a limit is not searched for one.
        let none = || text_from_manifest(NO_CPU_LIMIT.to_owned());
        limits.cpu.get_or_insert_with(none);
        Ok(())
    }

    /// The image and its arguments, where the experiment starts nothing itself; else the JVM options
    /// of the container's command.
    fn add_start(&self, app: &mut AppTable, left_out: &mut Vec<String>) {
        let raw = &self.found.raw;
        let (command, arguments) = (list_texts(raw, "command"), list_texts(raw, "args"));
        if app.command.is_empty() && app.image.is_none() {
            app.image = self.image_text();
        }
        if app.image.is_some() {
            if !command.is_empty() {
                left_out.push("its command: an image starts by its own entry point".to_owned());
            }
            if app.command.is_empty() {
                app.command = arguments;
            }
            return;
        }
        let words = [command, arguments].concat();
        let before_jar = words.iter().take_while(|word| *word != "-jar");
        let options = before_jar.filter(|word| word.starts_with("-X") || word.starts_with("-D"));
        let program = app.command.first().and_then(|c| c.rsplit('/').next());
        match program == Some("java") {
            true => {
                app.command.splice(1..1, options.cloned());
            }
            false if options.clone().next().is_some() => left_out.push(
                "the JVM options of its command: the experiment's command does not start with java"
                    .to_owned(),
            ),
            false => {}
        }
    }

    fn add_environment(&self, app: &mut AppTable, left_out: &mut Vec<String>) {
        for (name, value) in variables(&self.found.raw) {
            if app.env.contains_key(name) {
                continue;
            }
            let Some(value) = value else {
                let why = "it refers to an object of the cluster; set it in [app.env]";
                left_out.push(format!("the variable {name}: {why}"));
                continue;
            };
            if references::is_secret_name(name) {
                left_out.push(format!(
                    "the variable {name}, a credential: give it as a reference, [app.env] {name} = \"{{env:{name}}}\""
                ));
                continue;
            }
            app.env.insert(name.to_owned(), value);
        }
        if self.found.raw.get("envFrom").is_some() {
            left_out.push("what envFrom refers to: give those variables in [app.env]".to_owned());
        }
    }

    fn add_readiness(&self, app: &mut AppTable) {
        let raw = &self.found.raw;
        let probe = READY.iter().find_map(|kind| raw.get(*kind));
        if let (None, Some((path, port))) = (&app.ready, probe.and_then(|p| http_probe(raw, p))) {
            app.ready = Some(ReadyTable {
                http: Some(text_from_manifest(path)),
                port,
                ..ReadyTable::default()
            });
        }
        let startup = self.found.container.probes.iter();
        let mut startup = startup.filter(|probe| probe.kind == "startupProbe");
        if let (None, Some(probe)) = (&app.start_deadline, startup.next()) {
            let patience = format!("{}ms", probe.patience().as_millis());
            app.start_deadline = Some(text_from_manifest(patience));
        }
    }
}

/// Path and port of a probe over HTTP; a port by its name is one of the container's.
fn http_probe(container: &Value, probe: &Value) -> Option<(String, Option<u16>)> {
    let get = probe.get("httpGet")?;
    let path = get["path"].as_str().unwrap_or("/");
    let number = |value: &Value| u16::try_from(value.as_u64()?).ok();
    let named = |name: &str| {
        let mut ports = list_items(container, "ports");
        number(&ports.find(|port| port["name"] == name)?["containerPort"])
    };
    let port = get.get("port").and_then(|port| match port.as_str() {
        Some(text) => text.parse().ok().or_else(|| named(text)),
        None => number(port),
    });
    Some((path.to_owned(), port))
}

fn text_from_manifest(text: String) -> Text {
    ValueWithOrigin::from_flag(ORIGIN, text)
}

impl From<PathBuf> for ManifestTable {
    fn from(file: PathBuf) -> Self {
        Self {
            file,
            workload: None,
            container: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Experiment;

    const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders}\n\
        spec:\n  template:\n    spec:\n      containers:\n      - name: app\n        image: registry/orders:1.4\n        \
        command: [java, -XX:+UseSerialGC, -Dx=y, -jar, /app.jar]\n        \
        ports: [{name: http, containerPort: 9090}]\n        \
        env: [{name: A, value: b}, {name: DB_PASSWORD, value: x}, {name: POD, valueFrom: {fieldRef: {}}}]\n        \
        resources: {limits: {cpu: 500m, memory: 300M}}\n        \
        readinessProbe: {httpGet: {path: /ready, port: http}}\n        \
        startupProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 2, failureThreshold: 20}\n";

    fn place(manifest: &str) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("deploy.yaml"), manifest).expect("a file");
        place
    }

    fn file(more: &str) -> String {
        format!(
            "slo = \"p99<50ms\"\n{more}\n[load]\nurl = \"http://localhost:9090/\"\nrate = \"100/s\"\n"
        )
    }

    fn parse(manifest: &str, more: &str) -> Result<Experiment, String> {
        let place = place(manifest);
        let path = place.path().join("loadline.toml");
        Experiment::from_file_text(&file(more), &path, place.path())
            .map_err(|e| format!("{e} {}", e.hint.clone().unwrap_or_default()))
    }

    #[test]
    fn what_ships_without_a_cpu_limit_gets_none() {
        let cpu = |manifest: &str| {
            let place = place(manifest);
            let text = file("manifest = \"deploy.yaml\"\napp.command = [\"java\"]");
            let path = place.path().join("loadline.toml");
            let mut file = ExperimentFile::from_toml(&text, &path).expect("an experiment");
            file.settle_manifest(place.path()).expect("it is read");
            file.limits.cpu.map(|cpu| cpu.inner_value().clone())
        };
        assert_eq!(cpu(DEPLOYMENT).as_deref(), Some("500m"));
        let unlimited = DEPLOYMENT.replace("cpu: 500m, ", "");
        assert_eq!(cpu(&unlimited).as_deref(), Some("none"));
    }

    #[test]
    fn what_is_shipped_is_read_from_the_manifest_and_nowhere_else() {
        let more = "manifest = \"deploy.yaml\"\napp.command = [\"java\", \"-jar\", \"a.jar\"]";
        let experiment = parse(DEPLOYMENT, more).expect("an experiment");
        assert_eq!(
            experiment.app.command,
            ["java", "-XX:+UseSerialGC", "-Dx=y", "-jar", "a.jar"]
        );
        assert_eq!(experiment.base.cpu, "500m".parse().ok());
        let whole = loadline_sizing::Bytes::from_bytes(300_000_000 / 1024 * 1024);
        assert_eq!(experiment.base.memory, Some(whole));
        assert_eq!(experiment.app.env.keys().collect::<Vec<_>>(), ["A"]);
        assert_eq!(
            experiment.app.readiness,
            loadline_protocol::Readiness::Http {
                port: 9090,
                path: "/ready".to_owned()
            }
        );
        assert_eq!(experiment.app.start_deadline.as_secs(), 40);
        let of_image = parse(DEPLOYMENT, "manifest = { file = \"deploy.yaml\" }").expect("it");
        assert_eq!(
            of_image.app.image.map(|i| i.reference),
            Some("registry/orders:1.4".to_owned())
        );
    }

    #[test]
    fn a_job_of_a_cluster_gives_its_image_and_is_never_ready() {
        let container = json!({
            "name": "app", "image": "registry/report:2", "command": ["java", "-jar", "/app.jar"],
            "resources": { "limits": { "cpu": "500m" } },
            "startupProbe": { "httpGet": { "path": "/", "port": 8080 } },
        });
        let template = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        let cron = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "report" },
            "spec": { "jobTemplate": template } });
        let text =
            "slo = \"exit=0\"\n[app]\nends = true\n[kubernetes]\ntrial-image = \"loadline:1\"\n";
        let mut file = ExperimentFile::from_toml(text, Path::new("x.toml")).expect("a file");
        let container = file.settle_running("cronjob/report", &cron, None);
        assert_eq!(container.as_deref(), Ok("app"));
        assert_eq!(file.app.ready, None);
        file.limits.memory = Some(text_from_manifest("256Mi".to_owned()));
        let text = file.to_toml().expect("TOML");
        let parse = |text: &str| {
            Experiment::from_file_text(text, Path::new("x.toml"), Path::new("/"))
                .map_err(|error| error.to_string())
        };
        let job = parse(&text).expect("a job in a cluster");
        assert_eq!(job.base.cpu, "500m".parse().ok());
        assert!(job.app.run.is_some() && job.cluster.is_some());
        let sent = text.replace("[kubernetes]\n", "[kubernetes]\ngenerators = 1\n");
        let refused = parse(&sent).expect_err("there is no load");
        assert!(refused.contains("generators"), "{refused}");
    }

    #[test]
    fn a_size_that_stands_in_two_places_is_refused() {
        let more = "manifest = \"deploy.yaml\"\napp.command = [\"java\"]\nlimits.memory = \"1Gi\"";
        let refused = parse(DEPLOYMENT, more).expect_err("twice");
        assert!(
            refused.contains("limits.memory is both in it and in the experiment"),
            "{refused}"
        );
        assert!(refused.contains("leave one out"), "{refused}");
    }

    #[test]
    fn what_is_not_taken_is_said() {
        let place = place(DEPLOYMENT);
        let text = file("manifest = \"deploy.yaml\"");
        let mut parsed = ExperimentFile::from_toml(&text, Path::new("x.toml")).expect("a file");
        let said = parsed.settle_manifest(place.path()).expect("it is read");
        let said = said.join("\n");
        for part in ["command", "DB_PASSWORD", "{env:DB_PASSWORD}", "POD"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(parsed.manifest, None);
        assert_eq!(parsed.settle_manifest(place.path()), Ok(Vec::new()));
        let stored = parsed.to_toml().expect("TOML");
        assert!(
            !stored.contains("deploy.yaml") && !stored.contains("DB_PASSWORD"),
            "{stored}"
        );
    }

    #[test]
    fn the_container_is_found_by_its_names_or_refused_with_all() {
        let two = DEPLOYMENT.to_owned() + "---\n" + &DEPLOYMENT.replace("orders}", "bills}");
        let refused = |more: &str| parse(&two, more).expect_err("two");
        assert!(refused("manifest = \"deploy.yaml\"").contains("Deployment/bills"));
        let none = "manifest = { file = \"deploy.yaml\", workload = \"x\" }";
        assert!(refused(none).contains("there are: Deployment/orders container app"));
        let one = "manifest = { file = \"deploy.yaml\", workload = \"Deployment/bills\" }";
        assert!(parse(&two, one).is_ok());
        assert!(parse("kind: Service\n", "manifest = \"deploy.yaml\"").is_err());
        assert!(
            parse("", "manifest = 3")
                .expect_err("no text")
                .contains("manifest")
        );
    }
}
