//! Compose features that loadline supports, and refusals of others.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use insta::assert_snapshot;

use super::*;

const SHOP: &str = r#"
name: shop
services:
  orders:
    image: registry/orders:1.4
    command: --spring.profiles.active="load test"
    environment:
      SPRING_DATASOURCE_URL: jdbc:postgresql://db:5432/${LOADLINE_UNSET:-owners}
      SPRING_DATASOURCE_PASSWORD: hunter22
    volumes: ["./application.yaml:/config/application.yaml"]
    ports: ["127.0.0.1:80:8080"]
    depends_on:
      db: { condition: service_healthy }
      cache: { condition: service_started }
    restart: unless-stopped
    networks: [back]
  db:
    image: postgres:17
    environment: ["POSTGRES_DB=owners", "POSTGRES_PASSWORD=hunter22"]
    healthcheck:
      test: ["CMD-SHELL", "pg_isready -U postgres"]
      interval: 1s
    volumes: ["data:/var/lib/postgresql/data"]
    deploy: { resources: { limits: { cpus: "1.5", memory: 512m } } }
    depends_on: [cache]
  cache:
    image: redis:7
    expose: [6379]
    mem_limit: 64mb
    shm_size: 128mb
  admin:
    image: adminer
    ports: ["80:8081"]
volumes:
  data: {}
networks:
  back: {}
"#;

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("compose.yaml");
    fs::write(&path, text).unwrap();
    (directory, path)
}

/// The refusal after replacing `from` by `to` in the file, without the file's path.
fn told(from: &str, to: &str, others: &[&str]) -> String {
    assert!(SHOP.contains(from), "{from}");
    let (directory, path) = file(&SHOP.replacen(from, to, 1));
    let others: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
    let refusal = take_services(&path, Some("orders"), &others).unwrap_err();
    let place = format!("{}/", directory.path().display());
    format!("{refusal}\nhint: {}", refusal.hint).replace(&place, "")
}

#[test]
fn times_and_ports_are_read_as_compose_writes_them() {
    let text = "services: {a: {image: a, ports: ['5044:5044/tcp', '5140:5140/udp', '9090-9091:8080-8081', '7000', {target: 53, protocol: udp}, {target: 9000, published: '9001'}], \
        healthcheck: {test: [CMD, x], start_period: 1m30s, interval: 1m0s, retries: 1}}}";
    let (_directory, path) = file(text);
    let app = take_services(&path, Some("a"), &[])
        .unwrap()
        .application
        .unwrap();
    let ports: Vec<_> = app.ports.iter().map(|p| (p.target, p.published)).collect();
    let wanted = [
        (5044, Some(5044)),
        (8080, Some(9090)),
        (8081, Some(9091)),
        (7000, None),
        (9000, Some(9001)),
    ];
    assert_eq!(ports, wanted);
    assert_eq!(app.start_deadline, Some(Duration::from_secs(150)));
}

