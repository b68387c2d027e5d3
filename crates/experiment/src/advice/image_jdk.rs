//! The JDK that the name of an image says: `eclipse-temurin:21-jre`, `tomcat:9-jdk11`.
//!
//! Owns the names and their form; never looks at an image. What runs OpenJ9 is left out: the rules that ask are
//! HotSpot's.

use loadline_sizing::options::words::has_word;
use loadline_sizing::{JavaVersion, JdkRelease};

/// Images of JDKs with the version at the begin of their tag.
const JDK_IMAGES: &str = "adoptopenjdk amazoncorretto eclipse-temurin java jdk \
    liberica-openjdk-alpine liberica-openjdk-debian liberica-openjre-alpine \
    liberica-openjre-debian openjdk sapmachine zulu-openjdk zulu-openjdk-alpine \
    zulu-openjdk-debian";

const WORDS: [&str; 3] = ["jdk", "jre", "java"];

/// Where podman finds an image outside registries; docker:// stands before a name.
const TRANSPORTS: [&str; 6] = [
    "containers-storage:",
    "dir:",
    "docker-archive:",
    "docker-daemon:",
    "oci-archive:",
    "oci:",
];

/// Whether an engine can start it: a name, or a place that podman knows.
pub fn is_image_reference(text: &str) -> bool {
    let name = text.strip_prefix("docker://").unwrap_or(text);
    let is_place = TRANSPORTS.iter().any(|begin| text.starts_with(begin));
    is_place || is_image_name(name)
}

/// Whether a registry can have it, as distribution's `reference` package reads names.
pub fn is_image_name(text: &str) -> bool {
    let (name, digest) = text.split_once('@').unwrap_or((text, "sha256:0"));
    let (_, digest) = digest.split_once(':').unwrap_or_default();
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (name, "latest"),
    };
    let (first, rest) = path.split_once('/').unwrap_or(("", path));
    let is_host = first.contains(['.', ':']) || first == "localhost";
    let path = if is_host { rest } else { path };
    let is_bound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let is_inside = |c: char| is_bound(c) || "._-".contains(c);
        part.starts_with(is_bound) && part.ends_with(is_bound) && part.chars().all(is_inside)
    };
    let is_word = |word: &str| {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !word.is_empty() && word.chars().all(is_inside)
    };
    let is_digest = !digest.is_empty() && digest.chars().all(|c| c.is_ascii_hexdigit());
    path.split('/').all(is_part) && is_word(tag) && is_digest
}

/// Whether the image may be another one tomorrow.
pub fn is_latest(image: &str) -> bool {
    let base = image.rsplit('/').next().unwrap_or_default();
    base.ends_with(":latest") || !base.contains([':', '@'])
}

pub fn image_jdk(image: &str) -> Option<JdkRelease> {
    let image = image.split('@').next().unwrap_or_default().to_lowercase();
    if ["openj9", "semeru", "ibm"]
        .iter()
        .any(|name| image.contains(name))
    {
        return None;
    }
    let base = image.rsplit('/').next().unwrap_or_default();
    let (base, tag) = base.split_once(':').unwrap_or((base, ""));
    // `ubi9/openjdk-21:1.20` has it in the name.
    let (name, own) = match base.rsplit_once('-') {
        Some((name, own)) if has_word(JDK_IMAGES, name) => (name, own),
        _ => (base, tag),
    };
    let by_name = has_word(JDK_IMAGES, name).then(|| own.parse::<JavaVersion>().ok());
    let joined = || {
        let mut words = [base, tag]
            .into_iter()
            .flat_map(|text| text.split(['-', '_', '.']));
        words.find_map(|word| {
            let mut rest = WORDS.iter().filter_map(|known| word.strip_prefix(known));
            rest.find_map(|number| number.parse().ok())
        })
    };
    by_name
        .flatten()
        .or_else(joined)
        .map(JdkRelease::for_hotspot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images_are_checked_whole() {
        for (name, is_name, is_another) in [
            ("orders", true, true),
            ("registry:5000/shop/orders:1.4", true, false),
            ("localhost/a_b/c--d:V1.2-x", true, false),
            ("Registry.example/orders:latest", true, true),
            ("orders@sha256:00ff", true, false),
            ("orders:", false, false),
            ("https://registry.example/orders:1", false, false),
            ("orders:1:2", false, false),
            ("-orders:1", false, false),
            ("Shop/orders:1", false, false),
            ("orders:1 ", false, false),
            ("orders@sha256:xyz", false, false),
            ("orders@00ff", false, false),
            ("", false, true),
        ] {
            assert_eq!(
                (is_image_name(name), is_latest(name)),
                (is_name, is_another),
                "{name}"
            );
        }
    }

    #[test]
    fn an_engine_takes_places_too() {
        for (text, is_taken) in [
            ("docker-archive:/A/b.tar", true),
            ("oci:Dir", true),
            ("docker://shop/orders:1", true),
            ("docker://Shop/orders:1", false),
            ("https://registry.example/orders:1", false),
            ("Orders", false),
        ] {
            assert_eq!(is_image_reference(text), is_taken, "{text}");
        }
    }

    #[test]
    fn names_of_images_say_their_jdk() {
        for (image, jdk) in [
            ("eclipse-temurin:21-jre", Some("21")),
            ("eclipse-temurin:17.0.9_9-jre-alpine", Some("17.0.9")),
            ("docker.io/library/openjdk:8u131-jre", Some("8u131")),
            ("registry:5000/openjdk:11@sha256:ab", Some("11")),
            ("mcr.microsoft.com/openjdk/jdk:17-ubuntu", Some("17")),
            (
                "registry.access.redhat.com/ubi9/openjdk-21:1.20",
                Some("21"),
            ),
            ("tomcat:9.0-jdk11-temurin", Some("11")),
            ("jenkins/jenkins:2.479.1-lts-jdk17", Some("17")),
            ("gcr.io/distroless/java17-debian12", Some("17")),
            ("openjdk:latest", None),
            ("registry/openjdk18-openshift:1.4", None),
            ("registry/java-orders:21", None),
            ("ibm-semeru-runtimes:open-17-jre", None),
            ("websphere-liberty:full-java8-ibmjava", None),
            ("orders", None),
            ("", None),
        ] {
            let found = image_jdk(image).map(|jdk| jdk.version.to_string());
            assert_eq!(found.as_deref(), jdk, "{image}");
        }
    }
}
