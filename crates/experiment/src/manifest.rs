//! Foreign YAML: manifests and values of charts, from files, directories and standard input.
//!
//! Owns the sources and their limits: the text is untrusted, and loadline may be root. Callers
//! interpret the documents. Facts: a directory is read as `kubectl apply -f DIR` reads it (`.yaml`,
//! `.yml`, `.json`, no subdirectories).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use loadline_files::FileKind;
use loadline_protocol::RunRefusal;
use serde_json::Value;

/// Largest file: a dump of a cluster with 5,000 objects has about 25 MiB.
const LARGEST: u64 = 64 << 20;

const MOST: usize = 1000;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

const TEMPLATES: [&str; 3] = [".Values", ".Release", ".Chart"];

const FOREIGN: [&str; 4] = ["data", "stringData", "binaryData", "annotations"];

#[derive(Debug, Clone, PartialEq)]
pub struct ManifestFile {
    pub path: PathBuf,
    pub documents: Vec<Value>,
}

/// Reads a file, standard input (`-`), or the files of a directory.
pub fn read(path: &Path) -> Result<Vec<ManifestFile>, RunRefusal> {
    if path != Path::new("-") && path.is_dir() {
        return manifest_files(path)?
            .iter()
            .map(|file| read_manifest_file(file))
            .collect();
    }
    Ok(vec![read_manifest_file(path)?])
}

pub const MANIFEST: &str = "a Kubernetes manifest";

pub fn read_manifest_file(path: &Path) -> Result<ManifestFile, RunRefusal> {
    read_yaml_file(path, MANIFEST)
}

/// Reads a file that should be `wanted`, as [`FileKind`] names it.
pub fn read_yaml_file(path: &Path, wanted: &str) -> Result<ManifestFile, RunRefusal> {
    let other = |refusal| other_kind(path, wanted).unwrap_or(refusal);
    let text = read_text_file(path, wanted)?;
    Ok(ManifestFile {
        documents: documents(&text, &input_name(path)).map_err(other)?,
        path: path.to_owned(),
    })
}

pub(crate) fn read_text_file(path: &Path, wanted: &str) -> Result<String, RunRefusal> {
    let name = input_name(path);
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::InvalidData => "save it as UTF-8",
            _ => "give a file, or - for standard input",
        };
        RunRefusal::new(format!("cannot read {name}"), error, hint)
    };
    let other = |refusal| other_kind(path, wanted).unwrap_or(refusal);
    let text = read_bounded_text(path);
    text.map_err(|error| other(failed(error)))?.ok_or_else(|| {
        let why = format!("it is larger than {} MiB", LARGEST >> 20);
        let hint = "give only the workloads you need: kubectl get deployment NAME -o yaml";
        RunRefusal::new(format!("cannot read {name}"), why, hint)
    })
}

/// The refusal of a file of another kind: `pom.xml: it is a Maven project, not a Kubernetes manifest`.
pub fn other_kind(path: &Path, wanted: &str) -> Option<RunRefusal> {
    let kind = FileKind::other_than(path, wanted)?;
    let why = format!("it is {}, not {wanted}", kind.name);
    Some(RunRefusal::new(path.display(), why, kind.next_step(path)))
}

fn read_bounded_text(path: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    let limit = LARGEST + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_string(&mut text)?;
    } else {
        File::open(path)?.take(limit).read_to_string(&mut text)?;
    }
    Ok((text.len() as u64 <= LARGEST).then_some(text))
}

fn input_name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

pub(crate) fn manifest_files(path: &Path) -> Result<Vec<PathBuf>, RunRefusal> {
    let what = format!("cannot read {}", path.display());
    let failed = |error| RunRefusal::new(&what, error, "give a readable directory");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.path();
        let ending = file.extension().and_then(|e| e.to_str());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(file);
        }
        if files.len() > MOST {
            let why = format!("it has more than {MOST} manifests");
            return Err(RunRefusal::new(what, why, "give only those you need"));
        }
    }
    if files.is_empty() {
        return Err(RunRefusal::new(
            what,
            "no file in it ends in .yaml, .yml or .json",
            "give the directory that has the manifests; subdirectories are not read. From a chart: helm template CHART | loadline lint -",
        ));
    }
    files.sort();
    Ok(files)
}

pub fn documents(text: &str, name: &str) -> Result<Vec<Value>, RunRefusal> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: 4_000_000,
            max_events: 10_000_000,
            max_aliases: 1_000,
            max_documents: 20_000,
        },
    };
    let what = || format!("cannot read {name}");
    let template = || {
        RunRefusal::new(
            what(),
            "it is a template of a Helm chart, not a manifest",
            "let Helm write the manifest: helm template CHART | loadline lint -",
        )
    };
    // What `helm install --dry-run` prints, between its own words.
    let release = text
        .starts_with("NAME: ")
        .then(|| text.split_once("\nMANIFEST:\n"));
    let text = release.flatten().map_or(text, |(_, rest)| {
        rest.split("\nNOTES:\n").next().unwrap_or(rest)
    });
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let parsed = parsed.or_else(|error| json_objects(text).ok_or(error));
    let documents = parsed.map_err(|error| {
        if text.contains("{{") {
            return template();
        }
        RunRefusal::new(
            what(),
            parser_message(&error),
            "write it as YAML, with placeholders filled in (envsubst < FILE); `kubectl apply --dry-run=client -f FILE` or `docker compose config` shows the fault",
        )
    })?;
    if documents.iter().any(is_template) {
        return Err(template());
    }
    Ok(documents.into_iter().filter(|d| !d.is_null()).collect())
}

