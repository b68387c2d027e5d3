//! Common mistakes, and their messages.

use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use loadline_analysis::record::TrialPhase;
use loadline_analysis::warming::JvmQuestion;
use loadline_protocol::{Readiness, StudyGoal};

use super::*;

const GOOD: &str = r#"
slo = "p99<250ms"
[app]
command = ["java", "-jar", "app.jar"]
[load]
url = "http://localhost:8080/owners?lastName=Da"
rate = "100/s"
[limits]
cpu = "1"
[[factor]]
name = "memory"
levels = ["512Mi", "256Mi"]
descend = true
[[factor]]
name = "options"
levels = [{ label = "default" }, { label = "c1", jvm = ["-XX:TieredStopAtLevel=1"] }]
"#;

fn told(text: &str) -> String {
    let error =
        Experiment::from_file_text(text, Path::new("exp.toml"), Path::new("/x")).unwrap_err();
    match &error.hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

fn told_with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    told(&GOOD.replace(from, to))
}

#[test]
fn a_good_file_becomes_all_combinations_with_the_last_factor_fastest() {
    let experiment =
        Experiment::from_file_text(GOOD, Path::new("y/exp.toml"), Path::new("/x")).unwrap();
    let labels: Vec<_> = experiment
        .configurations()
        .into_iter()
        .map(|c| c.label)
        .collect();
    assert_eq!(
        labels,
        ["512Mi default", "512Mi c1", "256Mi default", "256Mi c1"]
    );
    assert_eq!(experiment.app.directory, Path::new("/x"));
    assert_eq!(
        experiment
            .load
            .spec
            .url
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("http://localhost:8080/owners?lastName=Da")
    );
    assert_eq!(experiment.slo.to_string(), "p99<250ms,errors<1%");
}

#[test]
fn a_file_written_from_the_parsed_form_means_the_same() {
    let file = ExperimentFile::from_toml(GOOD, Path::new("exp.toml")).unwrap();
    let again = Experiment::from_file_text(
        &file.to_toml().unwrap(),
        Path::new("exp.toml"),
        Path::new("/x"),
    )
    .unwrap();
    let first = Experiment::from_file_text(GOOD, Path::new("exp.toml"), Path::new("/x")).unwrap();
    assert_eq!(again.configurations(), first.configurations());
}

