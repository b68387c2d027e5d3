//! What loadline and the processes it starts for a trial say to each other: JSON, one line each,
//! over one socket pair.
//!
//! Owns the messages only. First line down is the [`InitOrder`], then [`InitCommand`]s; up come
//! [`InitEvent`]s. When the socket closes at loadline's end, everything below must die; when it closes
//! at the other end, everything below is dead.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use crate::container::{ContainerEvent, ContainerNetwork};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest line taken: a class path can be long, but not this long.
const LINE_CAP: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitOrder {
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub uid: u32,
    pub gid: u32,
    /// Files to write `0` to in order to join the trial's cgroup.
    pub join: Vec<PathBuf>,
    pub cpus: Vec<u32>,
    pub open_files: u64,
    pub shm_bytes: u64,
    pub network: ContainerNetwork,
    /// Whether its supplementary groups stay: in the user namespace of a loadline that is not
    /// root they cannot be dropped.
    pub keeps_groups: bool,
    pub view: FilesystemView,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesystemView {
    pub replaced: Vec<(PathBuf, PathBuf)>,
    pub masked: Vec<PathBuf>,
    pub made: Vec<PathBuf>,
    /// Files and directories below the ones above that stay visible under their own path. One may
    /// hold a hidden directory, which may hold a kept one.
    pub kept: Vec<VisiblePath>,
    /// Directories with a private copy: (visible path, copy).
    pub copied: Vec<(PathBuf, PathBuf)>,
}

/// What stays visible, as it was when its rights were looked at: another that has come to its path
/// since then is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisiblePath {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// A file that its user could not reach without loadline: to be read only.
    pub read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum InitCommand {
    Start,
    Signal { number: i32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitEvent {
    Held {
        init: i32,
    },
    /// Mounts and network stand; init waits for [`InitCommand::Start`].
    Prepared,
    Application(ContainerEvent),
}

#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    #[error("the socket between loadline and the trial's init: {0}")]
    Socket(#[source] std::io::Error),
    #[error("a message between loadline and the trial's init is not understood: {0}")]
    Message(#[source] serde_json::Error),
}

pub fn send_message(to: &mut impl Write, message: &impl Serialize) -> Result<(), ProtocolError> {
    let mut line = serde_json::to_vec(message).map_err(ProtocolError::Message)?;
    line.push(b'\n');
    to.write_all(&line).map_err(ProtocolError::Socket)
}

pub fn receive_message<T: DeserializeOwned>(
    from: &mut impl BufRead,
) -> Result<Option<T>, ProtocolError> {
    let mut line = Vec::new();
    let mut limited = from.take(LINE_CAP);
    let read = limited.read_until(b'\n', &mut line);
    read.map_err(ProtocolError::Socket)?;
    if line.last() != Some(&b'\n') {
        // Half a line is a peer that died while it wrote.
        return Ok(None);
    }
    let message = serde_json::from_slice(&line);
    message.map(Some).map_err(ProtocolError::Message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let events = [
            InitEvent::Held { init: 7 },
            InitEvent::Prepared,
            InitEvent::Application(ContainerEvent::Exec { at_ns: u64::MAX }),
            InitEvent::Application(ContainerEvent::NotExecuted),
            InitEvent::Application(ContainerEvent::Exited {
                code: None,
                signal: Some(9),
            }),
            InitEvent::Application(ContainerEvent::Failed {
                detail: "mount /proc:\nEPERM \u{1b}".to_owned(),
            }),
        ];
        let mut wire = Vec::new();
        for event in &events {
            send_message(&mut wire, event).expect("a vector takes everything");
        }
        let mut from = wire.as_slice();
        for event in events {
            assert_eq!(
                receive_message(&mut from).expect("the sent message"),
                Some(event)
            );
        }
        assert_eq!(
            receive_message::<InitEvent>(&mut from).expect("the end"),
            None
        );
    }

    #[test]
    fn half_a_line_is_the_end_and_a_wrong_line_is_an_error() {
        let half = receive_message::<InitEvent>(&mut br#"{"event":"prep"#.as_slice());
        assert!(matches!(half, Ok(None)), "{half:?}");
        let wrong = receive_message::<InitEvent>(&mut b"{\"event\":\"dance\"}\n".as_slice());
        assert!(matches!(wrong, Err(ProtocolError::Message(_))), "{wrong:?}");
    }
}
