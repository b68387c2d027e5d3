//! Variables of well-known images that set a heap without a JVM option: `MAX_HEAP_SIZE=2G`.
//!
//! Owns which option such a variable becomes, by its name where no image is known. Sources: the start
//! scripts of the images named in [`HEAPS`], and Kubernetes' and shells' rules for references to variables.

use loadline_analysis::lint::ImageHeap;
use loadline_sizing::Bytes;
use loadline_sizing::options::parse_size;
use loadline_sizing::options::words::has_word;

/// A variable, and the options that its image's start script makes of the value (`@`).
const HEAPS: [(&str, &str); 10] = [
    // Cassandra
    ("MAX_HEAP_SIZE", "-Xms@ -Xmx@"),
    ("HEAP_NEWSIZE", "-Xmn@"),
    // Solr
    ("SOLR_HEAP", "-Xms@ -Xmx@"),
    // ZooKeeper of Bitnami
    ("ZOO_HEAP_SIZE", "-Xms@m -Xmx@m"),
    // Elasticsearch and OpenSearch of Bitnami
    ("ELASTICSEARCH_HEAP_SIZE", "-Xms@ -Xmx@"),
    ("OPENSEARCH_HEAP_SIZE", "-Xms@ -Xmx@"),
    // Red Hat's and fabric8's run-java.sh
    ("JAVA_MAX_MEM_RATIO", "-XX:MaxRAMPercentage=@.0"),
    ("GC_MAX_METASPACE_SIZE", "-XX:MaxMetaspaceSize=@m"),
    ("SPARK_DAEMON_MEMORY", "-Xmx@"),
    ("LOGSTASH_HEAP_SIZE", "-Xms@ -Xmx@"),
];

/// A line for images with the same heap: the variable that chooses it, what their start script takes
/// without it, the images. SonarQube has 512 MiB for each of its three JVMs.
const IMAGE_HEAPS: &str = "\
KAFKA_HEAP_OPTS|-Xms1G -Xmx1G|apache/kafka bitnami/kafka confluentinc/cp-kafka confluentinc/cp-server
KAFKA_HEAP_OPTS|-Xms256M -Xmx2G|confluentinc/cp-kafka-connect confluentinc/cp-server-connect
KAFKA_HEAP_OPTS|-Xms512M -Xmx512M|confluentinc/cp-zookeeper
SCHEMA_REGISTRY_HEAP_OPTS|-Xmx512M|confluentinc/cp-schema-registry
ZK_SERVER_HEAP|-Xmx1000m|zookeeper
ZOO_HEAP_SIZE|-Xms1024m -Xmx1024m|bitnami/zookeeper
SOLR_HEAP|-Xms512m -Xmx512m|solr
LS_JAVA_OPTS|-Xms1g -Xmx1g|logstash logstash/logstash logstash/logstash-oss
OPENSEARCH_JAVA_OPTS|-Xms1g -Xmx1g|opensearchproject/opensearch
GRAYLOG_SERVER_JAVA_OPTS|-Xms1g -Xmx1g|graylog/graylog
INSTALL4J_ADD_VM_PARAMS|-Xms2703m -Xmx2703m -XX:MaxDirectMemorySize=2703m|sonatype/nexus3
SONAR_*_JAVAOPTS|-Xmx1536m|sonarqube
JAVA_OPTS|-Xms64m -Xmx512m|wildfly/wildfly jboss/wildfly
PULSAR_MEM|-Xms2g -Xmx2g -XX:MaxDirectMemorySize=4g|apachepulsar/pulsar apachepulsar/pulsar-all
ACTIVEMQ_OPTS_MEMORY|-Xms64M -Xmx1G|apache/activemq-classic
JAVA_OPTS_KC_HEAP|-XX:InitialRAMPercentage=50 -XX:MaxRAMPercentage=70|keycloak/keycloak
";

/// The heap that an image takes where its manifest sets none.
pub fn image_heap(image: &str) -> Option<ImageHeap> {
    let name = image.split('@').next().unwrap_or_default();
    let tag = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
    let name = tag.map_or(name, |(name, _)| name);
    // A registry has a point in its name, or a port.
    let (first, rest) = name.split_once('/').unwrap_or(("", name));
    let path = if first.contains(['.', ':']) {
        rest
    } else {
        name
    };
    let path = path.strip_prefix("library/").unwrap_or(path);
    IMAGE_HEAPS.lines().find_map(|line| {
        let mut parts = line.split('|');
        let heap = ImageHeap {
            variable: parts.next()?,
            options: parts.next()?,
        };
        has_word(parts.next()?, path).then_some(heap)
    })
}

