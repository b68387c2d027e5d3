//! Disk space for an application's files: watched, so that no application fills the machine's disk.
//!
//! Owns when a trial is ended for it and whose fault that was. The files of an application are in
//! the trial's directory; files that an image writes elsewhere are where its engine keeps
//! containers, next to the layers of the image as far as they are known. The application's own
//! files are counted while they exist: free space changes with others too. Facts: statvfs(3);
//! unlink(2), proc(5) (`fd`): a file without a name takes its space as long as it is open; podman's
//! and docker's overlay drivers keep a container's own layer next to the image's layers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_analysis::record::{DiskEvidence, Evidence, InvalidReason, MeasurementFailure};
use loadline_files::measure_tree;
use loadline_protocol::TrialOrder;
use loadline_sizing::Bytes;

/// Reserve for the rest of the machine, or its share of a disk that is smaller than 20 times it.
const RESERVE: Bytes = Bytes::from_mib(1024);
const SHARE: u64 = 20;

/// Most directory entries to look at, which takes some seconds; an application with more has filled
/// the disk with them.
const MOST_ENTRIES: usize = 1_000_000;

const MOST_OPEN: usize = 65_536;

#[derive(Debug)]
pub(crate) struct DiskRoom {
    place: PathBuf,
    device: u64,
    at_start: Bytes,
    reserve: Bytes,
    short: Option<Bytes>,
    own: DiskUsage,
}

#[derive(Debug, Default)]
struct DiskUsage {
    bytes: u64,
    is_more: bool,
}

#[derive(Debug)]
pub(crate) struct NamelessFile {
    device: u64,
    bytes: u64,
}

impl DiskRoom {
    /// Begins to watch; `place` is a directory that outlives the trial's. `None` if free space is
    /// unknown.
    pub(crate) fn watch_disk(place: &Path) -> Option<Self> {
        let (at_start, size) = free_space(place)?;
        let reserve = RESERVE.min(Bytes::from_bytes(size.as_bytes() / SHARE));
        Some(Self {
            place: place.to_owned(),
            device: fs::metadata(place).ok()?.dev(),
            at_start,
            // A disk that is nearly full from the start is not the application's work.
            reserve: reserve.min(Bytes::from_bytes(at_start.as_bytes() / 2)),
            short: None,
            own: DiskUsage::default(),
        })
    }

    /// Whether free space has just fallen below the reserve; true once.
    pub(crate) fn has_run_short(&mut self) -> bool {
        if self.short.is_some() {
            return false;
        }
        let free = free_space(&self.place).map(|(free, _)| free);
        self.short = free.filter(|free| *free < self.reserve);
        self.short.is_some()
    }

    pub(crate) fn count_files(&mut self, places: &[PathBuf], nameless: &[NamelessFile]) {
        if self.short.is_none() {
            return;
        }
        let here = nameless.iter().filter(|file| file.device == self.device);
        self.own.bytes += here.map(|file| file.bytes).sum::<u64>();
        let is_here = |place: &&PathBuf| fs::metadata(place).is_ok_and(|m| m.dev() == self.device);
        for place in places.iter().filter(is_here) {
            // One that cannot be entered is not the application's doing.
            let Ok(found) = measure_tree(place, MOST_ENTRIES) else {
                continue;
            };
            self.own.bytes = self.own.bytes.saturating_add(found.bytes);
            self.own.is_more |= !found.is_all;
        }
    }

    /// Writes down who filled it: the application, where its files took half of what went.
    pub(crate) fn record_cause(&self, evidence: &mut Evidence) {
        let Some(left) = self.short else {
            return;
        };
        let went = self.at_start.saturating_sub(left).as_bytes();
        if self.own.is_more || self.own.bytes.saturating_mul(2) >= went {
            evidence.disk = Some(DiskEvidence {
                written: Bytes::from_bytes(self.own.bytes),
                left,
            });
        } else {
            let place = self.place.display();
            let why = format!("other programs filled the disk of {place} to {left}");
            evidence.failure = Some(MeasurementFailure::new(InvalidReason::DiskFull, why));
        }
    }
}

