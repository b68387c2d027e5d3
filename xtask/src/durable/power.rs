//! `cargo xtask power-loss`: the power fails at thousands of moments, and the store is whole.
//!
//! Owns the replay. loadline measures in a guest (user-mode Linux) on a real ext4 below which
//! dm-log-writes keeps every write in the order in which it could be on disk
//! (tests/faults/power.sh). A crash point is all flushed data, plus any part of the writes since
//! then, each write whole, not at all or (in files) torn between two sectors: any state that a disk
//! may have kept. Each is mounted on this machine, as after a restart, and checked. Trials that
//! loadline had printed as finished before that moment must be there.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::random::Random;
use super::{Programs, count_and_seed, missing, share_among};
use crate::error::Error;
use crate::process::{empty, output_of, stdout_of};

const POINTS: usize = 10_000;
const STARTS: &str = "12";

/// Bytes of the disk, and of the log of its writes (sparse).
const DISK: (u64, u64) = (32 << 20, 4 << 30);

/// Atomic unit of a disk write, bytes.
const SECTOR: usize = 512;
const WORKERS: usize = 2;
const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const METADATA: u64 = 16;

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// Bytes at a sector of the disk. All before it are on disk where it is a flush.
    Write {
        at: usize,
        bytes: Vec<u8>,
        is_flush: bool,
        is_forced: bool,
        /// It is the file system's own. ext4 does not mount with a superblock of two halves.
        is_whole: bool,
    },
    Mark(String),
}

#[derive(Debug)]
struct Crash {
    /// All entries before this one are on disk.
    flushed: usize,
    /// Partially written ones among these, with their number of bytes.
    kept: Vec<(usize, usize)>,
    finished: usize,
}

/// Records a log, or reuses an earlier one, and checks this many crash points.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool, Error> {
    let (count, seed) = count_and_seed("power-loss", arguments)?;
    let count = count.unwrap_or(POINTS);
    if let Some(reason) = missing() {
        println!("SKIP power-loss: {reason}");
        return Ok(false);
    }
    if output_of(Command::new("dmsetup").arg("--version")).is_err() {
        println!("SKIP power-loss: dmsetup is not installed (make setup)");
        return Ok(false);
    }
    let programs = Programs::build(root)?;
    let beside = programs.loadline.parent().unwrap_or(Path::new("."));
    let base = beside.join("power-loss");
    empty(&base)?;
    let begin = Instant::now();
    let Some(entries) = recorded(root, &base, &programs)? else {
        return Ok(false);
    };
    let recorded = begin.elapsed().as_secs();
    let is_write = |e: &&Entry| matches!(e, Entry::Write { .. });
    let writes = entries.iter().filter(is_write).count();
    let flushes = entries.iter().filter(|e| is_flush(e)).count();
    println!("{writes} writes, {flushes} flushes, recorded in {recorded} s");
    let crashes = crashes(&entries, count, seed);
    let wrong = looked_at(&programs, &base, &entries, &crashes)?;
    let finished = crashes.iter().map(|crash| crash.finished).max();
    let finished = finished.unwrap_or(0);
    let (points, seconds) = (crashes.len(), begin.elapsed().as_secs());
    println!(
        "{points} crash points, seed {seed}, up to {finished} finished trials: {wrong} wrong, {seconds} s"
    );
    if wrong == 0 {
        fs::remove_dir_all(&base).map_err(Error::file(&base))?;
    }
    Ok(wrong == 0 && finished > 0)
}

