//! Output, threads, and ends of all kinds.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::{Settings, processes, say, server};

pub(crate) fn sleep() -> u8 {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

pub(crate) fn flood(settings: &Settings) -> u8 {
    let block = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n".repeat(1024);
    let mut output: Box<dyn Write> = match settings.text("to", "stdout").as_str() {
        "stderr" => Box::new(std::io::stderr()),
        _ => Box::new(std::io::stdout()),
    };
    for _ in 0..settings.number("mib", 1024) * 16 {
        if output.write_all(&block).is_err() {
            break;
        }
    }
    server::serve(settings)
}

pub(crate) fn binary(settings: &Settings) -> u8 {
    let all: Vec<u8> = (0..=255).collect();
    let _ = std::io::stdout().write_all(&all.repeat(64));
    say("\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[31mred\u{1b}[0m\n");
    server::serve(settings)
}

pub(crate) fn no_newline(settings: &Settings) -> u8 {
    let block = vec![b'x'; 1 << 20];
    for _ in 0..10 {
        let _ = std::io::stdout().write_all(&block);
    }
    server::serve(settings)
}

pub(crate) fn exit(settings: &Settings) -> u8 {
    let code = u8::try_from(settings.number("code", 0)).unwrap_or(0);
    let after = settings.millis("after_ms");
    if after.is_zero() {
        return code;
    }
    let (port, status) = (
        settings.number("port", 8080),
        settings.number("status", 200),
    );
    std::thread::spawn(move || {
        let arguments = [format!("port={port}"), format!("status={status}")];
        server::serve(&Settings::new(arguments.into_iter()))
    });
    std::thread::sleep(after);
    code
}

pub(crate) fn signal(settings: &Settings) -> u8 {
    std::thread::sleep(settings.millis("after_ms"));
    let number = i32::try_from(settings.number("number", 11)).unwrap_or(11);
    // Twice: Rust's own handler of SIGSEGV takes the first and sets the default back.
    raise(number);
    raise(number);
    1
}

fn raise(number: i32) {
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = kill_process(getpid(), signal);
    }
}

pub(crate) fn stop_self(settings: &Settings) -> u8 {
    let after = settings.millis("after_ms");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(after);
            raise(Signal::STOP.as_raw());
        });
        server::serve(settings)
    })
}

pub(crate) fn threads(settings: &Settings) -> u8 {
    let mut count = 0u32;
    let small = || std::thread::Builder::new().stack_size(16 << 10);
    while count < 100_000 && small().spawn(sleep).is_ok() {
        count += 1;
    }
    say(&format!("{count} threads\n"));
    server::serve(settings)
}

pub(crate) fn hang(settings: &Settings) -> u8 {
    let port = u16::try_from(settings.number("port", 8080)).unwrap_or(8080);
    let Ok(listener) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) else {
        return 98;
    };
    let held: Vec<_> = listener.incoming().flatten().collect();
    drop(held);
    0
}

/// Named apart from [`crate::say`], which it uses.
pub(crate) fn say_then_end(settings: &Settings) -> u8 {
    std::thread::sleep(settings.millis("after_ms"));
    say(&format!("{}\n", settings.text("text", "ready")));
    match u8::try_from(settings.number("code", u64::MAX)) {
        Ok(code) => code,
        Err(_) => sleep(),
    }
}

/// Serves without any standard stream: what it writes, and what it starts, finds them closed.
pub(crate) fn closed_output(settings: &Settings) -> u8 {
    let serve = processes::own(&["flood", "mib=1", &settings.port()]);
    let mut closed = Command::new("/bin/sh");
    closed.args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"]);
    // Its path: for the shell /proc/self is the shell.
    let own = std::env::current_exe().unwrap_or_default();
    let _error = closed.arg(own).args(serve.get_args()).exec();
    1
}
