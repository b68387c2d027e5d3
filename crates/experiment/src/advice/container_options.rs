//! JVM options of a container, wherever a manifest has them.
//!
//! Owns the places (variables, words, files, what the scripts of known images make of a variable), the
//! order in which they win, and what cannot be seen. How one text is read is `option_reader`'s.

use std::collections::HashSet;

use loadline_sizing::Bytes;
use loadline_sizing::options::{parse_size, words};
use serde_json::Value;

use super::fields::{MOST_WORDS, last_path_segment, list_items, program_texts, variables};
use super::image_jdk::image_jdk;
use super::image_variables::{
    fill_by_kubernetes, fill_references, heap_options, named_heap, script_flags, shell_assignments,
};
use super::inlined::SOURCES;
use super::java_command::JavaCommand;
use super::option_reader::{JVM_VARIABLES, OptionReader, meant_variable};

pub(crate) const OPTION_VARIABLES: [&str; 5] = [
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_OPTIONS",
    "_JAVA_OPTIONS",
];

const LONG_OPTIONS: &str = "\
    --add-exports --add-modules --add-opens --add-reads --enable-native-access --enable-preview \
    --illegal-access --illegal-native-access --limit-modules --patch-module \
    --sun-misc-unsafe-memory-access --upgrade-module-path";

/// Parts of the names of variables that scripts put behind all others.
const APPENDED: [&str; 3] = ["ADDITIONAL", "APPEND", "EXTRA"];

/// How options begin that change the memory: a path or an address does not.
pub(super) const SIZE_OPTIONS: [&str; 5] = ["-Xm", "-Xs", "-XX:M", "-XX:I", "-XX:R"];

/// JVM options of all variables and words of a container, each once, in the order in which the JVM
/// applies them.
pub(super) fn jvm_options(container: &Value, mounted: Vec<String>) -> Vec<String> {
    let image = container["image"].as_str().unwrap_or_default();
    let values: Vec<(String, String)> = read_variables(container)
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    let rank = |name: &str| match OPTION_VARIABLES.iter().position(|own| *own == name) {
        Some(at) if name != "_JAVA_OPTIONS" => at,
        Some(_) => usize::MAX,
        None if APPENDED.iter().any(|part| name.contains(part)) => OPTION_VARIABLES.len() + 1,
        None => OPTION_VARIABLES.len(),
    };
    // Kubernetes fills in what stands before a variable; a script sees all.
    let text = |at: usize, name: &str, value: &str| {
        if JVM_VARIABLES.contains(&name) {
            fill_by_kubernetes(value, &values[..at])
        } else {
            heap_options(name, value).unwrap_or(value.to_owned())
        }
    };
    let reader = |name: &str| {
        if JVM_VARIABLES.contains(&name) {
            OptionReader::Jvm
        } else {
            OptionReader::Script
        }
    };
    let variables = values.iter().enumerate();
    let variables =
        variables.map(|(at, (name, value))| (rank(name), reader(name), text(at, name, value)));
    // A script's variable wins over a file that the script reads, and both over the JVM's variables.
    let files = mounted.into_iter();
    let files = files.map(|option| (rank("JAVA_OPTS"), OptionReader::Word, option));
    let mut texts: Vec<(usize, OptionReader, String)> = files.chain(variables).collect();
    let all_words = program_texts(container);
    let assigned = all_words.iter().flat_map(|word| shell_assignments(word));
    let all_values: Vec<(String, String)> = values.iter().cloned().chain(assigned).collect();
    let words = program_words(&all_words).iter().take(MOST_WORDS);
    let reader = match all_words.first().map(|word| last_path_segment(word)) {
        Some("java") => OptionReader::Word,
        _ => OptionReader::Script,
    };
    texts.extend(words.map(|word| (OPTION_VARIABLES.len() + 1, reader, word.clone())));
    texts.sort_by_key(|(rank, ..)| *rank);
    let mut found: Vec<String> = Vec::new();
    let mut add = |options: Vec<String>| {
        let again: HashSet<&String> = options.iter().collect();
        found.retain(|old| !again.contains(old));
        found.extend(options);
    };
    let mut has_heap = false;
    for (_, reader, text) in texts {
        let text = match reader {
            OptionReader::Jvm => text,
            _ => fill_references(&text, &all_values),
        };
        let options = reader.find_options(&text);
        let is_heap = |option: &String| option.starts_with("-Xmx");
        has_heap |= !matches!(reader, OptionReader::Jvm) && options.iter().any(is_heap);
        add(options);
    }
    // What a script makes of its variables wins over the variables of the JVM, too.
    let named = script_flags(&all_words);
    let named = named.iter().chain(&values);
    let named = named.filter(|(name, _)| heap_options(name, "1g").is_none());
    let named = named.filter_map(|(name, value)| named_heap(name, value, image));
    add(named
        .filter(|option| !has_heap || !option.starts_with("-Xm"))
        .collect());
    sum_heaps(&all_values, &all_words, &mut found);
    found
}

