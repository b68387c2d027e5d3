//! Arguments that clap refuses, in the form of every other refusal: the problem, the reason, the
//! next step.
//!
//! Owns the words of the hints. clap decides; its help and version are printed unchanged.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind as Kind};
use clap::{ArgAction, ArgMatches, Command, CommandFactory};
use loadline_load::split_refusal;
use loadline_sizing::options::words::has_word;
use strsim::damerau_levenshtein;

use crate::CommandLine;
use crate::called::called_words;
use crate::error::Error;

const STANDS_LAST: &str = "put the application's command last, after --: -- java -jar app.jar; name an image with --image";

/// What Rust's number parsers say, and what people understand.
const PARSERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "it is not a whole number"),
    ("invalid float literal", "it is not a number"),
    ("cannot parse integer from empty string", "it is empty"),
    ("cannot parse float from empty string", "it is empty"),
    ("number too large to fit in target type", "it is too large"),
];

const STARTING: [&str; 8] = [
    "size", "run", "plan", "judge", "verify", "drill", "cache", "init",
];

const MEASURING: [&str; 10] = [
    "cache", "doctor", "drill", "judge", "load", "resume", "run", "size", "soak", "verify",
];

pub fn usage_refused(refusal: &clap::Error) -> ExitCode {
    if !refusal.use_stderr() {
        // Nothing is left to do when not even the help can be written.
        let _ = refusal.print();
        return ExitCode::SUCCESS;
    }
    usage_error(refusal, called_words().get(1..).unwrap_or_default()).report()
}

