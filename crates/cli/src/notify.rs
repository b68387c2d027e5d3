//! `--notify URL`: a webhook call at the end of a run.
//!
//! Owns the message and its sending. An unreachable webhook is a warning: the measurement stands.
//! The address is a secret with most services, so it is never printed or stored.

use std::time::Duration;

use loadline_client::{Agent, Trust, agent};
use loadline_load::spec::read_credential;
use loadline_report::content::headline;
use loadline_report::text::one_line;
use loadline_runner::store::{ResultRow, Store};
use serde::Serialize;

use crate::error::Error;
use crate::result::stored_view;
use crate::say::one_line_json;

/// A webhook answers at once or not at all.
const TIMEOUT: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;

pub struct Webhook {
    agent: Agent,
    url: String,
}

pub fn address(text: &str) -> Result<String, Error> {
    read_credential(text, "notify").map_err(Error::from)
}

/// The message. Slack, Mattermost, Teams' workflows and others show `text`.
#[derive(Serialize)]
struct WebhookMessage<'a> {
    text: String,
    result: &'a str,
    title: &'a str,
    kind: &'static str,
    status: &'static str,
}

impl Webhook {
    /// The address: a URL, {env:NAME} or @FILE that hold it. Nothing is sent yet.
    /// Errors: What it names cannot be read, or is no address.
    pub fn new(text: &str) -> Result<Self, Error> {
        let url = address(text)?;
        let agent = agent("--notify", &url, &Trust::default(), TIMEOUT);
        let agent = agent.map_err(Error::from_wrong_input)?;
        Ok(Self { agent, url })
    }

    pub fn tell_status(&self, store: &Store, result: &str) {
        let told = message(store, result).and_then(|text| self.send_text(&text));
        if let Err(error) = told {
            say!("warning: --notify: {}", error.message());
        }
    }

    fn send_text(&self, text: &str) -> Result<(), Error> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let request = self.agent.post(&self.url);
            let request = request.header("Content-Type", "application/json");
            match request.send(text) {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => why = format!("it answered with status {}", answer.status().as_u16()),
                Err(error) => why = error.to_string(),
            }
        }
        let problem = format!("the webhook was not reached ({TRIES} tries): {why}");
        Err(Error::environment(problem))
    }
}

fn message(store: &Store, result: &str) -> Result<String, Error> {
    let row: ResultRow = store.result_by_prefix(result)?;
    let headline = headline(&stored_view(store, &row)?);
    let title = one_line(&row.title);
    one_line_json(&WebhookMessage {
        text: format!("{title}: {}", one_line(&headline.sentence)),
        result,
        title: &title,
        kind: row.kind.command_name(),
        status: row.status.status_word(),
    })
}