/// Options of two dashes that not every JDK knows, in the variables and before a jar.
pub(super) fn long_options(container: &Value) -> Vec<String> {
    let values = read_variables(container);
    let values = values.filter(|(name, _)| OPTION_VARIABLES.contains(name));
    let command = program_texts(container).join(" ");
    let texts = values.filter_map(|(_, value)| value).chain([command]);
    let is_quote = |c: char| c == '"' || c == '\'';
    let options = |text: String| -> Vec<String> {
        let words = text.split_whitespace().take_while(|word| *word != "-jar");
        let words = words.map(|word| word.trim_matches(is_quote));
        let own = words.filter(|word| {
            let name = word.split('=').next().unwrap_or_default();
            words::has_word(LONG_OPTIONS, name)
        });
        own.map(str::to_owned).collect()
    };
    texts.flat_map(options).collect()
}

/// The variables that the JDK of the image reads.
fn read_variables(container: &Value) -> impl Iterator<Item = (&str, Option<String>)> {
    let image = container["image"].as_str().unwrap_or_default();
    // Its launcher reads the variable from JDK 9 on.
    let is_old = image_jdk(image).is_some_and(|jdk| !jdk.at_least(9));
    let command = JavaCommand::of_container(container);
    let all = variables(container).filter(|(name, _)| meant_variable(name).is_none());
    all.filter(move |(name, _)| {
        let is_unread = |command: &JavaCommand| command.leaves_unread(container, name);
        !(is_old && *name == "JDK_JAVA_OPTIONS" || command.as_ref().is_some_and(is_unread))
    })
}

/// The variable of which the image's start script makes this option.
pub fn variable_behind<'a>(container: &'a Value, option: &str) -> Option<&'a str> {
    let image = container["image"].as_str().unwrap_or_default();
    let mut all = variables(container);
    all.find_map(|(name, value)| {
        let value = value?;
        let made = heap_options(name, &value).or_else(|| named_heap(name, &value, image))?;
        made.split(' ').any(|own| own == option).then_some(name)
    })
}

/// Several JVMs in one container: SonarQube's three have a variable of options each, and 512 MiB without
/// it (docs.sonarsource.com, "Environment variables"); others run in the background of a shell.
fn sum_heaps(values: &[(String, String)], words: &[String], found: &mut Vec<String>) {
    let names = ["WEB", "CE", "SEARCH"].map(|part| format!("SONAR_{part}_JAVAOPTS"));
    let given = |name: &String| values.iter().rfind(|(known, _)| known == name);
    let own = |name| given(name).map_or("-Xmx512m".to_owned(), |(_, value)| value.clone());
    let own: Vec<String> = if names.iter().any(|name| given(name).is_some()) {
        names.iter().map(own).collect()
    } else {
        Vec::new()
    };
    let commands = words.iter().map(|word| word.replace("&&", ";"));
    let together: Vec<String> = commands
        .flat_map(|text| text.split('&').map(str::to_owned).collect::<Vec<_>>())
        .filter(|text| {
            words::find_jvm_options(text)
                .iter()
                .any(|o| o.starts_with("-Xmx"))
        })
        .collect();
    let is_shell = words.iter().any(|word| word.contains('&'));
    let texts = match (own.is_empty(), is_shell && together.len() > 1) {
        (false, _) => own,
        (true, true) => together,
        (true, false) => return,
    };
    let sizes = texts.iter().filter_map(|value| {
        let options = words::find_jvm_options(value);
        let heap = options.iter().rev().find_map(|o| o.strip_prefix("-Xmx"))?;
        parse_size(heap)
    });
    let heap = sizes.reduce(Bytes::saturating_add).unwrap_or_default();
    found.retain(|option| !option.starts_with("-Xm"));
    found.push(format!("-Xmx{}", heap.to_jvm_size()));
}

