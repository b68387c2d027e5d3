//! A squeeze: the memory limit of a running application is lowered step by step, under load, until the
//! kernel has nothing left to reclaim but the pages that it works with.
//!
//! Owns the pace, the rules by which it stops, and that the limit is what it was afterwards, however the
//! trial ends. Knows no load and no JVM. Rules and bounds were measured: 38 of 39 squeezes that
//! stopped at the first second of re-reads killed nothing; the kernel needs the steps to learn which
//! pages are in use, and one large step makes a storm at a size that is fine.

use std::time::{Duration, Instant};

use loadline_analysis::record::{
    STORM_PRESSURE, STORM_REFAULTS, SecondEvidence, SqueezeEnd, SqueezeStep,
};
use loadline_cgroup::{CgroupError, CgroupReader, ControlGroup, LimitChange, MemorySample};
use loadline_sizing::Bytes;

use crate::clock::monotonic_ns;

const STEP: Duration = Duration::from_secs(1);

/// Distance of looks within a step: memory may grow by megabytes in a second.
const LOOK: Duration = Duration::from_millis(100);

/// After the wall the application gets its memory back for so long, under load.
const RECOVERY: Duration = Duration::from_secs(2);

/// Attempts for a step in which the kernel finds no memory, on the way to the limit of the phase
/// behind.
const MOST_BUSY: u32 = 3;

/// A step's new limit in hundredths of the old one, far from the wall and near it.
const COARSE: u64 = 97;
const FINE: u64 = 99;

/// Room above unreclaimable memory, in hundredths, below which the wall is near. Of 29 squeezes with
/// large steps down to 8 seven stormed in one, with 8 to 15 left: a wall that small steps pass.
const NEAR: u64 = 16;

/// Least room above unreclaimable memory, in bytes and in thousandths. Two kills were seen, with
/// 2.7 and less than 2 MiB of room.
const LEAST_ROOM: Bytes = Bytes::from_mib(4);
const LEAST_SHARE: u64 = 15;

/// Growth of unreclaimable memory within a step, in thousandths, that the next step waits for.
const GROWTH: u64 = 5;

/// Seconds without an answer, and requests that there must have been.
const SILENT_SECONDS: usize = 2;
const SILENT_REQUESTS: u64 = 5;

pub(crate) struct Squeezing {
    group: ControlGroup,
    reader: CgroupReader,
    whole: Bytes,
    limit: Bytes,
    is_pressed: bool,
    kills: u64,
    looked: Instant,
    begun: Mark,
    stage: Stage,
    steps: Vec<SqueezeStep>,
    seconds: Vec<SecondEvidence>,
    end: Option<SqueezeEnd>,
    pub(crate) after: Option<Bytes>,
}

struct Mark {
    at: Instant,
    at_ns: u64,
    memory: MemorySample,
    full: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Lowering,
    Recovering(Instant),
    Settling { target: Bytes, busy: u32 },
    Settled,
}

impl Squeezing {
    pub(crate) fn begin(group: &ControlGroup) -> Result<Self, String> {
        let told = |error: CgroupError| error.to_string();
        let whole = group.in_force().map_err(told)?.1;
        let whole = whole.ok_or("its memory has no limit")?;
        let mut reader = group.open_reader().map_err(told)?;
        let begun = mark(&mut reader).map_err(told)?;
        if begun.memory.unreclaimable().is_none() {
            return Err("the kernel does not tell its anonymous and shared memory".to_owned());
        }
        // Whether it may be written shows now.
        group.set_memory_limit(whole).map_err(told)?;
        let mut squeezing = Self {
            group: group.clone(),
            reader,
            whole,
            limit: whole.min(begun.memory.usage.unwrap_or(whole)),
            is_pressed: true,
            kills: begun.memory.oom_kill.unwrap_or(0),
            looked: Instant::now(),
            begun,
            stage: Stage::Lowering,
            steps: Vec::new(),
            seconds: Vec::new(),
            end: None,
            after: None,
        };
        // Where it cannot be forbidden, the least room is all there is against kills.
        let _ = squeezing.group.forbid_oom_kill(true);
        squeezing.lower();
        Ok(squeezing)
    }

