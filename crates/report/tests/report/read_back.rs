//! Every emitted form read back as the program that it is for reads it: each measured JVM option is
//! in it, once and in order, and each limit and variable that the form can hold.

use std::collections::BTreeMap;

use loadline_analysis::record::ValueProvenance;
use loadline_report::emit::{EmitError, EmitPurpose, ProductionApplication, emit};
use loadline_report::{ResultView, emit::Artefact};
use loadline_sizing::profile::AppProfile;
use serde_json::Value;

use crate::artefacts::{application, documents, text};
use crate::fixture;

/// What the trials had.
const OPTIONS: [&str; 6] = [
    "-XX:+UseSerialGC",
    "-XX:MaxMetaspaceSize=88m",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:TieredStopAtLevel=1",
    "-Dgreeting=it's $(a) b",
    "-Dquoted=\"x\"",
];
const VARIABLES: [(&str, &str); 2] = [("MODE", "a \"b\" \\ $c $(d) ${e}"), ("PORT", "8080")];
const MEMORY: u64 = 212 << 20;

fn view() -> ResultView {
    let mut view = fixture::search();
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    let more = OPTIONS[3..].iter();
    let more = more.map(|o| fixture::option(o, ValueProvenance::Measured));
    recommendation.configuration.jvm_options.extend(more);
    view
}

fn measured(jdk: u32, launcher: bool) -> ProductionApplication {
    let variables = VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ProductionApplication {
        env: BTreeMap::from(variables),
        jdk,
        launcher,
        ..application()
    }
}

/// `java @FILE` (the java tool's documentation): blanks part, `#` comments, quotes with backslashes.
fn argument_file(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| match line.strip_prefix('"') {
            Some(rest) => unescaped(rest.strip_suffix('"').expect("it is closed")),
            None => line.to_owned(),
        })
        .collect()
}