/// Parts of names of variables that are about a heap, and not about the size of the service's. Strimzi's
/// `DYNAMIC_HEAP_MAX` bounds a share.
const NO_HEAP: [&str; 13] = [
    "CACHE", "CHEAP", "CLIENT", "DUMP", "DYNAMIC", "META", "NEW", "NON", "OFF", "PERCENT", "RATIO",
    "REGION", "TABLE",
];

/// Ends of names of shares of the limit, of Rundeck, Payara and JBoss EAP: a percentage, or a part of 1.
const SHARES: [&str; 3] = ["MAX_RAM_PERCENTAGE", "HEAP_PERCENTAGE", "HEAP_PERCENT"];

/// Parts of the names of images that take `MEMORY`, `MAXIMUM_MEMORY` or `MEM_LIMIT` as the heap.
const MEMORY_IS_HEAP: [&str; 5] = ["minecraft", "bungeecord", "mc-proxy", "geoserver", "unifi"];

/// The option that a variable stands for by its name: `JVM_MAX_HEAP_SIZE`, `HADOOP_HEAPSIZE_MIN`,
/// `DRUID_XMX`.
fn option_by_name(name: &str, image: &str) -> Option<&'static str> {
    let mut parts = name.split('_').filter(|part| !part.is_empty());
    let has = |begins: &[&str]| {
        let mut parts = name.split('_');
        parts.any(|part| begins.iter().any(|begin| part.starts_with(begin)))
    };
    // Neo4j's page cache is memory outside the heap.
    if name.contains("DIRECT") && name.contains("MEM") || name.contains("PAGECACHE_SIZE") {
        return Some("-XX:MaxDirectMemorySize=@m");
    }
    if parts.any(|part| NO_HEAP.iter().any(|other| part.contains(other))) {
        return None;
    }
    let is_heap = |part: &&str| image.contains(*part);
    let is_java = has(&["JVM", "JAVA"]) || MEMORY_IS_HEAP.iter().any(is_heap);
    let is_java = is_java && name.contains("MEM") || name.ends_with("DRIVER_MEMORY");
    let is_java = is_java || name.ends_with("EXECUTOR_MEMORY");
    if !name.contains("HEAP") && !is_java && !has(&["XMX", "XMS"]) {
        return None;
    }
    if has(&["MIN", "INIT", "XMS", "START"]) {
        return Some("-Xms@m");
    }
    let ends = ["HEAP", "SIZE", "MEM", "MEMORY", "LIMIT"];
    let is_size = ends.iter().any(|end| name.ends_with(end));
    (is_size || has(&["MAX", "XMX"])).then_some("-Xmx@m")
}

/// The JVM options that a variable stands for; `None` if no known image reads it so, or if the
/// value turns the option off.
pub fn heap_options(name: &str, value: &str) -> Option<String> {
    let known = HEAPS.iter().find(|(known, _)| *known == name);
    with_value(known?.1, value)
}

/// The JVM option that a variable of an image probably stands for, as its name is about memory.
pub fn named_heap(name: &str, value: &str, image: &str) -> Option<String> {
    let name = name.to_uppercase();
    if SHARES.iter().any(|end| name.ends_with(end)) && !name.contains("INIT") {
        let share: f64 = value.trim().parse().ok().filter(|share| *share > 0.0)?;
        let percent = if share <= 1.0 { share * 100.0 } else { share };
        return Some(format!("-XX:MaxRAMPercentage={percent:.1}"));
    }
    with_value(option_by_name(&name, image)?, value)
}

fn with_value(options: &str, value: &str) -> Option<String> {
    let value = value.trim();
    let size = parse_size(value).filter(|size| *size > Bytes::default())?;
    // A script that adds `m` takes `2g` as it is; a number of bytes is no number of MiB.
    let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
    let options = if has_unit || size >= Bytes::from_mib(1) {
        options.replace("@m", "@")
    } else {
        options.to_owned()
    };
    Some(options.replace('@', value))
}

/// Most references that are filled in for one text: a chain of values that name the one before twice
/// would double at each step.
const MOST_REFERENCES: usize = 100;
/// Longest value that is filled in, and longest reference, in bytes: an end is not looked for in all
/// of a text.
const LONGEST_VALUE: usize = 64 << 10;
const LONGEST_REFERENCE: usize = 256;

/// A text with its references to variables filled in, as far as `values` has them: `$(NAME)`,
/// `${NAME}`, `$NAME` and `${NAME:-default}`. A later value wins; one may refer to those before it.
/// Beyond [`MOST_REFERENCES`] references stay as they are.
pub fn fill_references(text: &str, values: &[(String, String)]) -> String {
    let mut left = MOST_REFERENCES;
    fill_bounded(text, values, &mut left, true)
}

