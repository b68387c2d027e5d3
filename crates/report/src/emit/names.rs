//! What things are called in the artefacts: one name as a DNS label, and what follows from it.

use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_map};

/// A name as a DNS label (RFC 1123): lower-case letters, digits and dashes, at most 40.
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.to_ascii_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.truncate(40);
    let out = out.trim_end_matches('-');
    if out.is_empty() {
        "app".to_owned()
    } else if out.starts_with(|c: char| c.is_ascii_digit()) {
        // The name of a Service must begin with a letter (RFC 1035).
        format!("app-{out}")
    } else {
        out.to_owned()
    }
}

pub(super) fn secret_name(slug: &str) -> String {
    format!("{slug}-secrets")
}

pub(super) fn labels(slug: &str) -> Yaml {
    yaml_map([yaml_entry("app.kubernetes.io/name", slug)])
}

pub(super) fn metadata(slug: &str) -> YamlEntry {
    let fields = [yaml_entry("name", slug), yaml_entry("labels", labels(slug))];
    yaml_entry("metadata", fields)
}

/// An object with the name and the labels of the service.
pub(super) fn named_object(api: &str, kind: &str, slug: &str, spec: impl Into<Yaml>) -> Yaml {
    yaml_map([
        yaml_entry("apiVersion", api),
        yaml_entry("kind", kind),
        metadata(slug),
        yaml_entry("spec", spec),
    ])
}

pub(super) fn deployment_reference(slug: &str) -> Yaml {
    yaml_map([
        yaml_entry("apiVersion", "apps/v1"),
        yaml_entry("kind", "Deployment"),
        yaml_entry("name", slug),
    ])
}

/// Pods of a Deployment, and not those of another one whose name begins alike.
pub fn pod_pattern(slug: &str) -> String {
    format!("{slug}-[a-z0-9]+-[a-z0-9]{{5}}")
}
