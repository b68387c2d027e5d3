//! Ends a build for anything but Linux with the one sentence that helps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target != "linux" {
        println!(
            "cargo::error=loadline measures on Linux only, and this build is for {target}: on a Mac or on Windows run its image in the virtual machine of podman or docker (docs/guides/images.md)"
        );
    }
}
