//! The study of counts: the table of [liberty] as if it had been measured here.

use loadline_analysis::record::{JvmOption, TrialRecord, ValueProvenance};
use loadline_report::ResultView;
use loadline_sizing::{Bytes, Cpus};

use crate::fixture;

/// 24 cores and 1536 MB of heap cut into this many JVMs, with their throughput and RSS.
fn cut(instances: u32, throughput: f64, rss: u64) -> TrialRecord {
    let trials = fixture::search().trials;
    let sound = |t: &TrialRecord| !t.evidence.load.is_empty() && t.verdict.is_evidence();
    let mut trial = trials.into_iter().find(sound).expect("a sound trial");
    trial.id = format!("liberty-{instances}");
    let configuration = &mut trial.configuration;
    configuration.instances = instances;
    configuration.label = format!("{instances} JVMs");
    configuration.cpu = Some(Cpus::from_millis(24_000 / instances));
    configuration.memory = None;
    configuration.jvm_options = vec![JvmOption {
        text: format!("-Xmx{}m", 1536 / instances),
        provenance: ValueProvenance::User,
    }];
    for load in &mut trial.evidence.load {
        load.offered_rate = None;
        load.achieved_rate = throughput;
    }
    trial.evidence.cgroup.loaded_rss = Some(Bytes::from_mib(rss));
    trial
}

fn liberty() -> ResultView {
    let rows = [
        (1, 164_199.0, 145),
        (2, 313_687.0, 236),
        (3, 401_109.0, 356),
        (4, 472_249.0, 445),
        (6, 490_804.0, 613),
        (12, 435_195.0, 1212),
    ];
    ResultView {
        recommendation: None,
        trials: rows.map(|(n, rate, rss)| cut(n, rate, rss)).into(),
        ..fixture::search()
    }
}

#[test]
fn the_study_says_where_the_knee_is_and_what_an_instance_takes() {
    let text = loadline_report::render_terminal(&liberty(), 200);
    for part in [
        "How many instances?",
        "Throughput peaks at 6.4 instances (95 % interval ",
        "the most was measured with 6.",
        "The knee is at 4 instances",
        "is predicted within 6",
        "RSS of all: 51 MiB and 96 MiB for each instance (R² 0.999).",
        "+188 %",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let page = loadline_report::render_html(&liberty());
    assert!(page.contains("class=\"instances\"") && page.contains("class=\"curve\""));
}

#[test]
fn a_result_that_does_not_vary_the_number_says_nothing_of_it() {
    let text = loadline_report::render_terminal(&fixture::search(), 200);
    assert!(!text.contains("How many instances?"), "{text}");
}

#[test]
fn charts_draw_the_limit_of_all_instances() {
    let mut view = fixture::search();
    for trial in &mut view.trials {
        trial.configuration.instances = 4;
    }
    let page = loadline_report::render_html(&view);
    // 212Mi each.
    assert!(page.contains("\"memory_limit\":848"), "no limit of all");
    assert!(!page.contains("\"memory_limit\":212"), "the limit of one");
    assert!(page.contains("\"cpu_limit\":4.0"), "no CPU limit of all");
    let text = loadline_report::render_terminal(&view, 200);
    assert!(text.contains("Peak memory, all instances"), "{text}");
}

#[test]
fn charts_over_time_have_words_too() {
    let page = loadline_report::render_html(&fixture::search());
    let (_, words) = page.split_once("The same in words").expect("a list");
    let (words, _) = words.split_once("</ul>").expect("its end");
    let trials = page.matches("<option value=").count();
    assert_eq!(words.matches("<li>").count(), trials);
    for part in [
        "p99 of a second at most",
        "; memory at most ",
        "Mi of 212Mi at ",
    ] {
        assert!(words.contains(part), "{part}{words}");
    }
    // Within an image the legend's buttons would have no name.
    assert!(!page.contains("class=\"chart\" id=\"chart-memory\" role=\"img\""));
}
