//! The Dockerfile stage that builds a start-up cache in the image, by one start of the application.
//!
//! Owns the stage, the line that takes its file over, and the options that use it; OpenJ9's is
//! [`shared`]'s. The stage needs bash (for `/dev/tcp`) and nothing else: an image of a JRE has no
//! curl. The application lies at the same path in all stages, because JVMs compare paths, lengths and
//! times of the jars.

use loadline_analysis::record::{ImageIdentity, StartCache};
use loadline_analysis::text::join_words;
use loadline_sizing::JavaVersion;
use loadline_sizing::cache::{CacheKind, workaround};

pub mod shared;

use super::application::ReadinessCheck;
use super::words::{env, image_reference, json_string};
use crate::text;

/// How often a training run asks, where the trials say nothing.
pub const REQUESTS: u64 = 20;

/// How long a start in an image build may take, seconds: builders are slow and shared.
const READY_WITHIN: u32 = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStage {
    /// The stage, to stand between the stage `app` and the last one.
    pub stage: String,
    pub copy: String,
    pub options: Vec<String>,
}

/// The stage for an image with the jar at `jar` in stage `app`. If `jdk` does not check the CPU,
/// machine code stays out of the cache. `options` are the JVM options of the command and
/// `arguments` the application's.
pub fn cache_stage(
    StartCache { kind, requests }: StartCache,
    jar: &str,
    options: &[String],
    arguments: &[String],
    ready: &ReadinessCheck,
    jdk: JavaVersion,
) -> CacheStage {
    let (training, using) = match kind {
        CacheKind::AppCds => ("-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        CacheKind::Aot => ("-XX:AOTCacheOutput=", "-XX:AOTCache="),
        CacheKind::Scc => return shared::stage(requests, jar, options, arguments, ready),
    };
    let file = format!("app.{}", kind.extension());
    let mut command = vec!["java".to_owned()];
    command.extend(options.iter().cloned());
    let needed: Vec<String> = (workaround(kind, jdk).iter())
        .map(|o| (*o).to_owned())
        .collect();
    command.extend(needed.iter().cloned());
    command.push(format!("{training}/tmp/{file}"));
    command.extend(["-jar", jar].map(str::to_owned));
    command.extend(arguments.iter().cloned());
    let script = training_script(&command, ready, requests, &format!("/tmp/{file}"));
    let using = format!("{using}/app/{file}");
    CacheStage {
        stage: format!(
            "FROM app AS cache\n# One start of the application: ready, {requests} requests, SIGTERM; the JVM writes the cache when it ends.\n{}\n",
            run(&script)
        ),
        copy: format!("COPY --from=cache --chmod=0444 /tmp/{file} /app/{file}\n"),
        options: needed.into_iter().chain([using]).collect(),
    }
}

fn run(script: &str) -> String {
    // Not shortened like foreign text: half a script would be another one.
    let script = serde_json::Value::from(script).to_string();
    format!("RUN [\"bash\", \"-euo\", \"pipefail\", \"-c\", {script}]\n")
}

#[derive(Debug, Clone, Copy)]
pub struct ImageCache<'a> {
    pub files: &'a [String],
    /// Where the image has them: a file, or a directory with a slash at its end.
    pub place: &'a str,
    pub variable: (&'a str, Option<&'a str>),
    pub options: &'a [String],
}

pub fn cached_image(image: &ImageIdentity, cache: &ImageCache<'_>) -> String {
    let (variable, own) = cache.variable;
    let options = cache.options.iter().map(String::as_str);
    let all: Vec<&str> = own.into_iter().chain(options).collect();
    let copied: Vec<String> = cache.files.iter().map(|file| json_string(file)).collect();
    let from = image.pinned.as_ref().unwrap_or(&image.reference);
    let pinned = match image.pinned {
        Some(_) => "",
        None => {
            "# No registry gave it a digest: build on the same image, or the JVM passes the cache over.\n"
        }
    };
    format!(
        "# A start-up cache for {}, trained in a container of it ({}).\n# It fits this image: the build of its JVM and the files of its class path.\n{pinned}FROM {}\nCOPY [{}, {}]\n# Behind what the image has in the variable; a start script that sets it again loses the cache.\nENV {variable}={}\n",
        text::one_line(&image.reference),
        text::one_line(&image.id),
        image_reference(from),
        copied.join(", "),
        json_string(cache.place),
        env(&all.join(" ")),
    )
}

/// A bash script: starts `command`, waits until it is ready, asks `requests` times, ends it, and fails
/// unless `file` was written.
pub fn training_script(
    command: &[String],
    ready: &ReadinessCheck,
    requests: u64,
    file: &str,
) -> String {
    let command = join_words(command.iter().map(|word| bash_quoted(word)), " ");
    let file = bash_quoted(file);
    let (ask, start) = (ask_function(ready), start_script(&command, requests));
    format!("{ask}; {start}; [ -s {file} ] || {{ echo 'the JVM wrote no cache'; exit 1; }}")
}