/// The same with `$(NAME)` alone, where no shell reads the text.
pub fn fill_by_kubernetes(text: &str, values: &[(String, String)]) -> String {
    let mut left = MOST_REFERENCES;
    fill_bounded(text, values, &mut left, false)
}

fn fill_bounded(
    text: &str,
    values: &[(String, String)],
    left: &mut usize,
    has_shell: bool,
) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_filled = has_shell || rest.starts_with("$(");
        let reference = VariableReference::parse(rest).filter(|_| is_filled);
        let Some(reference) = reference else {
            filled.push('$');
            rest = &rest[1..];
            continue;
        };
        if *left == 0 {
            break;
        }
        *left -= 1;
        let is_it = |(name, value): &(String, String)| {
            name == reference.name && value.len() <= LONGEST_VALUE
        };
        let known = values.iter().rposition(is_it);
        match (known, reference.default) {
            (Some(at), _) => {
                filled.push_str(&fill_bounded(&values[at].1, &values[..at], left, has_shell))
            }
            (None, Some(default)) => filled.push_str(default),
            (None, None) => filled.push_str(&rest[..reference.length]),
        }
        rest = &rest[reference.length..];
    }
    filled + rest
}

struct VariableReference<'a> {
    name: &'a str,
    default: Option<&'a str>,
    length: usize,
}

impl<'a> VariableReference<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let close = match text.as_bytes().get(1)? {
            b'{' => b'}',
            b'(' => b')',
            _ => {
                let name = &text[1..];
                let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = &name[..end.unwrap_or(name.len())];
                return is_name(name).then_some(Self {
                    name,
                    default: None,
                    length: name.len() + 1,
                });
            }
        };
        let mut begin = text.bytes().take(LONGEST_REFERENCE);
        let end = begin.position(|byte| byte == close)?;
        let inside = &text[2..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        is_name(name).then_some(Self {
            name,
            default,
            length: end + 1,
        })
    }
}

/// Flags of start scripts with their values, named as variables: `--heap=512M`, `--driver-memory 4g`.
pub fn script_flags(words: &[String]) -> Vec<(String, String)> {
    let parts = words
        .iter()
        .flat_map(|word| word.split(|c: char| c.is_whitespace() || c == '='));
    let parts: Vec<&str> = parts.collect();
    // The driver of a cluster runs in a pod of its own.
    if parts.contains(&"cluster") {
        return Vec::new();
    }
    let flag = |pair: &[&str]| {
        let name = pair[0].strip_prefix("--")?.replace('-', "_");
        Some((name, pair[1].to_owned()))
    };
    parts.windows(2).filter_map(flag).collect()
}

