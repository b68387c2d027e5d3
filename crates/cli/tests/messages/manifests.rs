//! Manifests and advice.

use super::{Row, USAGE};

pub const MANIFESTS: &[Row] = &[
    (
        "judge",
        USAGE,
        &[
            "there is nothing to judge",
            "hint: loadline judge --manifest deploy.yaml",
        ],
    ),
    (
        "judge --advice percent=75",
        USAGE,
        &["the application's command is missing", "hint: put it last"],
    ),
    (
        "judge --manifest none.yaml",
        USAGE,
        &["cannot read none.yaml: No such file", "hint: give a file"],
    ),
    (
        "judge --manifest helm.yaml",
        USAGE,
        &[
            "a template of a Helm chart",
            "hint: ",
            "helm template CHART",
        ],
    ),
    (
        "judge --manifest empty.yaml",
        USAGE,
        &[
            "empty.yaml: it has no document",
            "hint: it has only comments",
        ],
    ),
    (
        "judge --manifest service.yaml",
        USAGE,
        &["no document has spec.template.spec.containers", "hint: "],
    ),
    (
        "judge --manifest text",
        USAGE,
        &["text: no document has", "hint: "],
    ),
    (
        "judge --manifest service.yaml --measured none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "judge --manifest service.yaml --measured text",
        USAGE,
        &["text: this is not an exported result", "hint: "],
    ),
    ("lint", USAGE, &["<FILE>...", "hint: usage: loadline lint"]),
    (
        "lint gradle.properties",
        USAGE,
        &[
            "gradle.properties: the memory of the build is unknown",
            "hint: give the memory of its runner or container: loadline lint --memory 7Gi FILE",
        ],
    ),
    (
        "lint none.yaml",
        USAGE,
        &["cannot read none.yaml: No such file", "hint: give a file"],
    ),
    (
        "lint helm.yaml",
        USAGE,
        &[
            "a template of a Helm chart",
            "hint: let Helm write the manifest: helm template CHART | loadline lint -",
        ],
    ),
    (
        "lint brace.json",
        USAGE,
        &[
            "brace.json is JSON, not a Kubernetes manifest",
            "hint: show a result with: loadline show brace.json",
        ],
    ),
    (
        "lint directory",
        USAGE,
        &["no file in it ends in .yaml", "hint: give the directory"],
    ),
    (
        "lint result.json.gz",
        USAGE,
        &[
            "result.json.gz: it is a packed file",
            "hint: show a result with",
        ],
    ),
];
