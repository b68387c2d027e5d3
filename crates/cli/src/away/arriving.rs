//! Data from a cluster, and the rules for accepting them.
//!
//! Owns the rule: whoever may write to the namespace may have written all data. An experiment from
//! there runs in the cluster and namespace that the user named and nowhere else, and reads no file
//! of this machine, exactly like an experiment sent there ([`super::carried`]).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loadline_experiment::{Experiment, ExperimentFile};
use loadline_kubernetes::in_cluster::pieces::ResultPiece;
use loadline_load::ProfileSource;
use loadline_report::text::one_line;
use loadline_runner::store::{AwayLocation, ResultRow};
use serde_json::Value as Json;
use toml::Value;

use super::carried::{OF_FILES, strings, variable_names};
use crate::error::Error;
use crate::images;

const SOURCE: &str = "the experiment of the result in the cluster";

/// A row that arrived, as it may be stored here: its experiment is at `place`, whatever place it names.
/// Errors: An experiment that runs elsewhere than in a cluster, or that refers to files.
pub fn accepted_row(row: &ResultRow, place: &AwayLocation) -> Result<ResultRow, Error> {
    Ok(ResultRow {
        title: one_line(&row.title),
        experiment: accepted_text(&row.experiment, place)?,
        // As in sent experiments: an image has no calling directory.
        directory: PathBuf::from("/"),
        command: row.command.iter().map(|word| one_line(word)).collect(),
        ..row.clone()
    })
}

fn accepted_text(text: &str, place: &AwayLocation) -> Result<String, Error> {
    let mut file = ExperimentFile::from_toml(text, Path::new(SOURCE))?;
    refuse_files(&file, text)?;
    let Some(table) = &mut file.kubernetes else {
        let problem = "has no [kubernetes] table: it would run on this machine";
        return Err(not_accepted(problem));
    };
    let named = (table.context.clone(), table.namespace.clone());
    let wanted = (Some(place.context.clone()), Some(place.namespace.clone()));
    if named != wanted {
        let word = |text: Option<String>| one_line(&text.unwrap_or_else(|| "none".to_owned()));
        say!(
            "warning: {SOURCE} names the context {} and the namespace {}; it runs only in the namespace {} ({})",
            word(named.0),
            word(named.1),
            place.namespace,
            place.context
        );
    }
    (table.context, table.namespace) = wanted;
    file.app.directory = None;
    let text = file.to_toml().map_err(Error::internal)?;
    // No file is named any more: this reads none.
    let experiment = Experiment::from_file_text(&text, Path::new(SOURCE), Path::new("/"));
    images::only_image(&experiment?)?;
    Ok(text)
}

/// Refuses whatever names a file of this machine, and what trials as pods do not have.
fn refuse_files(file: &ExperimentFile, text: &str) -> Result<(), Error> {
    let load = &file.load;
    let credential = [&load.basic, &load.bearer].into_iter().flatten();
    let is_file = |text: &&String| text.starts_with('@');
    let mut commands = [&load.command, &load.drive, &load.backlog].into_iter();
    let mut metrics = file.metrics.iter();
    let named = [
        (file.compose.is_some(), "a compose file"),
        (file.manifest.is_some(), "a manifest"),
        (commands.any(|words| !words.is_empty()), "a load command"),
        (
            metrics.any(|metrics| !metrics.probe.is_empty()),
            "a command that prints a metric",
        ),
        (
            file.app.fresh.is_some() || !file.app.reset.is_empty(),
            "files that each run restores",
        ),
        (load.proto.is_some(), "a gRPC schema"),
        (!file.dependency.is_empty(), "dependencies"),
        (!file.app.volumes.is_empty(), "volumes of this machine"),
        (
            matches!(load.profile, Some(ProfileSource::File(_))),
            "the file of a load profile",
        ),
        (
            !load.content_files().is_empty(),
            "a file that the load reads",
        ),
        (
            credential.clone().any(|text| is_file(&text)),
            "the file of a credential",
        ),
    ];
    if let Some((_, what)) = named.into_iter().find(|(is_named, _)| *is_named) {
        return Err(not_accepted(&format!("names {what}")));
    }
    let is_reference =
        |text: &&String| OF_FILES.iter().any(|kind| text.contains(kind)) || text.starts_with("@/");
    match all_strings(text)?.iter().find(is_reference) {
        None => Ok(()),
        Some(text) => Err(not_accepted(&format!(
            "refers to a file of this machine: {}",
            one_line(text)
        ))),
    }
}

