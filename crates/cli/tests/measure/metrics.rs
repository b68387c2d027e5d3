//! Metrics as objectives: read from the application and from a command, kept, missed, and void.

use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 3] = [
    (
        "metrics_of_an_endpoint_and_a_command_are_judged",
        metrics_of_an_endpoint_and_a_command_are_judged,
    ),
    (
        "a_metric_that_grows_keeps_no_bound",
        a_metric_that_grows_keeps_no_bound,
    ),
    (
        "a_metric_that_is_not_there_is_void",
        a_metric_that_is_not_there_is_void,
    ),
];

const METRIC: &str = "lag=records_lag{topic=\"orders\"}";

/// One trial of a service with these metrics.
fn run_with(lab: &Lab, metrics: &str, slo: &str, more: &[&str]) -> Ended {
    let metrics = format!("metrics={metrics}");
    lab.call("run")
        .args(&["--wait", "--accept-noise", "--cpu", "1", "--slo", slo])
        .args(&["--url", "http://localhost:8080/", "--rate", "20/s"])
        .args(&["--warm-up", "0s", "--duration", "9s", "--full"])
        .args(&[
            "--metrics",
            "http://localhost:8080/metrics",
            "--metric",
            METRIC,
        ])
        .args(more)
        .zoo(lab, &["serve", &metrics])
        .into_end()
}

fn trial(lab: &Lab) -> serde_json::Value {
    lab.result("last")["trials"][0].take()
}

fn metrics_of_an_endpoint_and_a_command_are_judged() -> Outcome {
    let lab = Lab::new();
    let text = "records_lag{topic=\"orders\",p=\"0\"} 3\nrecords_lag{topic=\"orders\",p=\"1\"} 4\ndone_total {n}";
    let slo = "errors<50%, lag: max<=7, done: rate>0.1/s, depth: last=12";
    let more = [
        "--metric",
        "done=done_total",
        "--probe",
        "depth=/bin/echo depth 12",
    ];
    let ended = run_with(&lab, text, slo, &more).expect_code(0);
    ended.prints(&["lag: max<=7"]);
    let trial = trial(&lab);
    assert_eq!(trial["verdict"]["class"], "pass", "{trial}");
    let reason = trial["reason"].as_str().expect("a reason");
    for said in ["max of lag 7 <= 7", "last of depth 12 = 12"] {
        assert!(reason.contains(said), "{reason}");
    }
    let metrics = trial["evidence"]["metrics"].as_array().expect("metrics");
    assert_eq!(metrics.len(), 3, "{trial}");
    for metric in metrics {
        let values = metric["values"].as_array().expect("samples");
        assert!(values.len() >= 8 && values[1].is_number(), "{metric}");
    }
    let export = |format| lab.call("export").args(&["--format", format]).into_end();
    export("csv").expect_code(0).prints(&["lag: max<=7 7"]);
    let page = export("markdown").expect_code(0);
    page.prints(&["What did the metrics show?"]);
    None
}

fn a_metric_that_grows_keeps_no_bound() -> Outcome {
    let lab = Lab::new();
    let text = "records_lag{topic=\"orders\"} {n}";
    run_with(&lab, text, "errors<50%, lag: max<50", &[]).expect_code(1);
    let trial = trial(&lab);
    assert_eq!(trial["verdict"]["class"], "slo_miss", "{trial}");
    let reason = trial["reason"].to_string();
    assert!(reason.contains("lag grows by"), "{reason}");
    None
}

fn a_metric_that_is_not_there_is_void() -> Outcome {
    // (metrics, verdict, what the reason says)
    let cases = [
        (
            "records_lag{topic=\"order\"} 3",
            "invalid",
            "the nearest are records_lag{topic=",
        ),
        (
            "<html><p>lag 3</p></html>",
            "invalid",
            "answered with an HTML page",
        ),
        (
            "records_lag{topic=\"orders\"} NaN",
            "slo_miss",
            "samples are missing or no number (last: it was NaN)",
        ),
    ];
    for (metrics, class, said) in cases {
        let lab = Lab::new();
        run_with(&lab, metrics, "errors<50%, lag: max<50", &[]);
        let trial = trial(&lab);
        assert_eq!(trial["verdict"]["class"], class, "{trial}");
        let reason = trial["reason"].to_string();
        assert!(reason.contains(said), "{reason}");
    }
    None
}
