//! Advice in files: manifests, and what the Vertical Pod Autoscaler and KRR say, in JSON or YAML.

use std::path::Path;

use loadline_sizing::{Bytes, Cpus};
use serde_json::Value;

use crate::manifest::{MANIFEST, other_kind};

use super::{AdviceError, ContainerAdvice, manifest, quantity};

pub fn read(path: &Path) -> Result<ContainerAdvice, AdviceError> {
    let label = path.file_stem().unwrap_or_default();
    let label = label.to_string_lossy().into_owned();
    // JSON is YAML, too.
    let source = crate::manifest::read_manifest_file(path)?;
    let mut documents = source.documents.iter();
    if let Some((cpu, memory)) = documents.find_map(|json| vpa(json).or_else(|| krr(json))) {
        return Ok(ContainerAdvice {
            label,
            cpu,
            memory,
            jvm: Vec::new(),
        });
    }
    let mut found = manifest::containers(&[source]).into_iter();
    let first = found.find(|found| found.skipped.is_none());
    let first = first.ok_or_else(|| match other_kind(path, MANIFEST) {
        Some(refusal) => AdviceError::Refused(refusal),
        None => AdviceError::NoAdvice {
            path: path.to_owned(),
            why: "no container in it runs a JVM, and there is neither status.recommendation.containerRecommendations nor scans in it".to_owned(),
        },
    })?;
    Ok(ContainerAdvice::from_manifest(label, &first.container))
}

type Limits = (Option<Cpus>, Option<Bytes>);

fn vpa(json: &Value) -> Option<Limits> {
    let object = json.pointer("/items/0").unwrap_or(json);
    let all = object.pointer("/status/recommendation/containerRecommendations")?;
    let is_sidecar = |one: &&Value| {
        let name = one["containerName"].as_str().unwrap_or_default();
        manifest::image_without_jvm(name).is_some()
    };
    let mut all = all.as_array()?.iter();
    let first = all.clone().next();
    let target = &all.find(|one| !is_sidecar(one)).or(first)?["target"];
    let text = |name: &str| target[name].as_str();
    Some((
        text("cpu").and_then(quantity::parse_cpu_quantity),
        text("memory").and_then(quantity::parse_memory_quantity),
    ))
}

/// The first scan; a limit where it has one, the request otherwise. CPU in cores, memory in bytes.
fn krr(json: &Value) -> Option<Limits> {
    let recommended = json.pointer("/scans/0/recommended")?;
    let value = |name: &str| {
        let of = |kind: &str| {
            let place = recommended.pointer(&format!("/{kind}/{name}/value"))?;
            place.as_f64().filter(|v| *v > 0.0 && *v < 1e15)
        };
        of("limits").or_else(|| of("requests"))
    };
    Some((
        value("cpu").map(|cores| Cpus::from_millis((cores * 1000.0).ceil() as u32)),
        value("memory").map(|bytes| Bytes::from_bytes(bytes as u64)),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_autoscaler_s_target_is_read() {
        let one = json!({"status": {"recommendation": {"containerRecommendations": [
            {"containerName": "istio-proxy", "target": {"cpu": "1"}},
            {"containerName": "app", "target": {"cpu": "25m", "memory": "262144k"}}]}}});
        let limits = (
            Some(Cpus::from_millis(25)),
            Some(Bytes::from_bytes(262_144_000)),
        );
        assert_eq!(vpa(&one), Some(limits));
        assert_eq!(vpa(&json!({"items": [one]})), Some(limits));
        assert_eq!(vpa(&json!({})), None);
    }

    #[test]
    fn krr_has_requests_and_sometimes_limits() {
        let scan = json!({"scans": [{"recommended": {
            "requests": {"cpu": {"value": 0.0101}, "memory": {"value": 104857600.0}},
            "limits": {"cpu": {"value": null}, "memory": {"value": 209715200.0}}}}]});
        let limits = (Some(Cpus::from_millis(11)), Some(Bytes::from_mib(200)));
        assert_eq!(krr(&scan), Some(limits));
    }
}
