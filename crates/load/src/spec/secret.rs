//! Credentials by reference: `{env:NAME}` in a text is the value of an environment variable,
//! `@FILE` in place of a whole credential is the content of a file.
//!
//! Owns their text forms and the moment they are read: when a plan is made, never before. A
//! [`super::LoadSpec`] holds references only, so a stored load has no secret in it.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::LoadSpec;
use crate::error::LoadError;

const OPEN: &str = "{env:";

const HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
/// Without `-` and `_`.
const PARTS: [&str; 4] = ["token", "apikey", "secret", "password"];

/// Whether a header of this name carries credentials.
pub(crate) fn is_credential_header(name: &str) -> bool {
    HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a header, a parameter or a field of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    PARTS.iter().any(|part| name.contains(part))
}

pub(super) fn fill_variables(text: &str, field: &'static str) -> Result<String, LoadError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        filled.push_str(before);
        filled.push_str(&environment_value(name, field)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn environment_value(name: &str, field: &'static str) -> Result<String, LoadError> {
    std::env::var(name).map_err(|_| {
        let why = format!(
            "the environment variable `{name}` is not set; set it in loadline's environment \
             (sudo drops it: sudo {name}=... loadline)"
        );
        LoadError::plan(field, why)
    })
}

/// The value of the Authorization header; `None` without credentials.
pub fn authorization(
    basic: Option<&str>,
    bearer: Option<&str>,
) -> Result<Option<String>, LoadError> {
    match (basic, bearer) {
        (Some(_), Some(_)) => {
            let why = "basic is given too; a request has one Authorization header";
            Err(LoadError::plan("bearer", why))
        }
        (Some(user), None) => {
            let user = read_credential(user, "basic")?;
            Ok(Some(format!("Basic {}", STANDARD.encode(user))))
        }
        (None, Some(token)) => Ok(Some(format!(
            "Bearer {}",
            read_credential(token, "bearer")?
        ))),
        (None, None) => Ok(None),
    }
}

/// A credential as it is, or from the file behind `@`.
pub fn read_credential(text: &str, field: &'static str) -> Result<String, LoadError> {
    let Some(path) = text.strip_prefix('@') else {
        return fill_variables(text, field);
    };
    let held = super::read(Path::new(path), field)?;
    Ok(String::from_utf8_lossy(&held).trim_end().to_owned())
}

/// Refuses a credential in the load itself: it would be stored with the result. Errors:
/// [`LoadError::Plan`] names where.
pub(super) fn refuse_literals(spec: &LoadSpec) -> Result<(), LoadError> {
    let refuse = |field, what: &str| {
        let why = format!(
            "{what} is in it and would be stored with the result; name an environment \
             variable instead: {{env:NAME}}"
        );
        Err(LoadError::plan(field, why))
    };
    let is_literal = |text: &String| !text.starts_with('@') && !text.contains(OPEN);
    if spec.basic.as_ref().is_some_and(is_literal) {
        return refuse("basic", "the password (a file is @FILE)");
    }
    if spec.bearer.as_ref().is_some_and(is_literal) {
        return refuse("bearer", "the token (a file is @FILE)");
    }
    let of_mix = spec.mix().iter().flat_map(|request| &request.headers);
    for (name, value) in spec.headers.iter().chain(of_mix) {
        let is_secret = is_credential_header(name) || is_secret_name(name);
        if is_secret && !value.contains(OPEN) {
            return refuse("headers", &format!("the value of {name}"));
        }
    }
    Ok(())
}