/// Plain assignments of a shell's text, in their order: `HEAP=3g` of `export HEAP=3g; exec java`.
pub fn shell_assignments(text: &str) -> impl Iterator<Item = (String, String)> {
    let words = text.split(|c: char| c.is_whitespace() || c == ';');
    words.filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        let value = value.trim_matches(['"', '\'']);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric());
        (is_name && is_plain).then(|| (name.to_owned(), value.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_images_are_options() {
        for (name, value, options) in [
            ("MAX_HEAP_SIZE", "2G", Some("-Xms2G -Xmx2G")),
            ("ZOO_HEAP_SIZE", "1024", Some("-Xms1024m -Xmx1024m")),
            ("HADOOP_HEAPSIZE_MAX", "2g", Some("-Xmx2g")),
            (
                "JAVA_MAX_MEM_RATIO",
                "80",
                Some("-XX:MaxRAMPercentage=80.0"),
            ),
            ("JAVA_MAX_MEM_RATIO", "0", None),
            ("MAX_HEAP_SIZE", "", None),
            ("MAX_SIZE", "2G", None),
            ("JVM_MAX_HEAP_SIZE", "1024M", Some("-Xmx1024M")),
            ("JVM_INIT_HEAP_SIZE", "512", Some("-Xms512m")),
            (
                "NEO4J_server_memory_heap_initial__size",
                "1G",
                Some("-Xms1G"),
            ),
            ("JVM_MAXIMUM_MEMORY", "2g", Some("-Xmx2g")),
            ("HBASE_HEAPSIZE", "1073741824", Some("-Xmx1073741824")),
            ("DRUID_XMX", "1g", Some("-Xmx1g")),
            ("MAX_HEAP_TABLE_SIZE", "64M", None),
            ("HEAP_DUMP_MAX", "5", None),
            (
                "JAVA_MAX_DIRECT_MEMORY",
                "1g",
                Some("-XX:MaxDirectMemorySize=1g"),
            ),
            (
                "DRUID_MAXDIRECTMEMORYSIZE",
                "3g",
                Some("-XX:MaxDirectMemorySize=3g"),
            ),
            (
                "NEO4J_server_memory_pagecache_size",
                "2G",
                Some("-XX:MaxDirectMemorySize=2G"),
            ),
            ("ZK_CLIENT_HEAP", "256", None),
            ("MEM_LIMIT", "1024", Some("-Xmx1024m")),
            ("INIT_MEMORY", "1G", Some("-Xms1G")),
            ("MAXIMUM_MEMORY", "4G", Some("-Xmx4G")),
            ("SPARK_DRIVER_MEMORY", "4g", Some("-Xmx4g")),
            ("SPARK_EXECUTOR_MEMORY", "1g", Some("-Xmx1g")),
            ("STRIMZI_DYNAMIC_HEAP_MAX", "5368709120", None),
            (
                "JVM_MAX_RAM_PERCENTAGE",
                "95",
                Some("-XX:MaxRAMPercentage=95.0"),
            ),
            (
                "CONTAINER_HEAP_PERCENT",
                "0.9",
                Some("-XX:MaxRAMPercentage=90.0"),
            ),
            ("INITIAL_HEAP_PERCENT", "0.5", None),
            ("UWSGI_CHEAPER_INITIAL", "4", None),
            ("G1_HEAP_REGION_SIZE", "16m", None),
            ("NON_HEAP_MAX_SIZE", "128m", None),
            ("JVM_MAX_HEAP_SIZE", "75.0", None),
        ] {
            let found = heap_options(name, value)
                .or_else(|| named_heap(name, value, "kartoza/geoserver:2"));
            assert_eq!(named_heap("MEMORY", "2G", "shop/orders"), None);
            assert_eq!(found.as_deref(), options, "{name}");
        }
    }

    #[test]
    fn well_known_images_have_a_heap() {
        for (image, options) in [
            ("confluentinc/cp-kafka:7.6.0", Some("-Xms1G -Xmx1G")),
            (
                "docker.io/library/solr:9@sha256:0",
                Some("-Xms512m -Xmx512m"),
            ),
            ("localhost:5000/solr", Some("-Xms512m -Xmx512m")),
            (
                "docker.elastic.co/logstash/logstash:8.13.0",
                Some("-Xms1g -Xmx1g"),
            ),
            ("quay.io/strimzi/kafka:0.40.0", None),
            ("shop/solr", None),
            ("", None),
        ] {
            let found = image_heap(image).map(|heap| heap.options);
            assert_eq!(found, options, "{image}");
        }
    }

    #[test]
    fn references_are_filled_where_a_value_is_known() {
        let values: Vec<(String, String)> = [
            ("A", "1g"),
            ("B", "-Xmx$(A) $(C)"),
            ("C", "late"),
            ("A", "2g"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        for (text, filled) in [
            ("-Xmx$A -Xms${A}", "-Xmx2g -Xms2g"),
            // Kubernetes fills in what stands before the variable.
            ("$(B)", "-Xmx1g $(C)"),
            ("${X:-3g} ${A:-3g}", "3g 2g"),
            ("-Xmx$AB ${X} $(date +%F) $", "-Xmx$AB ${X} $(date +%F) $"),
        ] {
            assert_eq!(fill_references(text, &values), filled, "{text}");
        }
        assert_eq!(fill_by_kubernetes("$(A) ${A} $A", &values), "2g ${A} $A");
    }

    #[test]
    fn values_that_double_each_other_end() {
        let doubled = |n: u32| {
            (
                format!("V{n}"),
                format!("$V{}$V{}", n.saturating_sub(1), n.saturating_sub(1)),
            )
        };
        let mut values: Vec<(String, String)> = (1..60).map(doubled).collect();
        values.insert(0, ("V0".to_owned(), String::new()));
        let filled = fill_references("$V59", &values);
        assert!(filled.contains('$') && filled.len() < 20_000, "{filled}");
    }

    #[test]
    fn long_values_and_references_stay_as_they_are() {
        let values = [("A".to_owned(), "x".repeat(LONGEST_VALUE + 1))];
        assert_eq!(fill_references("$(A) ${A}", &values), "$(A) ${A}");
        let long = format!("${{B:-{}}}", "x".repeat(LONGEST_REFERENCE));
        assert_eq!(fill_references(&long, &[]), long);
    }

    #[test]
    fn assignments_of_a_script_are_found() {
        let text = "set -eu; export HEAP=3g\nMIN=\"1g\" OPTS=\"-Xmx1g -x\" java -Dx=y A=$(b)";
        let found: Vec<String> = shell_assignments(text)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(found, ["HEAP=3g", "MIN=1g"]);
    }
}
