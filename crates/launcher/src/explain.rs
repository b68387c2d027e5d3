//! What the launcher found and decided: as text for people, as one JSON line for logs.

use std::fmt::{Display, Write as _};

use loadline_sizing::Bytes;
use loadline_sizing::decision::LaunchDecision;
use loadline_sizing::limits::ContainerLimits;

use crate::json::Json;
use crate::plan::StartPlan;
use crate::secret::{mask, mask_words};

pub fn explain_start(plan: &StartPlan) -> String {
    let mut page = String::new();
    let jdk = plan.java.jdk.map(|jdk| jdk.to_string());
    let jdk = jdk.unwrap_or("unknown version".to_owned());
    let java = format!("{} ({jdk})", plan.java.path.display());
    write_line(&mut page, "java", java);
    explain_limits(&mut page, &plan.limits);
    if let Some(sight) = &plan.sight {
        let seen = format!("{} and {} processors", sight.memory, sight.cpus);
        write_line(&mut page, "the JVM sees", seen);
    }
    if let Some(profile) = &plan.profile {
        write_line(&mut page, "profile", profile.display().to_string());
    }
    if let Some(decision) = &plan.decision {
        regions(&mut page, decision);
        if let Some(ergonomics) = &decision.ergonomics {
            write_line(&mut page, "collector", ergonomics.collector.to_string());
        }
        for kept in &decision.kept {
            write_line(&mut page, "kept", format!("{} (user)", mask(&kept.option)));
        }
    }
    let verb = if plan.is_applied {
        "added"
    } else {
        "would add"
    };
    for chosen in &plan.added {
        let (option, why) = (mask(&chosen.option), &chosen.reason);
        let added = format!("{option} ({}: {why})", chosen.provenance);
        write_line(&mut page, verb, added);
    }
    if let Some(cache) = &plan.cache {
        write_line(&mut page, "cache", cache.clone());
    }
    for warning in warnings(plan) {
        write_line(&mut page, "warning", warning);
    }
    write_line(&mut page, "starts", mask_words(&plan.words).join(" "));
    page
}

fn write_line(page: &mut String, name: &str, text: impl AsRef<str>) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "loadline-launch: {name:<14} {}", text.as_ref());
}

fn write_found(page: &mut String, name: &str, value: &Option<impl Display>) {
    if let Some(value) = value {
        write_line(page, name, value.to_string());
    }
}

fn explain_limits(page: &mut String, limits: &ContainerLimits) {
    write_line(page, "memory", limits.usable_memory().to_string());
    write_line(page, "CPU", limits.usable_cpus().to_string());
    write_found(page, "memory limit", &limits.memory);
    write_found(page, "memory.high", &limits.memory_high);
    write_found(page, "swap limit", &limits.swap);
    write_found(page, "CPU quota", &limits.quota);
    write_found(page, "CPU shares", &limits.shares);
    write_found(page, "CPU weight", &limits.weight);
    write_found(page, "cpuset", &limits.cpuset);
    write_found(page, "process limit", &limits.pids);
    write_found(page, "RLIMIT_AS", &limits.host.address_space);
    write_found(page, "RLIMIT_NPROC", &limits.host.processes);
}

fn regions(page: &mut String, decision: &LaunchDecision) {
    let Some(budget) = &decision.budget else {
        return;
    };
    let mut region = |name: &str, size: Bytes, rest: &str| {
        let text = format!("{name:<14} {:>6.1} MiB{rest}", size.as_mib());
        write_line(page, "region", text);
    };
    for fixed in &budget.fixed {
        let how = format!("  {} ({})", fixed.how, fixed.provenance);
        region(fixed.name, fixed.size, &how);
    }
    region("reserve", budget.reserve, "  kept free");
    let heap = decision.heap.unwrap_or(budget.heap);
    region("heap", heap, "");
    let limit = format!(" of {}", budget.limit);
    region("sum", budget.total_bytes(heap), &limit);
}

pub fn warnings(plan: &StartPlan) -> Vec<String> {
    let decided = plan.decision.iter().flat_map(|decision| &decision.warnings);
    let own = plan.doubts.iter().chain(&plan.notes);
    decided.chain(own).cloned().collect()
}

pub fn start_json(plan: &StartPlan) -> String {
    let found = |name: &'static str, found: Option<(u64, &str)>| {
        let value = found.map(|(value, from)| {
            Json::Object(vec![
                ("value", Json::Number(value)),
                ("from", Json::from_text(from)),
            ])
        });
        (name, value.unwrap_or(Json::Null))
    };
    let limits = &plan.limits;
    let memory = limits.usable_memory();
    let cpus = limits.usable_cpus();
    let pids = limits.pids.as_ref();
    let (bytes, millis) = (memory.value.as_bytes(), cpus.value.as_millis());
    let limits = Json::Object(vec![
        found("memory_bytes", Some((bytes, &memory.from))),
        found("cpu_millis", Some((u64::from(millis), &cpus.from))),
        found("pids", pids.map(|pids| (pids.value, pids.from.as_str()))),
    ]);
    let sight = plan.sight.as_ref().map_or(Json::Null, |sight| {
        Json::Object(vec![
            ("memory_bytes", Json::Number(sight.memory.as_bytes())),
            ("processors", Json::Number(u64::from(sight.cpus))),
        ])
    });
    let profile = plan.profile.as_ref();
    let profile = profile.map(|path| Json::from_text(path.display().to_string()));
    let decision = plan.decision.as_ref();
    let options = plan.added.iter().map(option_json).collect();
    let masked = |option: &String| Json::from_text(mask(option));
    let kept = decision.iter().flat_map(|decision| &decision.kept);
    let kept = kept.map(|kept| masked(&kept.option)).collect();
    let added = plan.added.iter();
    let added = added.map(|chosen| masked(&chosen.option)).collect();
    let heap = decision.and_then(|decision| decision.heap);
    let heap = heap.map_or(Json::Null, |heap| Json::Number(heap.as_bytes()));
    let words = mask_words(&plan.words);
    let jdk = plan.java.jdk.map(|jdk| Json::from_text(jdk.to_string()));
    Json::Object(vec![
        ("event", Json::from_text("loadline-launch")),
        ("schema", Json::Number(1)),
        ("jdk", jdk.unwrap_or(Json::Null)),
        ("limits", limits),
        ("jvm_sees", sight),
        ("profile", profile.unwrap_or(Json::Null)),
        ("applied", Json::Switch(plan.is_applied)),
        ("heap_bytes", heap),
        ("options", Json::List(options)),
        ("kept", Json::List(kept)),
        ("added", Json::List(added)),
        ("warnings", Json::from_texts(&warnings(plan))),
        ("command", Json::from_texts(&words)),
    ])
    .to_json_line()
}

fn option_json(chosen: &loadline_sizing::decision::ChosenOption) -> Json {
    Json::Object(vec![
        ("option", Json::from_text(mask(&chosen.option))),
        ("provenance", Json::from_text(chosen.provenance.to_string())),
        ("reason", Json::from_text(&chosen.reason)),
    ])
}
