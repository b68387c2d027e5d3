//! Advice in files: manifests, and the JSON of the Vertical Pod Autoscaler and of KRR.

use std::path::Path;

use loadline_sizing::{Bytes, Cpus};
use serde_json::Value;

use crate::manifest::{MANIFEST, other_kind};

use super::{AdviceError, ContainerAdvice, manifest, quantity, read_advice_file};

pub fn read(path: &Path) -> Result<ContainerAdvice, AdviceError> {
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    let label = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    let label = label.unwrap_or_default();
    let no_advice = |why: String| AdviceError::NoAdvice {
        path: path.to_owned(),
        why,
    };
    if !is_json {
        let source = crate::manifest::read_manifest_file(path)?;
        let found = manifest::containers(&[source]).into_iter();
        let first = found
            .filter(|found| found.skipped.is_none())
            .map(|found| found.container)
            .next();
        let first = first.ok_or_else(|| match other_kind(path, MANIFEST) {
            Some(refusal) => AdviceError::Refused(refusal),
            None => no_advice("no container in it runs a JVM".to_owned()),
        })?;
        return Ok(ContainerAdvice::from_manifest(label, &first));
    }
    let json: Value =
        serde_json::from_str(&read_advice_file(path)?).map_err(|e| no_advice(e.to_string()))?;
    let found = vpa(&json).or_else(|| krr(&json));
    let (cpu, memory) = found.ok_or_else(|| {
        no_advice(
            "neither status.recommendation.containerRecommendations nor scans in it".to_owned(),
        )
    })?;
    Ok(ContainerAdvice {
        label,
        cpu,
        memory,
        jvm: Vec::new(),
    })
}

type Limits = (Option<Cpus>, Option<Bytes>);

fn vpa(json: &Value) -> Option<Limits> {
    let object = json.pointer("/items/0").unwrap_or(json);
    let target = object.pointer("/status/recommendation/containerRecommendations/0/target")?;
    let text = |name: &str| target.get(name).and_then(Value::as_str);
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
