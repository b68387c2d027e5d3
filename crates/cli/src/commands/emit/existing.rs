//! `emit` for an application with an existing manifest or chart: only the changes.
//!
//! Owns its flags, and the messages about the files. `loadline_report` owns the files.

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::lint::{
    LintFinding, MeasuredNeeds, Severity, check_refused_options, lint, over_commitment,
};
use loadline_experiment::advice::container_options::variable_behind;
use loadline_experiment::advice::inlined::ConfigMaps;
use loadline_experiment::advice::manifest::{containers, parse_container};
use loadline_experiment::manifest::{self, MANIFEST, ManifestFile};
use loadline_files::FileKind;
use loadline_report::content::shell_quoted;
use loadline_report::emit::{
    ChartField, EmitError, EmittedWorkload, PatchFiles, ProductionApplication, ValuePath, patch,
    values,
};
use loadline_report::{ResultView, redact, text};
use loadline_sizing::Bytes;
use serde_json::Value;

use super::emit_refused;
use crate::error::Error;
use crate::files;

const CHART_VALUES: &str = "values of a Helm chart";

/// Flags of files that patch instead of replacing.
#[derive(Args, Default)]
pub struct PatchFlags {
    /// Your manifest (Deployment, StatefulSet; - is standard input): write a patch for it and a
    /// Kustomize component instead of new files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["values", "purposes", "name", "base_image", "replicas", "max_rate", "max_replicas", "plain", "cache"])]
    manifest: Option<PathBuf>,
    /// The workload in the manifest: NAME or KIND/NAME [default: the only one]
    #[arg(long, value_name = "NAME", requires = "manifest")]
    workload: Option<String>,
    /// The container in the manifest [default: the only one]
    #[arg(long, value_name = "NAME", requires = "manifest")]
    container: Option<String>,
    /// Values of your Helm chart (- is standard input): write values that override them instead of
    /// new files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["purposes", "name", "base_image", "replicas", "max_rate", "max_replicas", "plain", "cache"])]
    values: Option<PathBuf>,
    /// Where the chart reads a value: WHAT=PATH; repeat the flag for more. WHAT is resources
    /// [default: resources], java-options, env, image, startup-probe, readiness-probe or
    /// annotations
    #[arg(long = "values-path", value_name = "WHAT=PATH", requires = "values", value_parser = ValuePath::from_assignment)]
    places: Vec<ValuePath>,
}

impl PatchFlags {
    pub fn is_given(&self) -> bool {
        self.manifest.is_some() || self.values.is_some()
    }

    pub fn for_container(manifest: PathBuf, workload: String, container: String) -> Self {
        Self {
            manifest: Some(manifest),
            workload: Some(workload),
            container: Some(container),
            ..Self::default()
        }
    }

    pub fn patch_files(
        &self,
        view: &ResultView,
        application: &ProductionApplication,
    ) -> Result<Option<PatchFiles>, Error> {
        let mut pod = PatchedPod::default();
        let (path, patched) = match (&self.manifest, &self.values) {
            (Some(path), _) => (path, self.patch(path, view, application, &mut pod)?),
            (None, Some(path)) => (path, self.overlay_values(path, view, application)?),
            (None, None) => return Ok(None),
        };
        let patched = patched.map_err(|error| error_in_file(path, error))?;
        refuse_kill(path, &patched, pod)?;
        Ok(Some(patched))
    }

