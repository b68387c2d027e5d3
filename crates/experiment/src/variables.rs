//! Files of environment variables, as `docker run --env-file` reads them: `NAME=VALUE` a line,
//! nothing is a quote, `#` begins a comment at the begin of a line only, and a name alone is the
//! variable of the caller.

use std::path::Path;

use loadline_protocol::RunRefusal;

/// A line: the name, and its value unless it is the caller's.
pub type Variable = (String, Option<String>);

/// Reads such a file; the last line for a name counts. Errors: [`RunRefusal`] names the file and
/// the faulty line.
pub fn read(path: &Path) -> Result<Vec<Variable>, RunRefusal> {
    let what = format!("the file of environment variables {}", path.display());
    let form = "it has one NAME=VALUE per line; NAME alone is taken from loadline's environment";
    let text = std::fs::read_to_string(path)
        .map_err(|error| RunRefusal::new(what.clone(), error.to_string(), form))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with('#'));
    lines
        .map(|(at, line)| {
            parse_variable(line.trim_start()).ok_or_else(|| {
                RunRefusal::new(what.clone(), format!("line {} has no name", at + 1), form)
            })
        })
        .collect()
}

pub fn parse_variable(text: &str) -> Option<Variable> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text.trim_end(), None),
    };
    is_name(name).then(|| (name.to_owned(), value))
}

pub fn is_name(name: &str) -> bool {
    let is_other = |c: char| c.is_whitespace() || c == '\0' || c == '=';
    !name.is_empty() && !name.contains(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_they_are() {
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(
            parse_variable("A=b c=\"d\""),
            Some(("A".to_owned(), own("b c=\"d\"")))
        );
        assert_eq!(parse_variable("A="), Some(("A".to_owned(), own(""))));
        assert_eq!(parse_variable("A"), Some(("A".to_owned(), None)));
        assert_eq!(parse_variable("export A=b"), None);
        assert_eq!(parse_variable("=b"), None);
    }
}
