//! Asks a JDK for its properties, by starting it once.
//!
//! Owns the process: without environment, without root's rights if loadline has them, killed when
//! it takes too long. `loadline_jvm::detect::words` owns the question and reads the answer.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use loadline_jvm::detect::InstalledJdk;
use loadline_jvm::detect::words::{ASK_OPENJ9, JavaProperties};
use loadline_sizing::Vm;

use crate::program::end_within;

/// A JVM says it in half a second; on a loaded machine it takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// More is not read; a real answer has less than 10 KiB.
const LARGEST: u64 = 64 << 10;

/// The kernel's account that owns nothing.
const NOBODY: u32 = 65_534;

/// An OpenJ9's own properties; `None` for other JVMs, which have them in files, and without an
/// answer (it is damaged, or only root can read its files).
pub fn openj9_words(jdk: &InstalledJdk) -> Option<JavaProperties> {
    if jdk.kind != Vm::OpenJ9 {
        return None;
    }
    let mut command = Command::new(&jdk.java);
    command.args(ASK_OPENJ9).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped()).process_group(0);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().ok()?;
    // The answer is smaller than a pipe: a JVM that ends has written all its output.
    let ended = end_within(&mut child, PATIENCE).ok()?;
    let mut text = Vec::new();
    let said = child.stderr.take()?;
    said.take(LARGEST).read_to_end(&mut text).ok()?;
    ended.and_then(|_| JavaProperties::from_output(&String::from_utf8_lossy(&text)))
}
