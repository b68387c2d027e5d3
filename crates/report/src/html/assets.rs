//! Scripts and style of the page, checked in; nothing is fetched when building or reading.

use base64::Engine as _;
use sha2::{Digest, Sha256};

/// The chart library, uPlot 1.6.32 (MIT), unchanged.
pub const UPLOT_JS: &str = include_str!("../../assets/vendor/uPlot.iife.min.js");
pub const UPLOT_CSS: &str = include_str!("../../assets/vendor/uPlot.min.css");
pub const UPLOT_LICENSE: &str = include_str!("../../assets/vendor/uPlot.LICENSE");
pub const REPORT_JS: &str = include_str!("../../assets/report.js");
pub const REPORT_CSS: &str = include_str!("../../assets/report.css");

/// The source expression of a script or style in the policy: `'sha256-...'`.
pub fn policy_hash(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let hash = base64::engine::general_purpose::STANDARD.encode(digest);
    format!("'sha256-{hash}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn sha256(text: &str) -> String {
        Sha256::digest(text.as_bytes())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    #[test]
    fn the_chart_library_is_the_published_one() {
        assert_eq!(
            sha256(UPLOT_JS),
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
        );
        assert_eq!(
            sha256(UPLOT_CSS),
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
        );
        assert_eq!(
            sha256(UPLOT_LICENSE),
            "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"
        );
    }

    #[test]
    fn no_script_or_style_can_end_its_element() {
        for asset in [UPLOT_JS, UPLOT_CSS, REPORT_JS, REPORT_CSS] {
            let lower = asset.to_ascii_lowercase();
            for end in ["</script", "</style", "<!--"] {
                assert!(!lower.contains(end), "{end}");
            }
        }
    }

    #[test]
    fn the_policy_hash_is_the_one_of_the_standard() {
        // The example of CSP Level 2, section 7.18.1 (script-src, hash usage).
        assert_eq!(
            policy_hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }
}
