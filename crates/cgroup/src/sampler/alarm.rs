//! Wakes the sampler's thread at its due times, and can end its sleep for good.
//!
//! Owns a periodic timer (timerfd). Setting an alarm for every sample would program the machine's
//! timer twice a sample, once when it fires and once when it is set; on a virtual machine that is
//! the most expensive part of a sample. Timers: timerfd_create(2).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_sys::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use rustix::time::Timespec;

use crate::reader::monotonic_ns;

#[derive(Debug)]
pub(super) struct SampleTimer {
    timer: OwnedFd,
    stopped: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimerGrid {
    start: u64,
    step: u64,
}

impl TimerGrid {
    fn fires_at(self, due: u64) -> bool {
        due >= self.start && (due - self.start).is_multiple_of(self.step)
    }
}

impl SampleTimer {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
            stopped: AtomicBool::new(false),
        })
    }

    pub fn cancel_wait(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // A time that has passed: it fires at once. It fails for no valid time.
        let _ = self.arm_timer(TimerGrid { start: 1, step: 0 });
    }

    /// Sleeps to `due` on CLOCK_MONOTONIC, after which every `step` ns samples are due; `false`
    /// when it was stopped. `grid` is what the last call left.
    pub fn wait_until_due(
        &self,
        due: u64,
        step: u64,
        grid: &mut Option<TimerGrid>,
    ) -> io::Result<bool> {
        let step = step.max(1);
        if !grid.is_some_and(|set| set.step == step && set.fires_at(due)) {
            let wanted = TimerGrid {
                start: due.max(1),
                step,
            };
            self.arm_timer(wanted)?;
            *grid = Some(wanted);
        }
        let mut expired = [0; 8];
        while !self.stopped.load(Ordering::SeqCst) {
            // It may have fired for a time that passed while the last sample was taken.
            match rustix::io::read(&self.timer, &mut expired) {
                Ok(_) if self.stopped.load(Ordering::SeqCst) => break,
                Ok(_) if monotonic_ns() >= due => return Ok(true),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(false)
    }

    fn arm_timer(&self, grid: TimerGrid) -> io::Result<()> {
        let time = |ns: u64| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let times = Itimerspec {
            it_interval: time(grid.step),
            it_value: time(grid.start),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_wakes_at_each_due_time_and_never_before() {
        let alarm = SampleTimer::new().unwrap();
        let start = monotonic_ns();
        let mut grid = None;
        for n in 1..=20 {
            let due = start + n * MS;
            assert!(alarm.wait_until_due(due, MS, &mut grid).unwrap());
            assert!(monotonic_ns() >= due);
        }
        assert_eq!(
            grid,
            Some(TimerGrid {
                start: start + MS,
                step: MS
            })
        );
        // Times that were missed are not caught up, and another grid is another setting.
        let due = monotonic_ns() + 3 * MS / 2;
        assert!(alarm.wait_until_due(due, 100 * MS, &mut grid).unwrap());
        assert!(monotonic_ns() >= due);
        assert_eq!(
            grid,
            Some(TimerGrid {
                start: due,
                step: 100 * MS
            })
        );
        assert!(
            alarm.wait_until_due(start, MS, &mut grid).unwrap(),
            "a time that has passed"
        );
    }

    #[test]
    fn a_stop_ends_a_long_sleep_and_every_later_one() {
        let alarm = Arc::new(SampleTimer::new().unwrap());
        let waiting = Arc::clone(&alarm);
        let hour = 3_600_000 * MS;
        let thread = std::thread::spawn(move || {
            let mut grid = None;
            let due = monotonic_ns() + hour;
            let first = waiting.wait_until_due(due, hour, &mut grid).unwrap();
            (first, waiting.wait_until_due(0, MS, &mut grid).unwrap())
        });
        alarm.cancel_wait();
        assert_eq!(thread.join().unwrap(), (false, false));
    }
}
