//! Commands and agents that a foreign record would start in production.
//!
//! Facts: options of HotSpot and OpenJ9 that start a command or load code; a file of options may
//! hold any (`@` files are refused for every result).

use loadline_experiment::Experiment;
use loadline_report::ResultView;

use crate::error::Error;
use crate::images;

/// Options that start a command, or name a file with options.
const COMMANDS: [&str; 6] = [
    "-XX:OnOutOfMemoryError=",
    "-XX:OnError=",
    "-XX:Flags=",
    "-XX:VMOptionsFile=",
    "-Xoptionsfile=",
    "-Xdump:tool",
];

/// Options that load code into the JVM.
const AGENTS: [&str; 6] = [
    "-javaagent:",
    "-agentlib:",
    "-agentpath:",
    "-Xrun",
    "-Xbootclasspath",
    "-Dcom.sun.management.jmxremote",
];

/// Refuses options that start commands, and says which agents come along.
///
/// # Errors
/// The first such option.
pub(super) fn refuse_foreign_commands(
    view: &ResultView,
    experiment: &Experiment,
) -> Result<(), Error> {
    let words = shipped_words(view, experiment);
    let has = |starts: &'static [&str]| {
        let is_one = move |word: &&String| starts.iter().any(|start| word.starts_with(start));
        words.iter().filter(is_one)
    };
    if let Some(word) = has(&COMMANDS).next() {
        let what =
            format!("the file ships the option `{word}`, which starts a command in production");
        return Err(Error::usage(what).with_hint(
            "measure it yourself and emit that result; or take the option out of the file: grep OnError, OnOutOfMemoryError",
        ));
    }
    for word in has(&AGENTS) {
        say!("warning: the file ships `{word}`, which loads code into the JVM; is it yours?");
    }
    Ok(())
}

fn shipped_words(view: &ResultView, experiment: &Experiment) -> Vec<String> {
    let mut words = experiment.app.command.clone();
    let mut values: Vec<&String> = experiment.app.env.values().collect();
    if let Some(recommended) = &view.recommendation {
        let configuration = &recommended.configuration;
        // Some files have an option a line, unquoted.
        values.extend(configuration.jvm_options.iter().map(|option| &option.text));
        words.extend(configuration.args.iter().cloned());
        values.extend(configuration.env.values());
    }
    let image = images::measured_image(&view.machine, experiment);
    values.extend(image.and_then(|image| image.tool_options.as_ref()));
    for value in values {
        // JVMs drop quotes within a word too.
        let plain = value.replace(['"', '\''], "");
        words.extend(plain.split_whitespace().map(str::to_owned));
    }
    words
}
