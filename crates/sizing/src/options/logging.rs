//! `-Xlog`: what unified logging takes, and where it ends the JVM.
//!
//! Owns its grammar: selections, output, decorators, options of the output. Source: `-Xlog:help` of
//! 17.0.15 and 25.0.3, and their answers; of the versions between, what either takes. Files are not
//! looked for.

use super::parse_size;
use super::words::has_word;
use crate::jdk::JdkRelease;

/// A line of tags of both, one of 17 alone, and one of 25 alone.
const TAGS: &str = include_str!("tags.txt");

const LEVELS: &str = "off trace debug info warning error";

const DECORATORS: &str = "\
    time t utctime utc uptime u timemillis tm uptimemillis um timenanos tn uptimenanos un hostname hn \
    pid p tid ti level l tags tg none";

/// Most files of a rotation.
const MOST_FILES: u64 = 1000;

/// What the JVM expects instead of what stands after `-Xlog:`; `None` where it starts with it.
pub(crate) fn check_log(jdk: JdkRelease, log: &str) -> Option<String> {
    if ["disable", "help", "async", ""].contains(&log)
        || log.starts_with("async:") && jdk.at_least(18)
    {
        return None;
    }
    let parts = split_parts(log);
    // A drive of Windows.
    if parts
        .get(1)
        .is_some_and(|output| output.len() == "file=C".len() && output.starts_with("file="))
    {
        return None;
    }
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let selections = Some(part(0)).filter(|all| !all.is_empty());
    let mut selections = selections.into_iter().flat_map(|all| all.split(','));
    let decorators = Some(part(2)).filter(|all| !all.is_empty());
    let mut decorators = decorators.into_iter().flat_map(|all| all.split(','));
    let file = part(1).strip_prefix("file=");
    let is_decorator = |name: &&str| has_word(DECORATORS, &name.to_lowercase());
    selections
        .find_map(|selection| check_selection(jdk, selection))
        .or_else(|| Some("a file name after file=".to_owned()).filter(|_| file == Some("")))
        .or_else(|| {
            let wrong = decorators.find(|name| !is_decorator(name))?;
            Some(format!(
                "decorators such as time,uptime,level,tags instead of `{wrong}`"
            ))
        })
        .or_else(|| check_output(jdk, part(1), part(3)))
}

/// The parts between colons; a file's name in quotes may have some.
fn split_parts(log: &str) -> Vec<&str> {
    let mut is_quoted = false;
    log.split(|c: char| {
        is_quoted ^= c == '"';
        c == ':' && !is_quoted
    })
    .collect()
}

/// `gc+heap*=debug`: tags joined by `+`, a star for more of them, a level.
fn check_selection(jdk: JdkRelease, selection: &str) -> Option<String> {
    let (tags, level) = match selection.split_once('=') {
        Some((tags, level)) => (tags, level),
        None => (selection, "info"),
    };
    if !has_word(LEVELS, &level.to_lowercase()) {
        let levels = LEVELS.replace(' ', ", ");
        return Some(format!("a level of {levels} instead of `{level}`"));
    }
    if tags.eq_ignore_ascii_case("all") {
        return None;
    }
    let tags = tags.strip_suffix('*').unwrap_or(tags);
    let tags: Vec<String> = tags.split('+').map(str::to_lowercase).collect();
    // Between the two, a tag of either; newer versions may have more.
    let lines = [true, !jdk.at_least(25), jdk.at_least(18)];
    let is_tag = |tag: &str| {
        let mut lines = TAGS.lines().zip(lines);
        let is_newer = jdk.at_least(26) && !tag.is_empty();
        is_newer || lines.any(|(tags, counts)| counts && has_word(tags, tag))
    };
    let wrong = tags.iter().find(|tag| !is_tag(tag));
    let again = || (1..tags.len()).find(|at| tags[..*at].contains(&tags[*at]));
    match wrong {
        Some(tag) => Some(format!(
            "tags such as gc, gc* or gc+heap instead of `{tag}` (-Xlog:help lists them)"
        )),
        None => again().map(|at| format!("the tag {} once", tags[at])),
    }
}

fn check_output(jdk: JdkRelease, output: &str, options: &str) -> Option<String> {
    let is_stream = ["", "stdout", "stderr"].contains(&output);
    // 17 says that it ignores them.
    if options.is_empty() || is_stream && !jdk.at_least(18) {
        return None;
    }
    let wrong = |option: &&str| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        !match name {
            "filecount" if !is_stream => value.parse().is_ok_and(|count: u64| count <= MOST_FILES),
            "filesize" if !is_stream => !value.is_empty() && parse_size(value).is_some(),
            "foldmultilines" => jdk.at_least(18) && ["true", "false"].contains(&value),
            _ => false,
        }
    };
    let wrong = options.split(',').find(wrong)?;
    Some(format!(
        "filecount=5 or filesize=10m for a file instead of `{wrong}`"
    ))
}
