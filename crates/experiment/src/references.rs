//! Credentials in an environment, by reference: `{env:NAME}` is a variable of loadline's own
//! environment, `{file:PATH}` the content of a file without its last line end,
//! `{compose:PATH#SERVICE#NAME}` a variable of a service of a compose file, `{env-file:PATH#NAME}`
//! a variable of a file ([`super::variables`]).
//!
//! Owns their text form and the moment they are read: when a trial begins, never before. A stored
//! experiment holds references only.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_protocol::RunRefusal;

use super::{compose, variables};

const ENV: &str = "{env:";
const FILE: &str = "{file:";
const COMPOSE: &str = "{compose:";
const ENV_FILE: &str = "{env-file:";
const SECRET: &str = "PASSW SECRET TOKEN API_KEY APIKEY CREDENTIAL";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilledEnvironment {
    pub env: BTreeMap<String, String>,
    pub secrets: Vec<String>,
}

/// Reads the values behind references. Errors: [`RunRefusal`] names the variable with a broken
/// reference.
pub fn fill_references(env: &BTreeMap<String, String>) -> Result<FilledEnvironment, RunRefusal> {
    let mut filled = FilledEnvironment::default();
    for (name, value) in env {
        let value = fill_one(name, value, &mut filled.secrets)?;
        filled.env.insert(name.clone(), value);
    }
    Ok(filled)
}

fn fill_one(name: &str, value: &str, secrets: &mut Vec<String>) -> Result<String, RunRefusal> {
    let (mut out, mut rest) = (String::new(), value);
    while let Some((before, kind, target, after)) = next(rest) {
        let held = match kind {
            ENV => read_variable(name, target)?,
            COMPOSE => of_compose(name, target)?,
            ENV_FILE => of_env_file(name, target)?,
            _ => read_referenced_file(name, target)?,
        };
        out.push_str(before);
        out.push_str(&held);
        secrets.push(held);
        rest = after;
    }
    Ok(out + rest)
}

fn next(text: &str) -> Option<(&str, &'static str, &str, &str)> {
    let kinds = [ENV, FILE, COMPOSE, ENV_FILE].into_iter();
    let first = kinds
        .filter_map(|kind| Some((text.find(kind)?, kind)))
        .min()?;
    let (at, kind) = first;
    let (target, after) = text[at + kind.len()..].split_once('}')?;
    Some((&text[..at], kind, target, after))
}

fn read_variable(name: &str, target: &str) -> Result<String, RunRefusal> {
    std::env::var(target).map_err(|_| {
        RunRefusal::new(
            format!("the environment variable {name} of the experiment"),
            format!("it refers to the variable `{target}`, which is not set"),
            format!("set it in loadline's environment (sudo drops it: sudo {target}=... loadline)"),
        )
    })
}