/// The words before those of the application itself: `java -jar a.jar -Xmx1g` gives it an argument.
pub(super) fn program_words(words: &[String]) -> &[String] {
    if let [program, arguments @ ..] = words
        && last_path_segment(program) == "java"
    {
        return &words[..=words::count_java_words(arguments)];
    }
    let jar = words.iter().position(|word| word == "-jar");
    &words[..jar.unwrap_or(words.len())]
}

pub(super) fn unseen_values(container: &Value, options: &[String]) -> Vec<String> {
    let place = |source: &Value| {
        SOURCES.iter().find_map(|(kind, one, whole)| {
            let reference = source.get(*one).or(source.get(*whole))?;
            Some(format!("{kind} {}", reference.get("name")?.as_str()?))
        })
    };
    let variables = list_items(container, "env").filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        let is_option = ["OPT", "JAVA", "JVM", "HEAP", "MEM", "ARGS"]
            .iter()
            .any(|part| name.contains(part));
        let found = variable
            .get("valueFrom")
            .filter(|_| variable.get("value").is_none())?;
        place(found).filter(|place| is_option || place.starts_with("ConfigMap"))
    });
    let is_size = |option: &&String| SIZE_OPTIONS.iter().any(|begin| option.starts_with(begin));
    let computed = options.iter().filter(|option| option.contains(['$', '{']));
    let computed = computed.filter(is_size);
    let computed = computed.map(|option| format!("the value in {option}"));
    let all = variables.chain(list_items(container, "envFrom").filter_map(place));
    let files = option_files(container, options);
    let mut all: Vec<String> = all.chain(computed).chain(files).collect();
    all.sort();
    all.dedup();
    all
}

