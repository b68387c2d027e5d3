//! The program of an order, as the modules that look at commands need it. Starts nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_trial::{Account, App, Order};

/// A program and who runs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment, complete.
    pub env: BTreeMap<String, String>,
    /// Working directory, absolute.
    pub directory: PathBuf,
    /// Its user's id.
    pub uid: u32,
    /// Its group's id.
    pub gid: u32,
}

impl Program {
    /// Of an order. Of an image it is what runs in its container, as far as the order tells.
    pub fn of(order: &Order) -> Self {
        let Account { uid, gid } = order.account;
        let (command, env, directory) = match &order.app {
            App::Command {
                command,
                env,
                directory,
            } => (command, env, directory.clone()),
            App::Image(image) => (&image.command, &image.env, PathBuf::from("/")),
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