    /// Also gives what is around the patched container.
    fn patch(
        &self,
        path: &Path,
        view: &ResultView,
        application: &ProductionApplication,
        pod: &mut PatchedPod,
    ) -> Result<Result<PatchFiles, EmitError>, Error> {
        let source = manifest::read_manifest_file(path).map_err(Error::from_wrong_input)?;
        if let Some(other) = files::other_kind(path, MANIFEST) {
            return Err(other);
        }
        let documents: Vec<&Value> = source.documents.iter().collect();
        let maps = ConfigMaps::from_documents(&documents);
        let objects = documents.into_iter().flat_map(|d| maps.resolve_objects(d));
        let objects: Vec<Value> = objects.collect();
        // Sidecars without a JVM are not meant.
        let jvms = containers(std::slice::from_ref(&source)).into_iter();
        let jvms: Vec<_> = jvms.filter(|found| found.skipped.is_none()).collect();
        let only = <&[_; 1]>::try_from(&jvms[..]).ok();
        let only = only.filter(|_| self.workload.is_none());
        let only = only.map(|[one]| one.container.name.as_str());
        let container = self.container.as_deref().or(only);
        let found = EmittedWorkload::find_container(&objects, self.workload.as_deref(), container);
        Ok(found.and_then(|workload| {
            let is_it = |object: &&Value| {
                object["kind"] == workload.kind.as_str()
                    && object["metadata"]["name"] == workload.name.as_str()
            };
            let object = objects.iter().find(is_it);
            if let Some(object) = object {
                pod.mounted = maps.mounted_options(object, &workload.container);
            }
            let mut patched = patch(view, application, &workload)?;
            if let Some(object) = object {
                pod.lint(&objects, object, &workload.container, &mut patched);
            }
            Ok(patched)
        }))
    }

    fn overlay_values(
        &self,
        path: &Path,
        view: &ResultView,
        application: &ProductionApplication,
    ) -> Result<Result<PatchFiles, EmitError>, Error> {
        if let Some(kind) = FileKind::of_file(path).filter(|kind| kind.name == MANIFEST) {
            return Err(files::refuse_kind(path, kind, CHART_VALUES));
        }
        let read = manifest::read_yaml_file(path, CHART_VALUES);
        let mut source = read.map_err(Error::from_wrong_input)?;
        let own = match source.documents.len() {
            0 => Value::Object(serde_json::Map::new()),
            1 => source.documents.swap_remove(0),
            _ => Value::Null,
        };
        if !own.is_object() {
            if let Some(other) = files::other_kind(path, CHART_VALUES) {
                return Err(other);
            }
            let refusal = format!("{} has no chart values: it is not a map", path.display());
            return Err(Error::usage(refusal)
                .with_hint("give the chart's values.yaml: helm show values CHART"));
        }
        let mut places = self.places.clone();
        let is_size = |place: &ValuePath| place.what == ChartField::Resources;
        if !places.iter().any(is_size) {
            places.push(ValuePath {
                what: ChartField::Resources,
                path: vec!["resources".to_owned()],
            });
        }
        Ok(values(view, application, &own, &places))
    }

    pub fn next(&self, to: &Path) -> Option<String> {
        let shown = shell_quoted(&to.display().to_string());
        let file = |path: &Path| shell_quoted(&path.display().to_string());
        if let Some(manifest) = &self.manifest {
            let manifest = if manifest == Path::new("-") {
                "MANIFEST".to_owned()
            } else {
                file(manifest)
            };
            return Some(format!(
                "in the kustomization.yaml that has the manifest: components: [{shown}]; or kubectl patch --local -o yaml -f {manifest} --patch-file {shown}/patch.yaml"
            ));
        }
        let values = self.values.as_ref()?;
        Some(format!(
            "helm upgrade RELEASE CHART -f {} -f {shown}/values.yaml",
            file(values)
        ))
    }
}

/// What is around the patched container.
#[derive(Default)]
struct PatchedPod {
    /// JVM options of files that the container mounts, which no patch reaches.
    mounted: Vec<String>,
    /// An error that the container has only with the patch.
    broken: Option<LintFinding>,
}