/// Files of the image that hold options: `java @jvm.args`, `-XX:Flags=`, `-XX:VMOptionsFile=`.
fn option_files(container: &Value, options: &[String]) -> Vec<String> {
    let words = program_texts(container);
    let values = variables(container).filter(|(name, _)| OPTION_VARIABLES.contains(name));
    let values = values.filter_map(|(_, value)| value);
    let words = program_words(&words).iter().cloned();
    let texts: Vec<String> = words.chain(values).collect();
    // Jib's files hold the class path and the main class.
    let is_file =
        |word: &&str| word.len() > 1 && word.starts_with('@') && !word.starts_with("@/app/jib-");
    let named = ["-XX:Flags=", "-XX:VMOptionsFile="];
    let by_option = options
        .iter()
        .filter_map(|option| named.iter().find_map(|name| option.strip_prefix(name)));
    let by_word = texts.iter().flat_map(|text| text.split_whitespace());
    let all = by_word.filter(is_file).chain(by_option);
    all.map(|file| format!("the file {file}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::manifest::{ManifestContainer, containers};
    use crate::manifest::ManifestFile;

    fn of(text: &str) -> Vec<ManifestContainer> {
        let documents = crate::manifest::documents(text, "x").expect("it is YAML");
        let path = PathBuf::from("x.yaml");
        containers(&[ManifestFile { path, documents }])
    }

    #[test]
    fn every_place_of_an_option_is_read() {
        let options = |container: &str| {
            let text = format!(
                "{{kind: ConfigMap, metadata: {{name: c}}, data: {{HEAP: 1g, OPTS: -Xmx3g, NOTE: '{{{{ .Values.x }}}}'}}}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}]}}"
            );
            let found = of(&text).remove(0).container;
            [found.jvm, found.unseen].concat().join(" ")
        };
        let said = [
            options("env: [{name: KAFKA_HEAP_OPTS, value: '-Xmx1g -Xms1g'}]"),
            options("envFrom: [{configMapRef: {name: c}}]"),
            options("env: [{name: JAVA_OPTS, valueFrom: {configMapKeyRef: {name: c, key: OPTS}}}]"),
            options("args: ['-Xmx$(HEAP)'], envFrom: [{configMapRef: {name: c}}]"),
            options(
                "command: [sh, -c], args: ['exec java -Xmx${HEAP} -jar a.jar -Xmx9g'], env: [{name: HEAP, value: 2g}]",
            ),
            options("command: [java, -jar, a.jar, -Xmx9g]"),
            options(
                "command: [sh, -c, \"# -Xmx9g\\nexec java -Xmx'$(HEAP)' a\"], envFrom: [{configMapRef: {name: c}}]",
            ),
            options(
                "command: [sh, -c, 'java $JAVA_OPTS x'], env: [{name: JAVA_OPTS, value: -Xmx1g}]",
            ),
            options(
                "env: [{name: _JAVA_OPTIONS, value: -Xmx1g}, {name: JAVA_TOOL_OPTIONS, value: -Xmx2g}], args: [-Xmx3g]",
            ),
            options(
                "envFrom: [{secretRef: {name: s}}, {configMapRef: {name: orders-env}}], env: [{name: JAVA_OPTS, valueFrom: {secretKeyRef: {name: t, key: k}}}, {name: DB, valueFrom: {secretKeyRef: {name: u, key: k}}}]",
            ),
            options(
                "command: [java, '@/app/jvm.args', -jar, a.jar], env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:Flags=/app/f'}]",
            ),
            options("args: 'java -Xmx1g -jar a.jar'"),
            options("command: [sh, -c, 'java -Xmx1g -jar a.jar & java -Xmx512m -jar b.jar; wait']"),
            options(
                "args: ['-Xmx$(M)m'], resources: {limits: {memory: 512Mi}}, env: [{name: M, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xmx1g -Xms1g
        -Xmx3g
        -Xmx3g
        -Xmx3g -Xmx1g
        -Xmx2g

        -Xmx1g
        -Xmx1g
        -Xmx2g -Xmx3g -Xmx1g
        ConfigMap orders-env Secret s Secret t
        -XX:Flags=/app/f the file /app/f the file @/app/jvm.args
        -Xmx1g
        -Xmx1536m
        -Xmx512m
        ");
    }

    #[test]
    fn options_are_taken_apart_as_their_reader_does() {
        let options = |container: &str| {
            let text = format!(
                "kind: ConfigMap\nmetadata: {{name: c}}\ndata: {{jvm.config: '-Xmx3g', run.sh: 'exec java -Xmx2g -jar a.jar'}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}], volumes: [{{name: v, projected: {{sources: [{{configMap: {{name: c}}}}]}}}}]}}"
            );
            let found = of(&text).remove(0).container;
            let jdk = found.jdk.map(|jdk| jdk.to_string());
            [found.jvm, found.unseen, jdk.into_iter().collect()]
                .concat()
                .join(", ")
        };
        let said = [
            options("command: [java, '-Xms1g -Xmx1g', -jar, a.jar], image: 'eclipse-temurin:21'"),
            options("command: [run.sh, '-Xms1g -Xmx1g']"),
            options(
                "env: [{name: JAVA_TOOL_OPTIONS, value: '\"-Xmx1g -Xss1m\" -Dx=\"-Xmx9g y\"'}]",
            ),
            options("env: [{name: JAVA_OPTS, value: '\"-Xmx1g -Xss1m\"'}]"),
            options(
                "env: [{name: A, value: 1g}, {name: JAVA_TOOL_OPTIONS, value: '-Xmx$(A) -Xss$(B)'}, {name: B, value: 1m}]",
            ),
            options(
                "command: [sh, /scripts/run.sh], volumeMounts: [{name: v, mountPath: /scripts}]",
            ),
            options("volumeMounts: [{name: v, mountPath: /etc/trino}]"),
            options(
                "volumeMounts: [{name: v, mountPath: /config/jvm.options, subPath: run.sh}, {name: w, mountPath: /x}]",
            ),
            options(
                "volumeMounts: [{name: v, mountPath: /etc/trino}], env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx1g}, {name: JAVA_OPTS, value: -Xmx2g}]",
            ),
            options(
                "env: [{name: JAVA_OPTS_APPEND, value: -Xmx2g}, {name: JBOSS_JAVA_SIZING, value: -Xmx1g}, {name: JAVA_MAX_MEM_RATIO, value: '50'}]",
            ),
            options(
                "command: [java, -cp, '@/app/jib-classpath-file', x], env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:HeapDumpPath=/d/$(POD)'}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xms1g -Xmx1g, HotSpot 21
        -Xms1g, -Xmx1g
        -Xmx1g -Xss1m
        -Xmx1g, -Xss1m
        -Xmx1g, -Xss$(B), the value in -Xss$(B)
        -Xmx3g, -Xmx2g
        -Xmx3g
        -Xmx2g
        -Xmx1g, -Xmx3g, -Xmx2g
        -Xmx1g, -XX:MaxRAMPercentage=50.0, -Xmx2g
        -XX:HeapDumpPath=/d/$(POD)
        ");
    }

    #[test]
    fn options_of_two_dashes_are_read_where_java_gets_them() {
        for (container, wanted) in [
            (
                "env: [{name: JAVA_TOOL_OPTIONS, value: '--add-opens=a/b=ALL-UNNAMED -Xmx1g'}]",
                "--add-opens=a/b=ALL-UNNAMED",
            ),
            (
                "command: [sh, -c, \"exec java '--illegal-access=deny' --add-modules x -jar a.jar --add-reads\"]",
                "--illegal-access=deny --add-modules",
            ),
            (
                "command: [java, --enable-preview, -jar, a.jar, --add-exports=x]",
                "--enable-preview",
            ),
            (
                "image: 'openjdk:8', env: [{name: JDK_JAVA_OPTIONS, value: --add-modules=x}]",
                "",
            ),
            ("args: [--spring.profiles.active=x, --add-host=y]", ""),
        ] {
            let text = format!("kind: Pod\nspec: {{containers: [{{name: a, {container}}}]}}");
            let found = of(&text).remove(0).container;
            assert_eq!(found.long_options.join(" "), wanted, "{container}");
        }
    }

    #[test]
    fn heaps_of_well_known_images_and_scripts_are_read() {
        let options = |container: &str| {
            let text = format!(
                "kind: ConfigMap\nmetadata: {{name: c}}\ndata: {{heap.options: \"# -Xmx9g\\n-Xmx2g\", notes.txt: -Xmx8g}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}], volumes: [{{name: v, configMap: {{name: c}}}}, {{name: w, configMap: {{name: gone}}}}]}}"
            );
            let found = of(&text).remove(0).container;
            [found.jvm, found.unseen].concat().join(" ")
        };
        let said = [
            options("env: [{name: MAX_HEAP_SIZE, value: 2G}, {name: HEAP_NEWSIZE, value: 100M}]"),
            options("env: [{name: ZOO_HEAP_SIZE, value: '1024'}, {name: JVMFLAGS, value: -Xss1m}]"),
            options(
                "env: [{name: SONAR_WEB_JAVAOPTS, value: '-Xmx1G -Xms128m'}, {name: SONAR_CE_JAVAOPTS, value: -Xmx2G}]",
            ),
            options(
                "command: [sh, -c, 'export HEAP=3g; exec java -Xmx$HEAP -Xss${STACK:-1m} -jar a.jar']",
            ),
            options("command: [sh, -c, 'exec java -Xmx$(($LIMIT * 75 / 100))m -jar a.jar']"),
            options(
                "env: [{name: ZK_SERVER_HEAP, value: '1000'}, {name: ZK_CLIENT_HEAP, value: '256'}, {name: JAVA_TOOL_OPTIONS, value: -Xmx1g}]",
            ),
            options(
                "command: [sh, -c, \"start-zookeeper --servers=3 \\\\\\n --heap=512M --log=x\"]",
            ),
            options("command: [spark-submit, --driver-memory, 4g]"),
            options("command: [spark-submit, --deploy-mode, cluster, --driver-memory, 4g]"),
            options("image: 'openjdk:8', env: [{name: JDK_JAVA_OPTIONS, value: -Xmx1g}]"),
            options(
                "command: [mvn, 'spring-boot:run', '-Dspring-boot.run.jvmArguments=-Xms1g -Xmx2g']",
            ),
            options("command: [mvn, '-DargLine=-Xmx2g', verify]"),
            options("image: itzg/minecraft-server, env: [{name: MEMORY, value: 2G}]"),
            options(
                "env: [{name: MEMORY, value: 2G}, {name: JVM_HEAP, value: 1g}, {name: JAVA_OPTS, value: -Xmx2g}]",
            ),
            options(
                "volumeMounts: [{name: v, mountPath: /c}, {name: w, mountPath: /d}], env: [{name: ES_JAVA_OPTS, value: -Xms1g}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xms2G -Xmx2G -Xmn100M
        -Xms1024m -Xmx1024m -Xss1m
        -Xmx3584m
        -Xmx3g -Xss1m
        -Xmx$(($LIMIT the value in -Xmx$(($LIMIT
        -Xmx1g -Xmx1000m
        -Xmx512M
        -Xmx4g


        -Xms1g -Xmx2g
        -Xmx2g
        -Xmx2G
        -Xmx2g
        -Xmx2g -Xms1g
        ");
    }
}
