//! A load that another program makes, and the keys of `[load]` that it can be combined with.

use super::text::RateShape;
use super::{LoadSpec, refuse_key};
use crate::error::LoadError;

/// Keys that the command decides in its own way.
const ITS_OWN: &str = "peak profile request method headers basic bearer body body-file proto requests closed \
    poisson think session scale speed connections http2 streams connect-timeout read-timeout \
    pacing cacert expect-body expect-bytes";

/// Keys about requests that a command can be combined with.
const BESIDE_COMMAND: &str = "rate command timeout insecure expect-status expect-grpc-status";

impl LoadSpec {
    /// Commands for an application without requests, by key.
    pub fn consumer_commands(&self) -> [(&'static str, &[String]); 2] {
        [("backlog", &self.backlog), ("drive", &self.drive)]
    }

    /// Refuses what is about requests, where there are none.
    pub fn refuse_requests(&self) -> Result<(), LoadError> {
        for (field, words) in self.consumer_commands() {
            if words.first().is_some_and(String::is_empty) {
                let why = "its first word is empty; write the program and its arguments: [\"./produce\", \"500\"]";
                return Err(refuse_key(field, why));
            }
        }
        let mut about_requests = ITS_OWN.split(' ').chain(BESIDE_COMMAND.split(' '));
        match about_requests.find(self.has_key()) {
            Some(field) => Err(refuse_key(
                field,
                "it is about requests, but without a URL no requests are sent; leave it out, or write url = \"http://localhost:8080/\" (--url)",
            )),
            None => Ok(()),
        }
    }

    fn has_key(&self) -> impl Fn(&&'static str) -> bool {
        let said = serde_json::to_value(self).unwrap_or_default();
        move |field| said.get(*field).is_some_and(|value| !value.is_null())
    }

    pub(super) fn check_command(&self) -> Result<(), LoadError> {
        let given = self.consumer_commands().into_iter();
        let mut given = given.filter(|(_, words)| !words.is_empty());
        if let (Some((field, _)), Some(_)) = (given.next(), &self.url) {
            let why = "it is for an application without requests, but there is a URL; leave out the URL, or let a command send requests: command = [...] (--load)";
            return Err(refuse_key(field, why));
        }
        let Some(program) = self.command.first() else {
            return Ok(());
        };
        if program.is_empty() {
            let why = "its first word is empty; write command = [\"k6\", \"run\", \"checkout.js\"] (--load 'k6 run checkout.js')";
            return Err(refuse_key("command", why));
        }
        if let Some(field) = ITS_OWN.split(' ').find(self.has_key()) {
            let why = "a command makes the load and decides this itself; leave it out";
            return Err(refuse_key(field, why));
        }
        if self.url.as_ref().is_some_and(|url| url.is_tls) {
            let why = "it is https, but loadline cannot time exchanges inside TLS; let the service listen without TLS for the trial: http://localhost:8080";
            return Err(refuse_key("url", why));
        }
        let names_rate = self.command.iter().any(|word| word.contains("{rate}"));
        match &self.rate {
            None if names_rate => Err(refuse_key(
                "rate",
                "the command uses {rate}, but there is no rate; write rate = \"200/s\" (--rate 200/s)",
            )),
            Some(RateShape::Ramp(..) | RateShape::Steps(_)) => Err(refuse_key(
                "rate",
                "a command takes a single rate; write rate = \"200/s\" (--rate 200/s)",
            )),
            _ => Ok(()),
        }
    }
}