    pub(crate) fn count(&mut self, second: &SecondEvidence) {
        self.seconds.push(second.clone());
    }

    pub(crate) fn pass(&mut self) {
        match self.stage {
            Stage::Lowering if self.looked.elapsed() >= LOOK => {
                self.looked = Instant::now();
                // A group that is gone went with its application.
                if self.look().is_err() {
                    self.stage = Stage::Settled;
                }
            }
            Stage::Settling { target, busy } if self.looked.elapsed() >= STEP => {
                self.looked = Instant::now();
                self.settle(target, busy);
            }
            _ => {}
        }
    }

    pub(crate) fn has_recovered(&self) -> bool {
        matches!(self.stage, Stage::Recovering(since) if since.elapsed() >= RECOVERY)
    }

    pub(crate) fn settle_at(&mut self, target: Option<Bytes>) {
        let memory = self.reader.read_memory().ok();
        let used = memory.and_then(|memory| memory.usage).unwrap_or(self.whole);
        let held = memory.and_then(|memory| memory.unreclaimable());
        let is_safe = |target: &Bytes| held.is_some_and(|held| *target >= least_limit(held));
        self.limit = self.whole.min(used);
        self.stage = match target.filter(is_safe).map(|target| target.min(self.whole)) {
            Some(target) => Stage::Settling { target, busy: 0 },
            None => Stage::Settled,
        };
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    pub(crate) fn end(&mut self, ended: Option<(String, bool)>) {
        let end = match ended {
            Some((_, true)) => SqueezeEnd::Killed,
            Some((how, false)) => SqueezeEnd::NotPossible(how),
            None => SqueezeEnd::OutOfTime,
        };
        self.end.get_or_insert(end);
        if self.after.is_none() {
            self.release();
        }
        self.stage = Stage::Settled;
    }

    pub(crate) fn told(&self) -> (Vec<SqueezeStep>, Option<SqueezeEnd>) {
        let mut steps = self.steps.clone();
        for second in &self.seconds {
            // A second belongs to the step that its middle lies in.
            let middle = second.at_ns.saturating_sub(500_000_000);
            let at = steps.partition_point(|step| step.at_ns < middle);
            let step = steps.get_mut(at);
            if let Some(step) = step.filter(|s| s.at_ns.saturating_sub(s.length_ns) <= middle) {
                let add = |sum: Option<u64>, part: Option<u64>| {
                    Some(sum.unwrap_or(0).saturating_add(part.unwrap_or(0)))
                };
                step.offered = add(step.offered, second.offered);
                step.achieved = add(step.achieved, second.achieved);
            }
        }
        (steps, self.end.clone())
    }

    fn look(&mut self) -> Result<(), CgroupError> {
        let memory = self.reader.read_memory()?;
        if memory.oom_kill.is_some_and(|kills| kills > self.kills) {
            self.stop(SqueezeEnd::Killed);
            return Ok(());
        }
        let refaults = refaults_between(&self.begun.memory, &memory);
        let is_storm = refaults as f64 > STORM_REFAULTS;
        if self.begun.at.elapsed() < STEP && !is_storm {
            let held = memory.unreclaimable().unwrap_or_default();
            if self.group.is_under_oom() {
                self.stop(SqueezeEnd::Busy);
            } else if self.limit < least_limit(held) {
                self.stop(SqueezeEnd::NoRoom);
            }
            return Ok(());
        }
        let now = mark(&mut self.reader)?;
        let step = step_between(&self.begun, &now, self.limit);
        let grown = now.memory.unreclaimable().unwrap_or_default();
        let before = self.begun.memory.unreclaimable().unwrap_or_default();
        let allowed = before.saturating_add(before.mul_ratio(GROWTH, 1000));
        self.begun = now;
        let wall = wall_of(&step);
        self.steps.push(step);
        let mut last = self.steps.iter().rev().take(SILENT_SECONDS);
        let is_short = last.any(SqueezeStep::is_short);
        match wall {
            Some(end) => self.stop(end),
            None if self.is_silent() && is_short => self.stop(SqueezeEnd::Pressure),
            // Something else keeps it from answering; a lower limit would be blamed for that.
            None if self.is_silent() => {}
            // What still grows would be mistaken for the wall.
            None if grown > allowed && self.limit >= least_limit(grown) => {}
            None => self.lower(),
        }
        Ok(())
    }

    fn lower(&mut self) {
        let held = self.begun.memory.unreclaimable().unwrap_or_default();
        let Some(next) = next_limit(self.limit, held) else {
            // Where others pay for the file pages there is no room from the start: the application
            // worked with what it uses, and that is the wall.
            if self.steps.is_empty() {
                let step = step_between(&self.begun, &self.begun, self.limit);
                self.steps.push(step);
            }
            return self.stop(SqueezeEnd::NoRoom);
        };
        match self.group.press_memory(next) {
            Ok(LimitChange::Taken) => self.limit = next,
            Ok(LimitChange::Busy) => self.stop(SqueezeEnd::Busy),
            Err(error) => self.stop(SqueezeEnd::NotPossible(error.to_string())),
        }
    }

    fn is_silent(&self) -> bool {
        let last = self.seconds.iter().rev().take(SILENT_SECONDS);
        let (mut seconds, mut offered, mut achieved) = (0, 0, 0);
        for second in last {
            seconds += 1;
            offered += second.offered.unwrap_or(0);
            achieved += second.achieved.unwrap_or(0);
        }
        seconds == SILENT_SECONDS && offered >= SILENT_REQUESTS && achieved == 0
    }

    fn stop(&mut self, end: SqueezeEnd) {
        self.release();
        self.end = Some(end);
        self.stage = Stage::Recovering(Instant::now());
    }

    fn settle(&mut self, target: Bytes, busy: u32) {
        let next = target.max(self.limit.mul_ratio(COARSE, 100));
        self.stage = match self.group.set_memory_limit(next) {
            Ok(LimitChange::Taken) => {
                self.limit = next;
                self.is_pressed = true;
                if next > target {
                    Stage::Settling { target, busy }
                } else {
                    // It stays until this is dropped: the phase behind is judged at it.
                    self.after = Some(target);
                    Stage::Settled
                }
            }
            Ok(LimitChange::Busy) if busy < MOST_BUSY => {
                let busy = busy + 1;
                Stage::Settling { target, busy }
            }
            _ => {
                self.release();
                Stage::Settled
            }
        };
    }

    fn release(&mut self) {
        if self.is_pressed {
            // A group that is gone needs none.
            let _ = self.group.set_memory_limit(self.whole);
            let _ = self.group.forbid_oom_kill(false);
            self.is_pressed = false;
        }
    }
}

impl Drop for Squeezing {
    fn drop(&mut self) {
        self.release();
    }
}

fn mark(reader: &mut CgroupReader) -> Result<Mark, CgroupError> {
    let pressure = reader.read_pressure()?.memory;
    Ok(Mark {
        at: Instant::now(),
        at_ns: monotonic_ns(),
        memory: reader.read_memory()?,
        full: pressure.and_then(|pressure| pressure.full),
    })
}

fn refaults_between(begin: &MemorySample, end: &MemorySample) -> u64 {
    let count = |sample: &MemorySample| sample.refault_file.unwrap_or(0);
    count(end).saturating_sub(count(begin))
}

fn step_between(begin: &Mark, end: &Mark, limit: Bytes) -> SqueezeStep {
    let length_ns = end.at_ns.saturating_sub(begin.at_ns).max(1);
    let seconds = length_ns as f64 / 1e9;
    let full = end.full.zip(begin.full);
    SqueezeStep {
        at_ns: end.at_ns,
        length_ns,
        limit,
        unreclaimable: end.memory.unreclaimable().unwrap_or_default(),
        file: end.memory.droppable(),
        refaults_per_second: refaults_between(&begin.memory, &end.memory) as f64 / seconds,
        full_pressure: full.map(|(end, begin)| end.saturating_sub(begin).as_secs_f64() / seconds),
        offered: None,
        achieved: None,
    }
}

fn wall_of(step: &SqueezeStep) -> Option<SqueezeEnd> {
    let is_pressed = step.full_pressure.is_some_and(|full| full > STORM_PRESSURE);
    let is_storm = step.refaults_per_second > STORM_REFAULTS;
    (is_storm.then_some(SqueezeEnd::Storm)).or(is_pressed.then_some(SqueezeEnd::Pressure))
}

fn least_limit(held: Bytes) -> Bytes {
    held.saturating_add(LEAST_ROOM.max(held.mul_ratio(LEAST_SHARE, 1000)))
}

fn next_limit(limit: Bytes, held: Bytes) -> Option<Bytes> {
    let is_near = limit <= held.saturating_add(held.mul_ratio(NEAR, 100));
    let next = limit.mul_ratio(if is_near { FINE } else { COARSE }, 100);
    (next >= least_limit(held)).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_large_where_there_is_room_and_small_before_the_wall() {
        let held = Bytes::from_mib(200);
        let (mut limit, mut large, mut small) = (Bytes::from_mib(400), 0, 0);
        while let Some(next) = next_limit(limit, held) {
            if next < limit.mul_ratio(98, 100) {
                large += 1
            } else {
                small += 1
            }
            limit = next;
        }
        assert_eq!((large, small), (18, 12));
        assert!(limit >= Bytes::from_mib(204) && limit < Bytes::from_mib(207));
        assert_eq!(least_limit(Bytes::from_mib(1000)), Bytes::from_mib(1015));
    }

    #[test]
    fn the_wall_is_re_reads_or_pressure() {
        let bytes = Bytes::from_mib(1);
        let step = |refaults: f64, full: Option<f64>| SqueezeStep {
            at_ns: 0,
            length_ns: 1,
            limit: bytes,
            unreclaimable: bytes,
            file: None,
            refaults_per_second: refaults,
            full_pressure: full,
            offered: None,
            achieved: None,
        };
        assert_eq!(wall_of(&step(9_999.0, None)), None);
        assert_eq!(wall_of(&step(9_999.0, Some(0.19))), None);
        assert_eq!(wall_of(&step(32_503.0, None)), Some(SqueezeEnd::Storm));
        assert_eq!(wall_of(&step(49.0, Some(0.4))), Some(SqueezeEnd::Pressure));
    }

    #[test]
    fn a_step_has_the_growth_of_its_counters() {
        let memory = |refaults: u64, mib: u64| MemorySample {
            anon: Some(Bytes::from_mib(mib)),
            shmem: Some(Bytes::from_mib(1)),
            kernel: Some(Bytes::from_mib(2)),
            file: Some(Bytes::from_mib(11)),
            refault_file: Some(refaults),
            ..MemorySample::default()
        };
        let mark = |at_ns, memory, full| Mark {
            at: Instant::now(),
            at_ns,
            memory,
            full: Some(Duration::from_millis(full)),
        };
        let begin = mark(1_000_000_000, memory(500, 100), 10);
        let end = mark(3_000_000_000, memory(700, 101), 510);
        let step = step_between(&begin, &end, Bytes::from_mib(120));
        assert_eq!(step.unreclaimable, Bytes::from_mib(104));
        assert_eq!(step.file, Some(Bytes::from_mib(10)));
        assert_eq!(
            (step.refaults_per_second, step.full_pressure),
            (100.0, Some(0.25))
        );
    }
}
