//! The heap of each base of a search, and the user's own heap options.
//!
//! Owns which words of a command or environment set a heap. A user's word wins over a
//! configuration's (crate::command), so a chosen heap that contradicts it would not take effect.

use loadline_analysis::budget::{DIRECT_MEMORY, HeapPolicy};
use loadline_analysis::record::Configuration;
use loadline_experiment::Experiment;
use loadline_experiment::program::build_tool;
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_protocol::RunRefusal;
use loadline_sizing::JvmOptionSet;
use loadline_sizing::options::words::{GRADLE_JVM_OPTIONS, count_java_words};
use loadline_sizing::regions::heap::object_to_small;

use crate::command::{assemble, is_java};

/// Options that set the heap by a share of the memory limit.
const SHARES: [&str; 4] = [
    "-XX:MaxRAMPercentage=",
    "-XX:MinRAMPercentage=",
    "-XX:MaxRAMFraction=",
    "-XX:InitialRAMPercentage=",
];
const SIZES: [&str; 5] = [
    "-Xmx",
    "-Xms",
    "-XX:MaxHeapSize=",
    "-XX:InitialHeapSize=",
    "-XX:SoftMaxHeapSize=",
];

fn words(experiment: &Experiment, base: &Configuration) -> Vec<String> {
    let app = experiment.app_of(base);
    let image = app.image.as_ref().and_then(|image| image.found.as_ref());
    let inside = image.into_iter();
    let inside = inside.flat_map(|image| image.env.values().chain(&image.entrypoint));
    let options = base.jvm_options.iter().map(|option| &option.text);
    let given = app.command.iter().chain(&base.args);
    let count = match app.command.split_first() {
        Some((program, arguments)) if is_java(program) => 1 + count_java_words(arguments),
        _ => app.command.len() + base.args.len(),
    };
    let given = given.take(count).chain(options);
    let environment = app.env.values().chain(base.env.values());
    let texts = given.chain(environment).chain(inside);
    let words = texts.flat_map(|text| text.split_whitespace());
    let bare = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        let option = word.strip_prefix(GRADLE_JVM_OPTIONS).unwrap_or(word);
        option.trim_matches(['"', '\'']).to_owned()
    };
    words.map(bare).collect()
}

fn heap_words<'a>(words: &'a [String], begins: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let is_own = |word: &&str| begins.iter().any(|begin| word.starts_with(begin));
    words.iter().map(String::as_str).filter(is_own)
}

/// The first word that sets the heap, by a size or a share.
fn own_heap(words: &[String]) -> Option<&str> {
    let mut sizes = heap_words(words, &SIZES);
    sizes.next().or_else(|| heap_words(words, &SHARES).next())
}

/// Whether the user's own options bound direct memory: an answer then leaves that bound as it is.
pub(crate) fn has_direct_bound(experiment: &Experiment, base: &Configuration) -> bool {
    let words = words(experiment, base);
    heap_words(&words, &[DIRECT_MEMORY]).next().is_some()
}

pub(crate) fn policy_of(experiment: &Experiment, base: &Configuration) -> HeapPolicy {
    let has_own = own_heap(&words(experiment, base)).is_some();
    let is_left = has_own || starts_jvms_itself(experiment, base);
    match experiment.search.heap {
        HeapPolicy::Auto | HeapPolicy::Grow if is_left => HeapPolicy::Keep,
        wanted => wanted,
    }
}

/// Whether a run starts its JVMs itself, without a JVM named for the options.
fn starts_jvms_itself(experiment: &Experiment, base: &Configuration) -> bool {
    let app = experiment.app_of(base);
    let is_java = app.command.first().is_some_and(|program| is_java(program));
    let is_told = base.options_variable.is_some();
    app.run.is_some() && app.image.is_none() && !is_java && !is_told
}

