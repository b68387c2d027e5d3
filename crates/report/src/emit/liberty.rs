//! What ships an Open Liberty that was measured by its start script: `wlp/bin/server run NAME`.
//!
//! Owns the files as Liberty reads them: `jvm.options` and a part of
//! `server.xml`, both below `configDropins/overrides`, so that neither takes the place of the
//! server's own and each wins over it. Sources: the script itself (mergeJVMOptions: one option a
//! line, as it stands, without quotes); Open Liberty's documentation, "Server configuration
//! overview" and "mpHealth" (`/health/ready`, `/health/live`).

use super::application::ReadinessCheck;
use super::command::StartCommand;
use super::facts::EmitFacts;
use super::words::{env, json_string};

const HOME: &str = "/opt/wlp";

/// Where it writes, unless the trials say: its user may write in `/tmp` only.
const WRITTEN: [(&str, &str); 2] = [
    ("WLP_OUTPUT_DIR", "/tmp/liberty"),
    ("LOG_DIR", "/tmp/liberty/logs"),
];

pub fn jvm_options(facts: &EmitFacts<'_>) -> String {
    let mut out = facts.header();
    out.push_str(
        "# For usr/servers/NAME/configDropins/overrides: one option a line, nothing is quoted.\n",
    );
    for option in &facts.options {
        out.push_str(&format!("# {}\n{}\n", option.because, option.value));
    }
    out
}

/// Liberty's own default.
const HTTP_PORT: u16 = 9080;

pub fn server_xml(facts: &EmitFacts<'_>) -> String {
    // A comment of XML has no two hyphens in a row; of more the first round leaves pairs behind.
    let lines = facts.origin.iter().chain(&facts.left_out);
    let apart = |line: &String| line.replace("--", "- -").replace("--", "- -");
    let lines = lines.map(|line| format!("<!-- {} -->\n", apart(line)));
    let lines: String = lines.collect();
    let port = facts.application.port.unwrap_or(HTTP_PORT);
    format!(
        "{lines}<server>\n    <!-- The port that was measured, for the whole network: where nothing says so, Liberty listens on\n         localhost, and neither a probe nor a Service reaches it. -->\n    <httpEndpoint id=\"defaultHttpEndpoint\" host=\"*\" httpPort=\"{port}\"/>\n</server>\n"
    )
}

pub fn dockerfile_lines(facts: &EmitFacts<'_>, server: &str) -> String {
    let application = facts.application;
    let overrides = format!("{HOME}/usr/servers/{server}/configDropins/overrides");
    let mut out = format!(
        "FROM ${{BASE}}\n# The installation that was measured: features, configuration, application.\nCOPY [{}, {}]\n",
        json_string(application.command.jar_name()),
        json_string(HOME)
    );
    let mut copy = |name: &str| {
        let to = json_string(&format!("{overrides}/{name}"));
        let name = json_string(name);
        out += &format!("COPY --chmod=0444 [{name}, {to}]\n");
    };
    copy("loadline.xml");
    if !facts.options.is_empty() {
        copy("jvm.options");
    }
    for variable in &facts.variables {
        if let Some(value) = &variable.value {
            out.push_str(&format!("ENV {}={}\n", variable.name, env(value)));
        }
    }
    let is_set = |name: &str| facts.variables.iter().any(|variable| variable.name == name);
    let missing: Vec<_> = WRITTEN.iter().filter(|(name, _)| !is_set(name)).collect();
    if !missing.is_empty() {
        out.push_str("# Its user may write in /tmp only.\n");
    }
    for (name, value) in missing {
        out.push_str(&format!("ENV {name}=\"{value}\"\n"));
    }
    out
}

pub fn entry_point(facts: &EmitFacts<'_>, server: &str) -> Vec<String> {
    let script = format!("{HOME}/bin/server");
    let mut words = vec![script, "run".to_owned(), server.to_owned()];
    words.extend_from_slice(&facts.arguments);
    words
}

/// Liveness of a server with mpHealth: next to its readiness path.
pub fn liveness_path(command: &StartCommand, ready: &ReadinessCheck) -> Option<&'static str> {
    let is_health = matches!(ready, ReadinessCheck::Http { path, .. } if path == "/health/ready");
    (is_health && command.liberty.is_some()).then_some("/health/live")
}
