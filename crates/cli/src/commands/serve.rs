//! `loadline serve`: the live page of a state directory.
//!
//! Owns the flags, the link that is printed, and the words about stored results; the server is
//! [`loadline_serve`]'s.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use loadline_report::format::{count_of, elapsed};
use loadline_runner::agenda::Agenda;
use loadline_runner::store::{ResultKind, ResultRow, Store};
use loadline_serve::access::AccessRules;
use loadline_serve::{ResultReading, StateServer};

use super::plan::outlook;
use super::store::answer_words;
use crate::error::{CommandOutcome, Error};
use crate::measuring::{experiment_of, open_store_to_read, state_directory};
use crate::result;
use crate::say::print_data;
use crate::signals::Signals;

const LONGEST_TOKEN: usize = 4096;

#[derive(Args)]
pub struct ServeArguments {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(value_parser = parse_listen, long, value_name = "ADDRESS", default_value = "127.0.0.1:7007")]
    listen: SocketAddr,
    /// File with a token on its first line, which a visitor sends once as `?token=` in the address;
    /// without this flag each start prints a link with a new token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| match text.trim_start_matches(':').parse::<u16>() {
            Ok(port) => format!("an address is missing; write 127.0.0.1:{port}"),
            Err(_) => "it is not an address with a port; write 127.0.0.1:7007".to_owned(),
        })
}

pub fn run(arguments: &ServeArguments) -> Result<CommandOutcome, Error> {
    let token = arguments.token_file.as_ref().map(token).transpose()?;
    let refused = |why: String| {
        let error = Error::usage(format!("--token-file: {why}"));
        error.with_hint("make one with: openssl rand -hex 16 > token")
    };
    // The user knows a given token, so it is not printed.
    let is_made_up = token.is_none();
    let access = AccessRules::new(token).map_err(refused)?;
    let query = if is_made_up {
        format!("?token={}", access.token)
    } else {
        String::new()
    };
    // Told now, not by an empty page.
    drop(open_store_to_read(arguments.state.as_deref())?);
    let signals = Signals::watch_signals()?;
    let directory = state_directory(arguments.state.as_deref());
    let reading = ResultReading {
        view: view_or_message,
        answer: answer_words,
        left: describe_time_left,
    };
    let server = StateServer::listen_on(arguments.listen, directory.clone(), reading, access);
    let server = server.map_err(|e| {
        Error::environment(e).with_hint("choose another port: --listen 127.0.0.1:7008")
    })?;
    let address = server.listen_address().unwrap_or(arguments.listen);
    let shown = directory.display();
    say!("serving results of {shown}; stop with Ctrl-C");
    print_data(&format!("http://{address}/{query}"))?;
    let served = server.run(|| signals.has_come());
    served.map_err(Error::environment)?;
    Ok(CommandOutcome::Done)
}

fn token(path: &PathBuf) -> Result<String, Error> {
    let unreadable = |why: std::io::Error| {
        let what = format!("cannot read {}: {why}", path.display());
        Error::environment(what).with_hint("make one with: openssl rand -hex 16 > token")
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let read = file.take(LONGEST_TOKEN as u64).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn view_or_message(store: &Store, row: &ResultRow) -> Result<loadline_report::ResultView, String> {
    result::stored_view(store, row).map_err(|e| e.message().to_owned())
}

fn describe_time_left(store: &Store, row: &ResultRow) -> Option<String> {
    let experiment = experiment_of(row).ok()?;
    let done = row.trials;
    let so_far = count_of(usize::try_from(done).ok()?, "trial");
    match row.kind {
        ResultKind::Run => {
            let agenda = Agenda::new(&experiment).on_machine(row.machine.cpus);
            let all = u64::from(agenda.trial_count());
            let rest = u32::try_from(all.saturating_sub(done)).ok()?;
            let each = mean_length(store, row).unwrap_or(agenda.each);
            let left = elapsed(each * rest);
            Some(format!("{so_far} of {all}, about {left} left"))
        }
        ResultKind::Size => {
            let told = outlook::outlook_from_store(&experiment, Some(store)).outlook;
            let each = mean_length(store, row).unwrap_or(told.each);
            let (half, most) = (u64::from(told.starts), u64::from(told.starts_95));
            let rest = |all: u64| u32::try_from(all.saturating_sub(done)).unwrap_or(u32::MAX);
            Some(if done < half {
                format!(
                    "{so_far}; half of such searches end within {half} starts, in about {}",
                    elapsed(each * rest(half))
                )
            } else {
                format!(
                    "{so_far}, more than half of such searches take; 95 in 100 end within {most} starts, in at most {}",
                    elapsed(each * rest(most))
                )
            })
        }
        ResultKind::Soak | ResultKind::Verify => None,
    }
}

fn mean_length(store: &Store, row: &ResultRow) -> Option<Duration> {
    let trials = store.finished_trials(&row.id).ok()?;
    let all: Duration = trials.iter().map(|t| t.total_length()).sum();
    Some(all / u32::try_from(trials.len()).ok().filter(|n| *n > 0)?)
}