#[test]
fn a_wrong_key_is_shown_with_its_line_and_the_nearest_known_one() {
    assert_snapshot!(told_with("rate = ", "rats = "), @r#"
    exp.toml:7:1: there is no key `rats` here
        rats = "100/s"
    hint: did you mean `rate`?
    "#);
    assert_snapshot!(told_with("label = \"c1\", jvm", "label = \"c1\", java"), @r#"
    exp.toml:16:50: there is no key `java` here
        levels = [{ label = "default" }, { label = "c1", java = ["-XX:TieredStopAtLevel=1"] }]
    hint: did you mean `jvm`?
    "#);
}

#[test]
fn a_wrong_unit_is_shown_with_its_line_and_what_to_write() {
    assert_snapshot!(told_with("cpu = \"1\"", "cpu = \"1 core\""), @r#"
    exp.toml:9:7: `1 core` is not an amount; did you mean 1?
        cpu = "1 core"
    hint: CPUs such as 1.5 or 250m
    "#);
    assert_snapshot!(told_with("\"256Mi\"", "\"256\""), @r#"
    exp.toml:12:20: `256` is less than 1 MiB of memory
        levels = ["512Mi", "256"]
    hint: is the unit missing? write 512Mi
    "#);
    assert_snapshot!(told_with("100/s", "0/s"), @r##"
    exp.toml:7:8: `0/s` is not a rate
        rate = "0/s"
    hint: write requests a second above 0: 300/s, also 30/m or 7/h
    "##);
    assert_snapshot!(told_with("p99<250ms", "p99<250"), @r#"
    exp.toml:2:7: `p99<250` is not an objective: the bound has no unit; did you mean `p99<250ms`?
        slo = "p99<250"
    hint: for example p99<50ms,errors<0.1%; `loadline size --help` lists all objectives
    "#);
}

#[test]
fn a_range_is_named() {
    assert_snapshot!(told_with("cpu = \"1\"", "cpu = \"1\"\nshm = \"64\""), @r#"
    exp.toml:10:7: `64` is less than 1 MiB of memory
        shm = "64"
    hint: is the unit missing? write 512Mi
    "#);
    assert_snapshot!(told_with("cpu = \"1\"", "cpu = \"1\"\npids = 3"), @"
    exp.toml:10:8: pids = 3 is out of range
        pids = 3
    hint: from 16 and below 4194305
    ");
    assert_snapshot!(told_with("cpu = \"1\"", "cpu = \"1\"\ncpu-period = \"2s\""), @r#"
    exp.toml:10:14: `2s` is not a CFS period
        cpu-period = "2s"
    hint: the kernel accepts 1ms to 1s
    "#);
}

#[test]
fn a_burst_above_the_quota_is_refused_before_anything_runs() {
    let with = |cpu: &str, level: &str| {
        let text = GOOD.replace("cpu = \"1\"", cpu);
        text.replace("label = \"c1\",", &format!("label = \"c1\", {level},"))
    };
    let short = with(
        "cpu = \"1\"",
        "cpu-period = \"20ms\", cpu-burst = \"100ms\"",
    );
    assert_snapshot!(told(&short), @r#"
    exp.toml: the cpu-burst of `512Mi c1`, 100ms, is more than its quota: 1 of a CPU in a period of 20ms is 20ms
    hint: the kernel takes at most the quota: cpu-burst = "20ms"
    "#);
    assert_snapshot!(told(&with("", "cpu-burst = \"10ms\"")), @r#"
    exp.toml: `512Mi c1` has a cpu-burst and no CPU limit: there is no quota to save up
    hint: give it one: cpu = "1", or leave the burst out
    "#);
    let whole = with("cpu = \"333m\"", "cpu-burst = \"33300us\"");
    Experiment::from_file_text(&whole, Path::new("exp.toml"), Path::new("/x"))
        .expect("as much as the quota");
}

#[test]
fn a_load_that_says_two_things_is_refused() {
    assert_snapshot!(told_with("rate = \"100/s\"", "rate = \"100/s\"\nclosed = true"), @r##"
    exp.toml:8:1: a rate is given too
        closed = true
    hint: leave one out
    "##);
}

#[test]
fn load_goes_to_nobody_else() {
    assert_snapshot!(told_with("localhost:8080", "example.org"), @r#"
    exp.toml:6:1: `http://example.org/owners?lastName=Da` is not a URL loadline can drive: load goes only to the application that loadline starts, so the host is localhost
        url = "http://example.org/owners?lastName=Da"
    hint: write it as the application sees it: http://localhost:8080/owners?lastName=Da
    "#);
}

#[test]
fn what_is_missing_and_what_is_no_toml() {
    assert_snapshot!(told("slo = \"p99<1s\"\n"), @r##"
    exp.toml: url: it is missing
    hint: write url = "http://localhost:8080/" (--url), or say that the program ends: ends = true (--job), or that its metrics judge it: [metrics] (--metric, --probe)
    "##);
    assert_snapshot!(told("slo = \n"), @r##"
    exp.toml:1:7: string values must be quoted, expected literal string
        slo =
    hint: put the text in quotes: slo = "p99<50ms"
    "##);
}

#[test]
fn factors_with_endless_combinations_are_refused_before_one_is_made() {
    let mut text = GOOD.to_owned();
    for factor in 0..20 {
        text += &format!("[[factor]]\nname = \"f{factor}\"\nlevels = [");
        for level in 0..100 {
            text += &format!("{{ label = \"{level}\", jvm = [\"-Da={level}\"] }}, ");
        }
        text += "]\n";
    }
    let refusal = told(&text);
    assert!(
        refusal.contains("combinations, at most 10000 are run"),
        "{refusal}"
    );
}

#[test]
fn a_factor_that_loadline_does_not_know_needs_tables() {
    assert_snapshot!(told_with("name = \"memory\"", "name = \"ram\""), @r#"
    exp.toml:12:11: loadline does not know what a plain level of `ram` changes
        levels = ["512Mi", "256Mi"]
    hint: write { label = "...", jvm = [...] } (also command, image, env, args, cpu, memory, jdk), or name the factor cpu, memory, instances, rate, cpu-period, cpu-shares, cpuset, jdk or cache
    "#);
}

fn with_mix(slo: &str, more: &str) -> String {
    let text = GOOD.replace("p99<250ms", slo);
    text.replace("rate = \"100/s\"", &format!("rate = \"100/s\"\n{more}"))
}

const MIX: &str = r#"
[[load.request]]
weight = 3
path = "/owners"
[[load.request]]
name = "POST /orders"
weight = 1
method = "POST"
path = "/orders"
body-file = "order.json"
"#;

#[test]
fn an_objective_may_name_a_request_of_the_mix() {
    let text = with_mix("POST /orders: p99<200ms, p99<300ms", MIX);
    let experiment =
        Experiment::from_file_text(&text, Path::new("y/exp.toml"), Path::new("/x")).unwrap();
    assert_eq!(
        experiment.slo.to_string(),
        "p99<300ms,errors<1%,POST /orders: p99<200ms"
    );
    let body = experiment.load.spec.content_files();
    assert_eq!(body, [Path::new("/x/y/order.json")]);
    // Nothing is read until a trial needs it: a result can be shown without its files.
    let missing = experiment
        .load
        .phases(&Configuration::default(), None, 0)
        .unwrap_err();
    assert!(missing.to_string().contains("/x/y/order.json"), "{missing}");
    assert_eq!(
        experiment.app.readiness,
        Readiness::Tcp { port: 8080 },
        "a plain GET of the URL is not what the load sends"
    );
}

/// Seconds that each trial of an experiment measures.
fn seconds(text: &str) -> u64 {
    let experiment =
        Experiment::from_file_text(text, Path::new("exp.toml"), Path::new("/x")).unwrap();
    experiment
        .load
        .model
        .scheduled_duration()
        .unwrap()
        .as_secs()
}

#[test]
fn a_trial_is_as_long_as_the_percentiles_need_unless_it_is_said() {
    let at = |rate: &str, slo: &str| {
        let text = GOOD.replace("100/s", rate).replace("p99<250ms", slo);
        seconds(&text)
    };
    assert_eq!(at("100/s", "p99<250ms"), 15, "10 s would do");
    assert_eq!(at("50/s", "p99<250ms"), 20);
    assert_eq!(at("30/s", "p99<250ms"), 34);
    assert_eq!(at("10/s", "p99<250ms"), 60, "100 s are too long");
    assert_eq!(at("10/s", "errors<1%"), 15);
    assert_eq!(at("50/s\"\nduration = \"4s", "p99<250ms"), 4);
    // A quarter of the requests, and the lowest rate of a factor.
    assert_eq!(seconds(&with_mix("POST /orders: p99<200ms", MIX)), 40);
    let rates = "[[factor]]\nname = \"rate\"\nlevels = [\"40/s\", \"200/s\"]\n";
    assert_eq!(seconds(&format!("{GOOD}{rates}")), 25);
    let priced = "[search]\nprices = \"fargate\"\n";
    let free = GOOD.replace("cpu = \"1\"", "").replace("100/s", "10/s");
    let free = free.split("[[factor]]").next().unwrap().to_owned();
    assert_eq!(seconds(&format!("{free}{priced}")), 15);
}

#[test]
fn a_question_of_a_search_is_one_of_two() {
    let with = |tables: &str| {
        let text = GOOD.replace("cpu = \"1\"", "");
        let text = text.split("[[factor]]").next().unwrap().to_owned() + tables;
        Experiment::from_file_text(&text, Path::new("e.toml"), Path::new("/x"))
    };
    let of = |name: &str| with(&format!("[search]\nquestion = \"{name}\"\n"));
    assert_eq!(of("steady").unwrap().search.question, JvmQuestion::Steady);
    assert_eq!(with("").unwrap().search.question, JvmQuestion::Start);
    assert!(of("warm").unwrap_err().to_string().contains("`warm`"));
    let priced = with("[search]\nprices = \"fargate\"\nquestion = \"steady\"\n");
    assert!(priced.unwrap_err().to_string().contains("with `prices`"));
}

#[test]
fn a_percentile_of_too_few_requests_is_told_with_the_length_that_it_needs() {
    let thin = |rate: &str, slo: &str, starts| {
        let text = GOOD.replace("100/s", rate).replace("p99<250ms", slo);
        let text = text.replace("[limits]", "duration = \"4s\"\n[limits]");
        let experiment =
            Experiment::from_file_text(&text, Path::new("e.toml"), Path::new("/x")).unwrap();
        let of_one = experiment
            .thin_percentiles(1)
            .iter()
            .map(ThinPercentile::warning_sentence)
            .collect::<Vec<_>>();
        let refused = experiment.thin_percentiles(starts).into_iter().map(|t| {
            let refusal = t.refusal_for_trials(starts);
            format!("{refusal}\nhint: {}", refusal.hint)
        });
        [of_one, refused.collect()].concat().join("\n")
    };
    assert_eq!(thin("300/s", "p99<1s", 1), "");
    assert_snapshot!(thin("50/s", "p99<100ms,p50<20ms", 3), @"
    p99 rests on 2 of 200 requests in a trial; at 50/s it needs 20s
    p99 at 50/s needs 20s of measuring: 10 requests must lie beyond it, and in 4s there are 2, 6 in all 3 starts of the proof
    hint: measure for longer: --duration 20s, or judge it over at least 5 starts together (--prove 5), or bound a lower percentile (p95), which needs fewer
    ");
    assert_snapshot!(thin("50/s", "p99<100ms", 20), @"p99 rests on 2 of 200 requests in a trial; at 50/s it needs 20s");
    assert_snapshot!(thin("50/s", "p99.99<100ms", 20), @"
    p99.99 rests on 0.0200 of 200 requests in a trial; at 50/s it needs 2000s
    p99.99 at 50/s needs 2000s of measuring: 10 requests must lie beyond it, and in 4s there are 0.0200, 0.40 in all 20 starts of the proof
    hint: measure for longer: --duration 2000s, or bound a lower percentile (p95), which needs fewer
    ");
}

#[test]
fn an_objective_about_a_request_that_is_not_there_is_refused_with_those_that_are() {
    let text = with_mix("POST /order: p99<200ms", MIX);
    assert_snapshot!(told(&text), @r#"
    exp.toml:2:7: the SLO names `POST /order`, which is not a request of the load
        slo = "POST /order: p99<200ms"
    hint: its requests are GET /owners, POST /orders
    "#);
    assert_snapshot!(told_with("p99<250ms", "GET /x: p99<1s"), @r#"
    exp.toml:2:7: the SLO names `GET /x`, which is not a request of the load
        slo = "GET /x: p99<1s"
    hint: this load has one request, that of its URL: write the objective without a name, or give the load a mix ([[load.request]], --profile)
    "#);
}

#[test]
fn a_mix_whose_weights_are_zero_is_refused() {
    let text = with_mix("p99<1s", &MIX.replace("weight = 3", "weight = 0"));
    assert_snapshot!(told(&text), @r##"
    exp.toml:9:8: the weight of `GET /owners` is 0
        [[load.request]]
    hint: its share is its weight over the sum of all: write one above 0, or leave the request out
    "##);
}

#[test]
fn a_credential_in_the_file_itself_is_refused() {
    let literal = "rate = \"100/s\"\nbearer = \"t0ken\"";
    assert_snapshot!(told_with("rate = \"100/s\"", literal), @r##"
    exp.toml:8:1: bearer: the token (a file is @FILE) is in it and would be stored with the result
    hint: name an environment variable instead: {env:NAME}
    "##);
    let unset = GOOD.replace(
        "rate = \"100/s\"",
        "rate = \"100/s\"\nbearer = \"{env:LOADLINE_NO_SUCH}\"",
    );
    let experiment =
        Experiment::from_file_text(&unset, Path::new("exp.toml"), Path::new("/x")).unwrap();
    assert_snapshot!(experiment.load.phases(&Configuration::default(), None, 0).unwrap_err(), @"bearer: the environment variable `LOADLINE_NO_SUCH` is not set; set it in loadline's environment (sudo drops it: sudo LOADLINE_NO_SUCH=... loadline)");
}

#[test]
fn https_needs_to_know_which_certificate_to_trust() {
    assert_snapshot!(told_with("http://", "https://"), @r#"
    exp.toml:6:1: `https://localhost:8080/owners?lastName=Da` is https, but no certificate is trusted
        url = "https://localhost:8080/owners?lastName=Da"
    hint: name the root certificates: cacert = "ca.pem" (--cacert ca.pem; this machine's are in /etc/ssl/certs/ca-certificates.crt), or accept any: insecure = true (--insecure)
    "#);
    let text = GOOD.replace("http://", "https://");
    let text = text.replace("rate = ", "cacert = \"ca.pem\"\nrate = ");
    let experiment =
        Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x")).unwrap();
    assert_eq!(experiment.app.readiness, Readiness::Tcp { port: 8080 });
    assert_eq!(
        experiment.load.spec.cacert.as_deref(),
        Some(Path::new("/x/ca.pem"))
    );
}

#[test]
fn a_profile_that_is_missing_or_empty_is_refused() {
    assert_snapshot!(told_with("rate = \"100/s\"", "profile = \"nosuch.toml\""), @r##"
    exp.toml:7:1: /x/nosuch.toml cannot be read: No such file or directory (os error 2)
        profile = "nosuch.toml"
    hint: a path is relative to the file that names it
    "##);
    assert_snapshot!(told_with("rate = \"100/s\"", "profile = { interval-seconds = 1 }"), @r##"
    exp.toml:7:1: it has neither [[request]] nor rates
        profile = { interval-seconds = 1 }
    hint: loadline profile writes one from access logs
    "##);
    assert_snapshot!(told_with("rate = \"100/s\"", "profile = { rats = [1] }"), @"
    exp.toml:7:13: there is no key `rats` here
        profile = { rats = [1] }
    hint: did you mean `rates`?
    ");
}

#[test]
fn a_client_of_a_container_engine_is_no_application() {
    let command = "[\"java\", \"-jar\", \"app.jar\"]";
    assert_snapshot!(told_with(command, "[\"docker\", \"run\", \"x\"]"), @r#"
    exp.toml: the command is a client of a container engine: limits would hold for `docker`, not for the application, which another process starts
    hint: loadline starts images itself: --image x in place of the command, or app.image = "x" in a file; what follows -- are its arguments
    "#);
    let sudo = told_with(
        command,
        "[\"sudo\", \"/usr/bin/podman\", \"run\", \"--rm\", \"-p\", \"80:80\", \"a/x:1\", \"y\"]",
    );
    assert!(
        sudo.contains("`podman`") && sudo.contains("--image a/x:1 in"),
        "{sudo}"
    );
}

#[test]
fn an_engine_is_named_with_an_image_to_start() {
    let command = "command = [\"java\", \"-jar\", \"app.jar\"]";
    let image = told_with(command, "image = \"orders:1\"\nengine = \"dokcer\"");
    assert_snapshot!(image, @r#"
    exp.toml:5:10: `dokcer` is not a container engine that loadline knows
        engine = "dokcer"
    hint: write podman or docker; without it the engine that has the image starts it
    "#);
    let engine = told_with(command, "command = [\"x\"]\nengine = \"docker\"");
    assert!(engine.contains("no image for it to start"), "{engine}");
}

/// The good file with levels of a factor that varies the application.
fn with_applications(levels: &str) -> String {
    let (before, _) = GOOD.split_once("[[factor]]\nname = \"options\"").unwrap();
    format!(
        "{before}[[factor]]\nname = \"application\"\nlevels = [{{ label = \"jar\" }}, {levels}]\n"
    )
}

#[test]
fn a_plain_jdk_is_called_so_that_it_says_what_it_is() {
    let (from, to) = (
        "name = \"memory\"\nlevels = [\"512Mi\", \"256Mi\"]\ndescend = true",
        "name = \"jdk\"\nlevels = [\"17\", \"openj9-25\"]",
    );
    assert!(GOOD.contains(from));
    let text = GOOD.replace(from, to);
    let experiment =
        Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x")).unwrap();
    let labels = experiment.configurations().into_iter().map(|c| c.label);
    assert_eq!(
        labels.collect::<Vec<_>>(),
        [
            "jdk17 default",
            "jdk17 c1",
            "openj9-25 default",
            "openj9-25 c1"
        ]
    );
}

#[test]
fn a_level_may_run_another_application() {
    let text = with_applications(
        "{ label = \"native\", command = [\"bin/orders\", \"--x\"] }, { label = \"image\", image = \"orders:1\", engine = \"docker\" }",
    );
    let experiment =
        Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x")).unwrap();
    let configurations = experiment.configurations();
    let apps: Vec<_> = configurations
        .iter()
        .map(|c| experiment.app_of(c))
        .collect();
    let image = |app: &AppUnderTest| app.image.as_ref().map(|image| image.reference.clone());
    assert_eq!(apps[0].command, ["java", "-jar", "app.jar"]);
    assert_eq!(apps[1].command, ["bin/orders", "--x"]);
    assert_eq!((image(&apps[0]), image(&apps[1])), (None, None));
    assert_eq!(image(&apps[2]).as_deref(), Some("orders:1"));
    assert!(apps[2].command.is_empty(), "the image's own");
    let images: Vec<_> = experiment
        .images()
        .map(|i| (&*i.reference, i.engine))
        .collect();
    assert_eq!(
        images,
        [("orders:1", Some(loadline_protocol::EngineKind::Docker))]
    );
}

#[test]
fn a_level_with_another_application_is_held_to_what_applications_are_held_to() {
    let client = told(&with_applications(
        "{ label = \"i\", command = [\"docker\", \"run\", \"a:1\"] }",
    ));
    assert!(client.contains("--image a:1 in"), "{client}");
    let nothing = told(&with_applications(
        "{ label = \"native\", command = [\"\"] }",
    ));
    assert!(
        nothing.contains("the command of the level `native` is empty"),
        "{nothing}"
    );
    let engine = told(&with_applications("{ label = \"i\", engine = \"podman\" }"));
    assert!(engine.contains("no image for it to start"), "{engine}");
    let jdk = "{ label = \"i\", image = \"a:1\", jdk = \"17\" }";
    let jdk = told(&with_applications(jdk));
    assert!(
        jdk.contains("`512Mi i` names a JDK (17), and an image has its own"),
        "{jdk}"
    );
    let priced = with_applications("{ label = \"i\", image = \"a:1\" }");
    let priced = told(&format!("{priced}[search]\nprices = \"fargate\"\n"));
    assert!(
        priced.contains("a level runs another application"),
        "{priced}"
    );
}

#[test]
fn what_a_flag_says_is_refused_by_the_flag_and_what_the_file_under_it_says_by_its_line() {
    let path = Path::new("exp.toml");
    let mut file = ExperimentFile::from_toml(GOOD, path).unwrap();
    let told = |file: &ExperimentFile, under| {
        let error = Experiment::from_flags(file, under, Path::new("/x")).unwrap_err();
        error.to_string()
    };
    file.slo = ValueWithOrigin::from_flag("--slo", "p99<1s,GET /x: p99<1s".to_owned());
    assert_snapshot!(told(&file, Some((GOOD, path))), @"--slo: the SLO names `GET /x`, which is not a request of the load");
    assert_snapshot!(told(&file, None), @"--slo: the SLO names `GET /x`, which is not a request of the load");

    // The file's objective fits its own mix, and not the single request of the flags.
    let text = with_mix("POST /orders: p99<200ms", MIX);
    let mut file = ExperimentFile::from_toml(&text, path).unwrap();
    file.load.request.clear();
    assert_snapshot!(told(&file, Some((&text, path))), @r#"
    exp.toml:2:7: the SLO names `POST /orders`, which is not a request of the load
        slo = "POST /orders: p99<200ms"
    "#);
}

#[test]
fn the_directory_beside_the_file_may_be_called_a_dot() {
    for (directory, meant) in [
        (".", "/x/y"),
        ("./app/.", "/x/y/app"),
        ("../z", "/x/y/../z"),
    ] {
        let text = GOOD.replace("[app]", &format!("[app]\ndirectory = \"{directory}\""));
        let experiment =
            Experiment::from_file_text(&text, Path::new("y/exp.toml"), Path::new("/x"));
        let found = experiment.unwrap().app.directory;
        assert_eq!(found.as_os_str(), meant, "{directory}");
    }
}

#[test]
fn a_study_of_memory_comes_behind_the_judged_load_with_values_of_its_own() {
    let text = GOOD.replace("[limits]", "peak = \"2x\"\n[limits]");
    let load = Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x"))
        .unwrap()
        .load;
    let of = Configuration::default();
    let judged = load.phases(&of, None, 7).unwrap();
    let burst = &judged[2];
    assert_eq!(burst.phase, TrialPhase::Peak);
    assert_eq!(burst.plan.model.mean_rate(), Some(200.0));
    let soaked = load.cycles(&of, None, 7, Duration::from_secs(60)).unwrap();
    assert!(soaked.iter().all(|p| p.phase != TrialPhase::Peak));
    for (goal, behind) in [
        (StudyGoal::LiveSet, "ageing 45s"),
        (StudyGoal::Wall, "ageing 45s, squeeze 90s, second load 15s"),
        (StudyGoal::Burst, "ageing 15s, second load 4s"),
    ] {
        let phases = load.studied(&of, None, 7, goal).unwrap();
        assert_eq!(phases[..judged.len()], judged);
        let told = phases[judged.len()..].iter().map(|phase| {
            let length = phase.plan.model.scheduled_duration().unwrap_or_default();
            format!("{} {}s", phase.phase, length.as_secs())
        });
        assert_eq!(told.collect::<Vec<_>>().join(", "), behind);
        assert_eq!(phases[judged.len()].plan.model.mean_rate(), None);
        let mut seeds: Vec<u64> = phases.iter().map(|phase| phase.plan.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), phases.len());
    }
}

#[test]
fn the_code_of_missed_thresholds_is_the_tools_own() {
    let slo = |load: &str, slo: &str| {
        let command = format!("[load]\ncommand = [{load}]");
        let text = GOOD.replace("p99<250ms", slo).replace("[load]", &command);
        let experiment =
            Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x")).unwrap();
        (experiment.slo.to_string(), experiment.doubt_exit_code())
    };
    for (load, written, meant) in [
        (
            "'k6', 'run', 'a.js'",
            "load passes",
            "load passes unless 99,errors<1%",
        ),
        (
            "'sh', '-c', 'cd x && /opt/k6 run a.js'",
            "load passes",
            "load passes unless 99,errors<1%",
        ),
        (
            "'k6', 'run', 'a.js'",
            "load passes unless 7",
            "load passes unless 7,errors<1%",
        ),
        (
            "'java', '-cp', 'lib', 'io.gatling.app.Gatling'",
            "load passes",
            "load passes unless 2,errors<1%",
        ),
        (
            "'locust', '-f', 'a.py'",
            "load passes",
            "load passes,errors<1%",
        ),
        (
            "'./own', 'http://localhost/k6'",
            "load passes",
            "load passes,errors<1%",
        ),
    ] {
        assert_eq!(slo(load, written), (meant.to_owned(), None), "{load}");
    }
    let (_, doubt) = slo("'vegeta', 'attack'", "load passes");
    assert_snapshot!(doubt.unwrap_or_default(), @"`load passes` holds for any answers: vegeta exits with 0 even if all requests fail; only the other objectives of the SLO judge");
    assert_eq!(slo("'vegeta', 'attack'", "p99<1s").1, None);
}

#[test]
fn headroom_is_part_of_the_rate() {
    let with = |text: &str| format!("{text}\n[search]\nheadroom = \"20%\"\n");
    let experiment =
        Experiment::from_file_text(&with(GOOD), Path::new("exp.toml"), Path::new("/x"));
    assert_eq!(experiment.unwrap().load.model.mean_rate(), Some(120.0));
    let closed = GOOD.replace("rate = \"100/s\"", "closed = true");
    assert!(
        told(&with(&closed)).contains("headroom is a share of the rate, but the load has no rate")
    );
}

#[test]
fn options_of_a_run_go_where_they_are_sent() {
    let experiment = |program: &str, to: &str| {
        let text = format!(
            "slo = \"exit=0\"\n[app]\ncommand = [\"{program}\"]\nends = true\noptions-to = \"{to}\"\n"
        );
        Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/"))
    };
    for (program, to, variable) in [
        ("mvn", "launcher", "MAVEN_OPTS"),
        ("./gradlew", "launcher", "GRADLE_OPTS"),
        ("/opt/sbt/bin/sbt", "launcher", "SBT_OPTS"),
        ("mvn", "all", "JAVA_TOOL_OPTIONS"),
        ("./batch.sh", "JAVA_OPTS", "JAVA_OPTS"),
    ] {
        let configurations = experiment(program, to)
            .expect("it is valid")
            .configurations();
        assert_eq!(
            configurations[0].options_variable.as_deref(),
            Some(variable)
        );
    }
    let refused = |program, to| {
        let error = experiment(program, to)
            .expect_err("it is refused")
            .to_string();
        error.lines().next().unwrap_or_default().to_owned()
    };
    assert_snapshot!(refused("./batch.sh", "launcher"), @"exp.toml:5:14: `./batch.sh` is not a launcher that loadline knows");
    assert_snapshot!(refused("mvn", "laucher"), @"exp.toml:5:14: `laucher` is not a place for JVM options");
    assert_snapshot!(refused("/usr/bin/java", "all"), @"exp.toml:5:14: options-to is for a program that starts its JVMs itself");
}

#[test]
fn a_run_is_priced_by_the_offer_that_is_named() {
    let run = |search: &str| {
        let text = format!(
            "slo = \"exit=0\"\n[app]\ncommand = [\"mvn\"]\nends = true\n[search]\n{search}\n"
        );
        Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/"))
    };
    let offer = |search| {
        let settings = run(search).expect("it is valid").search;
        assert!(settings.pricing.is_none(), "it has no replicas");
        settings.run_offer.expect("it is a run").name
    };
    assert_eq!(offer(""), "fargate");
    assert_eq!(offer("prices = \"gke-autopilot\""), "gke-autopilot");
    let refusal = run("prices = \"fargate\"\nspare = 1").expect_err("a run has no replicas");
    assert!(refusal.to_string().contains("spare replicas"), "{refusal}");
}
