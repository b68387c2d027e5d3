//! Memory: touched, and too much of it.

use std::hint::black_box;

use crate::{Settings, processes, server};

/// Memory with every page written.
pub(crate) fn touch(mib: u64) -> Vec<u8> {
    let mut memory = vec![0u8; usize::try_from(mib).unwrap_or(0) << 20];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(memory)
}

/// Allocates without end; returns never, as a rule because the kernel kills it.
pub(crate) fn grow(settings: &Settings) -> u8 {
    let step = settings.number("step_mib", 16);
    let pause = settings.millis("step_ms");
    std::thread::sleep(settings.millis("after_ms"));
    let mut held = Vec::new();
    loop {
        held.push(touch(step));
        std::thread::sleep(pause);
    }
}

pub(crate) fn oom(settings: &Settings) -> u8 {
    std::thread::scope(|scope| {
        scope.spawn(|| grow(settings));
        server::serve(settings)
    })
}

pub(crate) fn oom_child(settings: &Settings) -> u8 {
    let after = format!("after_ms={}", settings.number("after_ms", 300));
    let _child = processes::own(&["grow", "step_mib=8", "step_ms=5", &after]).spawn();
    server::serve(settings)
}