pub(crate) fn nameless_files(processes: &[u32]) -> Vec<NamelessFile> {
    let directories = processes.iter().map(|pid| format!("/proc/{pid}/fd"));
    let entries = directories.flat_map(|directory| fs::read_dir(directory).into_iter().flatten());
    let mut known = BTreeSet::new();
    let open = entries.take(MOST_OPEN).flatten();
    // Through the link of proc, which is the file itself, whatever its name was.
    open.filter_map(|entry| fs::metadata(entry.path()).ok())
        .filter(|file| file.is_file() && file.nlink() == 0)
        .filter(|file| known.insert((file.dev(), file.ino())))
        .map(|file| NamelessFile {
            device: file.dev(),
            bytes: file.blocks().saturating_mul(512),
        })
        .collect()
}

pub(crate) fn disk_rooms(order: &TrialOrder) -> Vec<DiskRoom> {
    let layer = order.app.image().and_then(|image| image.layers.first());
    let places = [order.scratch.parent(), layer.map(PathBuf::as_path)];
    let mut known: Vec<u64> = Vec::new();
    let is_new = |place: &&Path| {
        let disk = fs::metadata(place).map(|found| found.dev()).ok();
        let is_new = disk.is_some_and(|disk| !known.contains(&disk));
        known.extend(disk);
        is_new
    };
    let places = places.into_iter().flatten().filter(is_new);
    places.filter_map(DiskRoom::watch_disk).collect()
}

/// Space for unprivileged programs, and the size of the disk.
fn free_space(place: &Path) -> Option<(Bytes, Bytes)> {
    let disk = rustix::fs::statvfs(place).ok()?;
    let bytes = |blocks: u64| Bytes::from_bytes(blocks.saturating_mul(disk.f_frsize));
    Some((bytes(disk.f_bavail), bytes(disk.f_blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A disk that ran short, with the present free space as its reserve.
    fn short(place: &Path, went: u64) -> DiskRoom {
        DiskRoom {
            at_start: Bytes::from_bytes(went),
            short: Some(Bytes::from_bytes(0)),
            ..DiskRoom::watch_disk(place).expect("a disk")
        }
    }

    fn judged(room: &DiskRoom) -> Evidence {
        let mut evidence = Evidence::default();
        room.record_cause(&mut evidence);
        evidence
    }

    #[test]
    fn a_disk_that_was_not_short_is_nobodys_fault() {
        let place = tempfile::tempdir().expect("a directory");
        let mut room = DiskRoom {
            short: None,
            ..short(place.path(), 1)
        };
        room.count_files(&[place.path().to_owned()], &[]);
        assert_eq!(judged(&room), Evidence::default());
    }

    #[test]
    fn its_own_files_are_its_fault_and_what_others_free_again_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("file"), vec![1; 3 << 20]).expect("a file");
        let places = [place.path().to_owned()];
        let mut room = short(place.path(), 6 * MIB);
        room.count_files(&places, &[]);
        let evidence = judged(&room);
        assert!(evidence.failure.is_none());
        let disk = evidence.disk.expect("its fault");
        assert!(disk.written >= Bytes::from_bytes(3 * MIB), "{disk:?}");
        // Gigabytes are free now, whoever freed them; the application's files took a negligible
        // part of the loss.
        let mut room = short(place.path(), 100 * MIB);
        room.count_files(&places, &[]);
        let evidence = judged(&room);
        assert!(evidence.disk.is_none());
        let failure = evidence.failure.expect("others");
        assert_eq!(failure.cause, InvalidReason::DiskFull);
    }

    #[test]
    fn a_file_without_a_name_takes_its_room_too() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        fs::write(&file, vec![1; 4 << 20]).expect("a file");
        let open = fs::File::open(&file).expect("a file");
        let again = open.try_clone().expect("a second descriptor");
        fs::remove_file(&file).expect("its name goes");
        let mut room = short(place.path(), 6 * MIB);
        let found = nameless_files(&[std::process::id()]);
        room.count_files(&[place.path().to_owned()], &found);
        drop((open, again));
        let disk = judged(&room).disk.expect("its fault");
        let some = Bytes::from_bytes(4 * MIB)..Bytes::from_bytes(5 * MIB);
        assert!(some.contains(&disk.written), "{disk:?}");
    }

    #[test]
    fn it_is_said_once_that_it_ran_short() {
        let mut room = DiskRoom::watch_disk(Path::new("/")).expect("a root");
        assert!(!room.has_run_short());
        room.reserve = Bytes::from_bytes(u64::MAX);
        assert!(room.has_run_short());
        assert!(!room.has_run_short());
    }
}
