//! The pictures of the documents are today's output, from a recorded result.
//!
//! `cargo xtask pictures` writes them again. They are SVG: text that can be compared, made without
//! a browser.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::{TURN, checkout, diagrams, run, settle, workplace};

const RESULT: &str = "records/2026-11-30-spring-web-size/result.json.gz";
/// A search that tried many sizes, down to where the service fails.
const MANY_SIZES: &str = "records/2026-11-20-spring-web-size/result.json.gz";

/// Width of a letter of the terminal and height of its lines, in units of the picture.
const LETTER: f64 = 8.0;
const LINE: f64 = 18.0;
/// Between the text and the edge.
const EDGE: f64 = 18.0;

const STALE: &str =
    "a picture of the documents is not what the program draws: cargo xtask pictures";

fn is_current(name: &str, fresh: &str) -> bool {
    let path: PathBuf = checkout().join("docs/images").join(name);
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let wrong = (kept != fresh).then(|| name.to_owned());
    settle(&path, wrong.as_slice(), fresh)
}

/// A terminal in which a command has been typed.
fn terminal(command: &str, printed: &str) -> String {
    let lines: Vec<String> = std::iter::once(format!("$ {command}"))
        .chain(printed.lines().map(str::to_owned))
        .collect();
    let columns = lines.iter().map(|line| line.chars().count()).max();
    let (width, height) = (
        2.0 * EDGE + LETTER * columns.unwrap_or(0) as f64,
        2.0 * EDGE + LINE * lines.len() as f64,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#14181c\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#e4e8eb\">\n",
        escaped(&format!("What {command} prints"))
    );
    for (i, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        // The length keeps columns in line whatever font there is.
        let (y, length) = (
            EDGE + LINE * (i as f64 + 0.75),
            LETTER * line.chars().count() as f64,
        );
        let style = match i {
            0 => " fill=\"#7bd88f\"",
            1 => " font-weight=\"bold\"",
            _ => "",
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "<text x=\"{EDGE}\" y=\"{y}\" textLength=\"{length}\"{style}>{}</text>",
            // Spaces would be drawn as one.
            escaped(line).replace(' ', "\u{a0}")
        );
    }
    out + "</g>\n</svg>\n"
}

pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;")
}

/// What of the report's style is about drawings: the colours, which stand first, and rules of SVG.
fn style_of_drawings(style: &str) -> String {
    let (colours, rules) = style.split_once("* {").expect("a rule for everything");
    let is_svg = |line: &&str| line.starts_with("svg ");
    let rules: Vec<&str> = rules.lines().filter(is_svg).collect();
    format!("{colours}{}\n", rules.join("\n"))
}

fn drawing(report: &str, class: &str) -> String {
    let between = |from: &str, to: &str| {
        let (_, rest) = report.split_once(from).expect("the report has it");
        rest.split_once(to).expect("it ends").0.to_owned()
    };
    let style = style_of_drawings(&between("<style>", "</style>"));
    let svg = between(&format!("<svg class=\"{class}\" "), "</svg>");
    let (attributes, drawn) = svg.split_once(">\n").expect("an element");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" {attributes}>\n\
         <style>\n{style}svg {{ font-family: system-ui, \"DejaVu Sans\", sans-serif; }}\n</style>\n\
         <rect width=\"100%\" height=\"100%\" style=\"fill: var(--back)\"/>\n{drawn}</svg>\n"
    )
}

#[test]
fn pictures_are_what_the_program_draws() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = workplace();
    let show = format!("loadline show {RESULT}");
    let shown = run(&format!("{show} 2>/dev/null"), place.path());
    assert!(shown.starts_with("Give spring-web"), "{shown}");
    let report = run(
        &format!("loadline report {MANY_SIZES} --mail -o -"),
        place.path(),
    );
    let pictures = [
        ("terminal.svg", terminal(&show, &shown)),
        ("knee.svg", drawing(&report, "knee")),
        ("memory.svg", drawing(&report, "bars")),
        ("data-flow.svg", diagrams::data_flow()),
        ("trial.svg", diagrams::trial()),
    ];
    let current = pictures.map(|(name, fresh)| is_current(name, &fresh));
    assert_eq!(current, [true; 5], "{STALE}");
}
