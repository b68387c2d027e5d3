//! JVM options as files: an argument file for `java @jvm.options`, and `JAVA_TOOL_OPTIONS`.
//!
//! Sources: the java tool's documentation, "java Command-Line Argument Files" (JDK 9 and later:
//! `#` comments, double quotes, backslash escapes); JVM TI specification, "JAVA_TOOL_OPTIONS"
//! (separated by white space, single or double quotes, no escapes).

pub use loadline_sizing::options::words::TOOL_OPTIONS;
use loadline_sizing::options::words::join_environment;

use super::facts::EmitFacts;

pub fn argument_file(facts: &EmitFacts<'_>) -> String {
    let mut out = facts.header();
    out.push_str("# Use: java @jvm.options -jar ...   (JDK 9 and later)\n");
    if facts.options.is_empty() {
        out.push_str("# No options: the JVM chooses from the limits of its container.\n");
    }
    for option in &facts.options {
        let (why, argument) = (&option.because, argument(&option.value));
        out += &format!("# {why}\n{argument}\n");
    }
    out
}

pub fn environment_file(facts: &EmitFacts<'_>) -> String {
    let mut out = facts.header();
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
    let mut given = facts.variables.iter().filter(|v| v.name == TOOL_OPTIONS);
    let own = match given.next() {
        Some(variable) => Some(variable.value.as_deref()?),
        None => None,
    };
    let options: Vec<&str> = facts.options.iter().map(|o| o.value.as_str()).collect();
    join_environment(TOOL_OPTIONS, own, &options)
}

fn argument(option: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !"\"'#\\".contains(c);
    if option.chars().all(is_plain) {
        option.to_owned()
    } else {
        format!("\"{}\"", option.replace('\\', "\\\\").replace('"', "\\\""))
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
    }
}