/// Runs the guest; `None` if this machine has none.
fn recorded(root: &Path, base: &Path, programs: &Programs) -> Result<Option<Vec<Entry>>, Error> {
    let (disk, log) = (base.join("disk"), base.join("log"));
    for (path, length) in [(&disk, DISK.0), (&log, DISK.1)] {
        let made = File::create(path).and_then(|file| file.set_len(length));
        made.map_err(Error::file(path))?;
    }
    let disks = format!("{} {}", disk.display(), log.display());
    let mut guest = Command::new(root.join("tests/uml/run.sh"));
    guest.arg("/bin/bash");
    guest.arg(root.join("tests/faults/power.sh"));
    guest.args([&programs.loadline, &programs.zoo]).arg(STARTS);
    guest.env("LOADLINE_UML_DISKS", disks);
    guest.env("LOADLINE_UML_TIMEOUT", "1800");
    let output = output_of(guest.current_dir(base))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => read_log(&log).map(Some),
        Some(77) => {
            println!("SKIP power-loss: {}", said.trim());
            Ok(None)
        }
        code => {
            let text = String::from_utf8_lossy(&output.stdout);
            let detail = format!("{code:?}: {said}{text}");
            Err(Error::output("tests/faults/power.sh", detail))
        }
    }
}

/// The log in memory. Source: `struct log_write_super` and `log_write_entry` of the kernel.
fn read_log(path: &Path) -> Result<Vec<Entry>, Error> {
    let mut file = File::open(path).map_err(Error::file(path))?;
    let mut at = |position: u64, length: usize| -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length];
        let found = file.seek(SeekFrom::Start(position));
        let read = found.and_then(|_| file.read_exact(&mut bytes));
        read.map_err(Error::file(path)).map(|()| bytes)
    };
    let head = at(0, SECTOR)?;
    let is_log = word(&head, 0) == MAGIC && word(&head, 3) & 0xffff_ffff == SECTOR as u64;
    if !is_log {
        let detail = "it is no log of sectors of 512 bytes";
        return Err(Error::output("dm-log-writes", detail));
    }
    let mut entries = Vec::new();
    let mut position = SECTOR as u64;
    for _ in 0..word(&head, 2) {
        let line = at(position, SECTOR)?;
        let [sector, sectors, flags, length] = [0, 1, 2, 3].map(|place| word(&line, place));
        position += SECTOR as u64;
        if flags & MARK != 0 {
            let length = usize::try_from(length).unwrap_or(0).min(SECTOR - 32);
            let text = String::from_utf8_lossy(&line[32..32 + length]);
            entries.push(Entry::Mark(text.trim_end_matches('\0').to_owned()));
            continue;
        }
        // Discarded blocks are free already, and otherwise read as before.
        let is_written = u64::from(flags & DISCARD == 0);
        let length = is_written * sectors * SECTOR as u64;
        let sector = usize::try_from(sector).unwrap_or(usize::MAX);
        entries.push(Entry::Write {
            at: sector.saturating_mul(SECTOR),
            bytes: at(position, usize::try_from(length).unwrap_or(0))?,
            is_flush: flags & FLUSH != 0,
            is_forced: flags & FUA != 0,
            is_whole: flags & METADATA != 0,
        });
        position += length;
    }
    Ok(entries)
}

fn word(bytes: &[u8], place: usize) -> u64 {
    let rest = bytes.get(place * 8..).unwrap_or_default();
    let part = rest.first_chunk::<8>();
    part.copied().map_or(0, u64::from_le_bytes)
}

fn is_flush(entry: &Entry) -> bool {
    matches!(entry, Entry::Write { is_flush: true, .. })
}

fn finished(entry: &Entry) -> Option<usize> {
    match entry {
        Entry::Mark(text) => text.strip_prefix("finished-")?.parse().ok(),
        Entry::Write { .. } => None,
    }
}

/// Moments from the begin of the work on, sorted: each after a flush once, as many as there is
/// room for, the others drawn.
fn crashes(entries: &[Entry], count: usize, seed: u64) -> Vec<Crash> {
    let begin = |entry: &Entry| *entry == Entry::Mark("begin".to_owned());
    let begin = entries.iter().position(begin).unwrap_or(0);
    let mut random = Random::from_seed(seed);
    let flushes = (begin..entries.len()).filter(|place| is_flush(&entries[*place]));
    let behind = |place| crash(entries, place + 1, &mut random, false);
    let mut all: Vec<Crash> = flushes.take(count).map(behind).collect();
    while all.len() < count && begin + 1 < entries.len() {
        let moment = begin + 1 + random.below(entries.len() - begin);
        all.push(crash(entries, moment, &mut random, true));
    }
    all.sort_by_key(|crash| crash.flushed);
    all
}

