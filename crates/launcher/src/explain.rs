//! What the launcher found and decided: as text for people, as one JSON line for logs.

use std::fmt::{Display, Write as _};

use loadline_sizing::decision::LaunchDecision;
use loadline_sizing::limits::ContainerLimits;

use crate::json::Json;
use crate::plan::StartPlan;
use crate::secret::{mask, mask_words};

pub fn explain_start(plan: &StartPlan) -> String {
    let mut page = String::new();
    let jdk = plan
        .java
        .jdk
        .map_or("unknown version".to_owned(), |jdk| jdk.to_string());
    write_line(
        &mut page,
        "java",
        format!("{} ({jdk})", plan.java.path.display()),
    );
    explain_limits(&mut page, &plan.limits);
    if let Some(sight) = &plan.sight {
        let cpus = sight.cpus;
        write_line(
            &mut page,
            "the JVM sees",
            format!("{} and {cpus} processors", sight.memory),
        );
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
        write_line(
            &mut page,
            verb,
            format!("{option} ({}: {why})", chosen.provenance),
        );
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
    for region in &budget.fixed {
        let size = format!("{:>6.1} MiB", region.size.as_mib());
        let text = format!(
            "{:<14} {size}  {} ({})",
            region.name, region.how, region.provenance
        );
        write_line(page, "region", text);
    }
    let reserve = budget.reserve.as_mib();
    write_line(
        page,
        "region",
        format!("{:<14} {reserve:>6.1} MiB  kept free", "reserve"),
    );
    let heap = decision.heap.unwrap_or(budget.heap);
    write_line(
        page,
        "region",
        format!("{:<14} {:>6.1} MiB", "heap", heap.as_mib()),
    );
    let total = budget.total_bytes(heap);
    write_line(
        page,
        "region",
        format!(
            "{:<14} {:>6.1} MiB of {}",
            "sum",
            total.as_mib(),
            budget.limit
        ),
    );
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
    let limits = Json::Object(vec![
        found(
            "memory_bytes",
            Some((memory.value.as_bytes(), &memory.from)),
        ),
        found(
            "cpu_millis",
            Some((u64::from(cpus.value.as_millis()), &cpus.from)),
        ),
        found("pids", pids.map(|pids| (pids.value, pids.from.as_str()))),
    ]);
    let sight = plan.sight.as_ref().map_or(Json::Null, |sight| {
        Json::Object(vec![
            ("memory_bytes", Json::Number(sight.memory.as_bytes())),
            ("processors", Json::Number(u64::from(sight.cpus))),
        ])
    });
    let profile = plan.profile.as_ref();
    let profile = profile.map_or(Json::Null, |path| {
        Json::from_text(path.display().to_string())
    });
    let decision = plan.decision.as_ref();
    let options = plan.added.iter().map(option_json).collect();
    let kept = decision.map_or(Vec::new(), |decision| {
        decision
            .kept
            .iter()
            .map(|kept| Json::from_text(mask(&kept.option)))
            .collect()
    });
    let words = mask_words(&plan.words);
    let jdk = plan
        .java
        .jdk
        .map_or(Json::Null, |jdk| Json::from_text(jdk.to_string()));
    Json::Object(vec![
        ("event", Json::from_text("loadline-launch")),
        ("schema", Json::Number(1)),
        ("jdk", jdk),
        ("limits", limits),
        ("jvm_sees", sight),
        ("profile", profile),
        ("applied", Json::Switch(plan.is_applied)),
        (
            "heap_bytes",
            decision
                .and_then(|d| d.heap)
                .map_or(Json::Null, |h| Json::Number(h.as_bytes())),
        ),
        ("options", Json::List(options)),
        ("kept", Json::List(kept)),
        (
            "added",
            Json::List(
                plan.added
                    .iter()
                    .map(|o| Json::from_text(mask(&o.option)))
                    .collect(),
            ),
        ),
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
