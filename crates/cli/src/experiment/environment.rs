//! The application's environment from flags: `--env`, `--env-file`.
//!
//! Owns which values become references: values that the caller did not write, and credentials by
//! name or form. A credential on the command line is refused, because the result would store it.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_experiment::{references, variables};
use loadline_report::redact;

use super::ExperimentFlags;
use crate::error::Error;

/// The variables of the flags, `--env` over `--env-file`, the later over the earlier. Errors: Usage
/// errors: a file that cannot be read, an invalid variable, a credential.
pub fn read_environment(
    flags: &ExperimentFlags,
    here: &Path,
) -> Result<BTreeMap<String, String>, Error> {
    let mut env = BTreeMap::new();
    for file in &flags.env_file {
        let path = here.join(file);
        let read = variables::read(&path).map_err(Error::from_wrong_input)?;
        for (name, value) in read {
            let value = match value {
                None => references::to_variable(&name),
                Some(value) if is_secret(&name, &value) => references::to_env_file(&path, &name),
                Some(value) => value,
            };
            env.insert(name, value);
        }
    }
    for text in &flags.env {
        let (name, value) = variables::parse_variable(text).ok_or_else(|| {
            let hint =
                "write --env NAME=VALUE, or --env NAME to pass it from loadline's environment";
            Error::usage(format!("--env `{text}`: that is not a variable")).with_hint(hint)
        })?;
        let value = match value {
            None => references::to_variable(&name),
            Some(value) if is_secret(&name, &value) => return Err(credential(&name)),
            Some(value) => value,
        };
        env.insert(name, value);
    }
    Ok(env)
}

/// By the name, or as the user part of a URL; what refers to one is none.
fn is_secret(name: &str, value: &str) -> bool {
    !references::is_reference(value)
        && (references::is_secret_name(name)
            || redact::redact_variable(name, value) != format!("{name}={value}"))
}

fn credential(name: &str) -> Error {
    let what = format!(
        "--env {name}: its value is a credential; it would be stored with the result and appear \
         in the process list"
    );
    Error::usage(what).with_hint(format!(
        "set {name} in loadline's environment and give --env {name}, or put it into a file: --env-file FILE"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(env: &[&str], file: Option<&Path>) -> Result<BTreeMap<String, String>, Error> {
        let flags = ExperimentFlags {
            env: env.iter().map(|text| (*text).to_owned()).collect(),
            env_file: file.map(Path::to_owned).into_iter().collect(),
            ..ExperimentFlags::default()
        };
        read_environment(&flags, Path::new("/here"))
    }

    #[test]
    fn what_the_caller_did_not_write_is_a_reference() {
        let env = of(&["A=1", "HOME", "URL=http://x/"], None).expect("they are variables");
        assert_eq!(env["A"], "1");
        assert_eq!(env["HOME"], "{env:HOME}");
        assert_eq!(env["URL"], "http://x/");
    }

    #[test]
    fn a_credential_is_refused_without_being_repeated() {
        for text in ["DB_PASSWORD=hunter22", "URL=jdbc:x://me:hunter22@db/"] {
            let error = of(&[text], None).expect_err("it would be stored");
            assert!(!error.message().contains("hunter22"), "{}", error.message());
        }
        of(&["DB_PASSWORD={file:/run/pw}"], None).expect("that is a reference");
    }

    #[test]
    fn credentials_of_a_file_stay_there() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("app.env");
        std::fs::write(&path, "A=1\nDB_PASSWORD=hunter22\nA=2\nHOME\n").expect("writable");
        let env = of(&["A=3"], Some(&path)).expect("it is read");
        assert_eq!(env["A"], "3");
        assert_eq!(env["HOME"], "{env:HOME}");
        let reference = format!("{{env-file:{}#DB_PASSWORD}}", path.display());
        assert_eq!(env["DB_PASSWORD"], reference);
    }
}
