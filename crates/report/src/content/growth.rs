//! "What grows": the judgement of a soak in words, and its parts in a table.
//!
//! Owns the sentences; the judgement is [`loadline_analysis::growth`]'s.

use std::time::Duration;

use loadline_analysis::growth::{
    Ceilings, GrowingPart, GrowthVerdict, PartGrowth, SoakGrowth, judge_soak,
};
use loadline_analysis::margin::{self, LaterMemory};
use loadline_analysis::record::{
    JvmOption, SoakEvidence, SoakLook, TrialRecord, TrialVerdict as Kept,
};
use loadline_sizing::Bytes;

pub(crate) use loadline_analysis::growth::GrowthVerdict as Grows;

use super::section::Section;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

const SEED: u64 = 0x736f_616b;

/// Malloc held unused memory if it returned at least this share on request.
const GIVEN_BACK: f64 = 0.2;

/// What old soaks added to the application. Seen: `records/README.md`, soaks of 2026-11-25.
const TRACKED: &str = "The soak ran with native memory tracking, which itself takes memory, about 10Mi and 15Mi in two services of some 190Mi: soak it with so much more to see whether it lasts without.";

pub(crate) fn last_soak(view: &ResultView) -> Option<(&TrialRecord, &SoakEvidence)> {
    let mut soaks = view.trials.iter().rev();
    soaks.find_map(|t| Some((t, t.evidence.soak.as_ref()?)))
}

/// Whether it switches on the tracking that old soaks had.
pub(crate) fn is_tracking(option: &JvmOption) -> bool {
    option.text.starts_with("-XX:NativeMemoryTracking=")
}

pub(crate) fn tracked(view: &ResultView) -> Option<String> {
    let options = &last_soak(view)?.0.configuration.jvm_options;
    let is_tracked = options.iter().any(is_tracking);
    is_tracked.then(|| TRACKED.to_owned())
}

pub fn growth_of(trial: &TrialRecord) -> Option<SoakGrowth> {
    let soak = trial.evidence.soak.as_ref()?;
    Some(judge_soak(soak, ceilings(trial), SEED))
}

fn ceilings(trial: &TrialRecord) -> Ceilings {
    let instances = u64::from(trial.configuration.instances);
    let memory = trial.configuration.memory;
    Ceilings {
        memory: memory.map(|m| m.mul_ratio(instances, 1)),
        heap: trial.evidence.gc.as_ref().and_then(|gc| gc.heap_max),
    }
}

pub(crate) fn soak_growth(view: &ResultView) -> Option<(&TrialRecord, SoakGrowth)> {
    let (trial, _) = last_soak(view)?;
    Some((trial, growth_of(trial)?))
}

pub(crate) fn did_not_last(trial: &TrialRecord) -> bool {
    matches!(trial.verdict, Kept::AppKo(_))
}

pub(crate) fn growth_sentence(growth: &SoakGrowth) -> String {
    let (length, requests) = (show_length(growth.soaked), growth.requests);
    match growth.verdict {
        GrowthVerdict::Stable {
            at_least: Some(at_least),
        } => format!(
            "Stable over {length} and {requests} requests: whatever grows unseen takes {} or more to fill its limit.",
            days(at_least)
        ),
        GrowthVerdict::Stable { at_least: None } => {
            format!("Stable over {length} and {requests} requests: nothing grows.")
        }
        GrowthVerdict::Growing => {
            let parts: Vec<String> = growth.growing().map(growing_part).collect();
            format!("Growing: {}.", parts.join("; "))
        }
        GrowthVerdict::TooShort { needs, is_settling } => {
            let why = if is_settling {
                "it still grows, and less than at first"
            } else {
                "growth that fills the limit within a day can hide in it"
            };
            let needs = show_length(needs);
            format!("Too short to tell after {length}: {why}. Soak {needs} or longer.")
        }
    }
}

/// What a soak needed after the seconds that a trial sees.
fn need_words(later: &LaterMemory) -> String {
    let first = format::elapsed(margin::TRIAL);
    if later.after.is_zero() {
        format!(
            "its soak needed no more than the {} of its first {first}",
            format::measured_bytes(later.first)
        )
    } else {
        format!(
            "its soak needed {} more than in its first {first} ({} after {}, {} before)",
            format::as_percent(later.growth_share()),
            format::measured_bytes(later.most),
            show_length(later.after),
            format::measured_bytes(later.first),
        )
    }
}

