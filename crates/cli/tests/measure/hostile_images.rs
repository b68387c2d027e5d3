//! Containment with engines: the zoo's hostile programs inside an image, and a loadline that is killed
//! while an engine works for it. Nothing may be left: containers, groups, files, processes.

use std::fs;
use std::time::Duration;

use crate::engines::{Engine, IMAGE};
use crate::lab::Lab;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_nothing_left, trials};

pub const CASES: [Case; 4] = [
    ("hostile_images_leave_nothing_with_podman", || {
        Engine::podman().map_or_else(Some, |engine| hostile(&engine))
    }),
    ("hostile_images_leave_nothing_with_docker", || {
        Engine::docker().map_or_else(Some, |engine| hostile(&engine))
    }),
    ("loadline_is_killed_while_podman_works_for_it", || {
        Engine::podman().map_or_else(Some, |engine| killed(&engine))
    }),
    ("loadline_is_killed_while_docker_works_for_it", || {
        Engine::docker().map_or_else(Some, |engine| killed(&engine))
    }),
];

/// How often loadline is killed, unless LOADLINE_KILLS says otherwise.
const KILLS: usize = 4;

/// How many hostile trials, unless LOADLINE_HOSTILE says otherwise.
const TRIALS: usize = 5;

/// Each mode with settings that make it quick. Those that matter most come first.
const ZOO: [&str; 18] = [
    "daemons count=20",
    "oom-child",
    "ignore-term",
    "stop-self",
    "plant",
    "serve",
    "fork-bomb",
    "oom step_mib=16 step_ms=1",
    "flood mib=40",
    "binary",
    "no-newline",
    "exit code=7",
    "signal number=11",
    "hold what=files",
    "threads",
    "fill-disk mib=8",
    "deep-tree levels=2000",
    "hang",
];

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Ready or not, dead or alive: each trial must come to its end, and leave nothing.
fn hostile(engine: &Engine) -> Outcome {
    let lab = Lab::new();
    let level = |number: usize| {
        let mode = ZOO[number];
        let words: Vec<&str> = ["/bin/measure", "zoo"]
            .into_iter()
            .chain(mode.split(' '))
            .collect();
        let name = engine.name;
        format!("{{ label = '{mode}', image = '{IMAGE}', engine = '{name}', command = {words:?} }}")
    };
    let count = number("LOADLINE_HOSTILE").unwrap_or(TRIALS);
    let levels: Vec<String> = (0..count.min(ZOO.len())).map(level).collect();
    let repeats = count.div_ceil(ZOO.len());
    let levels = levels.join(", ");
    let file = format!(
        "slo = 'errors<99%'\n[app]\ncommand = ['/bin/true']\nstart-deadline = '2s'\nstop-grace = '200ms'\n[limits]\nmemory = '64Mi'\npids = 512\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '300ms'\nwarm-up = '0s'\n[run]\naccept-noise = true\nrepeats = {repeats}\n[[factor]]\nname = 'application'\nlevels = [{levels}]\n"
    );
    fs::write(lab.path().join("hostile.toml"), file).expect("a file");
    let call = lab.call("run").args(&["--wait", "hostile.toml"]);
    let ended = engine.environment(call).into_end();
    assert!(matches!(ended.code, Some(0 | 1)), "{ended}");
    let result = lab.result("last");
    let ran = result["trials"].as_array().map_or(0, Vec::len);
    assert!(ran >= count, "{ran} of {count} trials ran. {ended}");
    assert_eq!(engine.containers(), Vec::<String>::new());
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

/// Whatever is killed when: the next start and `clean` find all that is left.
fn killed(engine: &Engine) -> Outcome {
    let kills = number("LOADLINE_KILLS").unwrap_or(KILLS);
    let lab = Lab::new();
    let (mut owners, mut with_container) = (Vec::new(), 0);
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    for kill in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mut victim = engine.call(lab.measure("run")).arg("--measure=20s").start();
        victim.until_it_measures();
        while trials(&lab).is_empty() && !victim.has_ended() {
            std::thread::sleep(crate::process::POLL);
        }
        // From before the container is made to the middle of its load.
        std::thread::sleep(Duration::from_millis((random >> 33) % 1500));
        let parts = trials(&lab);
        owners.extend(&parts);
        if kill % 2 == 1 {
            parts
                .iter()
                .for_each(|part| crate::killed::kill_trial(*part));
        }
        victim.kill();
        with_container += u32::from(!engine.containers().is_empty());
        drop(victim.end());
    }
    assert!(with_container > 0, "no kill hit a trial with a container");
    // An engine that was at work when loadline died ends its work first.
    std::thread::sleep(Duration::from_secs(1));
    lab.call("clean").into_end().expect_code(0);
    assert_eq!(engine.containers(), Vec::<String>::new());
    assert_nothing_left(&lab, &owners, &Default::default());
    None
}
