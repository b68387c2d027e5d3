//! Other launchers' options, from what this launcher knows.

use loadline_sizing::JdkRelease;
use loadline_sizing::compat::{calculator, fabric8};
use loadline_sizing::profile::AppProfile;

use crate::environment::Environment;
use crate::plan::StartPlan;

/// The options that the named launcher would add. Errors: Its refusal, or the missing input.
pub fn compatible_options(
    name: &str,
    environment: &Environment,
    plan: &StartPlan,
    jdk: JdkRelease,
    profile: Option<&AppProfile>,
) -> Result<Vec<String>, String> {
    let number = |name: &str| environment.text_value(name)?.parse::<u64>().ok();
    if name == "fabric8" {
        let limits = &plan.limits;
        let is_limited = limits.is_memory_limited();
        let answer = fabric8::calculate(&fabric8::Fabric8Input {
            limit: is_limited.then(|| limits.usable_memory().value),
            cpus: limits.quota.as_ref().map(|quota| quota.value.to_cpus()),
            jdk: jdk.version,
            max_ratio: number("JAVA_MAX_MEM_RATIO"),
            init_ratio: number("JAVA_INIT_MEM_RATIO"),
            options: &plan.options,
        });
        return Ok(answer.options);
    }
    let flavour = match name {
        "paketo" => calculator::Flavour::Paketo,
        "cf" => calculator::Flavour::CloudFoundry,
        _ => return Err(format!("`{name}` is not paketo, cf or fabric8")),
    };
    let classes = number("BPL_JVM_LOADED_CLASS_COUNT").or(profile.and_then(|p| p.classes));
    let classes = classes.ok_or(
        "the loaded classes are not known; set BPL_JVM_LOADED_CLASS_COUNT or ship a profile",
    )?;
    let input = calculator::CalculatorInput {
        total: plan.limits.usable_memory().value,
        classes,
        threads: number("BPL_JVM_THREAD_COUNT").unwrap_or(250),
        headroom_percent: number("BPL_JVM_HEAD_ROOM").unwrap_or(0).min(100),
        options: &plan.options,
    };
    let answer =
        calculator::calculate_memory(flavour, &input).map_err(|refusal| refusal.to_string())?;
    Ok(answer.options)
}
