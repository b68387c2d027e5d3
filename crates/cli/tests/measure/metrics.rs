//! Metrics as objectives: read from the application and from a command, kept, missed, and void.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 5] = [
    (
        "a_consumer_is_driven_and_judged_by_its_metrics",
        a_consumer_is_driven_and_judged_by_its_metrics,
    ),
    (
        "a_drive_that_ends_early_is_void",
        a_drive_that_ends_early_is_void,
    ),
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

/// One trial of a service with these metrics, judged for so long.
fn run_with(lab: &Lab, metrics: &str, (slo, duration): (&str, &str), more: &[&str]) -> Ended {
    let metrics = format!("metrics={metrics}");
    lab.call("run")
        .args(&["--wait", "--accept-noise", "--cpu", "1", "--slo", slo])
        .args(&["--url", "http://localhost:8080/", "--rate", "20/s"])
        .args(&["--warm-up", "0s", "--duration", duration, "--full"])
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
    let ended = run_with(&lab, text, (slo, "9s"), &more).expect_code(0);
    ended.prints(&["lag: max<=7"]);
    let trial = lab.trial();
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
    run_with(&lab, text, ("errors<50%, lag: max<50", "9s"), &[]).expect_code(1);
    let trial = lab.trial();
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
        run_with(&lab, metrics, ("errors<50%, lag: max<50", "3s"), &[]);
        let trial = lab.trial();
        assert_eq!(trial["verdict"]["class"], class, "{trial}");
        let reason = trial["reason"].to_string();
        assert!(reason.contains(said), "{reason}");
    }
    None
}

const CONSUMER: &str = "
import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.util.ArrayDeque;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;

/** Takes a message for each byte that comes to port 9600; keeps the last 300, each of 100 kB. */
public class Consumer {
    public static void main(String[] arguments) throws Exception {
        var queue = new LinkedBlockingQueue<Integer>();
        var done = new AtomicLong();
        var http = HttpServer.create(new InetSocketAddress(\"127.0.0.1\", 9505), 0);
        http.createContext(\"/metrics\", exchange -> {
            byte[] text = (\"lag \" + queue.size() + \"\\ndone_total \" + done + \"\\n\").getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        http.start();
        var server = new ServerSocket(9600);
        var reader = new Thread(() -> {
            while (true) {
                try (var socket = server.accept()) {
                    for (int b; (b = socket.getInputStream().read()) >= 0;) queue.put(b);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }
        });
        reader.setDaemon(true);
        reader.start();
        System.out.println(\"consuming\");
        var window = new ArrayDeque<byte[]>();
        while (true) {
            int seed = queue.take();
            byte[] message = new byte[100_000];
            for (int i = 0; i < message.length; i++) message[i] = (byte) (i * seed);
            window.add(message);
            if (window.size() > 300) window.poll();
            done.incrementAndGet();
        }
    }
}
";

/// Its command, the SLO, and how long it is judged.
type Drive<'a> = (&'a str, &'a str, &'a str);

/// Sends 500 messages a second.
const PRODUCER: &str =
    "exec 3<>/dev/tcp/127.0.0.1/9600; while head -c 50 /dev/zero >&3; do sleep 0.1; done; exit 4";

/// A lab with the consumer; `None` without a compiler.
fn consumer_lab() -> Option<Lab> {
    let lab = Lab::new();
    std::fs::write(lab.path().join("Consumer.java"), CONSUMER).expect("a file");
    let mut compiler = std::process::Command::new("javac");
    compiler.arg("Consumer.java").current_dir(lab.path());
    compiler.status().ok().filter(|status| status.success())?;
    let open = Permissions::from_mode(0o755);
    std::fs::set_permissions(lab.path(), open).expect("the lab is its own");
    Some(lab)
}

/// One trial of a consumer with these JVM options and drive, judged for so long.
fn consume(lab: &Lab, jvm: &[&str], ready: &[&str], (drive, slo, duration): Drive<'_>) -> Ended {
    let call = lab.call("run").in_directory(lab.path());
    let call = call.args(&[
        "--wait",
        "--accept-noise",
        "--cpu",
        "1",
        "--memory",
        "256Mi",
    ]);
    let call = call.args(&["--metrics", "http://localhost:9505/metrics"]);
    let call = call.args(&["--metric", "lag=lag", "--metric", "done=done_total"]);
    let drive = format!("bash -c '{drive}'");
    let call = call.args(&["--slo", slo, "--drive", &drive, "--full"]);
    let call = call.args(&["--warm-up", "1s", "--duration", duration]);
    let call = call.args(ready).args(&["--", "java", "-XX:+UseSerialGC"]);
    call.args(jvm).args(&["-cp", ".", "Consumer"]).into_end()
}

fn a_consumer_is_driven_and_judged_by_its_metrics() -> Outcome {
    let Some(lab) = consumer_lab() else {
        return Some("no javac".into());
    };
    let slo = "lag: max<100000, done: rate>10/s, heap<95%";
    let drive = (PRODUCER, slo, "6s");
    let listens = "command:/bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/9600'";
    let ready = ["--ready", listens];
    let ended = consume(&lab, &["-Xmx96m"], &ready, drive).expect_code(0);
    ended.prints(&["under the work of `bash", "What did the metrics show?"]);
    let trial_of_first = lab.trial();
    assert_eq!(
        trial_of_first["verdict"]["class"], "pass",
        "{trial_of_first}"
    );
    let evidence = &trial_of_first["evidence"];
    assert_eq!(evidence["load"], serde_json::json!([]), "{evidence}");
    assert!(evidence["drive"]["cpu_ns"].is_number(), "{evidence}");
    let options = trial_of_first["configuration"]["jvm_options"].to_string();
    assert!(options.contains("+ExitOnOutOfMemoryError"), "{options}");
    assert_eq!(evidence["start"]["last_probe"], "its command ended with 0");
    // The second one's main thread dies, and its metrics go on.
    for jvm in [
        &["-Xmx24m"][..],
        &["-Xmx24m", "-XX:-ExitOnOutOfMemoryError"],
    ] {
        consume(&lab, jvm, &["--ready", "log:consuming"], drive);
        let trial = lab.trial();
        assert_eq!(trial["verdict"]["cause"], "java_oom", "{trial}");
    }
    None
}

fn a_drive_that_ends_early_is_void() -> Outcome {
    let Some(lab) = consumer_lab() else {
        return Some("no javac".into());
    };
    let once = "head -c 3000 /dev/zero > /dev/tcp/127.0.0.1/9600";
    let drains = "lag: max<100000, lag: drains<6s";
    let cases: [(Drive<'_>, &str); 3] = [
        ((once, "lag: max<100000", "2s"), "invalid"),
        (("exit 4", drains, "6s"), "invalid"),
        ((once, drains, "6s"), "pass"),
    ];
    for (drive, class) in cases {
        consume(&lab, &["-Xmx96m"], &[], drive);
        let trial = lab.trial();
        assert_eq!(trial["verdict"]["class"], class, "{drive:?}: {trial}");
        if class == "invalid" {
            assert_eq!(trial["verdict"]["cause"], "load_command", "{trial}");
        }
    }
    None
}
