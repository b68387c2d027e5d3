//! The program of an order, as the modules that look at commands need it.
//!
//! Owns the refusal of what this host cannot start.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_trial::{Account, App, Order, Refusal};

/// A program of this machine and who runs it.
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
    /// Of an order.
    ///
    /// # Errors
    /// [`Refusal`] for an application that is no program of this machine.
    pub fn of(order: &Order) -> Result<Self, Refusal> {
        Self::of_app(&order.app, order.account)
    }

    /// Of an application or a dependency that runs as this account.
    ///
    /// # Errors
    /// As for an order.
    pub fn of_app(app: &App, account: Account) -> Result<Self, Refusal> {
        let Account { uid, gid } = account;
        match app {
            App::Command {
                command,
                env,
                directory,
            } => Ok(Self {
                command: command.clone(),
                env: env.clone(),
                directory: directory.clone(),
                uid,
                gid,
            }),
            App::Image { reference, .. } => Err(Refusal::new(
                format!("starting the image {reference}"),
                "this host starts programs only, it has no container engine",
                "give the application as a command: loadline size ... -- java -jar app.jar",
            )),
        }
    }
}

/// Why this host cannot carry out an order, as far as the order itself tells.
pub fn refusal(order: &Order) -> Option<Refusal> {
    let dependencies = order.dependencies.iter();
    let mut programs = dependencies.map(|d| Program::of_app(&d.app, d.account));
    let refused = programs.find_map(Result::err);
    Program::of(order).err().or(refused)
}
