//! `loadline proxy-part` (hidden): the proxy before the dependencies of a trial. All of it is in
//! [`loadline_host::proxy_part`].

use loadline_host::proxy_part;

use crate::error::{Error, ErrorKind, Outcome};

/// Reads orders from stdin, writes answers to stdout.
pub fn run() -> Result<Outcome, Error> {
    proxy_part(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| Outcome::Done)
        .map_err(|e| Error::new(ErrorKind::Environment, format!("the proxy: {e}")))
}
