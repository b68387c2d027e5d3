//! Manifests checked on paper: which containers run a JVM, the rules' objections, the price.
//!
//! Owns its text and JSON. `loadline_analysis::lint` owns the rules.

use std::path::{Path, PathBuf};

use loadline_analysis::lint::{
    ContainerResources, LintFinding, LintedContainer, MeasuredNeeds, Severity, check_build, lint,
    qos_class,
};
use loadline_analysis::offer::Offer;
use loadline_analysis::price::InstanceSize;
use loadline_experiment::advice::ContainerAdvice;
use loadline_experiment::advice::builds::{self, BuildFiles};
use loadline_experiment::advice::manifest::{self, ManifestContainer};
use loadline_experiment::manifest::MANIFEST;
use loadline_report::text;
use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::table::instance_cost;
use crate::error::{CommandOutcome, Error};
use crate::files;

pub struct PaperCheck {
    checked: Vec<CheckedContainer>,
    not_looked_at: Vec<String>,
    offer: Offer,
}

struct CheckedContainer {
    found: ManifestContainer,
    findings: Vec<LintFinding>,
    per_month: Option<f64>,
}

impl PaperCheck {
    /// Reads and checks files, directories and standard input. Errors: When a file cannot be read,
    /// or no file has a container with a JVM.
    pub fn check_manifests(
        paths: &[PathBuf],
        (measured, build_memory): (MeasuredNeeds, Option<Bytes>),
        offer: Offer,
    ) -> Result<Self, Error> {
        let given = paths.iter().cloned();
        // Without its memory a pom is what it was taken for: no manifest.
        let is_meant =
            |path: &Path| build_memory.is_some() || files::other_kind(path, MANIFEST).is_none();
        let is_build = |path: &PathBuf| builds::is_build_file(path) && is_meant(path);
        let (builds, paths): (Vec<_>, Vec<_>) = given.partition(is_build);
        if build_memory.is_some() && builds.is_empty() {
            let problem = "--memory: no build file is given";
            return Err(Error::usage(problem).with_hint(
                "it is for gradle.properties, jvm.config and pom.xml; a manifest has its own limits",
            ));
        }
        let builds = check_builds(&builds, build_memory)?;
        let mut sources = Vec::new();
        for path in &paths {
            let read = loadline_experiment::manifest::read(path);
            sources.extend(read.map_err(Error::from_wrong_input)?);
        }
        if let Some(name) = manifest::misplaced_containers(&sources) {
            let name = text::label(&name);
            let problem = format!("{name} has no list of containers in the spec of its pods");
            return Err(Error::usage(problem).with_hint(
                "write spec: {template: {spec: {containers: [{name: app, image: NAME}]}}}",
            ));
        }
        let all = manifest::every_container(&sources);
        let not_looked_at = manifest::custom_resources(&sources);
        let has_manifests = !paths.is_empty() || builds.is_empty();
        if has_manifests && sources.iter().all(|source| source.documents.is_empty()) {
            let problem = format!("{}: it has no document", shown_paths(&paths));
            return Err(Error::usage(problem)
                .with_hint("it has only comments: give the manifests of your workloads"));
        }
        if has_manifests && !all.iter().any(|found| found.skipped.is_none()) {
            return Err(nothing_error(&paths, &all, &not_looked_at));
        }
        let check = |found: ManifestContainer| CheckedContainer {
            findings: match found.skipped {
                None => lint(&found.container, measured),
                Some(_) => Vec::new(),
            },
            per_month: paid_size(&found.container)
                .filter(|_| found.skipped.is_none())
                .map(|size| instance_cost(&offer, size, 0.0).per_month),
            found,
        };
        let all = all.into_iter().map(check);
        Ok(Self {
            not_looked_at,
            checked: builds.into_iter().chain(all).collect(),
            offer,
        })
    }

    fn is_sound(&self) -> bool {
        let mut findings = self.checked.iter().flat_map(|c| &c.findings);
        findings.all(|f| f.severity != Severity::Error)
    }

    pub fn outcome(&self) -> CommandOutcome {
        CommandOutcome::for_slo(self.is_sound())
    }