fn ask_function(ready: &ReadinessCheck) -> String {
    let (port, question) = match ready {
        ReadinessCheck::Tcp { port } | ReadinessCheck::Grpc { port } => {
            (*port, "exec 3>&-".to_owned())
        }
        ReadinessCheck::Http { port, path } => {
            let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
            let question = format!(
                "printf %s {} >&3; read -r line <&3 || line=; exec 3>&-; \
                 [[ $line == HTTP/1.?' '[23]* ]]",
                bash_quoted(&request)
            );
            (*port, question)
        }
    };
    format!(
        "ask() {{ local line; {{ exec 3<>/dev/tcp/127.0.0.1/{port}; }} 2>/dev/null || return 1; \
         {question}; }}"
    )
}

/// One start of a command, in bash's words, until it was asked and has ended.
fn start_script(command: &str, requests: u64) -> String {
    format!(
        "{command} & app=$!; end=$((SECONDS+{READY_WITHIN})); \
         until ask; do kill -0 $app || {{ echo 'the application ended before it was ready'; exit 1; }}; \
         [ $SECONDS -lt $end ] || {{ echo 'the application was not ready in {READY_WITHIN} s'; kill -9 $app; exit 1; }}; \
         sleep 0.1; done; \
         for ((i = 0; i < {requests}; i++)); do ask || true; done; \
         kill -TERM $app; wait $app || true"
    )
}

/// A word as bash takes it literally. `$'...'` because a request has line ends.
fn bash_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\\' | '\'' => out.extend(['\\', c]),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_starts_the_application_where_the_image_has_it() {
        let ready = ReadinessCheck::Http {
            port: 8080,
            path: "/health".to_owned(),
        };
        let stage = |kind| {
            let options = ["@/app/jvm.options".to_owned()];
            let cache = StartCache { kind, requests: 7 };
            cache_stage(
                cache,
                "/app/app.jar",
                &options,
                &["--greeting=it's \"me\"".to_owned()],
                &ready,
                JavaVersion::new(25, 3),
            )
        };
        let stage = stage(CacheKind::Aot);
        let needed = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching"];
        assert_eq!(
            stage.options,
            [&needed[..], &["-XX:AOTCache=/app/app.aot"]].concat()
        );
        assert_eq!(
            stage.copy,
            "COPY --from=cache --chmod=0444 /tmp/app.aot /app/app.aot\n"
        );
        assert!(stage.stage.starts_with("FROM app AS cache\n"));
        assert!(stage.stage.contains("i < 7;"), "{}", stage.stage);
        let run = stage.stage.lines().nth(2).expect("a RUN line");
        let words: Vec<String> =
            serde_json::from_str(run.strip_prefix("RUN ").expect("RUN")).expect("exec form");
        assert_eq!(words[..4], ["bash", "-euo", "pipefail", "-c"]);
        assert!(
            words[4].contains(
                r#"java @/app/jvm.options -XX:+UnlockDiagnosticVMOptions -XX:-AOTAdapterCaching -XX:AOTCacheOutput=/tmp/app.aot -jar /app/app.jar $'--greeting=it\'s "me"' & app=$!"#
            ),
            "{}",
            words[4]
        );
    }

    #[test]
    fn an_image_gets_the_cache_that_was_trained_in_it() {
        let mut image = ImageIdentity {
            version: None,
            revision: None,
            engine: "podman".to_owned(),
            reference: "registry/orders:1.4".to_owned(),
            id: "00ff".to_owned(),
            pinned: Some("registry/orders@sha256:00".to_owned()),
            tool_options: Some("-Dcost=$1".to_owned()),
        };
        let cache = ImageCache {
            files: &["orders.jsa".to_owned()],
            place: "/jvm-cache/app.jsa",
            variable: ("JAVA_TOOL_OPTIONS", Some("-Dcost=$1")),
            options: &["-XX:SharedArchiveFile=/jvm-cache/app.jsa".to_owned()],
        };
        let of = |image: &ImageIdentity| cached_image(image, &cache);
        let text = of(&image);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "FROM registry/orders@sha256:00",
                "COPY [\"orders.jsa\", \"/jvm-cache/app.jsa\"]",
                "ENV JAVA_TOOL_OPTIONS=\"-Dcost=\\$1 -XX:SharedArchiveFile=/jvm-cache/app.jsa\"",
            ]
        );
        image.pinned = None;
        assert!(of(&image).contains("# No registry gave it a digest"));
        assert!(of(&image).contains("\nFROM registry/orders:1.4\n"));
        let shared = ImageCache {
            files: &["C_a_G45L00", "C_a_G45L00.manifest"].map(str::to_owned),
            place: "/opt/scc/",
            variable: ("OPENJ9_JAVA_OPTIONS", None),
            options: &["-Xshareclasses:name=a,cacheDir=/opt/scc".to_owned()],
        };
        let text = cached_image(&image, &shared);
        for line in [
            "COPY [\"C_a_G45L00\", \"C_a_G45L00.manifest\", \"/opt/scc/\"]\n",
            "ENV OPENJ9_JAVA_OPTIONS=\"-Xshareclasses:name=a,cacheDir=/opt/scc\"\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn words_reach_the_application_as_they_are() {
        let word = "a'b \"c\" $d `e` \\n";
        let script = format!("printf %s {}", bash_quoted(word));
        let Ok(output) = std::process::Command::new("bash")
            .args(["-c", &script])
            .output()
        else {
            println!("SKIP words_reach_the_application_as_they_are: no bash here");
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), word);
    }
}