impl PatchedPod {
    /// Lints the pod before and after. What is wrong with other containers becomes a note: the patch does
    /// not change them.
    fn lint(&mut self, objects: &[Value], object: &Value, own: &Value, patched: &mut PatchFiles) {
        // Each with the name of its container; without one it is the patched container's.
        let errors = |object: &Value| {
            // Config maps and secrets: what the containers refer to.
            let others = objects.iter().filter(|other| other["spec"].is_null());
            let file = ManifestFile {
                path: PathBuf::new(),
                documents: others.chain([object]).cloned().collect(),
            };
            let found = containers(&[file]).into_iter();
            let found = found.filter(|of| of.skipped.is_none()).flat_map(|of| {
                let is_own = own["name"] == of.container.name.as_str();
                let measured = is_own.then(|| measured_needs(patched));
                let found = lint(&of.container, measured.unwrap_or_default()).into_iter();
                let found = found.filter(|finding| finding.severity == Severity::Error);
                let name = (!is_own).then(|| text::label(&of.container.name));
                found.map(move |error| (name.clone(), error))
            });
            found.collect::<Vec<_>>()
        };
        let mut merged = object.clone();
        let all = merged.pointer_mut("/spec/template/spec/containers");
        let mut all = all.and_then(Value::as_array_mut).into_iter().flatten();
        if let Some(place) = all.find(|container| *container == own) {
            place.clone_from(&patched.container);
        }
        let before = errors(object);
        let is_old = |(_, new): &(_, LintFinding)| {
            let mut old = before.iter().filter(|(name, _)| name.is_none());
            old.any(|(_, old)| old.problem == new.problem)
        };
        let errors = errors(&merged).into_iter();
        let (own, others): (Vec<_>, Vec<_>) = errors.partition(|(name, _)| name.is_none());
        self.broken = own.into_iter().find(|error| !is_old(error)).map(|(_, e)| e);
        let note = |(name, LintFinding { problem, hint, .. }): (Option<String>, _)| {
            format!("container {}: {problem}; {hint}", name.unwrap_or_default())
        };
        patched.notes.extend(others.into_iter().map(note));
    }
}

fn measured_needs(patched: &PatchFiles) -> MeasuredNeeds {
    MeasuredNeeds {
        // Old results have no budget: then only a heap that is too large alone is a certain kill.
        rest: patched.rest.or(Some(Bytes::default())),
        ..MeasuredNeeds::default()
    }
}

/// Refuses what `lint` would call an error: the container as it will be.
fn refuse_kill(path: &Path, patched: &PatchFiles, pod: PatchedPod) -> Result<(), Error> {
    let mounted = pod.mounted;
    let container = parse_container(&patched.container, mounted.clone());
    let measured = measured_needs(patched);
    // The heap that fits leaves room for what a typical service needs.
    let typical = || over_commitment(&container, MeasuredNeeds::default());
    let found = over_commitment(&container, measured).map(|found| match patched.rest {
        Some(_) => found,
        None => typical().unwrap_or(found),
    });
    let found = found.or_else(|| check_refused_options(&container));
    let Some(found) = found.or(pod.broken) else {
        return Ok(());
    };
    let options = container.jvm.join(" ");
    let (path, problem) = (path.display(), found.problem);
    let refusal = format!("{path}: with the measured size: {problem} (JVM options: {options})");
    let heap = container.jvm.iter().rfind(|o| o.starts_with("-Xmx"));
    let place = heap.and_then(|heap| {
        let is_mounted = mounted.contains(heap).then_some("a mounted ConfigMap");
        let place = variable_behind(&patched.container, heap).or(is_mounted)?;
        Some(format!("{heap} comes from {place}: "))
    });
    let hint = format!("{}{}", place.unwrap_or_default(), found.hint);
    Err(Error::usage(redact::redact_line(&refusal)).with_hint(hint))
}

fn error_in_file(path: &Path, error: EmitError) -> Error {
    match error {
        EmitError::Manifest { why, hint } => {
            let refusal = format!("{}: {why}", path.display());
            Error::usage(refusal).with_hint(hint)
        }
        other => emit_refused(other),
    }
}