fn growing_part(growth: &PartGrowth) -> String {
    let rate = match (growth.part.is_count(), growth.bytes_per_million) {
        (false, _) => amount(growth.per_million),
        (true, None) => format!("{:.0}", growth.per_million),
        (true, Some(bytes)) => format!("{:.0}, {},", growth.per_million, amount(bytes)),
    };
    let full = growth.full_in.map_or_else(String::new, |full| {
        format!(", the limit is full after {}", days(full))
    });
    format!("{} by {rate} per million requests{full}", growth.part)
}

fn levers(growth: &SoakGrowth) -> Vec<String> {
    let lever = |part: &PartGrowth| {
        match part.part {
        GrowingPart::Malloc | GrowingPart::Native => {
            let held = part.given_back.map_or_else(String::new, |share| {
                let share_text = format::as_percent(share);
                if share >= GIVEN_BACK {
                    format!(" On request, malloc gave back {share_text} of what it held: much of it is not in use.")
                } else {
                    format!(" On request, malloc gave back only {share_text} of what it held: it is in use, most likely a native library's.")
                }
            });
            format!("malloc: try MALLOC_ARENA_MAX=2 in the environment, and -XX:TrimNativeHeapInterval=60000 (from JDK 17.0.9): soak each.{held}")
        }
        GrowingPart::Heap => "heap: two dumps an hour apart show what stays: jcmd PID GC.heap_dump FILE.".to_owned(),
        GrowingPart::Direct => "direct buffers: -XX:MaxDirectMemorySize makes them fail by name instead of by the limit; Netty names its leaks with -Dio.netty.leakDetection.level=paranoid.".to_owned(),
        GrowingPart::Threads => "threads: a thread dump groups them by name: jcmd PID Thread.print.".to_owned(),
        GrowingPart::Metaspace => "metaspace: classes are made and never unloaded: jcmd PID VM.classloader_stats.".to_owned(),
        other => format!("{other}: see the table."),
    }
    };
    growth.growing().map(lever).collect()
}

pub fn growth_section(view: &ResultView) -> Option<Section> {
    let (trial, soak) = last_soak(view)?;
    let growth = growth_of(trial)?;
    let mut section =
        Section::new("growth", "What grows over time").with_paragraph(growth_sentence(&growth));
    if let Some(why) = &soak.cut {
        let words =
            format!("The soak ended before its time: {why}. It is judged by what it has seen.");
        section = section.with_paragraph(words);
    }
    if let Some(later) = margin::memory_needed_later(soak) {
        let words = format!("Anonymous memory: {}.", need_words(&later));
        section = section.with_paragraph(words);
    }
    section = section.with_list(levers(&growth));
    if !soak.looks.is_empty() {
        section = section.with_table(growth_table(&soak.looks)).with_paragraph(
            "Resident memory by part, before the first cycle of the load, in the rest between the cycles and after the second. What grows in the first cycle only is kept, what grows as much in the second is lost.");
    }
    Some(section)
}

fn growth_table(looks: &[SoakLook]) -> Table {
    let mut table = Table::new()
        .left("Look")
        .right("Requests | Live heap | Heap | Direct | Stacks | Metaspace | Code | JVM | malloc")
        .right("Threads");
    let names = ["before", "rest", "end"];
    for (look, name) in looks.iter().zip(names) {
        table.add_row([
            name.into(),
            look.requests.to_string().into(),
            format::bytes_or(look.live_heap).into(),
            format::measured_bytes(look.heap).into(),
            format::bytes_or(look.direct).into(),
            format::measured_bytes(look.stacks).into(),
            format::measured_bytes(look.metaspace).into(),
            format::measured_bytes(look.code_cache).into(),
            format::measured_bytes(look.jvm).into(),
            format::measured_bytes(look.malloc).into(),
            look.threads.to_string().into(),
        ]);
    }
    table
}

pub(crate) fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

fn amount(bytes: f64) -> String {
    format::measured_bytes(Bytes::from_bytes(bytes.max(0.0) as u64))
}

/// A length in the largest unit with a value of two or more.
pub(crate) fn show_length(value: Duration) -> String {
    let minutes = value.as_secs_f64() / 60.0;
    match minutes {
        m if m < 2.0 => format!("{:.0} s", value.as_secs_f64()),
        m if m < 120.0 => format!("{m:.0} min"),
        m => format!("{:.1} h", m / 60.0),
    }
}

fn days(value: Duration) -> String {
    let days = value.as_secs_f64() / 86_400.0;
    match days {
        d if d < 2.0 => show_length(value),
        d if d < 1000.0 => format!("{d:.0} days"),
        _ => "years".to_owned(),
    }
}
