//! The JVMs of a build, as its own files set them: `gradle.properties`, `.mvn/jvm.config`, `pom.xml`.
//!
//! Reads what these files say about heaps, and runs no build. Sources: Gradle,
//! "Build environment" (daemon and test worker have 512 MiB, the client 64 MiB); Surefire, "argLine"
//! and "forkCount"; java.util.Properties (`#` and `!` comments, a backslash continues a line).

use std::path::{Path, PathBuf};

use loadline_analysis::lint::BuildJvm;
use loadline_protocol::RunRefusal;
use loadline_sizing::options::parse_size;
use loadline_sizing::options::words::split_environment;

use crate::manifest::read_text_file;

const GRADLE: &str = "gradle.properties";
const LAUNCHER: &str = "jvm.config";
const POM: &str = "pom.xml";

/// What Gradle gives its daemon and each test worker, and its client.
const GRADLE_HEAPS: [&str; 2] = ["-Xmx512m", "-Xmx64m"];

/// Most elements of a name that are read: a pom has a handful.
const MOST_ELEMENTS: usize = 1000;

/// Longest text of an element that is read, in bytes, and most references that are filled in in it.
const LONGEST_TEXT: usize = 4 << 10;
const MOST_REFERENCES: usize = 8;

pub fn is_build_file(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| [GRADLE, LAUNCHER, POM].iter().any(|file| name == *file))
}

/// A build with the files that say something about its JVMs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFiles {
    /// `Gradle` or `Maven`.
    pub tool: &'static str,
    pub path: PathBuf,
    pub jvms: Vec<BuildJvm>,
}

/// The builds of these files: those of Maven are one.
pub fn read_builds(paths: &[PathBuf]) -> Result<Vec<BuildFiles>, RunRefusal> {
    let mut builds: Vec<BuildFiles> = Vec::new();
    let mut launcher = Vec::new();
    for path in paths {
        let text = read_text_file(path, "a file of a build")?;
        let is_named = |name: &str| path.file_name().is_some_and(|file| file == name);
        let (tool, jvms) = if is_named(GRADLE) {
            ("Gradle", gradle_jvms(&text))
        } else if is_named(POM) {
            ("Maven", surefire_jvms(&text))
        } else {
            let lines = text.lines().filter_map(|line| line.split('#').next());
            launcher = lines.flat_map(option_words).collect();
            ("Maven", Vec::new())
        };
        let mut others = builds.iter_mut();
        match others.find(|of| of.tool == "Maven" && of.tool == tool) {
            Some(build) => build.jvms.extend(jvms),
            None => builds.push(BuildFiles {
                tool,
                path: path.clone(),
                jvms,
            }),
        }
    }
    for build in builds.iter_mut().filter(|build| build.tool == "Maven") {
        let own = named("Maven itself (.mvn/jvm.config)", launcher.clone());
        build.jvms.insert(0, own);
    }
    Ok(builds)
}

fn named(name: &str, options: Vec<String>) -> BuildJvm {
    BuildJvm {
        name: name.to_owned(),
        options,
        count: 1,
    }
}

fn option_words(text: &str) -> Vec<String> {
    split_environment(text).unwrap_or_default()
}

pub fn gradle_jvms(text: &str) -> Vec<BuildJvm> {
    let properties = read_properties(text);
    // The last of equal keys counts.
    let value = |key: &str| {
        let found = properties.iter().rfind(|(own, _)| own == key);
        found.map(|(_, value)| value.as_str())
    };
    let [usual, client] = GRADLE_HEAPS;
    let daemon = value("org.gradle.jvmargs").unwrap_or(usual);
    let is_parallel = value("org.gradle.parallel") == Some("true");
    let workers = value("org.gradle.workers.max").filter(|_| is_parallel);
    let mut jvms = vec![
        named("its client", option_words(client)),
        named("its daemon (org.gradle.jvmargs)", option_words(daemon)),
        BuildJvm {
            count: workers.and_then(|n| n.parse().ok()).unwrap_or(1),
            ..named("test worker (maxHeapSize)", option_words(usual))
        },
    ];
    let kotlin = value("kotlin.daemon.jvmargs").map(option_words);
    jvms.extend(kotlin.map(|options| named("the Kotlin daemon (kotlin.daemon.jvmargs)", options)));
    jvms
}

fn read_properties(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\r\n", "\\\n");
    let (mut lines, mut last) = (Vec::new(), String::new());
    for line in joined.split('\n').map(str::trim) {
        // A comment is one line, whatever its end.
        if last.is_empty() && line.starts_with(['#', '!']) {
            continue;
        }
        last.push_str(line.strip_suffix('\\').unwrap_or(line));
        if !line.ends_with('\\') {
            lines.push(std::mem::take(&mut last));
        }
    }
    lines.push(last);
    let split = |line: &String| {
        let is_between = |c: char| c == '=' || c == ':' || c.is_whitespace();
        let (name, value) = line.split_at(line.find(is_between)?);
        let value = value.trim_start_matches(is_between);
        Some((name.to_owned(), value.to_owned()))
    };
    lines.iter().filter_map(split).collect()
}

