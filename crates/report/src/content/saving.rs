//! The saving against today's size, or the resources that today's size lacks.
//!
//! Owns the sentence; the user states today's size.

use loadline_sizing::{Bytes, Cpus};

use crate::format;
use crate::view::ResultView;

pub(super) fn saving_sentence(view: &ResultView) -> Option<String> {
    let today = view.today?;
    let recommendation = view.recommendation.as_ref()?;
    let cpu = today.cpu.zip(recommendation.configuration.sure_cpu());
    let (mut saved, mut lacking) = (Vec::new(), Vec::new());
    if let Some((today, needed)) = cpu {
        let (today, needed) = (today.as_f64(), needed.as_f64());
        let words = |part: f64| {
            let cpus = format::three_digits(part);
            format!("{cpus} CPU ({})", share_of_today(part, today))
        };
        put_difference(&mut saved, &mut lacking, today - needed, words);
    }
    let before = today.memory.as_bytes() as f64;
    let needed = recommendation.recommended_memory().as_bytes() as f64;
    let words = |part: f64| {
        let bytes = format::measured_bytes(Bytes::from_bytes(part as u64));
        format!("{bytes} of memory ({})", share_of_today(part, before))
    };
    put_difference(&mut saved, &mut lacking, before - needed, words);
    let would = if recommendation.is_proven() {
        ""
    } else {
        ", once it is tested"
    };
    let (saves, lacks) = (saved.join(" and "), lacking.join(" and "));
    let said = match (saved.is_empty(), lacking.is_empty()) {
        (true, true) => "that is this size".to_owned(),
        (false, true) => format!("this saves {saves}{would}"),
        (true, false) => format!("that lacks {lacks}"),
        (false, false) => format!("this saves {saves}{would}, and adds {lacks}"),
    };
    let each = match recommendation.deployment {
        Some(_) => " a replica",
        None => "",
    };
    let size = limit_words(today.cpu, today.memory);
    Some(format!(
        "Today {} ships with {size}{each}: {said}.",
        view.title
    ))
}

fn put_difference(
    saved: &mut Vec<String>,
    lacking: &mut Vec<String>,
    part: f64,
    words: impl Fn(f64) -> String,
) {
    if part > 0.0 {
        saved.push(words(part));
    } else if part < 0.0 {
        lacking.push(words(-part));
    }
}

fn share_of_today(part: f64, whole: f64) -> String {
    format::as_percent(part / whole)
}

fn limit_words(cpu: Option<Cpus>, memory: Bytes) -> String {
    let memory = format::measured_bytes(memory);
    match cpu {
        None => memory,
        Some(cpu) if cpu == Cpus::from_whole(1) => format!("1 CPU and {memory}"),
        Some(cpu) => format!("{} CPUs and {memory}", format::three_digits(cpu.as_f64())),
    }
}