    pub fn advice(&self) -> Vec<ContainerAdvice> {
        let stays = |c: &&CheckedContainer| c.found.skipped.is_none() && !c.found.container.is_init;
        let jvms = || self.checked.iter().filter(stays);
        let is_only = jvms().count() == 1;
        let label = |found: &ManifestContainer| match (is_only, found.path.file_stem()) {
            (true, Some(stem)) if found.path != Path::new("-") => {
                stem.to_string_lossy().into_owned()
            }
            _ => container_name(found),
        };
        let advice = |c: &CheckedContainer| {
            ContainerAdvice::from_manifest(text::label(&label(&c.found)), &c.found.container)
        };
        jvms().map(advice).collect()
    }

    pub fn to_text(&self) -> String {
        let files = self.manifest_files();
        let mut lines = Vec::new();
        let mut priced = None;
        for checked in &self.checked {
            let (found, findings) = (&checked.found, &checked.findings);
            let mut place = text::label(&container_name(found));
            if files.len() > 1 {
                place = format!("{} {place}", text::label(&found.path.display().to_string()));
            }
            if let Some(why) = &found.skipped {
                lines.push(format!("{place}: skipped: {why}"));
                continue;
            }
            if findings.is_empty() {
                lines.push(format!("{place}: no problems found"));
            }
            for finding in findings {
                lines.push(format!(
                    "{place}: {}: {}\n  hint: {}",
                    severity_word(finding.severity),
                    text::one_line(&finding.problem),
                    finding.hint
                ));
            }
            let pod = Some((&found.path, &found.workload));
            let size = paid_size(&found.container).filter(|_| priced != pod);
            if let (Some(price), Some(size)) = (checked.per_month, size) {
                priced = pod;
                lines.push(format!(
                    "{place}: one pod of {size} costs ${price:.2} a month ({}, {}, {})",
                    self.offer.name, self.offer.price.region, self.offer.price.date
                ));
            }
        }
        if !self.not_looked_at.is_empty() {
            lines.push(custom_resources_text(&self.not_looked_at));
        }
        lines.join("\n")
    }

    fn manifest_files(&self) -> Vec<&Path> {
        let files = self.checked.iter().map(|c| c.found.path.as_path());
        let mut files: Vec<&Path> = files.collect();
        files.dedup();
        files
    }

    pub fn to_document(&self) -> PaperDocument {
        let finding = |f: &LintFinding| JudgedFinding {
            severity: severity_word(f.severity).to_owned(),
            problem: f.problem.clone(),
            hint: f.hint.clone(),
        };
        let container = |c: &CheckedContainer| JudgedContainer {
            file: c.found.path.display().to_string(),
            workload: c.found.workload.clone(),
            container: c.found.container.name.clone(),
            skipped: c.found.skipped.clone(),
            qos_class: qos_class(&c.found.container).to_owned(),
            cpu_limit: c.found.container.limits.cpu.map(|cpu| cpu.to_string()),
            memory_limit: c.found.container.limits.memory.map(|m| m.to_string()),
            usd_per_month: c.per_month,
            findings: c.findings.iter().map(finding).collect(),
        };
        PaperDocument {
            sound: self.is_sound(),
            offer: self.offer.name.clone(),
            region: self.offer.price.region.clone(),
            price_date: self.offer.price.date.to_string(),
            containers: self.checked.iter().map(container).collect(),
            not_looked_at: self.not_looked_at.clone(),
        }
    }
}

