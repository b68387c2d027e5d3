//! Common spellings, their meaning, and messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use insta::assert_snapshot;

use super::*;

const MIX: &str = r#"
url = "http://localhost:9411/"
rate = "10/s..20/s"
headers = { Accept = "*/*" }

[[request]]
name = "report"
weight = 3
method = "POST"
path = "/api/v2/spans"
body = '[{"traceId": "{uuid}"}]'
headers = { Content-Type = "application/json" }

[[request]]
weight = 1
path = "/api/v2/traces?limit={rand:1:10}"
"#;

fn spec(text: &str) -> LoadSpec {
    toml::from_str(text).unwrap()
}

fn refused(text: &str) -> String {
    match spec(text).check_spec() {
        Ok(()) => panic!("it is taken:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn targets() -> Vec<SocketAddr> {
    vec![([127, 0, 0, 1], 9411).into()]
}

#[test]
fn a_mix_becomes_a_plan_whose_requests_have_the_headers_of_all() {
    let plan = spec(MIX).to_plan(targets()).unwrap();
    let names: Vec<_> = plan.mix.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["report", "GET /api/v2/traces?limit={rand:1:10}"]);
    let report = &plan.mix[0].request;
    assert_eq!(report.method, "POST");
    assert_eq!(report.host.as_deref(), Some("localhost:9411"));
    let headers: Vec<_> = report.headers.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(headers, ["Accept", "Content-Type"]);
    assert_eq!(plan.model.mean_rate(), Some(15.0));
    assert_eq!(plan.model.scheduled_duration(), Some(DURATION));
    assert_eq!((plan.connections, plan.timeout), (CONNECTIONS, TIMEOUT));
}

#[test]
fn the_status_of_a_good_call_is_for_http2_and_load_commands() {
    let text = "url = \"http://localhost:9090/\"\nexpect-grpc-status = [\"NOT_FOUND\"]\n";
    assert!(refused(text).contains("HTTP/2 only"));
    let command = spec(&format!("{text}command = [\"ghz\"]\n"));
    command.check_spec().unwrap();
    let plan = command.to_plan(targets()).unwrap();
    assert_eq!(plan.expect.grpc_status, [5]);
}

#[test]
fn what_was_written_reads_back() {
    let first = spec(MIX);
    let again: LoadSpec = toml::from_str(&toml::to_string(&first).unwrap()).unwrap();
    assert_eq!(again, first);
}

#[test]
fn older_names_are_still_read() {
    let text = "url = \"http://localhost/\"\nclosed = true\nmeasure = \"4s\"\nhttp2-streams = 5\n";
    let spec = spec(text);
    assert_eq!(spec.duration, Some(PositiveTime(Duration::from_secs(4))));
    assert_eq!(spec.http2().map(|h| h.streams), Some(5));
}

#[test]
fn a_warm_up_has_the_first_rate_of_what_follows() {
    let plan = spec(MIX).to_plan(targets()).unwrap();
    let warm = plan.model.lead_in(Duration::from_secs(3));
    assert_eq!(
        warm,
        LoadModel::at_constant_rate(10.0, Duration::from_secs(3))
    );
    let whole = plan.after_warm_up(Duration::from_secs(3));
    assert_eq!(
        whole.model.scheduled_duration(),
        Some(DURATION + whole.warmup)
    );
    let from_silence = LoadModel::Open {
        segments: vec![
            RateSegment::constant_rate(0.0, Duration::from_secs(1)),
            RateSegment::constant_rate(4.0, Duration::from_secs(1)),
        ],
        arrivals: ArrivalPattern::Uniform,
    };
    assert_eq!(from_silence.lead_in(WARM_UP).mean_rate(), Some(2.0));
}

#[test]
fn a_profile_gives_requests_and_rates_and_lies_beside_its_bodies() {
    let directory = std::env::temp_dir().join(format!("loadline-spec-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("peak")).unwrap();
    let profile = "interval-seconds = 2\nrates = [10.0, 30.0]\n\
                   [[request]]\nweight = 1\nmethod = \"POST\"\npath = \"/x\"\nbody-file = \"x.json\"\n";
    std::fs::write(directory.join("peak/peak.toml"), profile).unwrap();
    std::fs::write(directory.join("peak/x.json"), "{\"a\": {csv:t.csv:id}}").unwrap();
    let text = "url = \"http://localhost/\"\nprofile = \"peak/peak.toml\"\nscale = 1.5\n";
    let mut settled = spec(text);
    settled.resolve_files(&directory).unwrap();
    let stored = toml::to_string(&settled).unwrap();
    let mut again: LoadSpec = toml::from_str(&stored).unwrap();
    let before = again.clone();
    again.resolve_files(Path::new("/elsewhere")).unwrap();
    assert_eq!(again, before, "{stored}");
    again.check_spec().unwrap();
    let plan = again.to_plan(targets()).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(plan.model.mean_rate(), Some(30.0));
    assert_eq!(
        plan.model.scheduled_duration(),
        Some(Duration::from_secs(4))
    );
    let body = String::from_utf8(plan.mix[0].request.body.clone()).unwrap();
    let table = directory.join("peak/t.csv");
    assert_eq!(body, format!("{{\"a\": {{csv:{}:id}}}}", table.display()));
    assert_eq!(again.content_files(), [directory.join("peak/x.json")]);
}

#[test]
fn what_contradicts_itself_is_refused_with_the_key() {
    let url = "url = \"http://localhost/\"\n";
    let with = |text: &str| refused(&format!("{url}{text}"));
    assert_snapshot!(with(""), @r#"rate: the load is not clear: choose rate, closed, requests or the rates of a profile; rate = "300/s" (--rate 300/s) is load as in production, closed (--closed) as fast as possible, requests (--requests 1000) a fixed number"#);
    assert_snapshot!(with("rate = \"1/s\"\nclosed = true"), @"closed: a rate is given too; leave one out");
    assert_snapshot!(with("rate = \"1/s\"\nscale = 2"), @"scale: it is for the rates of a profile, but no rates are replayed; name a profile with rates (--profile FILE) and give neither rate nor closed");
    assert_snapshot!(with("closed = true\npoisson = true"), @"poisson: in a closed model answers decide when requests are sent; give a rate, or leave it out");
    assert_snapshot!(with("rate = \"1/s\"\nconnections = 0"), @"connections: at least 1 is needed; write 1 to 10000");
    assert_snapshot!(with("rate = \"1/s\"\n[profile]\ninterval-seconds = 1\n"), @"profile: it has neither [[request]] nor rates; loadline profile writes one from access logs");
    let zero = "rate = \"1/s\"\n[[request]]\nweight = 0\npath = \"/\"\n";
    assert_snapshot!(with(zero), @"request: the weight of `GET /` is 0; its share is its weight over the sum of all: write one above 0, or leave the request out");
    let twice = "rate = \"1/s\"\n[[request]]\nweight = 1\npath = \"/\"\n[[request]]\nweight = 1\npath = \"/\"\n";
    assert_snapshot!(with(twice), @"request: two requests are called `GET /`; give each its own name");
}

#[test]
fn a_credential_is_read_when_the_plan_is_made_and_kept_out_of_the_load() {
    let text = "url = \"http://localhost/\"\nrate = \"1/s\"\n";
    // PATH is set wherever tests run.
    let with = spec(&format!("{text}bearer = \"{{env:PATH}}\"\n"));
    with.refuse_literal_credentials().unwrap();
    let path = std::env::var("PATH").unwrap();
    let plan = with.to_plan(targets()).unwrap();
    let header = ("Authorization".to_owned(), format!("Bearer {path}"));
    assert_eq!(plan.request.headers, [header]);
    assert!(!toml::to_string(&with).unwrap().contains(&path));
    let unset = spec(&format!("{text}bearer = \"{{env:LOADLINE_NO_SUCH}}\"\n"));
    unset.check_spec().expect("nothing is read yet");
    assert_snapshot!(unset.to_plan(targets()).unwrap_err(), @"bearer: the environment variable `LOADLINE_NO_SUCH` is not set; set it in loadline's environment (sudo drops it: sudo LOADLINE_NO_SUCH=... loadline)");
    let literal = |more: &str| {
        let spec = spec(&format!("{text}{more}\n"));
        spec.refuse_literal_credentials().unwrap_err().to_string()
    };
    assert_snapshot!(literal("bearer = \"t0ken\""), @"bearer: the token (a file is @FILE) is in it and would be stored with the result; name an environment variable instead: {env:NAME}");
    assert_snapshot!(literal("headers = { Cookie = \"a=b\" }"), @"headers: the value of Cookie is in it and would be stored with the result; name an environment variable instead: {env:NAME}");
}

#[test]
fn a_user_in_a_file_becomes_a_header() {
    let file = std::env::temp_dir().join(format!("loadline-basic-{}", std::process::id()));
    std::fs::write(&file, "Aladdin:open sesame\n").unwrap();
    let text = "url = \"http://localhost/\"\nclosed = true\n";
    let spec = spec(&format!("{text}basic = \"@{}\"\n", file.display()));
    let plan = spec.to_plan(targets());
    std::fs::remove_file(&file).unwrap();
    let value = plan.unwrap().request.headers.pop().map(|(_, value)| value);
    assert_eq!(value.as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
}

#[test]
fn a_body_file_that_is_missing_is_named_with_its_place() {
    let text = "url = \"http://localhost/\"\nclosed = true\nbody-file = \"new.json\"\n";
    let mut spec = spec(text);
    spec.resolve_files(Path::new("/nowhere")).unwrap();
    assert_snapshot!(spec.to_plan(targets()).unwrap_err(), @"body-file: /nowhere/new.json cannot be read: No such file or directory (os error 2); a path is relative to the file that names it");
}

#[test]
fn a_schema_is_a_file_next_to_the_load_or_an_instance() {
    for (given, resolved) in [
        ("a.proto", "/nowhere/a.proto"),
        ("http://localhost:9090", "http://localhost:9090"),
    ] {
        let mut load = spec(&format!(
            "url = \"http://localhost/\"\nproto = \"{given}\"\n"
        ));
        load.resolve_files(Path::new("/nowhere")).unwrap();
        assert_eq!(load.proto.unwrap(), Path::new(resolved));
    }
}

#[test]
fn the_bodies_of_calls_become_messages_in_frames() {
    let mut load = spec(
        "url = \"http://localhost/pkg.Pings/Ping\"\nrate = \"1/s\"\nproto = \"a.proto\"\n\
         body = '{\"id\": {seq}}'\ntimeout = \"2s\"\nheaders = { TE = \"trailers\" }\n",
    );
    load.encode_calls(&|path, json| Ok(format!("{path} {json}").into_bytes()))
        .unwrap();
    load.check_spec().unwrap();
    let body = load.body.clone().unwrap();
    let first = body.strip_prefix("{base64:").unwrap().split('|').next();
    let first = STANDARD.decode(first.unwrap()).unwrap();
    assert_eq!(first, b"\0\0\0\0\x19/pkg.Pings/Ping {\"id\": 0}");
    assert_eq!(body.split('|').count(), 256);
    assert_eq!(load.method.as_deref(), Some("POST"));
    let headers: Vec<_> = load.headers.iter().collect();
    let headers = format!("{headers:?}");
    assert_eq!(
        headers,
        r#"[("TE", "trailers"), ("content-type", "application/grpc"), ("grpc-timeout", "2000m")]"#
    );
    let again: LoadSpec = toml::from_str(&toml::to_string(&load).unwrap()).unwrap();
    assert_eq!((again.proto, again.http2), (None, Some(true)));
}

#[test]
fn calls_of_a_mix_are_encoded_one_by_one_and_keep_secrets_out() {
    let mixed = |body: &str| {
        let text = "url = \"http://localhost/\"\nrate = \"1/s\"\nproto = \"a.proto\"\n";
        let mut load = spec(&format!(
            "{text}[[request]]\nweight = 1\npath = \"/p.S/M\"\nbody = '{body}'\n"
        ));
        let done = load.encode_calls(&|_, json| match json {
            "{}" => Ok(Vec::new()),
            _ => Err("it has no method; write one".to_owned()),
        });
        done.map(|()| load.request.remove(0))
    };
    let request = mixed("{}").unwrap();
    assert_eq!(request.body, "{base64:AAAAAAA=}");
    assert_eq!(request.method, "POST");
    assert_snapshot!(mixed("x").unwrap_err(), @"proto: it has no method; write one");
    assert_snapshot!(mixed("{env:T}").unwrap_err(), @"body: {env:NAME} is not allowed in a message, which is stored; send it as metadata: -H 'authorization: Bearer {env:TOKEN}'");
}
