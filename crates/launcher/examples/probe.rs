//! A stand-in for java in tests: says what it was started with.
//!
//! `PROBE` in the environment chooses what: `words` (its words, each ended by NUL), `exit` (ends
//! with the code in its first word), `status` (its signal state), `signals` (prints `ready`, then
//! each signal that arrives, until SIGKILL).

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use loadline_launch::sys;

fn main() -> std::process::ExitCode {
    let mut out = std::io::stdout();
    match std::env::var("PROBE").as_deref() {
        Ok("exit") => {
            let code = std::env::args_os()
                .next_back()
                .and_then(|word| word.to_str()?.parse().ok());
            return std::process::ExitCode::from(code.unwrap_or(0u8));
        }
        Ok("status") => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let lines = status
                .lines()
                .filter(|line| line.starts_with("Sig") || line.starts_with("Shd"));
            for line in lines {
                let _ = writeln!(out, "{line}");
            }
        }
        Ok("signals") => {
            sys::block_all_signals();
            let _ = writeln!(out, "ready");
            loop {
                let Some((signal, _)) = sys::wait_signal() else {
                    continue;
                };
                let _ = writeln!(out, "{signal}");
                let _ = out.flush();
            }
        }
        _ => {
            for word in std::env::args_os() {
                let _ = out.write_all(word.as_bytes());
                let _ = out.write_all(&[0]);
            }
        }
    }
    std::process::ExitCode::SUCCESS
}
