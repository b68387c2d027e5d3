//! The room on the disk that an application's files take: watched, so that none fills the machine's.
//!
//! Owns when a trial is ended for it and whose fault that was. The files of an application lie in the
//! trial's directory; what an image writes elsewhere lies where its engine keeps containers, beside
//! the layers of the image as far as they are known. Facts: statvfs(3); podman's and docker's overlay
//! drivers keep a container's own layer beside those of its image.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_analysis::record::{DiskEvidence, Evidence, Failure, Invalid};
use loadline_sizing::Bytes;
use loadline_trial::{App, Order};

/// The rest of the machine keeps so much, or this share of a disk that is smaller than 20 times it.
const RESERVE: Bytes = Bytes::from_mib(1024);
const SHARE: u64 = 20;

/// A disk that a trial's files lie on.
#[derive(Debug)]
pub(crate) struct Room {
    place: PathBuf,
    at_start: Bytes,
    reserve: Bytes,
    /// What was free when too little was.
    short: Option<Bytes>,
}

impl Room {
    /// Begins to watch; `place` is a directory that outlives the trial's. `None` where nobody says
    /// what is free.
    pub(crate) fn of(place: &Path) -> Option<Self> {
        let (at_start, size) = free(place)?;
        let reserve = RESERVE.min(Bytes::from_bytes(size.as_bytes() / SHARE));
        Some(Self {
            place: place.to_owned(),
            at_start,
            // A disk that is nearly full from the start is not the application's work.
            reserve: reserve.min(Bytes::from_bytes(at_start.as_bytes() / 2)),
            short: None,
        })
    }

    /// Whether the reserve has just been touched; says so once.
    pub(crate) fn has_run_short(&mut self) -> bool {
        if self.short.is_some() {
            return false;
        }
        self.short = free(&self.place)
            .map(|(free, _)| free)
            .filter(|free| *free < self.reserve);
        self.short.is_some()
    }

    /// Writes down who filled it, once the application's files are removed: what came back was its.
    pub(crate) fn judge(&self, evidence: &mut Evidence) {
        let now = free(&self.place).map(|(free, _)| free);
        let Some((left, now)) = self.short.zip(now) else {
            return;
        };
        let came_back = now.saturating_sub(left);
        if came_back.as_bytes().saturating_mul(2) >= self.at_start.saturating_sub(left).as_bytes() {
            evidence.disk = Some(DiskEvidence {
                written: came_back,
                left,
            });
        } else {
            evidence.failure = Some(Failure {
                cause: Invalid::DiskFull,
                detail: format!(
                    "other programs filled the disk of {} to {left}",
                    self.place.display()
                ),
            });
        }
    }
}

/// The disks that a trial's application can fill, each once.
pub(crate) fn rooms(order: &Order) -> Vec<Room> {
    let layer = match &order.app {
        App::Image(image) => image.layers.first(),
        App::Command { .. } => None,
    };
    let places = [order.scratch.parent(), layer.map(PathBuf::as_path)];
    let mut known: Vec<u64> = Vec::new();
    let is_new = |place: &&Path| {
        let disk = std::fs::metadata(place).map(|found| found.dev()).ok();
        let is_new = disk.is_some_and(|disk| !known.contains(&disk));
        known.extend(disk);
        is_new
    };
    let places = places.into_iter().flatten().filter(is_new);
    places.filter_map(Room::of).collect()
}

/// What programs without privilege may still write there, and the size of the disk.
fn free(place: &Path) -> Option<(Bytes, Bytes)> {
    let disk = rustix::fs::statvfs(place).ok()?;
    let bytes = |blocks: u64| Bytes::from_bytes(blocks.saturating_mul(disk.f_frsize));
    Some((bytes(disk.f_bavail), bytes(disk.f_blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(at_start: u64, short: u64) -> Room {
        Room {
            place: PathBuf::from("/"),
            at_start: Bytes::from_bytes(at_start),
            reserve: RESERVE,
            short: Some(Bytes::from_bytes(short)),
        }
    }

    #[test]
    fn a_disk_that_was_not_short_is_nobodys_fault() {
        let mut evidence = Evidence::default();
        let room = Room {
            short: None,
            ..room(1, 0)
        };
        room.judge(&mut evidence);
        assert_eq!(evidence, Evidence::default());
    }

    #[test]
    fn what_comes_back_was_the_applications_and_what_does_not_was_not() {
        let (now, _) = free(Path::new("/")).expect("a root");
        let now = now.as_bytes();
        let mut evidence = Evidence::default();
        // It had almost as much free as now, and nothing in between.
        room(now - now / 8, 0).judge(&mut evidence);
        assert!(evidence.failure.is_none());
        let disk = evidence.disk.take().expect("its fault");
        assert_eq!(disk.left, Bytes::from_bytes(0));
        // There were twice as much and more, and only what is free now came back.
        room(now * 3, 0).judge(&mut evidence);
        assert!(evidence.disk.is_none());
        let failure = evidence.failure.expect("others");
        assert_eq!(failure.cause, Invalid::DiskFull);
    }

    #[test]
    fn it_is_said_once_that_it_ran_short() {
        let mut room = Room::of(Path::new("/")).expect("a root");
        assert!(!room.has_run_short());
        room.reserve = Bytes::from_bytes(u64::MAX);
        assert!(room.has_run_short());
        assert!(!room.has_run_short());
    }
}
