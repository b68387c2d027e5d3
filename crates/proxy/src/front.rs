//! The front: this process between an external load and the service, in a separate network where it
//! listens at the service's port.
//!
//! Owns the phases of such a load: orders in, one per phase, and messages out, like a generator's
//! ([`loadline_load::part`]). `observe` defines exchanges.

use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::part::{self, LoadMessage, LoadOrder};
use loadline_load::{LoadError, clock_ns};
use rustix::io::Errno;

use crate::forward::TrialProxy;
use crate::link::LinkOrder;
use crate::network::ApplicationNetwork;
use crate::observe::ExchangeBook;
use crate::part::{allow_connections, pin};

const LOOK: u64 = 10_000_000;

pub fn run(
    first: LoadOrder,
    port: u16,
    mut orders: impl BufRead + AsFd,
    mut output: impl Write,
) -> Result<(), LoadError> {
    let stop = part::stop_on_signals()?;
    pin(&first.plan.cpus).map_err(failed("sched_setaffinity"))?;
    allow_connections();
    let mut proxy = stand_before(&first, port, &orders)?;
    let network = proxy.network_path();
    part::write_message(&mut output, &LoadMessage::Standing { network })?;
    proxy.observe(ExchangeBook::new(&first.plan.expect));
    let mut order = Some(first);
    while let Some(phase) = order {
        observe_phase(&mut proxy, &phase, &stop, &mut output)?;
        // What comes between two phases is passed on and not counted.
        proxy.forward(None).map_err(failed("epoll_wait"))?;
        order = part::read_order(&mut orders)?;
    }
    Ok(())
}

fn stand_before(order: &LoadOrder, port: u16, orders: &impl AsFd) -> Result<TrialProxy, LoadError> {
    let own = PathBuf::from("/proc/self/ns/net");
    let path = order.netns.as_ref().unwrap_or(&own);
    // Opened before this thread goes elsewhere, where that path would mean another network.
    let behind = File::open(path).map_err(|error| LoadError::Namespace {
        path: path.clone(),
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })?;
    let mut proxy = TrialProxy::new(&ApplicationNetwork::Own, orders)
        .map_err(failed("unshare(CLONE_NEWNET)"))?;
    let link = LinkOrder {
        name: "service".to_owned(),
        port,
        network: Path::new("/proc/self/fd").join(behind.as_raw_fd().to_string()),
        toxics: Vec::new(),
        seed: 0,
    };
    let listening = proxy.add_link(&link);
    listening.map_err(|why| LoadError::Plan { field: "url", why })?;
    Ok(proxy)
}

fn observe_phase(
    proxy: &mut TrialProxy,
    order: &LoadOrder,
    stop: &Arc<AtomicBool>,
    output: &mut impl Write,
) -> Result<(), LoadError> {
    let plan = &order.plan;
    let length = nanos(plan.model.scheduled_duration().unwrap_or_default());
    let now = clock_ns();
    proxy.open_window(now, false);
    proxy.book_mut().begin_phase(length, now, plan.start_ns);
    // One that came after the last phase has nothing to stop any more.
    stop.store(false, Ordering::Relaxed);
    let mut next_look = now;
    loop {
        next_look = next_look.max(clock_ns()) + LOOK;
        let forwarded = proxy.forward(Some(next_look));
        forwarded.map_err(failed("epoll_wait"))?;
        let mut seconds = Vec::new();
        let mut tell = |second| seconds.push(second);
        let (book, drain) = (proxy.book_mut(), nanos(plan.drain));
        let is_over = book.pass_time(clock_ns(), drain, &mut tell);
        for second in seconds {
            part::write_message(output, &LoadMessage::Second(second))?;
        }
        if is_over || stop.swap(false, Ordering::Relaxed) {
            break;
        }
    }
    let (lag_p99, cpu) = proxy
        .close_window()
        .map(|report| (report.lag_p99, report.cpu))
        .unwrap_or_default();
    let observed = proxy.book_mut().end_phase(clock_ns(), lag_p99, cpu);
    part::write_message(output, &LoadMessage::Observed(Box::new(observed)))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn failed(call: &'static str) -> impl Fn(std::io::Error) -> LoadError {
    move |error| LoadError::System {
        call,
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        hint: "`loadline doctor` shows what this machine can do",
    }
}
