//! The image that an emitted Dockerfile builds on: the JVM that was measured, or a word that it is
//! not.
//!
//! Owns the names of the vendors' images and of their tags. Looks nothing up: whether a tag is there
//! is for the build to find out. Source: the documentation of the images `eclipse-temurin`,
//! `amazoncorretto` and `ibm-semeru-runtimes` (tags of exact builds are Temurin's, `17.0.15_6-jre`).

use crate::text;

pub const OPENJ9: &str = "openj9";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
    pub name: String,
    pub likeness: Likeness,
    pub measured: String,
}

/// How similar an image's JVM is to the measured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    Build,
    Vendor,
    Feature,
    Given,
}

impl BaseImage {
    /// The image that comes nearest to a JVM: `vendor` is its short name, `version` all of its
    /// version (`25.0.3+9-LTS`), `feature` its feature release.
    pub fn nearest(vendor: &str, version: &str, feature: u32) -> Self {
        let build = (vendor == "temurin").then(|| tag(version)).flatten();
        let semeru = format!("ibm-semeru-runtimes:open-{feature}-jre");
        let (name, likeness) = match (vendor, build) {
            (_, Some(build)) => (format!("eclipse-temurin:{build}-jre"), Likeness::Build),
            ("temurin", None) => (format!("eclipse-temurin:{feature}-jre"), Likeness::Vendor),
            ("corretto", _) => (format!("amazoncorretto:{feature}"), Likeness::Vendor),
            ("semeru", _) => (semeru, Likeness::Vendor),
            // Of a bare one there are no images; IBM builds its own from it.
            (OPENJ9, _) => (semeru, Likeness::Feature),
            _ => (format!("eclipse-temurin:{feature}-jre"), Likeness::Feature),
        };
        Self {
            name,
            likeness,
            measured: in_words(vendor, version),
        }
    }

    pub fn from_user(name: &str, vendor: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            likeness: Likeness::Given,
            measured: in_words(vendor, version),
        }
    }

    pub fn likeness_sentence(&self) -> String {
        let digest = if self.name.contains("@sha256:") {
            ""
        } else {
            " Pin it by digest before you ship it: a tag can be pushed again."
        };
        let what = match self.likeness {
            Likeness::Build => "the base image is named after this build",
            Likeness::Vendor => {
                "the base image is of this vendor and release, perhaps of another build"
            }
            Likeness::Feature => {
                "the base image has ANOTHER build, of another vendor: measure with that, or give the image of this one with --base-image"
            }
            Likeness::Given => {
                "the base image was given; whether it has this build was not looked at"
            }
        };
        let measured = &self.measured;
        text::one_line(&format!("Measured on JDK {measured}: {what}.{digest}"))
    }
}

fn in_words(vendor: &str, version: &str) -> String {
    match vendor {
        "" => version.to_owned(),
        vendor => format!("{version} ({vendor})"),
    }
}

/// `25.0.3+9-LTS` as a tag, `25.0.3_9`; `None` for another form, such as JDK 8's.
fn tag(version: &str) -> Option<String> {
    let (number, build) = version.split_once('+')?;
    let build = build.split('-').next()?;
    let is_number =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    (is_number(number) && is_number(build)).then(|| format!("{number}_{build}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_has_the_measured_build_or_says_that_it_has_not() {
        let of = |vendor, version, feature| {
            let image = BaseImage::nearest(vendor, version, feature);
            (image.name.clone(), image.likeness)
        };
        for (vendor, version, feature, name, likeness) in [
            (
                "temurin",
                "25.0.3+9-LTS",
                25,
                "eclipse-temurin:25.0.3_9-jre",
                Likeness::Build,
            ),
            (
                "temurin",
                "25+36",
                25,
                "eclipse-temurin:25_36-jre",
                Likeness::Build,
            ),
            (
                "temurin",
                "1.8.0_402-b06",
                8,
                "eclipse-temurin:8-jre",
                Likeness::Vendor,
            ),
            (
                "corretto",
                "17.0.15+6-LTS",
                17,
                "amazoncorretto:17",
                Likeness::Vendor,
            ),
            (
                OPENJ9,
                "25.0.1+8",
                25,
                "ibm-semeru-runtimes:open-25-jre",
                Likeness::Feature,
            ),
            (
                "debian",
                "17.0.15+6-Debian-1deb12u1",
                17,
                "eclipse-temurin:17-jre",
                Likeness::Feature,
            ),
        ] {
            assert_eq!(
                of(vendor, version, feature),
                (name.to_owned(), likeness),
                "{vendor}"
            );
        }
        let debian = BaseImage::nearest("debian", "17.0.15+6-Debian", 17).likeness_sentence();
        assert!(
            debian.contains("(debian): the base image has ANOTHER build"),
            "{debian}"
        );
        let pinned = BaseImage::from_user("jre@sha256:00", "temurin", "25+36").likeness_sentence();
        assert!(!pinned.contains("Pin it"), "{pinned}");
    }
}
