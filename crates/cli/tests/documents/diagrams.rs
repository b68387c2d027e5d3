//! Diagrams of the documents: how data flows, and the phases of a trial. They are drawn from the
//! tables below, so that a change is a change of words.

use std::fmt::Write as _;

use super::pictures::escaped;

const STYLE: &str = "<style>\ntext { font: 14px system-ui, \"DejaVu Sans\", sans-serif; fill: #1c2126; }\n\
    .small { font-size: 12px; fill: #56606a; }\nrect { fill: #eef2f6; stroke: #8a97a5; }\n\
    line { stroke: #56606a; marker-end: url(#tip); }\n.back { fill: #ffffff; stroke: none; }\n</style>\n\
    <marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
    orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#56606a\"/></marker>\n";

struct Step {
    name: &'static str,
    does: &'static str,
    /// What goes to the next step, and what comes back from it.
    down: &'static str,
    up: &'static str,
}

const FLOW: &[Step] = &[
    Step {
        name: "experiment",
        does: "a file, or flags",
        down: "parsed",
        up: "",
    },
    Step {
        name: "search",
        does: "decides which starts run, and when it knows enough",
        down: "asks",
        up: "records; at last report and files",
    },
    Step {
        name: "runner",
        does: "slots, repeats, the store",
        down: "order",
        up: "events, then the verdict",
    },
    Step {
        name: "trial",
        does: "one start: a process on this machine, a container or a pod",
        down: "limits, signals, requests",
        up: "counters, GC log, latencies",
    },
    Step {
        name: "application and load generator",
        does: "each in its own cgroup",
        down: "",
        up: "",
    },
];

struct Phase {
    name: &'static str,
    width: f64,
    does: [&'static str; 3],
}

const PHASES: &[Phase] = &[
    Phase {
        name: "prepare",
        width: 150.0,
        does: ["cgroup, namespaces,", "page cache dropped,", "dependencies"],
    },
    Phase {
        name: "start",
        width: 160.0,
        does: ["from exec to the first", "good answer", ""],
    },
    Phase {
        name: "warm-up",
        width: 130.0,
        does: ["load on schedule,", "not judged", ""],
    },
    Phase {
        name: "measure",
        width: 170.0,
        does: ["load on schedule,", "judged against the SLO", ""],
    },
    Phase {
        name: "age, squeeze",
        width: 170.0,
        does: [
            "in a search: a burst; in",
            "one start a falling limit,",
            "then judged again",
        ],
    },
    Phase {
        name: "stop",
        width: 110.0,
        does: ["SIGTERM,", "exit code,", "nothing is left"],
    },
];

fn picture(width: f64, height: f64, label: &str, drawn: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n{STYLE}\
         <rect class=\"back\" width=\"{width}\" height=\"{height}\"/>\n{drawn}</svg>\n",
        escaped(label)
    )
}

fn text(x: f64, y: f64, class: &str, words: &str) -> String {
    let words = escaped(words);
    format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{words}</text>\n")
}

/// Steps below each other, with what goes down at the left and what comes up at the right.
pub fn data_flow() -> String {
    let (width, height, gap) = (460.0, 52.0, 46.0);
    let mut out = String::new();
    for (i, step) in FLOW.iter().enumerate() {
        let y = 10.0 + i as f64 * (height + gap);
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "<rect x=\"10\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
        );
        out += &text(24.0, y + 22.0, "", step.name);
        out += &text(24.0, y + 41.0, "small", step.does);
        let (from, to) = (y + height, y + height + gap);
        for (x, from, to, words) in [(60.0, from, to, step.down), (250.0, to, from, step.up)] {
            if !words.is_empty() {
                let _ = writeln!(
                    out,
                    "<line x1=\"{x}\" y1=\"{from}\" x2=\"{x}\" y2=\"{to}\"/>"
                );
                out += &text(x + 10.0, y + height + 28.0, "small", words);
            }
        }
    }
    let all = 20.0 + FLOW.len() as f64 * (height + gap) - gap;
    picture(width + 20.0, all, "How data flows through loadline", &out)
}

/// Phases next to each other, and what is recorded below them.
pub fn trial() -> String {
    let (mut x, mut out) = (10.0, String::new());
    for phase in PHASES {
        let width = phase.width;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"10\" width=\"{width}\" height=\"34\"/>"
        );
        out += &text(x + 10.0, 32.0, "", phase.name);
        for (i, words) in phase.does.iter().enumerate() {
            out += &text(x + 10.0, 64.0 + 17.0 * i as f64, "small", words);
        }
        x += width;
    }
    let begin = |phase: usize| 10.0 + PHASES[..phase].iter().map(|p| p.width).sum::<f64>();
    let lanes = [
        (
            begin(1),
            "cgroup counters, GC log, memory parts: one event log",
        ),
        (
            begin(2),
            "load generator: latencies from the intended send time",
        ),
    ];
    for (i, (from, words)) in lanes.into_iter().enumerate() {
        let y = 128.0 + 28.0 * i as f64;
        let to = begin(PHASES.len() - 1);
        let _ = writeln!(
            out,
            "<line x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>"
        );
        out += &text(from, y - 6.0, "small", words);
    }
    picture(x + 10.0, 170.0, "The phases of a trial", &out)
}