/// Refuses heap options that contradict each other or the heap that is asked for, and a heap for a
/// program without a JVM; `None`, or a note on options that stay.
/// Errors: [`RunRefusal`], before anything is started.
pub fn check_heaps(
    experiment: &Experiment,
    bases: &[Configuration],
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<Option<String>, RunRefusal> {
    let wanted = experiment.search.heap;
    let mut note = None;
    for base in bases {
        let words = words(experiment, base);
        let largest: Vec<&str> = heap_words(&words, &SIZES[..1]).collect();
        if let [first, .., last] = largest.as_slice() {
            let why = format!("the largest heap is given twice: {first} and {last}");
            return Err(RunRefusal::new("the heap", why, "leave one out"));
        }
        let share = heap_words(&words, &SHARES[..1]).next();
        if let (Some(size), Some(share)) = (largest.first(), share) {
            let why = format!("{size} and {share}: the size overrides the percentage");
            let hint = format!("leave {share} out");
            return Err(RunRefusal::new("the heap", why, hint));
        }
        let own = own_heap(&words);
        if let (HeapPolicy::Fixed(heap), Some(own)) = (wanted, own) {
            let why = format!("the application's own {own} would win over it");
            let hint = format!("leave {own} out, or keep it: --heap keep");
            return Err(RunRefusal::new(format!("--heap {heap}"), why, hint));
        }
        let heap = match (wanted, own) {
            (HeapPolicy::Fixed(heap), _) => Some(heap),
            (_, Some(own)) => JvmOptionSet::from_words([own]).size_value("MaxHeapSize"),
            _ => None,
        };
        note = note.or(heap.and_then(object_to_small));
        if let (HeapPolicy::Auto | HeapPolicy::Grow, Some(own)) = (wanted, own) {
            let text = format!(
                "the application sets its heap itself ({own}): it stays, and counts as its largest"
            );
            note.get_or_insert(text);
        }
        let tool = build_tool(&experiment.app_of(base).command);
        let variable = tool.and_then(|tool| tool.options_variable);
        if let (HeapPolicy::Auto | HeapPolicy::Grow, Some(variable), true) =
            (wanted, variable, starts_jvms_itself(experiment, base))
        {
            note.get_or_insert(format!(
                "the heaps of the build stay as they are: --options-to launcher chooses one for {variable}, --options-to all one for each JVM"
            ));
        }
        if matches!(wanted, HeapPolicy::Fixed(_) | HeapPolicy::Grow)
            && !has_jvm(experiment, base, jdks, places)
        {
            let app = experiment.app_of(base);
            let image = app.image.as_ref().map(|image| &image.reference);
            let name = image.or(app.command.first()).map_or("", String::as_str);
            let why = format!("{name} runs no JVM that loadline knows, so there is no heap to set");
            let what = format!("--heap {wanted}");
            return Err(RunRefusal::new(what, why, "leave --heap out"));
        }
    }
    Ok(note)
}

/// Whether a JVM runs; what cannot be assembled is refused elsewhere.
fn has_jvm(
    experiment: &Experiment,
    base: &Configuration,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> bool {
    assemble(experiment, base, jdks, places).map_or(true, |assembled| assembled.jdk.is_some())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use loadline_sizing::Bytes;

    use super::*;
    use crate::searches::bases;

    fn experiment(command: &str, heap: &str) -> Experiment {
        let text = format!(
            "slo = \"p99<50ms\"\n[app]\ncommand = [{command}]\n[load]\nurl = \"http://localhost:1/\"\nrate = \"5/s\"\n[search]\nheap = \"{heap}\"\n"
        );
        let parsed = Experiment::from_file_text(&text, Path::new("test.toml"), Path::new("/"));
        parsed.unwrap_or_else(|error| panic!("{error}"))
    }

    fn checked(command: &str, heap: &str) -> String {
        let experiment = experiment(command, heap);
        let jdks = DetectedJdks {
            jdks: Vec::new(),
            unusable: Vec::new(),
        };
        let bases = bases(&experiment);
        let policy = policy_of(&experiment, &bases[0]);
        match check_heaps(&experiment, &bases, &jdks, &JdkPlaces::of_process()) {
            Ok(note) => format!("{policy}: {}", note.unwrap_or_default()),
            Err(refusal) => format!("{refusal}; hint: {}", refusal.hint),
        }
    }

    #[test]
    fn what_the_application_sets_itself_stays_and_contradictions_are_refused() {
        let java = |options: &str| format!("\"java\", {options} \"Shop\"");
        let lines = [
            checked(&java(""), "auto"),
            checked(&java("\"-Xmx64m\","), "auto"),
            checked(&java("\"-XX:MaxRAMPercentage=75\","), "grow"),
            checked(&java("\"-Xmx64m\","), "keep"),
            checked(&java("\"-Xmx64m\","), "96m"),
            checked(&java("\"-Xmx64m\", \"-Xmx96m\","), "auto"),
            checked(&java("\"-Xmx64m\", \"-XX:MaxRAMPercentage=75\","), "keep"),
            checked("\"sh\"", "96Mi"),
            checked("\"sh\"", "grow"),
            checked("\"sh\"", "auto"),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_run_of_several_jvms_gets_a_heap_where_its_options_are_sent() {
        let policy = |program: &str, more: &str| {
            let text = format!(
                "slo = \"exit=0\"\n[app]\ncommand = [\"{program}\"]\nends = true\n{more}\n"
            );
            let parsed = Experiment::from_file_text(&text, Path::new("x"), Path::new("/"));
            let experiment = parsed.unwrap_or_else(|error| panic!("{error}"));
            let bases = bases(&experiment);
            let jdks = DetectedJdks {
                jdks: Vec::new(),
                unusable: Vec::new(),
            };
            let note = check_heaps(&experiment, &bases, &jdks, &JdkPlaces::of_process());
            let note = note.unwrap_or_else(|refusal| panic!("{refusal}"));
            format!(
                "{}: {}",
                policy_of(&experiment, &bases[0]),
                note.unwrap_or_default()
            )
            .trim_end()
            .to_owned()
        };
        insta::assert_snapshot!([
            policy("java", ""),
            policy("mvn", ""),
            policy("make", ""),
            policy("mvn", "options-to = \"launcher\""),
            policy("mvn", "options-to = \"launcher\"\nenv = { MAVEN_OPTS = \"-Xmx1g\" }"),
            policy("gradle", "options-to = \"launcher\"\nenv = { GRADLE_OPTS = \"-Dorg.gradle.jvmargs=-Xmx1g\" }"),
            policy("mvn", "options-to = \"launcher\"\nenv = { MAVEN_OPTS = \"-Xmx2m\" }"),
        ].join("\n"), @"
        auto:
        keep: the heaps of the build stay as they are: --options-to launcher chooses one for MAVEN_OPTS, --options-to all one for each JVM
        keep:
        auto:
        keep: the application sets its heap itself (-Xmx1g): it stays, and counts as its largest
        keep: the application sets its heap itself (-Xmx1g): it stays, and counts as its largest
        keep: a heap of 2Mi is less than a small service needs (16Mi)
        ");
    }

    #[test]
    fn a_heap_is_a_word_or_a_size() {
        let heap = |text| experiment("\"sh\"", text).search.heap;
        assert_eq!(heap("keep"), HeapPolicy::Keep);
        assert_eq!(heap("96m"), HeapPolicy::Fixed(Bytes::from_mib(96)));
    }
}
