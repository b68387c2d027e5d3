//! The JVM that was measured: by its own log, and by the machine's list of JDKs.
//!
//! Owns how an entry of that list is read (`name vendor version`, of an OpenJ9 of this machine with the
//! build of its virtual machine in brackets behind) and which entry a configuration means. A log of
//! HotSpot names the JDK; one of OpenJ9 only its virtual machine.

use loadline_analysis::advice::is_of_openj9;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_report::ResultView;
use loadline_report::emit::OPENJ9;
use loadline_sizing::jdk::JavaVersion;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct JvmIdentity {
    /// Its vendor, in the form of [`loadline_report::emit::BaseImage`]; empty if unknown.
    pub vendor: String,
    pub version: String,
    /// Its feature release; `None` if unknown.
    pub feature: Option<u32>,
    pub is_openj9: bool,
}

impl JvmIdentity {
    pub fn from_view(view: &ResultView) -> Self {
        let recommended = view.recommendation.as_ref().map(|r| &r.configuration);
        let trials = || recommended_trials(view);
        let log = || trials().filter_map(|t| t.evidence.gc.as_ref());
        let wanted = recommended.or(trials().next().map(|t| &t.configuration));
        Self::from_names(
            &view.machine.jdks,
            wanted.and_then(|c| c.jdk.as_deref()),
            log().next().map(|gc| gc.collector.as_str()),
            log().find_map(|gc| gc.jdk.as_deref()),
        )
    }

    pub fn is_seen(view: &ResultView) -> bool {
        let has_classes = |t: &TrialRecord| t.evidence.start.classes.is_some();
        recommended_trials(view).any(|t| t.evidence.gc.is_some() || has_classes(t))
    }

    /// By the machine's list, the name that the configuration gives it, and what its log names:
    /// collector and JDK.
    fn from_names(
        listed: &[String],
        wanted: Option<&str>,
        collector: Option<&str>,
        logged: Option<&str>,
    ) -> Self {
        let listed = listed.iter();
        let listed: Vec<_> = listed.filter_map(|text| ListedJdk::read(text)).collect();
        let is_openj9 = collector.map(is_of_openj9);
        let logged = logged.filter(|_| is_openj9 != Some(true));
        let is_it = |jdk: &&ListedJdk<'_>| {
            is_openj9.is_none_or(|is_openj9| is_openj9 == jdk.is_openj9())
                && logged.is_none_or(|logged| logged == jdk.version)
        };
        let named = |name: &str| {
            let of = || listed.iter().filter(is_it);
            let answering = of().find(|jdk| jdk.answers_to(name));
            of().find(|jdk| jdk.name == name).or(answering)
        };
        let found = wanted.and_then(named).or(listed.iter().find(is_it));
        let version = found.map(|jdk| jdk.version).or(logged).unwrap_or_default();
        let is_openj9 = is_openj9.unwrap_or(found.is_some_and(ListedJdk::is_openj9));
        let vendor = match found.map(|jdk| jdk.vendor) {
            Some(vendor) if !is_openj9 || vendor == SEMERU => vendor,
            _ if is_openj9 => OPENJ9,
            _ => "",
        };
        let parsed = version.parse::<JavaVersion>().ok();
        Self {
            vendor: vendor.to_owned(),
            version: version.to_owned(),
            feature: parsed.map(|version| version.feature),
            is_openj9,
        }
    }
}

fn recommended_trials(view: &ResultView) -> impl Iterator<Item = &TrialRecord> {
    let recommended = view.recommendation.as_ref().map(|r| &r.configuration);
    let level = |c: &Configuration| (c.jdk.clone(), c.application.clone());
    let is_of =
        move |t: &&TrialRecord| recommended.is_none_or(|r| level(r) == level(&t.configuration));
    view.trials.iter().rev().filter(is_of)
}

const SEMERU: &str = "semeru";