fn not_accepted(problem: &str) -> Error {
    Error::environment(format!("{SOURCE} {problem}")).with_hint(
        "loadline never sends such an experiment: it was changed there. Nothing was fetched; kubectl get job -o yaml shows who made it",
    )
}

/// The variables of loadline's own environment that an experiment refers to.
/// Errors: A text that is not TOML.
pub fn referenced_variables(text: &str) -> Result<Vec<String>, Error> {
    let strings = all_strings(text)?;
    let all: BTreeSet<String> = strings
        .iter()
        .flat_map(|text| variable_names(text).map(one_line).collect::<Vec<_>>())
        .collect();
    Ok(all.into_iter().collect())
}

#[derive(Debug)]
pub struct AllowedNames {
    image: Option<String>,
    variables: Vec<String>,
}

impl AllowedNames {
    pub fn of_experiment(text: &str) -> Result<Self, Error> {
        let file = ExperimentFile::from_toml(text, Path::new(SOURCE))?;
        Ok(Self {
            image: file.app.image.map(|image| image.inner_value().clone()),
            variables: referenced_variables(text)?,
        })
    }

    /// Refuses a piece with configurations that name a file of this machine, or a variable or an
    /// image outside the experiment. Errors: With the name.
    pub fn check_piece(&self, piece: &ResultPiece) -> Result<(), Error> {
        let told = |e: serde_json::Error| {
            not_accepted(&format!("came with an answer that cannot be read: {e}"))
        };
        let value = match piece {
            ResultPiece::Trial(finished) => serde_json::to_value(&finished.record.configuration),
            ResultPiece::Ended(ended) => match &ended.outcome {
                Some(outcome) => serde_json::from_str(outcome),
                None => return Ok(()),
            },
            ResultPiece::Begun(_) | ResultPiece::Machine(_) => return Ok(()),
        };
        self.check_value("", &value.map_err(told)?)
    }

    fn check_value(&self, key: &str, value: &Json) -> Result<(), Error> {
        match value {
            Json::String(text) => self.check_text(key, text),
            Json::Array(all) => all
                .iter()
                .try_for_each(|value| self.check_value(key, value)),
            Json::Object(all) => all
                .iter()
                .try_for_each(|(key, value)| self.check_value(key, value)),
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
        }
    }

    fn check_text(&self, key: &str, text: &str) -> Result<(), Error> {
        let came = |what: &str, name: &str| {
            let name = one_line(name);
            not_accepted(&format!("came with a configuration that {what}: {name}"))
        };
        if OF_FILES.iter().any(|kind| text.contains(kind)) {
            return Err(came("refers to a file of this machine", text));
        }
        if key == "image" && self.image.as_deref() != Some(text) {
            return Err(came("names another image", text));
        }
        match variable_names(text).find(|name| !self.variables.iter().any(|known| known == name)) {
            Some(name) => Err(came("names another variable", name)),
            None => Ok(()),
        }
    }
}