/// The test JVMs that Surefire or Failsafe starts: one after the other, so the largest counts.
pub fn surefire_jvms(text: &str) -> Vec<BuildJvm> {
    let text = without_comments(text);
    let filled = |value: &str| {
        let mut value = value.to_owned();
        for _ in 0..MOST_REFERENCES {
            let rest = value.split_once("${").map(|(_, rest)| rest);
            let Some((name, _)) = rest.and_then(|rest| rest.split_once('}')) else {
                break;
            };
            let known = elements(&text, name).first().copied();
            value = value.replacen(&format!("${{{name}}}"), known.unwrap_or_default(), 1);
        }
        value
    };
    let has_tests = ["maven-surefire-plugin", "maven-failsafe-plugin"]
        .iter()
        .any(|plugin| text.contains(plugin));
    let lines = elements(&text, "argLine").into_iter().map(filled);
    let mut options: Vec<String> = lines
        .flat_map(|line| option_words(&line))
        .filter(|word| word.starts_with("-X"))
        .collect();
    // A JVM takes its last heap, and the largest counts here.
    options.sort_by_key(|word| word.strip_prefix("-Xmx").and_then(parse_size));
    // `1C` is one for each CPU: at least so many.
    let forks = elements(&text, "forkCount").into_iter().map(filled);
    let forks = forks.filter_map(|n| n.trim_end_matches('C').parse::<f64>().ok());
    let forks = forks.fold(None, |most: Option<f64>, n| {
        Some(most.map_or(n, |m| m.max(n)))
    });
    let count = forks.map_or(1, |forks| forks.clamp(0.0, 1000.0).ceil() as u32);
    if count > 0 && (has_tests || !options.is_empty()) {
        vec![BuildJvm {
            count,
            ..named("test JVM (argLine)", options)
        }]
    } else {
        Vec::new()
    }
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once("-->").map_or("", |(_, rest)| rest));
    }
    out
}

/// The texts of the elements of a name, without attributes and children.
fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let found = text.split(open.as_str()).skip(1).take(MOST_ELEMENTS);
    found
        .filter_map(|rest| Some(rest.split_once(close.as_str())?.0.trim()))
        .filter(|text| text.len() <= LONGEST_TEXT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(jvms: &[BuildJvm]) -> Vec<String> {
        let told = jvms
            .iter()
            .map(|j| format!("{} {} {}", j.count, j.name, j.options.join(" ")));
        told.collect()
    }

    #[test]
    fn gradle_s_jvms_are_its_properties_and_its_defaults() {
        let text = "# org.gradle.jvmargs=-Xmx9g\norg.gradle.jvmargs = -Xmx1g \\\n   -XX:MaxMetaspaceSize=512m\norg.gradle.parallel=true\norg.gradle.workers.max: 3\nkotlin.daemon.jvmargs=-Xmx768m\n";
        assert_eq!(
            told(&gradle_jvms(text)),
            [
                "1 its client -Xmx64m",
                "1 its daemon (org.gradle.jvmargs) -Xmx1g -XX:MaxMetaspaceSize=512m",
                "3 test worker (maxHeapSize) -Xmx512m",
                "1 the Kotlin daemon (kotlin.daemon.jvmargs) -Xmx768m",
            ]
        );
        assert_eq!(told(&gradle_jvms("")).len(), 3);
        let ends_in_backslash = "# a \\\norg.gradle.jvmargs=-Xmx6g";
        assert!(told(&gradle_jvms(ends_in_backslash))[1].ends_with("-Xmx6g"));
    }

    #[test]
    fn surefire_s_forks_have_the_heap_of_their_argline() {
        let pom = "<project><properties><heap>-Xmx512m</heap></properties><!-- <argLine>-Xmx9g</argLine> -->\n<artifactId>maven-surefire-plugin</artifactId><configuration><forkCount>2C</forkCount><argLine>@{argLine} ${heap}</argLine></configuration></project>";
        assert_eq!(told(&surefire_jvms(pom)), ["2 test JVM (argLine) -Xmx512m"]);
        assert_eq!(surefire_jvms("<project/>"), []);
        let two = "<argLine>-Xmx${heap}</argLine><heap>2g</heap><argLine>-Xmx512m</argLine>";
        assert_eq!(
            told(&surefire_jvms(two)),
            ["1 test JVM (argLine) -Xmx512m -Xmx2g"]
        );
        let none = pom.replace("2C", "0");
        assert_eq!(surefire_jvms(&none), []);
        // Hostile text ends.
        assert_eq!(surefire_jvms(&"<!--<argLine>".repeat(10_000)), []);
    }
}