/// An entry of the machine's list: `17 debian 17.0.15+6-Debian-1deb12u1`,
/// `openj9-25 openj9 25 (OpenJ9 HEAD-cf92035774)`.
#[derive(Debug)]
struct ListedJdk<'a> {
    name: &'a str,
    vendor: &'a str,
    version: &'a str,
    build: &'a str,
}

impl<'a> ListedJdk<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (jdk, build) = text.split_once(" (").unwrap_or((text, ""));
        let (rest, version) = jdk.rsplit_once(' ')?;
        let (name, vendor) = rest.rsplit_once(' ')?;
        Some(Self {
            name,
            vendor,
            version,
            build,
        })
    }

    fn is_openj9(&self) -> bool {
        self.build.starts_with("OpenJ9 ") || [OPENJ9, SEMERU].contains(&self.vendor)
    }

    /// As crate `jvm` takes the names of JDKs, but for paths.
    fn answers_to(&self, wanted: &str) -> bool {
        let Ok(version) = self.version.parse::<JavaVersion>() else {
            return false;
        };
        let feature = version.feature;
        wanted == self.version
            || wanted == feature.to_string()
            || wanted == format!("{}-{feature}", self.vendor)
            || (self.is_openj9() && wanted == format!("{OPENJ9}-{feature}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [&str; 3] = [
        "17 debian 17.0.15+6-Debian-1deb12u1",
        "25 temurin 25.0.3+9-LTS",
        "openj9-25 openj9 25 (OpenJ9 HEAD-cf92035774)",
    ];

    fn by(
        listed: &[&str],
        wanted: Option<&str>,
        collector: Option<&str>,
        logged: Option<&str>,
    ) -> String {
        let listed: Vec<String> = listed.iter().map(|text| (*text).to_owned()).collect();
        let jvm = JvmIdentity::from_names(&listed, wanted, collector, logged);
        let kind = if jvm.is_openj9 { "OpenJ9" } else { "HotSpot" };
        format!("{kind} {:?} {} {}", jvm.feature, jvm.vendor, jvm.version)
    }

    #[test]
    fn without_a_log_the_list_says_what_the_configuration_means() {
        let of = |wanted| by(&BOTH, wanted, None, None);
        assert_eq!(of(Some("openj9-25")), "OpenJ9 Some(25) openj9 25");
        assert_eq!(of(Some("25")), "HotSpot Some(25) temurin 25.0.3+9-LTS");
        let debian = "HotSpot Some(17) debian 17.0.15+6-Debian-1deb12u1";
        assert_eq!(of(Some("debian-17")), debian);
        assert_eq!(of(None), debian, "the first is what java means");
        let alone = &BOTH[2..];
        assert_eq!(by(alone, None, None, None), "OpenJ9 Some(25) openj9 25");
    }

    #[test]
    fn a_log_says_which_virtual_machine_and_hotspots_which_jdk() {
        let omr = Some("OpenJ9 with OMR 41204d221_CMPRSS");
        let of = |wanted, collector, logged| by(&BOTH, wanted, collector, logged);
        assert_eq!(of(None, Some("gencon"), omr), "OpenJ9 Some(25) openj9 25");
        assert_eq!(
            of(None, Some("Serial"), Some("25.0.3+9-LTS")),
            "HotSpot Some(25) temurin 25.0.3+9-LTS"
        );
        // Not in the list: of an older result.
        assert_eq!(
            of(None, Some("G1"), Some("21.0.5+11-LTS")),
            "HotSpot Some(21)  21.0.5+11-LTS"
        );
    }

    #[test]
    fn the_jdk_of_an_image_has_no_build_behind_it() {
        let of = |text| by(&[text], None, None, None);
        assert_eq!(
            of("21 semeru 21.0.5+11-LTS"),
            "OpenJ9 Some(21) semeru 21.0.5+11-LTS"
        );
        assert_eq!(of("25 openj9 25"), "OpenJ9 Some(25) openj9 25");
        assert_eq!(by(&[], None, None, None), "HotSpot None  ");
    }
}
