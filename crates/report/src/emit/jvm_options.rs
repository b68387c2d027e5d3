//! JVM options as files: an argument file for `java @jvm.options`, and `JAVA_TOOL_OPTIONS`.
//!
//! Sources: the java tool's documentation, "java Command-Line Argument Files" (JDK 9 and later:
//! `#` comments, double quotes, backslash escapes); JVM TI specification, "JAVA_TOOL_OPTIONS"
//! (separated by white space, single or double quotes, no escapes).

use super::facts::EmitFacts;

/// The variable with options for every JVM, whoever starts it.
pub const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

pub fn argument_file(facts: &EmitFacts<'_>) -> String {
    let mut out = options_header(facts);
    out.push_str("# Use: java @jvm.options -jar ...   (JDK 9 and later)\n");
    if facts.options.is_empty() {
        out.push_str("# No options: the JVM chooses from the limits of its container.\n");
    }
    for option in &facts.options {
        out.push_str(&format!(
            "# {}\n{}\n",
            option.because,
            argument(&option.value)
        ));
    }
    out
}

pub fn environment_file(facts: &EmitFacts<'_>) -> String {
    let mut out = options_header(facts);
    for option in &facts.options {
        out.push_str(&format!("# {}: {}\n", option.value, option.because));
    }
    match tool_options(facts) {
        Some(value) if !value.is_empty() => out.push_str(&format!("{TOOL_OPTIONS}={value}\n")),
        Some(_) => out.push_str("# No options: JAVA_TOOL_OPTIONS stays unset.\n"),
        None => out.push_str(
            "# JAVA_TOOL_OPTIONS cannot say it: an option has both kinds of quotes, or the variable is a secret. Use jvm.options.\n",
        ),
    }
    out
}

/// The value of `JAVA_TOOL_OPTIONS`; `None` when an option cannot be said there. What the environment
/// says comes first, as in the trials: for the same option the last wins.
pub fn tool_options(facts: &EmitFacts<'_>) -> Option<String> {
    let given = facts.variables.iter().filter(|v| v.name == TOOL_OPTIONS);
    let given = given.map(|variable| variable.value.clone());
    let options = facts.options.iter().map(|o| tool_option(&o.value));
    let all: Option<Vec<String>> = given.chain(options).collect();
    all.map(|all| all.join(" "))
}

pub(super) fn options_header(facts: &EmitFacts<'_>) -> String {
    facts
        .origin
        .iter()
        .chain(&facts.left_out)
        .map(|line| format!("# {line}\n"))
        .collect()
}

fn argument(option: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !"\"'#\\".contains(c);
    if option.chars().all(is_plain) {
        option.to_owned()
    } else {
        format!("\"{}\"", option.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

pub(super) fn tool_option(option: &str) -> Option<String> {
    if !option.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'') {
        Some(option.to_owned())
    } else if !option.contains('"') {
        Some(format!("\"{option}\""))
    } else if !option.contains('\'') {
        Some(format!("'{option}'"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_spaces_and_quotes_stay_one_option() {
        assert_eq!(argument("-Xmx64m"), "-Xmx64m");
        assert_eq!(argument(r#"-Da=b c"#), r#""-Da=b c""#);
        assert_eq!(argument(r#"-Da="\"#), r#""-Da=\"\\""#);
        assert_eq!(tool_option("-Da=b c").as_deref(), Some("\"-Da=b c\""));
        assert_eq!(tool_option("-Da=\"b\"").as_deref(), Some("'-Da=\"b\"'"));
        assert_eq!(tool_option("-Da=\"'"), None);
    }
}