fn read_referenced_file(name: &str, target: &str) -> Result<String, RunRefusal> {
    let text = std::fs::read_to_string(target).map_err(|error| {
        RunRefusal::new(
            format!("the environment variable {name} of the experiment"),
            format!("it refers to the file {target}: {error}"),
            "the path is relative to the experiment file; the file holds text, the credential alone",
        )
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The reference to a variable of a service of a compose file: `{compose:PATH#SERVICE#NAME}`.
pub(super) fn to_compose(path: &Path, service: &str, name: &str) -> String {
    format!("{COMPOSE}{}#{service}#{name}}}", path.display())
}

/// The reference to a variable of loadline's own environment: `{env:NAME}`.
pub fn to_variable(name: &str) -> String {
    format!("{ENV}{name}}}")
}

/// The reference to a variable of a file of variables: `{env-file:PATH#NAME}`.
pub fn to_env_file(path: &Path, name: &str) -> String {
    format!("{ENV_FILE}{}#{name}}}", path.display())
}

fn of_env_file(name: &str, target: &str) -> Result<String, RunRefusal> {
    let found = target.rsplit_once('#').map(|(path, variable)| {
        let all = variables::read(Path::new(path))?;
        let value = all.into_iter().rev().find(|(found, _)| found == variable);
        Ok(value.and_then(|(_, value)| value))
    });
    found.transpose()?.flatten().ok_or_else(|| {
        RunRefusal::new(
            format!("the environment variable {name} of the experiment"),
            format!("`{target}` does not name a variable in a file"),
            "write {env-file:PATH#NAME}; the file has a line NAME=VALUE",
        )
    })
}

fn of_compose(name: &str, target: &str) -> Result<String, RunRefusal> {
    let mut parts = target.rsplitn(3, '#');
    let parts = (parts.next(), parts.next(), parts.next());
    let (Some(variable), Some(service), Some(path)) = parts else {
        return Err(RunRefusal::new(
            format!("the environment variable {name} of the experiment"),
            format!("`{target}` does not name a variable in a compose file"),
            "write {compose:PATH#SERVICE#NAME}",
        ));
    };
    compose::service_variable(Path::new(path), service, variable)
}

pub(super) fn settle_references(env: &mut BTreeMap<String, String>, base: &Path) {
    for value in env.values_mut() {
        *value = settle_reference(value, base);
    }
}

fn settle_reference(value: &str, base: &Path) -> String {
    let (mut out, mut rest) = (String::new(), value);
    while let Some((before, kind, target, after)) = next(rest) {
        let target = match kind {
            FILE | ENV_FILE => base.join(target).display().to_string(),
            _ => target.to_owned(),
        };
        out.push_str(&format!("{before}{kind}{target}}}"));
        rest = after;
    }
    out + rest
}

pub fn is_reference(value: &str) -> bool {
    next(value).is_some()
}

/// Whether a variable holds a credential itself, by its name, in place of a reference to one.
pub(super) fn is_literal_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) && next(value).is_none()
}

pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.split(' ').any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("PGPASSWORD".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_file_of_variables_is_read_when_a_trial_begins() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("app.env");
        std::fs::write(&path, "# db\nA=1\nPW=a=b#c\nHOME\n").expect("writable");
        let env = env(&to_env_file(&path, "PW"));
        let filled = fill_references(&env).expect("it is there");
        assert_eq!(filled.env["PGPASSWORD"], "a=b#c");
        assert_eq!(filled.secrets, ["a=b#c"]);
        let none = BTreeMap::from([("X".to_owned(), to_env_file(&path, "NONE"))]);
        assert!(fill_references(&none).is_err(), "there is no such line");
    }

    #[test]
    fn references_are_read_and_told_apart_from_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("password"), "hunter22\n").unwrap();
        let mut env = env("a{file:password}b{env:PATH}{c}");
        settle_references(&mut env, directory.path());
        let settled = env.clone();
        settle_references(&mut env, Path::new("/elsewhere"));
        assert_eq!(env, settled);
        let filled = fill_references(&env).unwrap();
        let path = std::env::var("PATH").unwrap();
        assert_eq!(filled.env["PGPASSWORD"], format!("ahunter22b{path}{{c}}"));
        assert_eq!(filled.secrets, ["hunter22".to_owned(), path]);
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_refused_by_name() {
        let told = |value: &str| {
            let refusal = fill_references(&env(value)).unwrap_err();
            format!("{refusal}\nhint: {}", refusal.hint)
        };
        insta::assert_snapshot!(told("{env:LOADLINE_NO_SUCH}"), @"
        the environment variable PGPASSWORD of the experiment: it refers to the variable `LOADLINE_NO_SUCH`, which is not set
        hint: set it in loadline's environment (sudo drops it: sudo LOADLINE_NO_SUCH=... loadline)
        ");
        insta::assert_snapshot!(told("{file:/nonexistent/x}"), @"
        the environment variable PGPASSWORD of the experiment: it refers to the file /nonexistent/x: No such file or directory (os error 2)
        hint: the path is relative to the experiment file; the file holds text, the credential alone
        ");
    }

    #[test]
    fn a_credential_is_known_by_the_name_of_its_variable() {
        assert!(is_literal_secret("POSTGRES_PASSWORD", "hunter22"));
        assert!(is_literal_secret("api_key", "x"));
        assert!(!is_literal_secret("POSTGRES_PASSWORD", "{env:PW}"));
        assert!(!is_literal_secret("POSTGRES_USER", "loadline"));
    }
}
