//! Keys of a container that the API server refuses or drops, because they have a wrong place or
//! a wrong form, and variables that keep java from starting.
//!
//! Owns what people bring from compose files and other notations. Source: Kubernetes API reference,
//! core/v1 Container; unknown fields are refused by `kubectl apply` (server-side field validation).

use loadline_analysis::lint::{LintFinding, Severity};
use loadline_sizing::options::words::{
    CLASS_PATH_OPTIONS, OPTIONS_WITH_VALUE, has_word, misread_word, split_environment,
};
use serde_json::Value;

use super::container_options::SIZE_OPTIONS;
use super::fields::{last_path_segment, list_items, program_texts, scalar_text, variables};
use super::image_jdk::is_image_name;
use super::option_reader::JVM_VARIABLES;

pub(super) const SHELLS: &str = "sh bash ash dash zsh";

const RESOURCES: &str = "write resources: {limits: {memory: 512Mi}, requests: {memory: 512Mi}}";

const KEYS: &str = "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports \
    readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe \
    stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty volumeDevices \
    volumeMounts workingDir";

/// Keys with a finding of their place, and those of Argo's templates.
const OTHER_KEYS: &str = "limits requests dependencies mirrorVolumeMounts source";

/// A finding for each such key, in the order of the API reference.
pub fn find_malformed(container: &Value) -> Vec<LintFinding> {
    let mut all: Vec<(String, &str)> = Vec::new();
    let has = |of: &Value, key: &&str| of.get(*key).is_some();
    let outside = ["limits", "requests"];
    for key in outside.iter().filter(|key| has(container, key)) {
        all.push((format!("`{key}` is outside `resources`"), RESOURCES));
    }
    let keys = |of: &Value| -> Vec<String> {
        let fields = of.as_object().into_iter();
        fields.flat_map(|fields| fields.keys().cloned()).collect()
    };
    for key in keys(&container["resources"]) {
        if !["limits", "requests", "claims"].contains(&key.as_str()) {
            let problem = format!("`resources.{key}` is neither a limit nor a request");
            all.push((problem, RESOURCES));
        }
    }
    for kind in ["limits", "requests"] {
        let amounts = &container["resources"][kind];
        if !amounts.is_null() && !amounts.is_object() {
            all.push((format!("`resources.{kind}` is not a map"), RESOURCES));
        }
        // Other resources have the domain of their owner.
        let is_known = |key: &String| {
            let usual = ["cpu", "memory", "ephemeral-storage"];
            usual.contains(&key.as_str()) || key.starts_with("hugepages-") || key.contains('/')
        };
        for key in keys(amounts).into_iter().filter(|key| !is_known(key)) {
            let problem = format!("`resources.{kind}.{key}` is not a resource");
            all.push((problem, RESOURCES));
        }
    }
    for key in keys(container) {
        let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        let mut known = KEYS.split_whitespace();
        if let Some(meant) = known.find(|known| plain(known) == plain(&key) && *known != key) {
            all.push((
                format!("`{key}` is no key; `{meant}` is"),
                "spell it as the API has it",
            ));
        } else if !has_word(KEYS, &key) && !has_word(OTHER_KEYS, &key) {
            let problem = format!("`{key}` is no key of a container");
            all.push((problem, "spell it as the API has it, or take it out"));
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let numbers = [
            "initialDelaySeconds",
            "periodSeconds",
            "timeoutSeconds",
            "failureThreshold",
            "successThreshold",
        ];
        let probe = &container[kind];
        let wrong = numbers
            .iter()
            .filter(|key| probe.get(**key).is_some_and(|n| !n.is_u64()));
        for key in wrong {
            let problem = format!("{kind}: {key}: {} is not a whole number", probe[*key]);
            all.push((
                problem,
                "write digits without quotes and without a unit: 30",
            ));
        }
    }
    let words = ["command", "args"];
    for key in words.iter().filter(|key| container[**key].is_string()) {
        let hint = "write a list: [sh, -c, \"exec java -jar app.jar\"]";
        all.push((format!("`{key}` is a string, not a list"), hint));
    }
    if container["env"].is_object() {
        let hint = "write a list: - {name: JAVA_TOOL_OPTIONS, value: -Xmx512m}";
        all.push(("`env` is not a list".to_owned(), hint));
    }
    let mut entries = list_items(container, "env");
    if entries.any(|entry| !entry["name"].is_string()) {
        let hint = "write each as - {name: JAVA_TOOL_OPTIONS, value: -Xmx512m}";
        all.push(("`env` has an entry without a name".to_owned(), hint));
    }
    let values = list_items(container, "env");
    let values = values.filter(|v| v.is_object());
    let values = values.map(|v| (v["name"].as_str().unwrap_or("env"), &v["value"]));
    let words = words
        .iter()
        .flat_map(|key| list_items(container, key).map(|word| (*key, word)));
    // `8080` and `true` without quotes are a number and a switch.
    let is_text = |value: &Value| value.is_string() || value.is_null();
    for (place, value) in values.chain(words).filter(|(_, value)| !is_text(value)) {
        let problem = format!("{place}: {value} is not a string");
        all.push((problem, "write it in quotes: \"8080\", \"true\""));
    }
    for (problem, _) in &mut all {
        problem.push_str(": the API server rejects it");
    }
    for (name, value) in variables(container) {
        if let Some((what, hint)) = value.and_then(|value| unstartable_value(name, &value)) {
            all.push((format!("{name}: {what}"), hint));
        }
    }
    all.extend(unstartable_command(container));
    all.extend(unfilled_reference(container));
    all.extend(shell_reference(container));
    let image = container["image"].as_str().unwrap_or("image");
    if !image.contains(['$', '{']) && !is_image_name(image) {
        let problem = format!("`{image}` is not an image name; the kubelet cannot pull it");
        all.push((problem, "write registry.example/orders:1.4"));
    }
    let finding = |(problem, hint): (String, &str)| LintFinding {
        severity: Severity::Error,
        problem,
        hint: hint.to_owned(),
    };
    all.into_iter().map(finding).collect()
}

/// Words that no shell takes apart, or that a shell does not take as one command.
fn unstartable_command(container: &Value) -> Option<(String, &'static str)> {
    let words = program_texts(container);
    let first = container["command"].get(0).map(scalar_text)?;
    let program = last_path_segment(&first);
    let mut rest = words[1..].iter();
    let is_command = rest
        .clone()
        .take_while(|w| w.starts_with('-'))
        .any(|w| w.contains('c'));
    let script = rest.find(|word| !word.starts_with('-'));
    let has_blank = |word: &String| word.trim().contains(char::is_whitespace);
    let is_shell = has_word(SHELLS, program);
    // Behind the jar, and in a property, it may be the application's own notation.
    let options: Vec<&String> = words.iter().take_while(|word| *word != "-jar").collect();
    let is_kept = |(name, _): (&str, _)| {
        let (plain, braced) = (format!("${name}"), format!("${{{name}}}"));
        let is_it = |word: &str| word == plain || word == braced;
        let is_option = |word: &str| word.starts_with("-X") && word.contains(&braced);
        options.iter().any(|word| is_it(word) || is_option(word))
    };
    let what = match script {
        _ if has_blank(&first) => "no program has a whole command line as its name",
        Some(script) if is_shell && !is_command && has_blank(script) => {
            "without -c the shell takes a command for the name of a file"
        }
        Some(script)
            if is_shell && is_command && last_path_segment(script) == "java" && rest.len() > 0 =>
        {
            "sh -c runs the word behind it alone, without options"
        }
        _ if program == "java" && variables(container).any(is_kept) => {
            "no shell fills in a variable written with $, and $(NAME) is one word"
        }
        _ => return None,
    };
    Some((
        format!("command: {what}: the container does not start"),
        "write each word as its own: [java, -Xmx512m, -jar, app.jar], or one text for a shell: [sh, -c, \"exec java $JAVA_OPTS -jar app.jar\"]",
    ))
}

/// A JVM option with `$(NAME)` that the kubelet leaves as it is, because no variable before it has the name.
fn unfilled_reference(container: &Value) -> Option<(String, &'static str)> {
    let all: Vec<(&str, Option<String>)> = variables(container).collect();
    let words = program_texts(container);
    let is_java = words
        .first()
        .is_some_and(|word| last_path_segment(word) == "java");
    let words = words.into_iter().filter(|_| is_java);
    let words = words.map(|word| ("command", word, all.len()));
    let values = all.iter().enumerate();
    let values = values.filter(|(_, (name, _))| JVM_VARIABLES.contains(name));
    let values = values.filter_map(|(at, (name, value))| Some((*name, value.clone()?, at)));
    // What comes from outside the input may have it.
    let is_whole = list_items(container, "envFrom").next().is_none();
    let unfilled = |(place, text, before): (&str, String, usize)| {
        let is_size = |word: &&str| SIZE_OPTIONS.iter().any(|begin| word.starts_with(begin));
        let mut references = text.split_whitespace().filter(is_size);
        let (_, reference) = references.find_map(|word| word.split_once("$("))?;
        let (name, _) = reference
            .split_once(')')
            .filter(|(name, _)| !name.contains(' '))?;
        let is_there = all[..before].iter().any(|(known, _)| *known == name);
        (is_whole && !is_there).then(|| {
            let what = format!("{place}: $({name}) stays as it is, because no variable before it has this name: java does not start with it");
            (what, "define the variable first, in the same list")
        })
    };
    values.chain(words).find_map(unfilled)
}

/// A JVM option with `${NAME}` in a variable that the JVM reads.
fn shell_reference(container: &Value) -> Option<(String, &'static str)> {
    let names: Vec<String> = variables(container)
        .map(|(name, _)| format!("${{{name}}}"))
        .collect();
    let mut read = variables(container).filter(|(name, _)| JVM_VARIABLES.contains(name));
    read.find_map(|(place, value)| {
        let value = value?;
        let is_size = |word: &&str| SIZE_OPTIONS.iter().any(|begin| word.starts_with(begin));
        let mut sizes = value.split_whitespace().filter(is_size);
        let named = |word: &str| names.iter().find(|name| word.contains(name.as_str()));
        let reference = sizes.find_map(named)?;
        let what = format!(
            "{place}: {reference} stays as it is, because no shell fills it in: java does not start with it"
        );
        let hint = "write it as $(NAME), and define the variable first, in the same list";
        Some((what, hint))
    })
}

/// The fault in a variable with JVM options, and the remedy.
fn unstartable_value(name: &str, value: &str) -> Option<(String, &'static str)> {
    let mut words = value.split_whitespace();
    let is_bare = |word: &&str| {
        let is_heap = ["Xmx", "Xms"].iter().any(|begin| {
            let size = word.strip_prefix(begin);
            size.is_some_and(|size| size.starts_with(|c: char| c.is_ascii_digit()))
        });
        is_heap || ["XX:+", "XX:-"].iter().any(|begin| word.starts_with(begin))
    };
    if let Some(word) = words.find(is_bare) {
        let what = format!("{word} lacks its -: java takes it for the name of a class");
        return Some((what, "write - before it, without a blank"));
    }
    if !JVM_VARIABLES.contains(&name) {
        return None;
    }
    let words = match split_environment(value) {
        Ok(words) => words,
        Err(quote) => {
            let what = format!("{quote}: java does not start with it");
            return Some((what, "close the quote"));
        }
    };
    // Options are judged elsewhere; `JDK_JAVA_OPTIONS` may have a class path or an @file.
    let is_read = |word: &&String| !word.starts_with('-') && !word.contains('$');
    let others = words.iter().filter(is_read);
    let is_jvm = name != "JDK_JAVA_OPTIONS";
    let mut wrong = others.filter_map(|word| misread_word(word, is_jvm));
    let (what, hint) = wrong.next()?;
    let of_launcher = |word: &String| {
        ["-jar", "-m"].contains(&word.as_str())
            || has_word(CLASS_PATH_OPTIONS, word)
            || has_word(OPTIONS_WITH_VALUE, word)
    };
    let hint = match words.iter().find(|word| of_launcher(word)) {
        _ if !is_jvm => hint,
        Some(option) if option.starts_with("--") => "write the value behind =: --add-modules=NAME",
        Some(_) => "only the command of java takes such a word: write it there",
        None if words.iter().any(|word| word.starts_with('@')) => {
            "JDK_JAVA_OPTIONS takes files of options from JDK 9 on"
        }
        None => hint,
    };
    Some((what, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_keep_java_from_starting_are_named() {
        for (name, value, wanted) in [
            (
                "JAVA_TOOL_OPTIONS",
                "-Dx='a -Xmx1g",
                "a quote ' is never closed",
            ),
            (
                "_JAVA_OPTIONS",
                "-Dx=my app",
                "a word in it does not begin with -",
            ),
            ("JAVA_TOOL_OPTIONS", "-Dx='my app' $(MORE)", ""),
            ("JDK_JAVA_OPTIONS", "-Xmx1g @/app/args", ""),
            ("JAVA_OPTS", "it's", ""),
            ("JAVA_OPTS", "-Dx=y Xmx1g", "Xmx1g lacks its -"),
            ("JAVA_OPTS", "- XX:+UseG1GC", "XX:+UseG1GC lacks its -"),
            (
                "JAVA_TOOL_OPTIONS",
                "-cp /app -Xmx1g",
                "a word in it does not begin with -",
            ),
        ] {
            let container = serde_json::json!({"env": [{"name": name, "value": value}]});
            let found = find_malformed(&container);
            let said = found.first().map_or("", |finding| &finding.problem);
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{said}"
            );
        }
    }

    #[test]
    fn commands_that_start_no_jvm_are_named() {
        let env = "env: [{name: JAVA_OPTS, value: -Xss1m}]";
        for (container, wanted) in [
            (
                "command: ['java -Xmx1g -jar a.jar']",
                "no program has a whole command line",
            ),
            (
                "command: [sh, -c, java, -Xmx1g, -jar, a.jar]",
                "runs the word behind it alone",
            ),
            (
                "command: [/bin/bash, -ec], args: [java, -jar, a.jar]",
                "runs the word behind it alone",
            ),
            ("command: [sh, 'java -jar a.jar']", "without -c"),
            (
                &format!("command: [java, $JAVA_OPTS, -jar, a.jar], {env}"),
                "written with $",
            ),
            (
                &format!("command: [java, '${{JAVA_OPTS}}', -jar, a.jar], {env}"),
                "written with $",
            ),
            (
                &format!("command: [java, '$(JAVA_OPTS)', -jar, a.jar], {env}"),
                "",
            ),
            (
                &format!("command: [sh, -c, 'exec java $JAVA_OPTS -jar a.jar'], {env}"),
                "",
            ),
            ("command: [java, '${HEAP}', -jar, a.jar]", ""),
            (
                &format!("command: [java, '-Dx=${{JAVA_OPTS}}', -jar, a.jar, '$JAVA_OPTS'], {env}"),
                "",
            ),
            (
                "command: [java, '-Xmx$(HEAP)m', -jar, a.jar]",
                "$(HEAP) stays as it is",
            ),
            (
                "command: [java, '-Xmx$(HEAP)m'], env: [{name: HEAP, value: '9'}]",
                "",
            ),
            (
                "command: [java, '-Xmx$(HEAP)m'], envFrom: [{secretRef: {name: s}}]",
                "",
            ),
            (
                "env: [{name: JAVA_TOOL_OPTIONS, value: '-Xmx$(HEAP)'}, {name: HEAP, value: 1g}]",
                "JAVA_TOOL_OPTIONS: $(HEAP) stays as it is",
            ),
            ("command: [sh, -c, 'java -Xmx$(cat /heap) -jar a.jar']", ""),
            (
                "env: [{name: HEAP, value: 1g}, {name: JAVA_TOOL_OPTIONS, value: '-Xmx${HEAP}'}]",
                "JAVA_TOOL_OPTIONS: ${HEAP} stays as it is, because no shell",
            ),
            ("env: [{name: JAVA_TOOL_OPTIONS, value: '-Xmx${HEAP}'}]", ""),
            (
                "env: [JAVA_OPTS=-Xmx1g]",
                "`env` has an entry without a name",
            ),
            (
                "environment: {A: b}",
                "`environment` is no key of a container",
            ),
            ("command: [sh, -c, '$0 $@', java, -jar, a.jar]", ""),
            ("command: [sh, run.sh, -x]", ""),
            ("args: ['java -jar a.jar']", ""),
            ("command: 'java -jar a.jar'", "a string, not a list"),
        ] {
            let documents = crate::manifest::documents(&format!("{{image: a, {container}}}"), "x");
            let found = find_malformed(&documents.expect("YAML")[0]);
            let said = found.first().map_or("", |finding| &finding.problem);
            let holds = said.contains(wanted) && wanted.is_empty() == said.is_empty();
            assert!(holds, "{container}: {said}");
        }
    }

    #[test]
    fn keys_in_wrong_places_are_named() {
        let found = |container: Value| {
            let found = find_malformed(&container).into_iter();
            let problems = found.map(|finding| finding.problem);
            problems.collect::<Vec<_>>().join("; ")
        };
        let container = serde_json::json!({
            "limits": {"memory": "1Gi"},
            "resources": {"memory": "1Gi", "limits": ["memory"], "requests": {"mem": "1Gi", "a.io/gpu": 1}},
            "command": "java -jar a.jar", "env": {"JAVA_OPTS": "-Xmx1g"}, "image": "R/o:1 ",
            "livenessprobe": {}, "startupProbe": {"periodSeconds": "10s"},
        });
        let said = found(container);
        for part in [
            "`limits` is outside",
            "`resources.memory` is neither",
            "`resources.limits` is not a map",
            "`resources.requests.mem` is not a resource: the API server rejects it; `",
            "`command` is a string",
            "`env` is not a list",
            "`livenessprobe` is no key; `livenessProbe` is",
            "startupProbe: periodSeconds: \"10s\" is not a whole number",
            "`R/o:1 ` is not an image name",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let plain = serde_json::json!({
            "env": [{"name": "A", "value": 8080}, {"name": "B"}], "args": ["--debug", true],
            "image": "${IMAGE}",
        });
        assert_eq!(
            found(plain),
            "A: 8080 is not a string: the API server rejects it; args: true is not a string: the API server rejects it"
        );
        let sound = serde_json::json!({
            "resources": {"limits": {"memory": "1Gi"}}, "command": ["a"], "env": [],
        });
        assert_eq!(found(sound), "");
    }
}