/// What `judge --manifest --json` prints where nothing is run.
#[derive(Serialize, JsonSchema)]
pub struct PaperDocument {
    /// Whether no rule found an error.
    sound: bool,
    /// The offer of the prices.
    offer: String,
    /// Its region.
    region: String,
    /// When its prices were looked up.
    price_date: String,
    /// Every container, in the order of the manifests.
    containers: Vec<JudgedContainer>,
    /// Custom resources, of which an operator makes pods that are not to be seen here.
    not_looked_at: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct JudgedContainer {
    /// The file; `-` is standard input.
    file: String,
    /// `Deployment/orders`.
    workload: String,
    /// Its name.
    container: String,
    /// Why it was not checked; null where it was.
    skipped: Option<String>,
    /// That of its pod: `Guaranteed`, `Burstable` or `BestEffort`.
    qos_class: String,
    /// The CPU limit, such as 500m.
    cpu_limit: Option<String>,
    /// The memory limit, such as 512Mi.
    memory_limit: Option<String>,
    /// What one pod with all its containers costs, in the smallest size billed that holds it.
    usd_per_month: Option<f64>,
    /// What the rules object to, worst first.
    findings: Vec<JudgedFinding>,
}

#[derive(Serialize, JsonSchema)]
struct JudgedFinding {
    /// `error`, `warning` or `note`.
    severity: String,
    /// The problem, with the numbers.
    problem: String,
    /// What to do about it.
    hint: String,
}

/// The builds of these files, each as a container with this memory.
fn check_builds(paths: &[PathBuf], memory: Option<Bytes>) -> Result<Vec<CheckedContainer>, Error> {
    let builds = builds::read_builds(paths);
    let builds = builds.map_err(Error::from_wrong_input)?;
    let Some(memory) = memory else {
        let Some(build) = builds.first() else {
            return Ok(Vec::new());
        };
        let refusal = format!(
            "{}: the memory of the build is unknown",
            build.path.display()
        );
        return Err(Error::usage(refusal).with_hint(
            "give the memory of its runner or container: loadline lint --memory 7Gi FILE",
        ));
    };
    let check = |build: BuildFiles| CheckedContainer {
        findings: check_build(&build.jvms, memory).into_iter().collect(),
        per_month: None,
        found: ManifestContainer {
            path: build.path,
            workload: build.tool.to_owned(),
            container: LintedContainer {
                name: "build".to_owned(),
                limits: ContainerResources {
                    memory: Some(memory),
                    ..ContainerResources::default()
                },
                ..LintedContainer::default()
            },
            raw: serde_json::Value::Null,
            skipped: None,
        },
    };
    Ok(builds.into_iter().map(check).collect())
}

fn container_name(found: &ManifestContainer) -> String {
    format!("{} {}", found.workload, found.container.name)
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn paid_size(container: &LintedContainer) -> Option<InstanceSize> {
    let (cpu, memory) = container.pod_size();
    let (cpu, memory) = (cpu?, memory?);
    let is_some = cpu.as_millis() > 0 && memory.as_bytes() > 0;
    is_some.then_some(InstanceSize { cpu, memory })
}

/// `not checked: Kafka/orders: ...`
fn custom_resources_text(names: &[String]) -> String {
    format!(
        "not checked: {}: custom resources; their operators make the pods\n  hint: kubectl get pods -o yaml | loadline lint -",
        text::one_line(&names.join(", "))
    )
}

fn shown_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(", ")
}

fn nothing_error(paths: &[PathBuf], all: &[ManifestContainer], custom: &[String]) -> Error {
    let mut others = paths.iter().filter(|_| all.is_empty());
    if let Some(other) = others.find_map(|path| files::other_kind(path, MANIFEST)) {
        return other;
    }
    let paths = shown_paths(paths);
    if all.is_empty() && !custom.is_empty() {
        let refusal = format!(
            "{paths}: no containers found; not checked: {} (custom resources; their operators make the pods)",
            text::one_line(&custom.join(", "))
        );
        return Error::usage(refusal)
            .with_hint("check the pods they make: kubectl get pods -o yaml | loadline lint -");
    }
    if all.is_empty() {
        let refusal = format!("{paths}: no document has spec.template.spec.containers");
        return Error::usage(refusal).with_hint(
            "give manifests of Deployments, StatefulSets, Jobs or Pods; from a cluster: kubectl get deployment NAME -o yaml | loadline lint -; from a chart: helm template CHART | loadline lint -",
        );
    }
    let skipped = |f: &ManifestContainer| {
        let why = f.skipped.as_deref().unwrap_or_default();
        format!("{} ({why})", text::label(&container_name(f)))
    };
    let skipped: Vec<String> = all.iter().map(skipped).collect();
    let refusal = format!("{paths}: no container runs a JVM: {}", skipped.join(", "));
    Error::usage(refusal)
        .with_hint("a container counts as a JVM if its image, command or variables (such as JAVA_TOOL_OPTIONS) name one")
}
