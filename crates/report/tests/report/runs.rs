//! Runs that end: what a build's answer says, and the files that ship it.

use std::time::Duration;

use loadline_analysis::offer::RunPrice;
use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{JvmProcess, RunEvidence, ValueProvenance};
use loadline_report::content::headline;
use loadline_report::emit::{Artefact, RunShape, emit_run};
use loadline_report::{ResultView, render_html, render_terminal};
use loadline_sizing::Bytes;

use crate::artefacts::text;
use crate::fixture;

/// A build with a launcher and, one after the other, two test JVMs.
fn build(variable: Option<&str>, options: &[&str]) -> ResultView {
    let mut view = fixture::search();
    view.slo = "exit=0,time<90s".parse().expect("an SLO");
    let jvm = |main: &str, (from, until), heap| JvmProcess {
        main: main.to_owned(),
        parent: None,
        from: Duration::from_secs(from),
        until: Duration::from_secs(until),
        heap_max: Some(Bytes::from_mib(heap)),
        heap_option: None,
        heap_committed: None,
        heap_after: Some(Bytes::from_mib(heap / 3)),
        rss: Bytes::from_mib(heap),
    };
    let run = RunEvidence {
        jvms: vec![
            jvm(
                "org.codehaus.plexus.classworlds.launcher.Launcher",
                (0, 9),
                64,
            ),
            jvm("surefirebooter-1.jar", (3, 5), 126),
            jvm("surefirebooter-2.jar", (6, 8), 120),
        ],
        ..RunEvidence::default()
    };
    let recommendation = view.recommendation.as_mut().expect("it has one");
    let configuration = &mut recommendation.configuration;
    configuration.options_variable = variable.map(str::to_owned);
    let options = options.iter();
    configuration.jvm_options = options
        .map(|text| fixture::option(text, ValueProvenance::Measured))
        .collect();
    let answer = configuration.clone();
    for trial in &mut view.trials {
        trial.evidence.run = Some(run.clone());
        if trial.configuration.memory == answer.memory {
            trial.configuration = answer.clone();
        }
    }
    let price = |cpus: u32, usd| RunPrice {
        offer: "runners.csv".to_owned(),
        region: "linux".to_owned(),
        billed: InstanceSize {
            cpu: loadline_sizing::Cpus::from_millis(1000 * cpus),
            memory: Bytes::from_gib(u64::from(4 * cpus)),
        },
        billed_time: Duration::from_secs(60),
        usd,
        price_date: "2026-11-01".to_owned(),
    };
    recommendation.run_prices = vec![price(2, 0.008), price(4, 0.016)];
    view
}

fn shipped(view: &ResultView, command: &str, schedule: Option<&str>) -> Vec<Artefact> {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let shape = RunShape {
        name: "orders build",
        image: "maven:3.9",
        command: &words,
        is_image: false,
        schedule,
    };
    emit_run(view, &shape).expect("it has a recommendation")
}

fn names(artefacts: &[Artefact]) -> Vec<&str> {
    artefacts.iter().map(|a| a.name).collect()
}

const HEAP: [&str; 2] = ["-Xms64m", "-Xmx64m"];

#[test]
fn the_job_of_a_measured_image_keeps_its_entry_point() {
    let view = build(None, &[]);
    let job = |command: &[String]| {
        let shape = RunShape {
            name: "report",
            image: "registry/report:2",
            command,
            is_image: true,
            schedule: None,
        };
        let files = emit_run(&view, &shape).expect("it has a recommendation");
        text(&files, "job.yaml")
    };
    let with_words = job(&["day.csv".to_owned()]);
    assert!(with_words.contains("args:\n") && with_words.contains("- day.csv\n"));
    for job in [with_words, job(&[])] {
        assert!(!job.contains("command:"), "{job}");
    }
}

#[test]
fn a_build_ships_the_heap_of_its_launcher_and_of_its_tests() {
    let view = build(Some("MAVEN_OPTS"), &HEAP);
    let files = shipped(&view, "mvn -o -q package", None);
    assert_eq!(
        names(&files),
        ["job.yaml", "jvm.config", "surefire.xml", "github-job.yaml"]
    );
    assert_eq!(text(&files, "jvm.config"), "-Xms64m\n-Xmx64m\n");
    assert!(text(&files, "surefire.xml").contains("<argLine>-Xmx126m</argLine>"));
    let job = text(&files, "job.yaml");
    assert!(job.contains("loadline/outside-heap: 148Mi\n"), "{job}");
    assert!(job.contains("name: MAVEN_OPTS\n"), "{job}");
    assert!(job.contains("value: \"-Xms64m -Xmx64m\""), "{job}");
    let github = text(&files, "github-job.yaml");
    for part in [
        "runs-on: ubuntu-latest",
        "2 vCPU, 8Gi on runners.csv: $0.0080 a run; 4 vCPU, 16Gi on runners.csv: $0.0160 a run",
        "timeout-minutes: 2",
        "run: \"mvn -o -q package\"",
        "MAVEN_OPTS: \"-Xms64m -Xmx64m\"",
    ] {
        assert!(github.contains(part), "{part}: {github}");
    }
}