fn usage_error(refusal: &clap::Error, words: &[String]) -> Error {
    let text = refusal.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (what, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = what.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut said = lines.next().unwrap_or_default().to_owned();
    for (parsers, own) in PARSERS {
        said = said.replace(parsers, own);
    }
    let mut hints = Vec::new();
    for line in lines {
        match line.strip_prefix("[possible values: ") {
            Some(values) => hints.push(format!("it is one of {}", values.trim_end_matches(']'))),
            None => said = format!("{said} {line}"),
        }
    }
    if let Some(negative) = negative_value(refusal, words) {
        return negative;
    }
    let command = called_command(words);
    let of_command = command.as_deref();
    let of_others = |is_kin: bool| other_owners(refusal, of_command?, is_kin);
    let meant = of_others(true).or_else(|| renamed_flag(refusal, of_command?));
    let meant = meant.or_else(|| similar(refusal));
    let meant = meant.or_else(|| meant_flag(refusal, of_command?, words));
    hints.extend(meant.or_else(|| of_others(false)));
    let names_java = words.iter().any(|w| w == "java" || w.ends_with(".jar"));
    let starts = of_command.is_some_and(|name| STARTING.contains(&name));
    if starts && names_java && !words.iter().any(|w| w == "--") {
        hints.push(STANDS_LAST.to_owned());
    }
    hints.extend(instead(refusal, of_command).map(str::to_owned));
    // Of an argument that it does not know, clap's usage has what it would have liked instead.
    if refusal.kind() != Kind::UnknownArgument
        && let Some(usage) = usage(rest)
    {
        hints.push(format!("usage: {usage}"));
    }
    let whole = of_command.map_or_else(String::new, |name| format!(" {name}"));
    hints.push(format!("run `loadline{whole} --help` for all options"));
    // The expected value follows the given one.
    let (said, next) = split_refusal(&said);
    let error = Error::usage(said).with_hint_if(next);
    hints.into_iter().fold(error, Error::with_hint)
}

/// Commands that measure need the kernel's cgroups; those that read, and trials in a cluster, need
/// none. `system` is named as in [`std::env::consts::OS`].
pub fn measuring_refused(system: &str, found: &ArgMatches) -> Option<Error> {
    let (name, flags) = found.subcommand()?;
    let is_in_cluster = matches!(flags.try_get_one::<bool>("kubernetes"), Ok(Some(true)));
    if system == "linux" || is_in_cluster || !MEASURING.contains(&name) {
        return None;
    }
    let what = format!("`loadline {name}` measures only on Linux; this is {system}");
    let hint = "run loadline's image in the virtual machine of podman or docker (docs/guides/images.md), or measure in a cluster: --kubernetes";
    Some(Error::environment(what).with_hint(hint))
}

/// Flags that take one value and were given several: clap takes the last without a word.
pub fn repeated_flags(command: &Command) -> Vec<String> {
    let words = called_words();
    let words = words.iter().skip(1).take_while(|word| *word != "--");
    let mut names = words.clone().filter(|word| !word.starts_with('-'));
    let Some(called) = names.next().and_then(|name| command.find_subcommand(name)) else {
        return Vec::new();
    };
    let flags = words.filter_map(|word| word.strip_prefix("--"));
    let flags: Vec<&str> = flags.filter_map(|flag| flag.split('=').next()).collect();
    let is_single = |arg: &&clap::Arg| matches!(arg.get_action(), ArgAction::Set);
    let single = called.get_arguments().filter(is_single);
    let long = single.filter_map(clap::Arg::get_long);
    let times = |name: &str| flags.iter().filter(|flag| **flag == name).count();
    let repeated = long.filter(|name| times(name) > 1);
    repeated.map(|name| format!("--{name}")).collect()
}

fn negative_value(refusal: &clap::Error, words: &[String]) -> Option<Error> {
    if refusal.kind() != Kind::UnknownArgument {
        return None;
    }
    fn is_number(word: &str) -> Option<&str> {
        let rest = word.strip_prefix('-')?;
        let is_digit = rest.starts_with(|c: char| c.is_ascii_digit());
        is_digit.then_some(rest)
    }
    let (flag, word) = words
        .iter()
        .zip(words.get(1..)?)
        .find(|(flag, word)| flag.starts_with("--") && is_number(word).is_some())?;
    let positive = is_number(word)?;
    let problem = format!("{flag}: {word} is negative");
    Some(Error::usage(problem).with_hint(format!("{flag} {positive}")))
}

fn called_command(words: &[String]) -> Option<String> {
    let mut words = words.iter().filter(|w| !w.starts_with('-'));
    let first = words.find(|word| word.as_str() != "help")?;
    let known = CommandLine::command();
    let found = known.find_subcommand(first);
    let is_known = found.is_some_and(|c| !c.is_hide_set());
    is_known.then(|| first.clone())
}

fn usage(rest: &str) -> Option<&str> {
    let usage = rest.split("Usage: ").nth(1)?;
    usage.lines().next().map(str::trim)
}

fn context_texts(refusal: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match refusal.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The intended word, if one is near enough: clap also suggests words that only begin alike.
fn similar(refusal: &clap::Error) -> Option<String> {
    let pairs = [
        (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    pairs.into_iter().find_map(|(given, suggested)| {
        let given = context_texts(refusal, given).into_iter().next()?;
        let near = context_texts(refusal, suggested);
        let near = near.into_iter().find(|name| is_near(given, name))?;
        Some(format!("did you mean `{near}`?"))
    })
}

/// What other tools call a flag, and ours with a value; the first that the command has is meant.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("data data-raw data-binary payload", "--body TEXT"),
    (
        "u user basic-auth auth",
        "--header 'Authorization: Basic TEXT'",
    ),
    ("k", "--insecure"),
    ("rps qps tps throughput", "--rate 100/s"),
    (
        "t concurrency users vus clients threads",
        "--connections 20",
    ),
    ("cores vcpu vcpus cpu-limit", "--cpu 1"),
    ("m ram mem limit limits memory-limit", "--memory 512Mi"),
    (
        "m ram mem limit limits memory-limit max-ram max-mem",
        "--max-memory 1Gi",
    ),
    (
        "xmx heap java-opts jvm-args java-options options",
        "--jvm '-Xmx512m'",
    ),
    ("java java-version jvm-version version", "--jdk 21"),
    ("port host address bind addr", "--listen 127.0.0.1:7007"),
    (
        "prom url server endpoint",
        "--prometheus http://localhost:9090",
    ),
    (
        "endpoint target uri server address",
        "--url http://localhost:8080/",
    ),
    ("out output outfile dir dest", "--to DIR"),
    ("out outfile to dest destination", "--output FILE"),
    ("duration time length minutes hours", "--for 30m"),
    ("time length", "--duration 1m"),
    ("runs iterations count times", "--repeats 5"),
];

/// Other words for a positional argument.
const BARE: &str = "file files config experiment input log logs manifest manifests path result id run trial pid profile url target";

/// The flag of this command that was meant by an unknown one, as a hint.
fn meant_flag(refusal: &clap::Error, command: &str, words: &[String]) -> Option<String> {
    let given = context_texts(refusal, ContextKind::InvalidArg);
    let is_unknown = refusal.kind() == Kind::UnknownArgument;
    let given = given.first().filter(|_| is_unknown)?;
    let all = CommandLine::command();
    let called = all.find_subcommand(command)?;
    let shown = called.get_arguments().filter(|a| !a.is_hide_set());
    let flags: Vec<&str> = shown.filter_map(clap::Arg::get_long).collect();
    let has = |flag: &str| flags.contains(&flag);
    if let Some(option) = words.iter().find(|word| word.starts_with("-X"))
        && has("jvm")
        && given.starts_with("-X")
    {
        let hint = format!("give JVM options as one argument: --jvm '{option}'");
        return Some(hint);
    }
    let bare = given.strip_prefix("--")?;
    let begun = |flag: &&&str| bare.len() > 2 && flag.starts_with(bare);
    if let Some(near) = flags.iter().find(|flag| is_near(bare, flag)) {
        return Some(format!("did you mean `--{near}`?"));
    }
    if let Some(whole) = flags.iter().find(begun) {
        return Some(format!("did you mean `--{whole}`?"));
    }
    let is_bare = BARE.split_whitespace().any(|word| is_near(bare, word));
    let place = called.get_positionals().next().filter(|_| is_bare)?;
    let names = place.get_value_names()?.first()?;
    Some(format!("leave the flag out: loadline {command} {names}"))
}

/// The flag of this command that has another name in other tools, as a hint.
fn renamed_flag(refusal: &clap::Error, command: &str) -> Option<String> {
    let given = context_texts(refusal, ContextKind::InvalidArg);
    let given = given.first()?;
    // A letter alone is a flag of docker, curl, wrk or java.
    let letter = given.strip_prefix('-').filter(|letter| letter.len() == 1);
    let bare = given.strip_prefix("--").or(letter)?;
    let all = CommandLine::command();
    let called = all.find_subcommand(command)?;
    let is_unknown = refusal.kind() == Kind::UnknownArgument;
    let has = |example: &str| {
        let mut flags = called
            .get_arguments()
            .filter(|argument| !argument.is_hide_set());
        let name = example.trim_start_matches('-').split(' ').next();
        flags.any(|flag| flag.get_long() == name)
    };
    let mut others = OTHER_NAMES.iter().filter(|(list, _)| has_word(list, bare));
    let (_, flag) = others.find(|(_, flag)| is_unknown && has(flag))?;
    Some(format!("did you mean {flag}?"))
}

/// The commands that have a flag which this one has not; with `is_kin` only where both start an
/// application, and so have most flags in common.
fn other_owners(refusal: &clap::Error, command: &str, is_kin: bool) -> Option<String> {
    let given = context_texts(refusal, ContextKind::InvalidArg);
    let bare = given.first()?.strip_prefix("--")?;
    let is_refused = refusal.kind() == Kind::UnknownArgument;
    let is_owned = |a: &clap::Arg| a.get_long() == Some(bare) && !a.is_hide_set();
    let all = CommandLine::command();
    let owners = all.get_subcommands().filter(|c| {
        let are_kin = || STARTING.contains(&command) && STARTING.contains(&c.get_name());
        let is_kin = !is_kin || are_kin();
        is_refused && is_kin && !c.is_hide_set() && c.get_arguments().any(is_owned)
    });
    let owners: Vec<&str> = owners.map(Command::get_name).take(3).collect();
    let names = owners.join(" --help, loadline ");
    (!owners.is_empty()).then(|| format!("other commands have it: loadline {names} --help"))
}

fn is_near(given: &str, name: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('-').to_owned();
    let (given, name) = (bare(given), bare(name));
    // What loadline starts itself is no command of people.
    if name.ends_with("-part") || given.is_empty() {
        return false;
    }
    let may_differ = (given.chars().count() / 4).max(1);
    (name.starts_with(&given) && given.len() * 2 >= name.len())
        || given.starts_with(&name)
        || damerau_levenshtein(&given, &name) <= may_differ
}

fn instead(refusal: &clap::Error, command: Option<&str>) -> Option<&'static str> {
    let first = |kind| context_texts(refusal, kind).into_iter().next();
    if refusal.kind() == Kind::InvalidValue {
        return match first(ContextKind::InvalidValue)? {
            "helm" => {
                Some("for the values of your chart: loadline emit --values values.yaml --to DIR")
            }
            "docker-compose" => Some("for a compose file: --for compose"),
            _ => None,
        };
    }
    if refusal.kind() == Kind::InvalidSubcommand {
        let name = first(ContextKind::InvalidSubcommand);
        return (name == Some("version")).then_some("loadline --version");
    }
    if refusal.kind() != Kind::UnknownArgument {
        return None;
    }
    if command.is_none() {
        return Some("flags follow the command: loadline size --slo 'p99<250ms' ...");
    }
    match (command?, first(ContextKind::InvalidArg)?) {
        ("size", "--memory") => Some(
            "`size` finds the memory, --max-memory bounds it; to test one size: loadline run --memory 512Mi --repeats 20",
        ),
        ("fleet", word) if !word.starts_with('-') => {
            Some("name the server with its flag: --prometheus http://localhost:9090")
        }
        ("emit", word) if !word.starts_with('-') => {
            Some("one result at a time; --for says which files to write: --for kubernetes")
        }
        (_, word) if word.ends_with(".toml") => {
            Some("give one experiment file; to size several in turn: loadline size A.toml B.toml")
        }
        (name, word) if STARTING.contains(&name) && !word.starts_with('-') => Some(STANDS_LAST),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(system: &str, words: &[&str]) -> Option<String> {
        let found = CommandLine::command().try_get_matches_from(words);
        let found = found.expect("it is a command");
        Some(measuring_refused(system, &found)?.message().to_owned())
    }

    #[test]
    fn elsewhere_only_what_measures_is_refused() {
        let size = ["loadline", "size", "loadline.toml"];
        assert_eq!(refusal("linux", &size), None);
        let refused = refusal("macos", &size).expect("it measures");
        assert_eq!(
            refused,
            "`loadline size` measures only on Linux; this is macos"
        );
        assert_eq!(
            refusal("macos", &[&size[..], &["--kubernetes"]].concat()),
            None
        );
        for reading in [
            "list",
            "show",
            "report",
            "plan",
            "fleet --prometheus http://p",
        ] {
            let words: Vec<&str> = ["loadline"].into_iter().chain(reading.split(' ')).collect();
            assert_eq!(refusal("freebsd", &words), None, "{reading}");
        }
    }

    #[test]
    fn all_that_measure_are_commands() {
        for name in MEASURING {
            assert!(
                CommandLine::command().find_subcommand(name).is_some(),
                "{name}"
            );
        }
    }
}
