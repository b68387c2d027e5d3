//! The Dockerfile: non-root, the options in a file, the jar in separate layers, plain variables
//! already set when a start-up cache is trained.
//!
//! JSON (exec) form only, so that no shell sits between the runtime and the JVM (signals reach
//! process 1). Source: Dockerfile reference, "Shell and exec form".

use loadline_analysis::text::join_words;
use loadline_sizing::JavaVersion;

use super::base_image::Likeness;
use super::cache::{CacheStage, cache_stage};
use super::facts::EmitFacts;
use super::liberty;
use super::words::{env, image_reference, json_string};
use crate::text;

pub const UID: u64 = 64_999;

/// The launcher in the image. Its mode is `report`, because the trials ran without it.
const LAUNCHER: &str = "\
# loadline-launch is process 1: it forwards signals, reaps orphans and prints what it sees. It is a
# file of your loadline release; put it beside this Dockerfile.
COPY --chmod=0755 loadline-launch /usr/local/bin/loadline-launch
COPY --chmod=0444 loadline.profile /app/loadline.profile
# report: java starts with exactly the options that were measured. With apply the launcher adds
# options that fit other limits than the measured ones.
ENV LOADLINE_MODE=\"report\"
";

const UNREAD: &str = "\
# The jar could not be read when this file was written. Where its manifest has a Class-Path, copy what
# that names as well, such as: COPY [\"lib\", \"/app/lib\"]
";

pub fn dockerfile(facts: &EmitFacts<'_>) -> String {
    let application = facts.application;
    let base = image_reference(&application.base_image.name);
    let mut out = facts.header();
    let shm = facts
        .shm
        .map(|shm| format!(" --shm-size={}", shm.to_jvm_size()));
    let shm = shm.unwrap_or_default();
    let cpu = facts
        .cpu
        .as_ref()
        .map(|cpu| format!(" --cpus={}", cpu.value.as_f64()));
    let cpu = cpu.unwrap_or_default();
    let memory = facts.memory.value.to_jvm_size();
    out += &format!(
        "# Run it with the size that was measured: docker run --memory={memory}{cpu}{shm}\n"
    );
    out += &format!("# {}\n", application.base_image.likeness_sentence());
    out += &format!("ARG BASE={base}\n\n");
    out += &match &application.command.liberty {
        Some(server) => liberty::dockerfile_lines(facts, server),
        None => application_image(facts),
    };
    for secret in facts.variables.iter().filter(|v| v.value.is_none()) {
        out += &format!(
            "# {} is a secret, or no single line: give it at run time, never in the image.\n",
            secret.name
        );
    }
    out.push_str(&format!("# Never root.\nUSER {UID}:{UID}\n"));
    if let Some(port) = application.port {
        out.push_str(&format!("EXPOSE {port}\n"));
    }
    let command = container_command(facts);
    let command = join_words(command.iter().map(|part| json_string(part)), ", ");
    out += &format!("ENTRYPOINT [{command}]\n");
    out
}

fn application_image(facts: &EmitFacts<'_>) -> String {
    let application = facts.application;
    // What every stage needs. A stage that makes a start-up cache stands between the two.
    let mut out = "FROM ${BASE} AS app\nWORKDIR /app\n".to_owned();
    if uses_file(facts) {
        out.push_str("COPY --chmod=0444 jvm.options /app/jvm.options\n");
    }
    // Files named in the jar's manifest keep their relative place.
    for name in &application.command.beside {
        let (name, place) = (json_string(name), json_string(&format!("/app/{name}")));
        out += &format!("COPY [{name}, {place}]\n");
    }
    if let Some(jar) = &application.command.extracted_from {
        let jar = text::one_line(jar);
        out.push_str(&format!(
            "# Measured extracted: this jar and lib are {jar}, taken apart by --extract. Take it apart again\n# (loadline size --extract, cache --extract) after each build of it, or what is copied is the old one.\n"
        ));
    }
    if !application.command.is_read {
        out.push_str(UNREAD);
    }
    let command = &application.command;
    let name = json_string(command.jar_name());
    let place = json_string(&command.jar_path());
    out += &format!("COPY --chmod=0444 [{name}, {place}]\n");
    for variable in &facts.variables {
        if let Some(value) = &variable.value {
            out += &format!("ENV {}={}\n", variable.name, env(value));
        }
    }
    out.push('\n');
    let cache = cache(facts);
    if let Some(cache) = &cache {
        out.push_str(&cache.stage);
    }
    out.push_str("FROM app\n");
    if let Some(cache) = &cache {
        out.push_str(&cache.copy);
    }
    if application.launcher {
        out.push_str(LAUNCHER);
    }
    out
}

pub fn container_command(facts: &EmitFacts<'_>) -> Vec<String> {
    let application = facts.application;
    if let Some(server) = &application.command.liberty {
        return liberty::entry_point(facts, server);
    }
    let mut command: Vec<String> = Vec::new();
    if application.launcher {
        command.extend(["loadline-launch", "--"].map(str::to_owned));
    }
    command.push("java".to_owned());
    command.extend(command_options(facts));
    command.extend(cache(facts).into_iter().flat_map(|cache| cache.options));
    command.extend(["-jar".to_owned(), application.command.jar_path()]);
    command.extend(facts.arguments.iter().cloned());
    command
}

fn command_options(facts: &EmitFacts<'_>) -> Vec<String> {
    if uses_file(facts) {
        return vec!["@/app/jvm.options".to_owned()];
    }
    facts.options.iter().map(|o| o.value.clone()).collect()
}

fn cache(facts: &EmitFacts<'_>) -> Option<CacheStage> {
    let application = facts.application;
    Some(cache_stage(
        application.cache?,
        &application.command.jar_path(),
        &command_options(facts),
        &facts.arguments,
        application.ready.as_ref()?,
        image_jdk(facts),
    ))
}

/// The JDK of the image: the measured build if the base image is named after it, else the first of
/// its release, which has the highest needs.
fn image_jdk(facts: &EmitFacts<'_>) -> JavaVersion {
    let application = facts.application;
    let first = JavaVersion::from_feature(application.jdk);
    let measured = facts.seen.jdk.as_deref().and_then(|jdk| jdk.parse().ok());
    let is_named = application.base_image.likeness == Likeness::Build;
    measured.filter(|_| is_named).unwrap_or(first)
}

/// Whether the options come from a file: JDK 8 lacks argument files.
pub fn uses_file(facts: &EmitFacts<'_>) -> bool {
    let application = facts.application;
    let is_read = application.jdk >= 9 || application.command.liberty.is_some();
    is_read && !facts.options.is_empty()
}