#[test]
fn each_tool_gets_what_it_reads_and_a_batch_a_schedule() {
    let view = build(Some("GRADLE_OPTS"), &HEAP);
    let files = shipped(&view, "./gradlew build", None);
    assert_eq!(
        names(&files),
        ["job.yaml", "gradle.properties", "github-job.yaml"]
    );
    assert!(text(&files, "gradle.properties").ends_with("\norg.gradle.jvmargs=-Xms64m -Xmx64m\n"));
    let mut view = build(None, &[]);
    for trial in &mut view.trials {
        let run = trial.evidence.run.as_mut().expect("it is a run");
        run.jvms[1].main = "org.apache.spark.deploy.SparkSubmit".to_owned();
    }
    let files = shipped(&view, "spark-submit --class Job job.jar", None);
    assert_eq!(names(&files), ["job.yaml", "spark-defaults.conf"]);
    // The limit is 212Mi.
    let spark = text(&files, "spark-defaults.conf");
    assert!(
        spark.ends_with("\nspark.driver.memory 126m\nspark.driver.memoryOverhead 86m\n"),
        "{spark}"
    );
    let batch = build(None, &HEAP);
    let files = shipped(&batch, "java -jar batch.jar", Some("0 3 * * *"));
    assert_eq!(names(&files), ["job.yaml", "jvm.options"]);
    let job = text(&files, "job.yaml");
    for part in [
        "kind: CronJob\n",
        "schedule: \"0 3 * * *\"\n",
        "activeDeadlineSeconds: 90\n",
    ] {
        assert!(job.contains(part), "{part}: {job}");
    }
}

#[test]
fn a_line_break_in_an_option_begins_no_line() {
    let view = build(None, &["-Xmx64m", "-Da=b\n-Dhttp.proxyHost=elsewhere"]);
    let files = shipped(&view, "java -jar batch.jar", None);
    assert!(text(&files, "jvm.options").ends_with("\n-Xmx64m\n"));
}

#[test]
fn an_answer_whose_heap_may_grow_rests_on_trials_that_touched_it() {
    let mut view = build(None, &HEAP);
    view.slo = "exit=0".parse().expect("an SLO");
    let grows = view.recommendation.as_mut().expect("it has one");
    grows.configuration.jvm_options.remove(0);
    let longest = view.trials.iter().filter_map(|t| t.evidence.start.ready);
    let longest = longest.max().expect("runs");
    let files = shipped(&view, "java -jar batch.jar", None);
    let job = text(&files, "job.yaml");
    let seconds = job
        .split_once("activeDeadlineSeconds: ")
        .expect("a bound")
        .1;
    let seconds: String = seconds.chars().take_while(char::is_ascii_digit).collect();
    let seconds: u64 = seconds.parse().expect("seconds");
    assert!(seconds > longest.as_secs(), "{job}");
    let said = headline(&view).sentence;
    assert!(said.contains("judged for 30 s"), "{said}");
    let shown = render_terminal(&view, 200);
    assert!(shown.contains("PASS, recommended"), "{shown}");
}

#[test]
fn an_answer_says_where_the_heap_goes_and_what_a_run_costs() {
    let said = headline(&build(Some("MAVEN_OPTS"), &HEAP));
    assert!(
        said.sentence.contains("with -Xmx64m in MAVEN_OPTS"),
        "{}",
        said.sentence
    );
    let costs = said.details.iter().find(|line| line.contains("costs"));
    insta::assert_snapshot!(costs.expect("it has prices"), @"A run costs $0.0080 on runners.csv in linux: 60 s of 2 vCPU, 8Gi, price of 2026-11-01; in 4 vCPU, 16Gi it costs $0.0160.");
}

#[test]
fn the_picture_of_a_job_is_its_time_over_its_memory() {
    let mut view = build(Some("MAVEN_OPTS"), &["-Xms64m", "-Xmx64m"]);
    for (heap, trial) in (40..).zip(&mut view.trials) {
        let heap = fixture::option(&format!("-Xmx{heap}m"), ValueProvenance::Measured);
        trial.configuration.options_variable = Some("MAVEN_OPTS".to_owned());
        trial.configuration.jvm_options = vec![heap];
    }
    let html = render_html(&view);
    assert!(
        html.contains("Worst run time over the memory limit"),
        "{html}"
    );
    assert!(html.contains("the slowest run of each size"), "{html}");
    assert!(!html.contains("worst p99"), "{html}");
}

#[test]
fn each_jvm_of_a_run_says_where_its_heap_is_from() {
    let mut view = build(Some("MAVEN_OPTS"), &["-Xms64m", "-Xmx64m"]);
    let answer = view.recommendation.as_ref().expect("it has one");
    let answer = answer.configuration.clone();
    for trial in &mut view.trials {
        trial.configuration = answer.clone();
        let run = trial.evidence.run.as_mut().expect("it is a run");
        run.jvms[1].heap_max = Some(Bytes::from_mib(106));
    }
    let row = |view: &ResultView, jvm: &str| {
        let text = render_terminal(view, 160);
        let mut lines = text.lines().map(str::trim_start);
        lines
            .find(|line| line.starts_with(jvm))
            .expect(jvm)
            .to_owned()
    };
    assert!(row(&view, "org.codehaus").contains("MAVEN_OPTS"));
    // Half of the 212Mi.
    assert!(row(&view, "surefirebooter-1").contains("default"));
    assert!(row(&view, "surefirebooter-2").contains("not known"));
    for trial in &mut view.trials {
        let run = trial.evidence.run.as_mut().expect("it is a run");
        run.jvms[2].heap_option = Some("-Xmx120m".to_owned());
    }
    assert!(row(&view, "surefirebooter-2").contains("-Xmx120m"));
}