fn all_strings(text: &str) -> Result<BTreeSet<String>, Error> {
    let parsed = text.parse::<toml::Table>();
    let table = parsed.map_err(|e| not_accepted(&format!("is not valid TOML: {e}")))?;
    let mut all = BTreeSet::new();
    strings(&Value::Table(table), &mut all);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::MachineDescription;
    use loadline_kubernetes::in_cluster::pieces::ControllerEnd;
    use loadline_runner::store::{ResultKind, ResultStatus};

    use super::*;

    const SENT: &str = r#"
        slo = "p99<250ms"
        [app]
        image = "registry.example/orders:1.4"
        [load]
        url = "http://localhost:8080/"
        rate = "100/s"
        [limits]
        cpu = "500m"
        memory = "128Mi"
        [kubernetes]
        context = "staging"
        namespace = "sizing"
    "#;

    fn place() -> AwayLocation {
        AwayLocation {
            context: "staging".to_owned(),
            namespace: "sizing".to_owned(),
        }
    }

    fn row(experiment: &str) -> ResultRow {
        ResultRow {
            id: "019aaa00-0000-7000-8000-000000000001".to_owned(),
            kind: ResultKind::Size,
            title: "orders\u{1b}[2J".to_owned(),
            created_unix_ms: 1,
            experiment: experiment.to_owned(),
            directory: "/root".into(),
            command: vec!["loadline\u{1b}[2J".to_owned()],
            machine: MachineDescription::default(),
            status: ResultStatus::Done,
            outcome: None,
            trials: 0,
        }
    }

    /// With another line in the table `[app]`, `[load]` or another, or at the begin.
    fn changed(table: &str, line: &str) -> String {
        match table {
            "" => format!("{line}\n{SENT}"),
            table => SENT.replace(&format!("[{table}]"), &format!("[{table}]\n{line}")),
        }
    }

    fn why_not(experiment: &str) -> String {
        let refused = accepted_row(&row(experiment), &place());
        refused.expect_err(experiment).message().to_owned()
    }

    #[test]
    fn an_experiment_runs_where_the_user_said() {
        let other = SENT
            .replace("staging", "prod")
            .replace("sizing", "payments");
        let nameless = SENT.replace("context = \"staging\"", "");
        for text in [SENT, &other, &nameless] {
            let accepted = accepted_row(&row(text), &place()).expect("it is accepted");
            let path = Path::new("accepted");
            let parsed = Experiment::from_file_text(&accepted.experiment, path, Path::new("/"));
            let cluster = parsed.expect("it is one").cluster.expect("a cluster");
            assert_eq!(cluster.context.as_deref(), Some("staging"), "{text}");
            assert_eq!(cluster.namespace.as_deref(), Some("sizing"), "{text}");
            assert_eq!(accepted.directory, Path::new("/"));
            let shown = format!("{}{:?}", accepted.title, accepted.command);
            assert!(!shown.contains('\u{1b}'), "{shown}");
        }
    }

    #[test]
    fn an_experiment_of_this_machine_is_refused() {
        let (text, _) = SENT.split_once("[kubernetes]").expect("a table");
        let said = why_not(text);
        assert!(said.contains("has no [kubernetes] table"), "{said}");
        let said = why_not(&SENT.replace(
            "image = \"registry.example/orders:1.4\"",
            "command = [\"id\"]",
        ));
        assert!(said.contains("a cluster runs images"), "{said}");
        let said = why_not(&changed("app", "engine = \"docker\""));
        assert!(said.contains("the cluster starts the image"), "{said}");
    }

    #[test]
    fn references_to_files_are_refused_wherever_they_stand() {
        for reference in [
            "{file:/etc/shadow}",
            "a{env-file:/home/.env#PW}",
            "{compose:/c.yaml#db#PW}",
        ] {
            for text in [
                changed("app", &format!("env = {{ LOOT = \"{reference}\" }}")),
                changed("app", &format!("command = [\"{reference}\"]")),
                changed("load", &format!("headers = {{ X = \"{reference}\" }}")),
                // TOML knows other ways to write a character.
                changed(
                    "app",
                    &format!(
                        "env = {{ LOOT = \"{}\" }}",
                        reference.replace('{', "\\u007b")
                    ),
                ),
            ] {
                let said = why_not(&text);
                assert!(
                    said.contains("refers to a file of this machine"),
                    "{text}: {said}"
                );
            }
        }
    }

    #[test]
    fn files_that_an_experiment_names_are_refused() {
        for (table, line, what) in [
            ("", "compose = { file = \"/c.yaml\" }", "a compose file"),
            ("", "manifest = \"/m.yaml\"", "a manifest"),
            (
                "load",
                "profile = \"/dev/zero\"",
                "the file of a load profile",
            ),
            (
                "load",
                "body-file = \"/etc/shadow\"",
                "a file that the load reads",
            ),
            (
                "load",
                "cacert = \"/etc/shadow\"",
                "a file that the load reads",
            ),
            (
                "load",
                "body = \"{csv:/etc/shadow:a}\"",
                "a file that the load reads",
            ),
            (
                "load",
                "bearer = \"@/etc/shadow\"",
                "the file of a credential",
            ),
            ("load", "basic = \"@shadow\"", "the file of a credential"),
            (
                "app",
                "volumes = [\"/etc:/loot\"]",
                "volumes of this machine",
            ),
            ("load", "drive = [\"/bin/sh\"]", "a load command"),
            ("load", "backlog = [\"/bin/sh\"]", "a load command"),
            (
                "",
                "metrics = { probe = { lag = [\"/bin/sh\"] } }",
                "a command that prints a metric",
            ),
            ("app", "fresh = [\"/root\"]", "files that each run restores"),
            (
                "app",
                "reset = [\"/bin/sh\"]",
                "files that each run restores",
            ),
            ("load", "proto = \"/etc/shadow\"", "a gRPC schema"),
            (
                "kubernetes",
                "[[dependency]]\nname = \"x\"\nstub = \"/etc/shadow\"\n[kubernetes.node-selector]",
                "dependencies",
            ),
        ] {
            let said = why_not(&changed(table, line));
            assert!(said.contains(what), "{line}: {said}");
        }
    }

    #[test]
    fn variables_that_it_reads_are_known_before() {
        let text = changed(
            "app",
            "env = { A = \"{env:TOKEN}\", B = \"x{env:LOOT}{env:TOKEN}\" }",
        );
        let text = text.replace("[load]", "[load]\nbearer = \"{env:LOGIN}\"");
        let all = referenced_variables(&text).expect("TOML");
        assert_eq!(all, ["LOGIN", "LOOT", "TOKEN"]);
        assert!(accepted_row(&row(&text), &place()).is_ok());
    }

    #[test]
    fn configurations_name_what_the_experiment_names() {
        let text = changed("app", "env = { A = \"{env:TOKEN}\" }");
        let allowed = AllowedNames::of_experiment(&text).expect("an experiment");
        let ended = |configuration: serde_json::Value| {
            let outcome =
                serde_json::json!({ "comparisons": [{ "configuration": configuration }] });
            allowed.check_piece(&ResultPiece::Ended(ControllerEnd {
                status: ResultStatus::Done,
                outcome: Some(outcome.to_string()),
                code: 0,
                error: None,
                hints: Vec::new(),
            }))
        };
        let own = serde_json::json!({ "env": { "A": "{env:TOKEN}" }, "application": { "image": "registry.example/orders:1.4" } });
        ended(own).expect("everything belongs to the experiment");
        for (forged, why) in [
            (
                serde_json::json!({ "env": { "A": "{file:/etc/shadow}" } }),
                "a file of this machine",
            ),
            (
                serde_json::json!({ "args": ["{env-file:/home/.env#A}"] }),
                "a file of this machine",
            ),
            (
                serde_json::json!({ "env": { "A": "{env:AWS_SECRET_ACCESS_KEY}" } }),
                "another variable: AWS_SECRET",
            ),
            (
                serde_json::json!({ "application": { "image": "attacker.example/evil:1" } }),
                "another image",
            ),
        ] {
            let said = ended(forged).expect_err(why).message().to_owned();
            assert!(said.contains(why), "{said}");
        }
    }
}
