//! The program of an order, as the modules that look at commands need it. Starts nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loadline_protocol::{Account, AppSpec, TrialOrder};

pub fn is_script(path: &Path) -> bool {
    let mut begin = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"#!"
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramSpec {
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub uid: u32,
    pub gid: u32,
}

impl ProgramSpec {
    pub fn from_order(order: &TrialOrder) -> Self {
        Self::from_app(&order.app, order.account)
    }

    /// Of an application or a dependency that runs as this account. Of an image it is what runs in
    /// its container, as far as the order tells.
    pub fn from_app(app: &AppSpec, account: Account) -> Self {
        let Account { uid, gid } = account;
        let (command, env, directory) = match app {
            AppSpec::Command {
                command,
                env,
                directory,
            } => (command, env, directory.clone()),
            AppSpec::Image(image) => (&image.command, &image.env, PathBuf::from("/")),
        };
        Self {
            command: command.clone(),
            env: env.clone(),
            directory,
            uid,
            gid,
        }
    }
}