/// Objects of JSON one after another, as kubectl reads them, too.
fn json_objects(text: &str) -> Option<Vec<Value>> {
    let objects = serde_json::Deserializer::from_str(text).into_iter();
    objects.collect::<Result<Vec<Value>, _>>().ok()
}

/// Whether a field refers to a chart's values. Other programs have their own templates in the data
/// of a ConfigMap or Secret and in annotations.
fn is_template(value: &Value) -> bool {
    let marks =
        |text: &str| text.contains("{{") && TEMPLATES.iter().any(|mark| text.contains(mark));
    match value {
        Value::String(text) => marks(text),
        Value::Array(items) => items.iter().any(is_template),
        Value::Object(fields) => fields.iter().any(|(name, inner)| {
            !FOREIGN.contains(&name.as_str()) && (marks(name) || is_template(inner))
        }),
        _ => false,
    }
}

/// What the parser says, without the picture of the place and without advice for its own callers.
fn parser_message(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("error: ");
    let line = line.split(": limits breached").next().unwrap_or(line);
    line.replace(" not allowed here", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_json_may_follow_each_other() {
        let found = documents("{\"kind\": \"Pod\"}\n{\"kind\": \"Job\"}\n", "x.json");
        assert_eq!(found.expect("two objects").len(), 2);
        assert!(documents("{\"kind\": \"Pod\"}\n{\"kind\": ", "x.json").is_err());
    }

    fn refused(text: &str) -> RunRefusal {
        documents(text, "x.yaml").expect_err("it is refused")
    }

    #[test]
    fn documents_are_read_and_empty_ones_left_out() {
        let all = documents("a: 1\n---\n# nothing\n---\n{\"b\": [2]}\n", "x").expect("YAML");
        assert_eq!(
            all,
            [serde_json::json!({"a": 1}), serde_json::json!({"b": [2]})]
        );
        assert_eq!(documents("", "x"), Ok(Vec::new()));
        let release = "NAME: a\nHOOKS:\nMANIFEST:\n---\na: 1\n\nNOTES:\n1. Open: http://x {\n";
        let read = documents(release, "x").map(|all| serde_json::json!(all));
        assert_eq!(read, Ok(serde_json::json!([{"a": 1}])));
        let own = documents("A: 1\nNOTES:\n  b: 2\n", "x").map(|all| serde_json::json!(all));
        assert_eq!(own, Ok(serde_json::json!([{"A": 1, "NOTES": {"b": 2}}])));
    }

    #[test]
    fn templates_of_charts_are_known_and_texts_with_braces_are_not() {
        for text in [
            "replicas: {{ .Values.replicas }}\n",
            "image: \"{{ .Values.image }}\"\n",
            "{{- if .Values.x }}\na: b\n{{- end }}\n",
            "{{ include \"a\" . }}\n",
        ] {
            assert!(refused(text).hint.contains("helm template"), "{text}");
        }
        for text in [
            "rule: 'x {{ $labels.pod }}'\n",
            "# {{ .Values.x }}\na: b\n",
            "kind: ConfigMap\ndata: {a: '{{ .Values.x }} {{ .Release }}'}\n",
            "metadata: {annotations: {summary: '{{ .Chart.Name }}'}}\n",
        ] {
            assert!(documents(text, "x").is_ok(), "{text}");
        }
    }

    #[test]
    fn a_dump_of_a_cluster_is_read() {
        let text = "kind: Service\nmetadata: {name: a}\n---\n".repeat(5_000);
        assert_eq!(documents(&text, "x").map(|all| all.len()), Ok(5_000));
    }

    #[test]
    fn refusals_are_for_people() {
        let said: Vec<String> = ["a: [\n", "a: 1\na: 2\n", "a: *b\n", "a: \t{\n"]
            .iter()
            .map(|text| refused(text).why)
            .chain([refused(&"---\na: 1\n".repeat(20_001)).why])
            .collect();
        insta::assert_snapshot!(said.join("\n"), @"
        line 1 column 4: unclosed bracket '['
        line 2 column 1: duplicate mapping key: a
        line 1 column 4: reference to unknown value
        line 1 column 5: unclosed bracket '{'
        line 40001 column 1: YAML document too large or too complex
        ");
    }

    #[test]
    fn hostile_yaml_is_refused() {
        assert!(!refused(&"[".repeat(1000)).why.is_empty());
        assert!(!refused("a: [").why.is_empty());
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..12 {
            let before = char::from(b'a' + i - 1);
            let own = char::from(b'a' + i);
            let items = vec![format!("*{before}"); 9].join(",");
            bomb += &format!("{own}: &{own} [{items}]\n");
        }
        assert!(!refused(&bomb).why.is_empty());
    }

    #[test]
    fn a_directory_is_its_manifests_and_no_link() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        assert!(
            read(place.path())
                .expect_err("it is empty")
                .why
                .contains(".yaml")
        );
        std::fs::write(at("b.yaml"), "b: 1").expect("writable");
        std::fs::write(at("a.yml"), "a: 1").expect("writable");
        std::fs::write(at("notes.txt"), "[").expect("writable");
        std::os::unix::fs::symlink("/etc/passwd", at("c.yaml")).expect("a link");
        std::fs::create_dir(at("d.yaml")).expect("a directory");
        let names: Vec<_> = read(place.path())
            .expect("two files")
            .into_iter()
            .map(|source| source.path)
            .collect();
        assert_eq!(names, [at("a.yml"), at("b.yaml")]);
        assert!(read_manifest_file(&at("none.yaml")).is_err());
        let large = File::create(at("large.yaml")).expect("writable");
        large.set_len(100 << 20).expect("room for a hole");
        assert!(
            read_manifest_file(&at("large.yaml"))
                .expect_err("too large")
                .why
                .contains("64 MiB")
        );
    }
}
