//! What takes a container's memory besides the JVM's options: volumes in memory, and the share that Paketo's
//! calculator keeps.
//!
//! Owns how a manifest states both; `loadline_analysis::lint` judges them.

use loadline_analysis::lint::{CalculatorSettings, LintFinding, MemoryVolume, Severity};
use serde_json::Value;

use super::fields::{list_items, program_texts, scalar_text, variables};
use super::{THREADS, paketo_classes, quantity};

/// Begins of the variables that Paketo's Java buildpack reads when the container starts.
const PAKETO_VARIABLES: [&str; 5] = [
    "BPL_JVM_",
    "BPL_JAVA_",
    "BPL_JMX_",
    "BPL_JFR_",
    "BPL_DEBUG_",
];

/// The volumes in memory that a container mounts to write to; a size that is none is unreadable.
pub(super) fn memory_volumes(
    pod: &Value,
    container: &Value,
    unreadable: &mut Vec<String>,
) -> Vec<MemoryVolume> {
    let is_written = |name: &Value| {
        let mut mounts = list_items(container, "volumeMounts");
        mounts.any(|mount| mount["name"] == *name && mount["readOnly"] != true)
    };
    let volumes = list_items(pod, "volumes").filter(|volume| is_written(&volume["name"]));
    let mut in_memory = Vec::new();
    for volume in volumes {
        let (name, directory) = (scalar_text(&volume["name"]), &volume["emptyDir"]);
        let size = directory.get("sizeLimit").map(scalar_text);
        let most = size.as_deref().and_then(quantity::parse_memory_quantity);
        if let (Some(text), None) = (&size, most) {
            unreadable.push(format!("sizeLimit `{text}` of the emptyDir {name}"));
        } else if directory["medium"] == "Memory" {
            in_memory.push(MemoryVolume { name, most });
        }
    }
    in_memory
}

/// The numbers by which an image of Paketo's Java buildpack divides its memory. Such an image is recognised
/// by the buildpack's launch variables, or by a command below /cnb.
pub(super) fn calculator_settings(
    container: &Value,
    malformed: &mut Vec<LintFinding>,
) -> Option<CalculatorSettings> {
    let words = program_texts(container);
    let is_built = words.first().is_some_and(|word| word.starts_with("/cnb/"));
    let has_own = |name: &str| PAKETO_VARIABLES.iter().any(|begin| name.starts_with(begin));
    let all: Vec<(&str, Option<String>)> = variables(container).collect();
    if !is_built && !all.iter().any(|(name, _)| has_own(name)) {
        return None;
    }
    let mut number = |wanted: &str, usual: u64| {
        let found = all.iter().find(|(name, _)| *name == wanted);
        let Some(text) = found
            .and_then(|(_, value)| value.as_deref())
            .filter(|text| !text.contains('$'))
        else {
            return usual;
        };
        text.trim().parse().unwrap_or_else(|_| {
            malformed.push(LintFinding {
                severity: Severity::Error,
                problem: format!("{wanted}: `{text}` is not a whole number: the image's memory calculator ends before java starts"),
                hint: "write digits alone".to_owned(),
            });
            usual
        })
    };
    Some(CalculatorSettings {
        classes: number("BPL_JVM_LOADED_CLASS_COUNT", paketo_classes(None)),
        threads: number("BPL_JVM_THREAD_COUNT", THREADS),
        headroom_percent: number("BPL_JVM_HEAD_ROOM", 0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::manifest::tests::linted;

    #[test]
    fn volumes_in_memory_count_against_the_limit() {
        let mount = "volumeMounts: [{name: v, mountPath: /v}]";
        for (directory, mount, wanted) in [
            (
                "{medium: Memory, sizeLimit: 512Mi}",
                mount,
                "with 512Mi of files in the emptyDir v)",
            ),
            (
                "{medium: Memory, sizeLimit: 4Gi}",
                mount,
                "with 4Gi of files in the emptyDir v)",
            ),
            (
                "{medium: Memory}",
                mount,
                "the emptyDir v is in memory and has no sizeLimit",
            ),
            (
                "{medium: Memory, sizeLimit: 512MB}",
                mount,
                "sizeLimit `512MB` of the emptyDir v is no quantity",
            ),
            ("{medium: Memory, sizeLimit: 16Mi}", mount, ""),
            ("{sizeLimit: 4Gi}", mount, ""),
            ("{}", mount, ""),
            ("{medium: HugePages-2Mi}", mount, ""),
            ("{medium: Memory, sizeLimit: 4Gi}", "volumeMounts: []", ""),
            (
                "{medium: Memory, sizeLimit: 4Gi}",
                "volumeMounts: [{name: v, mountPath: /v, readOnly: true}]",
                "",
            ),
        ] {
            let service = format!("command: [java, -Xmx640m, -jar, a.jar], {mount}");
            let said = linted(
                &service,
                &format!("volumes: [{{name: v, emptyDir: {directory}}}],"),
            );
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{directory}: {said}"
            );
        }
    }

    /// Sums as libjvm's calculator has them: `compat::calculator` is tested against it.
    #[test]
    fn the_memory_calculator_of_an_image_is_asked() {
        for (service, wanted) in [
            (
                "env: [{name: BPL_JVM_THREAD_COUNT, value: '750'}]",
                "fixed memory regions require",
            ),
            (
                "env: [{name: BPL_JVM_HEAD_ROOM, value: '70'}]",
                "non-heap memory regions require",
            ),
            (
                "env: [{name: BPL_JVM_LOADED_CLASS_COUNT, value: '95000'}]",
                "fixed memory regions require",
            ),
            (
                "env: [{name: BPL_JAVA_NMT_ENABLED, value: 'true'}, {name: JAVA_TOOL_OPTIONS, value: -Xmx900m}]",
                "all memory regions require",
            ),
            (
                "env: [{name: BPL_JVM_THREAD_COUNT, value: many}]",
                "BPL_JVM_THREAD_COUNT: `many` is not a whole number",
            ),
            (
                "command: [/cnb/process/web], env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:ReservedCodeCacheSize=900m'}]",
                "fixed memory regions require",
            ),
            ("env: [{name: BPL_JVM_THREAD_COUNT, value: '50'}]", ""),
            ("env: [{name: BPL_JVM_THREAD_COUNT, value: '250'}]", ""),
            (
                "env: [{name: BPL_SPRING_CLOUD_BINDINGS_DISABLED, value: 'true'}, {name: THREAD_COUNT, value: '900'}]",
                "",
            ),
        ] {
            let said = linted(service, "");
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{service}: {said}"
            );
        }
    }
}
