//! Why nothing can be emitted, and what to do about it.

use loadline_sizing::regions::heap::HeapOverrun;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    #[error("result {result} has no recommendation to emit")]
    NoRecommendation { result: String },
    /// The heap that the options allow leaves too little for everything else that was measured.
    #[error("the size is over-committed: {0}")]
    OverCommitted(HeapOverrun),
    #[error("the option {option} names a file that the image would not have")]
    File { option: String },
    /// A pod of an image that is not emitted would start without the options that were measured.
    #[error(
        "the measured JVM options cannot be said in JAVA_TOOL_OPTIONS: one has both kinds of quotes, or the environment sets the variable to a secret"
    )]
    ToolOptions,
    #[error(
        "no metric that the application tells has a bound in the SLO: nothing that KEDA could compare"
    )]
    NoTrigger,
    #[error("{why}")]
    Manifest { why: String, hint: String },
    /// The command is not `java ... -jar JAR`.
    #[error("cannot tell the jar of the command that was measured: {command}")]
    Command { command: String },
}

impl EmitError {
    pub fn emit_hint(&self) -> String {
        match self {
            Self::NoRecommendation { result } => format!(
                "`loadline size` makes one; `loadline report {result}` says why this result has none"
            ),
            Self::OverCommitted(overrun) => format!(
                "{}; an -Xmx in the command wins over the measured one: take it out, or size with --heap keep",
                overrun.suggest_change()
            ),
            Self::File { .. } => "an agent comes along when it lies below the jar's directory and both paths begin alike; a class archive is made again with --cache instead; what is on a class or module path belongs into the jar's manifest. Measure it in that form".to_owned(),
            Self::Manifest { hint, .. } => hint.clone(),
            Self::NoTrigger => "measure with --metrics URL --metric 'lag=NAME' --slo 'lag: max<1000'; a --probe runs on this machine only".to_owned(),
            Self::ToolOptions => "let the image's command have them: --for docker,kubernetes".to_owned(),
            Self::Command { command } if !is_java(command) => "a program other than java is shipped as an image: measure that one (--image), or make its manifest by hand; `loadline show` has the size of every level".to_owned(),
            Self::Command { .. } => "the files are made for `java [options] -jar JAR [arguments]`; measure it in this form: a main class with -cp packed into a jar whose manifest names it, an @file written out, a start script replaced by what it starts".to_owned(),
        }
    }
}

fn is_java(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    program.rsplit('/').next() == Some("java")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_native_server_is_told_to_be_an_image() {
        let hint = |command: &str| {
            let command = command.to_owned();
            EmitError::Command { command }.emit_hint()
        };
        assert!(hint("build/orders --port=1").contains("--image"));
        assert!(hint("/opt/jdk/bin/java -cp a Main").contains("java [options] -jar JAR"));
    }
}