/// `JAVA_TOOL_OPTIONS` (the JVM TI specification): blanks part, either quote keeps, no escapes.
fn tool_options(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

fn unescaped(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

/// The JVM options of the image's command.
fn image_options(artefacts: &[Artefact]) -> Vec<String> {
    let dockerfile = text(artefacts, "Dockerfile");
    let command = dockerfile
        .lines()
        .find_map(|l| l.strip_prefix("ENTRYPOINT "));
    let words: Vec<String> = serde_json::from_str(command.expect("a command")).expect("exec form");
    let java = words.iter().position(|w| w == "java").expect("it is java");
    let jar = words.iter().position(|w| w == "-jar").expect("a jar");
    let options = words[java + 1..jar].iter();
    options
        .flat_map(|word| match word.as_str() {
            "@/app/jvm.options" => argument_file(&text(artefacts, "jvm.options")),
            _ => vec![word.clone()],
        })
        .collect()
}

fn image_variables(dockerfile: &str) -> BTreeMap<String, String> {
    let lines = dockerfile.lines().filter_map(|l| l.strip_prefix("ENV "));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| {
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
            (name.to_owned(), unescaped(value.expect("quotes")))
        })
        .collect()
}

fn container(artefacts: &[Artefact]) -> Value {
    let manifests = documents(&text(artefacts, "kubernetes.yaml"));
    manifests[0]["spec"]["template"]["spec"]["containers"][0].clone()
}

/// `$$(` is a dollar sign and a bracket, and nothing is expanded.
fn pod_variables(container: &Value) -> BTreeMap<String, String> {
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = container["env"].as_array().expect("a list").iter();
    all.map(|v| (word(&v["name"]), word(&v["value"]).replace("$$(", "$(")))
        .collect()
}

fn assert_variables(found: &BTreeMap<String, String>, form: &str) {
    for (name, value) in VARIABLES {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{form}");
    }
}

#[test]
fn every_form_has_what_was_measured() {
    for (jdk, launcher) in [(17, false), (17, true), (8, true)] {
        let application = measured(jdk, launcher);
        let all = emit(&view(), &application, &EmitPurpose::ALL).expect("it has an answer");
        assert_eq!(argument_file(&text(&all, "jvm.options")), OPTIONS);
        let profile = AppProfile::parse_profile(&text(&all, "loadline.profile"));
        assert_eq!(profile.options, OPTIONS);
        let file = text(&all, "java-tool-options.env");
        let line = file
            .lines()
            .find_map(|l| l.strip_prefix("JAVA_TOOL_OPTIONS="));
        assert_eq!(tool_options(line.expect("a line")), OPTIONS);

        let dockerfile = text(&all, "Dockerfile");
        assert_eq!(image_options(&all), OPTIONS, "JDK {jdk}");
        assert!(dockerfile.contains("docker run --memory=212m --cpus=1\n"));
        assert_variables(&image_variables(&dockerfile), "Dockerfile");

        let compose = &documents(&text(&all, "compose.yaml"))[0]["services"]["spring-web"];
        assert_eq!(compose["mem_limit"], "212m");
        assert_eq!(compose["cpus"], "1");
        let found = compose["environment"].as_object().expect("a map").iter();
        let found = found.map(|(name, value)| {
            let value = value.as_str().expect("a text").replace("$$", "$");
            (name.clone(), value)
        });
        let found: BTreeMap<_, _> = found.collect();
        assert_variables(&found, "compose.yaml");
        assert!(!found.contains_key("JAVA_TOOL_OPTIONS"), "twice");
    }
}

#[test]
fn a_pod_has_every_option_once_and_says_where_from() {
    for (purposes, is_image_emitted) in [
        (&EmitPurpose::ALL[..], true),
        (&[EmitPurpose::Docker, EmitPurpose::Kubernetes], true),
        (&[EmitPurpose::Options, EmitPurpose::Kubernetes], false),
        (&[EmitPurpose::Kubernetes], false),
    ] {
        let all = emit(&view(), &measured(17, true), purposes).expect("it has an answer");
        let container = container(&all);
        for kind in ["requests", "limits"] {
            let limits = &container["resources"][kind];
            assert_eq!(limits["memory"], format!("{}Mi", MEMORY >> 20));
            assert_eq!(limits["cpu"], "1");
        }
        let variables = pod_variables(&container);
        assert_variables(&variables, "kubernetes.yaml");
        let in_pod = variables.get("JAVA_TOOL_OPTIONS").map(|v| tool_options(v));
        let mut options = in_pod.unwrap_or_default();
        if is_image_emitted {
            options.extend(image_options(&all));
        }
        assert_eq!(options, OPTIONS, "{purposes:?}");
        let evidence = text(&all, "evidence.md");
        for option in OPTIONS {
            assert!(evidence.contains(option), "{option}\n{evidence}");
        }
    }
}

#[test]
fn the_pod_says_what_each_option_rests_on() {
    let all = emit(
        &fixture::search(),
        &application(),
        &[EmitPurpose::Kubernetes],
    );
    let manifests = text(&all.expect("it has an answer"), "kubernetes.yaml");
    let lines: Vec<&str> = manifests.lines().map(str::trim_start).collect();
    let at = |text: &str| {
        let at = lines.iter().position(|line| line.starts_with(text));
        at.unwrap_or_else(|| panic!("{text}\n{manifests}"))
    };
    let (image, env) = (at("image:"), at("env:"));
    let shown = [&lines[image - 1..=image], &lines[env..env + 4]].concat();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    # any image that starts java without these options; they are in JAVA_TOOL_OPTIONS below; see evidence.md
    image: registry.example/spring-web:1.4.2
    env:
    - name: JAVA_TOOL_OPTIONS
    # part of the size: -XX:+UseSerialGC (the user: as given); see evidence.md
    value: "-XX:+UseSerialGC -XX:MaxMetaspaceSize=88m -XX:ReservedCodeCacheSize=48m"
    "#);
}

#[test]
fn options_of_the_environment_come_before_those_of_the_command() {
    let mut application = application();
    let name = "JAVA_TOOL_OPTIONS".to_owned();
    application.env = BTreeMap::from([(name.clone(), "-Xss512k".to_owned())]);
    let emitted = |application: &ProductionApplication| {
        emit(&view(), application, &[EmitPurpose::Kubernetes])
    };
    let all = emitted(&application).expect("it has an answer");
    let variables = container(&all)["env"].as_array().expect("a list").len();
    assert_eq!(variables, 1, "one variable, set once");
    let options = tool_options(&pod_variables(&container(&all))[&name]);
    assert_eq!(options[0], "-Xss512k");
    assert_eq!(options[1..], OPTIONS);
    application.env = BTreeMap::from([(name, "-Dtoken=hunter2".to_owned())]);
    assert_eq!(emitted(&application), Err(EmitError::ToolOptions));
}

#[test]
fn options_that_a_pod_cannot_have_are_refused_and_not_dropped() {
    let mut application = application();
    application.command.options = vec!["-Da='\"".to_owned()];
    let refused = emit(&view(), &application, &[EmitPurpose::Kubernetes]);
    let refused = refused.expect_err("no variable can say it");
    assert!(refused.emit_hint().contains("--for docker,kubernetes"));
    let both = [EmitPurpose::Docker, EmitPurpose::Kubernetes];
    let all = emit(&view(), &application, &both).expect("the image has them");
    assert_eq!(image_options(&all).last(), Some(&"-Da='\"".to_owned()));
}
