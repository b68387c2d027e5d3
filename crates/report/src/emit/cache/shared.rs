//! The stage that fills OpenJ9's shared class cache: first with room, then again with the size of
//! its content as limit, like `loadline cache --kind scc`.
//!
//! Owns its script and the cache's place in the image. If the base image already has a cache of
//! that name, a layer is added above it. Sources: Open Liberty, populate_scc.sh; OpenJ9
//! documentation (-Xshareclasses: createLayer, destroy; cacheDirPerm).

use loadline_sizing::cache::shared::{IN_IMAGE, NAME};

use super::{CacheStage, ask_function, bash_quoted, run, start_script};
use crate::emit::application::ReadinessCheck;

/// Size of the first filling, MiB; twice as much where that is full.
const FIRST: u32 = 80;

/// A cache this full, percent, may have refused something.
const FULL: u32 = 95;

pub(super) fn stage(
    requests: u64,
    jar: &str,
    options: &[String],
    arguments: &[String],
    ready: &ReadinessCheck,
) -> CacheStage {
    let script = shared_cache_script(options, (jar, arguments), ready, requests, IN_IMAGE);
    CacheStage {
        stage: format!(
            "FROM app AS cache\n# Two starts of the application: ready, {requests} requests, SIGTERM; OpenJ9 fills the cache meanwhile. The\n# second has the limits of what the first held. A cache that the base image has there gets a layer above.\n{}\n",
            run(&script)
        ),
        // Only its build stage may write it.
        copy: format!("COPY --from=cache {IN_IMAGE} {IN_IMAGE}\n"),
        options: vec![format!("{},readonly,nonfatal", base(IN_IMAGE))],
    }
}

fn base(directory: &str) -> String {
    format!("-Xshareclasses:name={NAME},cacheDir={directory}")
}

pub fn shared_cache_script(
    options: &[String],
    (jar, arguments): (&str, &[String]),
    ready: &ReadinessCheck,
    requests: u64,
    directory: &str,
) -> String {
    let word = |word: &String| format!(" {}", bash_quoted(word));
    let words = |all: &[String]| -> String { all.iter().map(word).collect() };
    let option = |more: &str| bash_quoted(&format!("{}{more}", base(directory)));
    // Readable for whoever the application is; the directory is the JVM's to make.
    let filling = option(",cacheDirPerm=0755,createLayer");
    let command = format!(
        "java{} {filling} -XX:SharedCacheHardLimit=${{1}}m -Xscmx${{2}}m -XX:+IProfileDuringStartupPhase -jar {}{}",
        words(options),
        bash_quoted(jar),
        words(arguments)
    );
    let ask_the_jvm = |more: &str| format!("java {} 2>&1 || true", option(more));
    format!(
        "{}; fill() {{ {}; }}; \
         held() {{ said=$({}); \
         size=$(said 'cache size'); lines=$(said 'Class debug area size'); \
         soft=$(said 'softmx bytes'); free=$(said 'free bytes'); \
         room=$((size-lines < soft ? size-lines : soft)); held=$((room-free)); }}; \
         said() {{ [[ $said =~ $1\\ *=\\ ([0-9]+) ]] || {{ echo \"$said\" >&2; echo 'the JVM does not say what the cache holds' >&2; exit 1; }}; echo ${{BASH_REMATCH[1]}}; }}; \
         again() {{ {}; fill $1 $2; }}; \
         first={FIRST}; fill $first $first; held; \
         while [ $((held*100/room)) -ge {FULL} ]; do first=$((first*2)); again $first $first; held; done; \
         soft=$(((held+held/16+1048575)/1048576)); again $(((soft*12+10)/11)) $soft; held; \
         echo \"the cache holds $held of $room bytes\"",
        ask_function(ready),
        start_script(&command, requests),
        ask_the_jvm(",printStats"),
        ask_the_jvm(",destroy"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_filled_in_its_place_and_used_read_only() {
        let options = ["@/app/jvm.options".to_owned()];
        let arguments = ["--a=b c".to_owned()];
        let ready = ReadinessCheck::Tcp { port: 8080 };
        let stage = stage(7, "/app/app.jar", &options, &arguments, &ready);
        assert_eq!(stage.copy, "COPY --from=cache /opt/scc /opt/scc\n");
        let used = "-Xshareclasses:name=loadline,cacheDir=/opt/scc,readonly,nonfatal";
        assert_eq!(stage.options, [used]);
        let lines = stage
            .stage
            .lines()
            .filter_map(|line| line.strip_prefix("RUN "));
        let words: Vec<Vec<String>> = lines
            .map(|line| serde_json::from_str(line).expect("exec form"))
            .collect();
        let [words] = &words[..] else {
            panic!("one line: {}", stage.stage)
        };
        let script = &words[4];
        for part in [
            "java @/app/jvm.options -Xshareclasses:name=loadline,cacheDir=/opt/scc,cacheDirPerm=0755,createLayer -XX:SharedCacheHardLimit=${1}m -Xscmx${2}m",
            "-jar /app/app.jar $'--a=b c' & app=$!",
            "i < 7;",
            "cacheDir=/opt/scc,printStats 2>&1",
        ] {
            assert!(script.contains(part), "{part}\n{script}");
        }
        let Ok(output) = std::process::Command::new("bash")
            .args(["-n", "-c", script])
            .output()
        else {
            println!("SKIP the_cache_is_filled_in_its_place_and_used_read_only: no bash here");
            return;
        };
        assert!(output.status.success(), "{output:?}");
    }
}