/// The power fails before this entry; writes since the last flush survive at random if `is_drawn`,
/// else not at all. Forced writes are in the log once they are on disk.
fn crash(entries: &[Entry], moment: usize, random: &mut Random, is_drawn: bool) -> Crash {
    let before = &entries[..moment.min(entries.len())];
    let flushed = before.iter().rposition(is_flush);
    let flushed = flushed.map_or(0, |place| place + 1);
    let mut kept = Vec::new();
    for (place, entry) in before.iter().enumerate().skip(flushed) {
        let Entry::Write {
            bytes,
            is_forced,
            is_whole,
            ..
        } = entry
        else {
            continue;
        };
        if *is_forced {
            kept.push((place, bytes.len()));
        } else if is_drawn && random.below(2) == 0 {
            let sectors = bytes.len() / SECTOR;
            let is_torn = !is_whole && sectors > 1 && random.below(4) == 0;
            let length = match is_torn {
                true => random.below(sectors),
                false => sectors,
            };
            kept.push((place, length * SECTOR));
        }
    }
    Crash {
        flushed,
        kept,
        finished: before.iter().filter_map(finished).max().unwrap_or(0),
    }
}

fn looked_at(
    programs: &Programs,
    base: &Path,
    entries: &[Entry],
    crashes: &[Crash],
) -> Result<usize, Error> {
    let (wrong, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let part = crashes.len().div_ceil(WORKERS).max(1);
    let parts = crashes.chunks(part).collect();
    share_among(WORKERS, parts, |worker, crashes: &[Crash]| {
        let mut replay = Replay::new(base, worker, entries);
        for crash in crashes {
            if let Some(why) = replay.look(programs, crash)? {
                wrong.fetch_add(1, Ordering::Relaxed);
                println!("WRONG {crash:?}: {why}");
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(1000) {
                println!("{done} crash points");
            }
        }
        Ok(())
    })?;
    Ok(wrong.into_inner())
}

/// A disk that goes forward through the log.
struct Replay<'a> {
    entries: &'a [Entry],
    disk: Vec<u8>,
    applied: usize,
    /// A new file for each moment: the kernel may still have read the one before.
    image: PathBuf,
    looked: usize,
    mount: PathBuf,
}

impl<'a> Replay<'a> {
    fn new(base: &Path, worker: usize, entries: &'a [Entry]) -> Self {
        // In memory: writes to it are thrown away.
        let memory = Path::new("/dev/shm");
        let at = if memory.is_dir() { memory } else { base };
        let name = format!("loadline-power-{}-{worker}", std::process::id());
        Self {
            entries,
            disk: vec![0; usize::try_from(DISK.0).unwrap_or(0)],
            applied: 0,
            image: at.join(name),
            looked: 0,
            mount: base.join(format!("mount-{worker}")),
        }
    }

    fn look(&mut self, programs: &Programs, crash: &Crash) -> Result<Option<String>, Error> {
        for place in self.applied..crash.flushed {
            put(&mut self.disk, &self.entries[place], usize::MAX);
        }
        self.applied = self.applied.max(crash.flushed);
        let mut disk = self.disk.clone();
        for (place, length) in &crash.kept {
            put(&mut disk, &self.entries[*place], *length);
        }
        self.looked += 1;
        self.image.set_extension(self.looked.to_string());
        fs::write(&self.image, &disk).map_err(Error::file(&self.image))?;
        fs::create_dir_all(&self.mount).map_err(Error::file(&self.mount))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", "-o", "loop"]);
        let mounted = output_of(mount.arg(&self.image).arg(&self.mount))?;
        // The mount has it; no other process needs it.
        fs::remove_file(&self.image).map_err(Error::file(&self.image))?;
        if !mounted.status.success() {
            let said = String::from_utf8_lossy(&mounted.stderr).into_owned();
            return Ok(Some(format!("it does not mount: {said}")));
        }
        let why = self.why(programs, crash);
        self.unmount()?;
        Ok(why)
    }

    /// Another program that was just started may still hold it for a moment.
    fn unmount(&self) -> Result<(), Error> {
        let umount = || stdout_of(Command::new("umount").arg(&self.mount)).map(drop);
        for _ in 0..100 {
            if umount().is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        umount()
    }

    fn why(&self, programs: &Programs, crash: &Crash) -> Option<String> {
        let state = self.mount.join("state");
        if !state.join("loadline.db").exists() {
            let is_lost = crash.finished > 0;
            return is_lost.then(|| "there is no database".to_owned());
        }
        let whole = match programs.look_at(&state) {
            Ok(whole) => whole,
            Err(error) => return Some(error.to_string()),
        };
        if whole.finished.len() < crash.finished {
            return Some(format!("{} trials are left", whole.finished.len()));
        }
        let report = self.mount.join("report.html");
        let report = fs::read_to_string(report).unwrap_or("</html>".to_owned());
        if !report.trim_end().ends_with("</html>") {
            return Some("half a report is there".to_owned());
        }
        (!whole.wrong.is_empty()).then(|| whole.wrong.join("; "))
    }
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        // There may be none yet.
        let _ = fs::remove_dir(&self.mount);
    }
}

fn put(disk: &mut [u8], entry: &Entry, length: usize) {
    let Entry::Write { at, bytes, .. } = entry else {
        return;
    };
    let bytes = &bytes[..length.min(bytes.len())];
    if let Some(there) = disk.get_mut(*at..at.saturating_add(bytes.len())) {
        there.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at: usize, byte: u8, is_flush: bool) -> Entry {
        Entry::Write {
            at,
            bytes: vec![byte; 2 * SECTOR],
            is_flush,
            is_forced: false,
            is_whole: false,
        }
    }

    #[test]
    fn a_crash_keeps_what_was_flushed_and_nothing_of_what_came_later() {
        let mark = |text: &str| Entry::Mark(text.to_owned());
        let entries = [
            mark("begin"),
            write(0, 1, false),
            write(0, 2, true),
            mark("finished-1"),
            write(0, 3, false),
            write(0, 4, true),
            mark("finished-2"),
        ];
        let crashes = crashes(&entries, 500, 1);
        assert_eq!(crashes.len(), 500);
        let mut torn = 0;
        for crash in &crashes {
            assert!([0, 3, 6].contains(&crash.flushed), "{crash:?}");
            let finished = [(0, 0), (3, 1), (6, 2)].into_iter();
            let allowed: Vec<usize> = finished
                .filter(|(at, _)| *at == crash.flushed)
                .map(|(_, n)| n)
                .collect();
            assert!(crash.finished <= allowed[0] && crash.finished + 1 >= allowed[0]);
            assert!(crash.kept.iter().all(|(place, _)| *place >= crash.flushed));
            torn += crash
                .kept
                .iter()
                .filter(|(_, length)| *length < 2 * SECTOR)
                .count();
        }
        assert!(torn > 0);
    }

    #[test]
    fn what_was_forced_to_the_disk_is_kept_at_every_moment_after_it() {
        let mut forced = write(0, 2, false);
        if let Entry::Write { is_forced, .. } = &mut forced {
            *is_forced = true;
        }
        let entries = [Entry::Mark("begin".to_owned()), forced, write(0, 3, false)];
        let kept = |moment| crash(&entries, moment, &mut Random::from_seed(1), false).kept;
        assert_eq!(kept(1), []);
        assert_eq!(kept(2), [(1, 2 * SECTOR)]);
        assert_eq!(kept(3), [(1, 2 * SECTOR)]);
    }

    #[test]
    fn a_torn_write_changes_the_first_sectors_only() {
        let mut disk = vec![0; 4 * SECTOR];
        put(&mut disk, &write(SECTOR, 7, false), SECTOR);
        let sum = disk.iter().filter(|byte| **byte == 7).count();
        assert_eq!((sum, disk[SECTOR], disk[0]), (SECTOR, 7, 0));
        put(&mut disk, &write(3 * SECTOR, 7, false), usize::MAX);
        assert_eq!(
            disk[3 * SECTOR],
            0,
            "what lies beyond the disk is not written"
        );
    }
}