#[test]
fn one_run_names_all_problems_and_their_services() {
    let text = "services: {a: {image: a, ports: [x], privileged: true, pid: host, depends_on: [b]}, b: {image: b, healthcheck: {test: [CMD, x], interval: soon}}}";
    let (_directory, path) = file(text);
    let said = take_services(&path, Some("a"), &[])
        .unwrap_err()
        .to_string();
    for part in [
        "`a` of",
        "`x` is not a port",
        "`pid`, `privileged`",
        "`b` of",
        "`soon` is not a time",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // What it waits for may be missing, a job, or both, and the rest is still said.
    let text = "services: {a: {image: a, ports: [x, '80:90000'], depends_on: {b: {condition: service_started}, gone: {condition: service_started}, later: {required: false}}}, b: {image: b, pid: host, depends_on: {j: {condition: service_completed_successfully}}}}";
    let (_directory, path) = file(text);
    let refused = take_services(&path, Some("a"), &[]).unwrap_err();
    let named = [
        "`x`, `80:90000` is not a port",
        "`pid`",
        "waits for `j` to end",
        "no service `gone`",
    ];
    for part in named {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    assert!(!refused.to_string().contains("later"), "{refused}");
    // Those of each service are in one list.
    assert_eq!(said.matches("problems:").count(), 1, "{said}");
}

#[test]
fn a_file_of_variables_may_be_optional_and_a_missing_one_names_its_service() {
    let with = |required: &str| {
        let text = format!(
            "services: {{a: {{image: a, expose: [1], env_file: [{{path: x.env, required: {required}}}]}}}}"
        );
        let (_directory, path) = file(&text);
        take_services(&path, Some("a"), &[]).map(|_| ())
    };
    assert!(with("false").is_ok());
    let refused = with("true").unwrap_err().to_string();
    assert!(refused.contains("`a` of"), "{refused}");
    assert!(refused.contains("x.env"), "{refused}");
}

#[test]
fn a_service_is_taken_with_all_that_it_depends_on_in_the_order_of_their_start() {
    let (_directory, path) = file(SHOP);
    let taken = take_services(&path, Some("orders"), &[]).unwrap();
    let names: Vec<&str> = taken.dependencies.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["cache", "db"]);
    let app = taken.application.unwrap();
    assert_eq!(app.image, "registry/orders:1.4");
    assert_eq!(app.command, ["--spring.profiles.active=load test"]);
    assert_eq!(
        app.env["SPRING_DATASOURCE_URL"],
        "jdbc:postgresql://db:5432/owners"
    );
    let beside = path.with_file_name("application.yaml");
    let volume = format!("{}:/config/application.yaml", beside.display());
    assert_eq!(app.volumes, [volume]);
    let [cache, db] = taken.dependencies.as_slice() else {
        panic!("two of them");
    };
    assert_eq!(cache.ready, Some(ServiceReadiness::Tcp(6379)));
    assert_eq!(cache.memory.as_deref(), Some("64m"));
    assert_eq!(cache.shm.as_deref(), Some("128m"));
    assert_eq!(
        db.start_deadline,
        Some(Duration::from_secs(3)),
        "3 checks, a second apart"
    );
    assert_eq!(cache.start_deadline, None);
    let check = ["/bin/sh", "-c", "pg_isready -U postgres"].map(str::to_owned);
    assert_eq!(db.ready, Some(ServiceReadiness::Command(check.to_vec())));
    assert_eq!(
        (db.cpu.as_deref(), db.memory.as_deref()),
        (Some("1.5"), Some("512m"))
    );
    assert!(db.volumes.is_empty(), "what has a name begins empty");
}

#[test]
fn a_credential_stays_in_the_compose_file() {
    let (_directory, path) = file(SHOP);
    let taken = take_services(&path, Some("orders"), &[]).unwrap();
    let stored = format!("{taken:?}");
    assert!(!stored.contains("hunter22"), "{stored}");
    let app = taken.application.unwrap();
    let reference = &app.env["SPRING_DATASOURCE_PASSWORD"];
    let wanted = format!(
        "{{compose:{}#orders#SPRING_DATASOURCE_PASSWORD}}",
        path.display()
    );
    assert_eq!(*reference, wanted);
    let filled = crate::references::fill_references(&app.env).unwrap();
    assert_eq!(filled.env["SPRING_DATASOURCE_PASSWORD"], "hunter22");
    assert_eq!(filled.secrets, ["hunter22"]);
    let command = told(
        "command: --spring",
        "command: --p=${DB_PASSWORD:-x} --spring",
        &[],
    );
    assert_snapshot!(command, @"
    `orders` of the compose file compose.yaml: command holds a credential, which would be stored with the result
    hint: give it to the service as a variable: `environment`
    ");
}

#[test]
fn variables_come_from_files_too_and_the_service_itself_wins() {
    let text = SHOP.replace(
        "    environment: [",
        "    env_file: db.env\n    environment: [",
    );
    let (directory, path) = file(&text);
    fs::write(
        directory.path().join("db.env"),
        "POSTGRES_DB=x\nPGDATA=${HERE}\n",
    )
    .unwrap();
    let env = "ROOT=/da\nHERE=${ROOT}ta\n";
    fs::write(directory.path().join(".env"), env).unwrap();
    let taken = take_services(&path, None, &["db".to_owned()]).unwrap();
    let db = &taken.dependencies[1];
    assert_eq!(
        (db.env["POSTGRES_DB"].as_str(), db.env["PGDATA"].as_str()),
        ("owners", "/data")
    );
}

#[test]
fn a_service_that_does_not_exist_is_refused_with_those_that_do() {
    assert_snapshot!(told("db: { condition: service_healthy }", "dbb: { condition: service_healthy }", &[]), @"
    the compose file compose.yaml: it has no service `dbb`
    hint: its services are admin, cache, db, orders
    ");
}

#[test]
fn services_that_share_a_port_or_a_volume_are_refused() {
    assert_snapshot!(told("name: shop", "name: shop", &["admin"]), @"
    the compose file compose.yaml: `orders` and `admin` publish port 80
    hint: change one of the ports: nothing is published in a trial, but they share one network
    ");
    assert_snapshot!(told("expose: [6379]", "expose: [8080]", &[]), @"
    the compose file compose.yaml: `orders` and `cache` listen on port 8080
    hint: they share one network in a trial: have one listen on another port
    ");
    assert_snapshot!(told("expose: [6379]", "expose: [6379]\n    volumes: [\"data:/x\"]", &[]), @"
    the compose file compose.yaml: `cache` and `db` share the volume `data`
    hint: each has its own files in a trial; put what both read into a directory: ./shared:/seen:ro
    ");
}

#[test]
fn what_cannot_be_done_is_refused_by_its_name() {
    let image = "image: redis:7";
    let with = |key: &str| told(image, &format!("{image}\n    {key}"), &[]);
    for (key, named) in [
        ("privileged: true", "it has `privileged`"),
        ("network_mode: host", "it has `network_mode`"),
        ("entrypoint: /x", "it has `entrypoint`"),
        ("deploy: { replicas: 2 }", "it has `deploy.replicas`"),
        (
            "networks: { back: { aliases: [c] } }",
            "it has `networks.aliases`",
        ),
        ("volumes: [\".:/data\"]", "it may change . of this machine"),
        (
            "volumes: [{ type: tmpfs, target: /x }]",
            "a volume in memory",
        ),
        ("ports: [\"3-1:3-1\"]", "`3-1:3-1` is not a port"),
        (
            "environment: { A: \"${LOADLINE_UNSET}\" }",
            "A: the variable LOADLINE_UNSET is not set",
        ),
        ("command: it's", "a quote of command is not closed"),
        (
            "depends_on: [orders]",
            "wait for each other: orders -> cache -> orders",
        ),
        (
            "depends_on: { admin: { condition: service_completed_successfully } }",
            "waits for `admin` to end",
        ),
    ] {
        let told = with(key);
        assert!(told.contains(named), "{key}: {told}");
        assert!(told.contains("\nhint: "), "{told}");
    }
    for (from, to, named) in [
        ("expose: [6379]", "expose: 6379", "`cache` of"),
        ("expose: [6379]", "expose: 6379", "write a list: expose: ["),
        (
            "ports: [\"127.0.0.1:80:8080\"]",
            "ports: 80",
            "its `ports` is only",
        ),
        (
            "depends_on: [cache]",
            "depends_on: cache",
            "write a list: depends",
        ),
        (
            "environment: [\"POSTGRES_DB=owners\", \"POSTGRES_PASSWORD=hunter22\"]",
            "environment: A=B",
            "its `environment` is only",
        ),
        (
            "volumes: [\"data:/var/lib/postgresql/data\"]",
            "volumes: data",
            "its `volumes` is only",
        ),
        ("mem_limit: 64mb", "mem_limit: 1 gig", "`cache` of"),
        (
            "mem_limit: 64mb",
            "mem_limit: 1 gig",
            "its memory limit: `1 gig` is not an amount of memory",
        ),
        (
            "shm_size: 128mb",
            "shm_size: 1x",
            "shm_size: `1x` is not an amount of memory",
        ),
        (
            "interval: 1s",
            "retries: many",
            "retries: \"many\" is not a whole number",
        ),
        (
            "image: adminer",
            "image: adminer\n    env_file: [{ file: x }]",
            "an entry of its env_file has no `path`",
        ),
        (
            "ports: [\"80:8081\"]",
            "ports: [{ target: x }]",
            "`{\"target\":\"x\"}` is not a port",
        ),
        (image, "image: Redis:7", "`Redis:7` is not an image name"),
        (image, "image: ''", "`` is not an image name"),
    ] {
        let told = told(from, to, &["admin"]);
        assert!(told.contains(named), "{to}: {told}");
    }
    let built = told(image, "build: .", &[]);
    assert!(
        built.contains("no `image`, and loadline builds none"),
        "{built}"
    );
    let external = told("data: {}", "data: { external: true }", &[]);
    assert!(
        external.contains("the volume `data` is `external`"),
        "{external}"
    );
    let included = told("name: shop", "include: [x.yaml]", &[]);
    assert!(included.contains("docker compose config"), "{included}");
}

#[test]
fn a_file_that_is_no_compose_file_is_refused() {
    for (text, problem) in [
        ("a: 1", "it has no `services`"),
        ("", "it is empty"),
        ("services: [", "cannot read"),
    ] {
        let (_directory, path) = file(text);
        let refusal = take_services(&path, Some("orders"), &[]).unwrap_err();
        let told = format!("{refusal}");
        assert!(told.contains(problem), "{text}: {told}");
    }
}

#[test]
fn an_endless_chain_of_services_is_refused() {
    let chain = |length: usize| {
        let one = |n: usize| format!("  s{n}: {{ image: a, depends_on: [s{}] }}\n", n + 1);
        let all: String = (0..length).map(one).collect();
        let (_directory, path) = file(&format!("services:\n{all}  s{length}: {{ image: a }}\n"));
        take_services(&path, Some("s0"), &[]).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(chain(MOST_ABOVE - 1).unwrap().dependencies.len(), 99);
    let why = chain(20_000).unwrap_err();
    assert!(why.contains("more than 100 of its services wait"), "{why}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let refusal = take_services(Path::new("/x/compose.yaml"), Some("orders"), &[]).unwrap_err();
    let said = refusal.to_string();
    assert!(
        said.contains("/x/compose.yaml: it does not exist"),
        "{said}"
    );
    assert!(refusal.hint.contains("--compose"), "{}", refusal.hint);
}
