//! URLs of targets: `http://host:port/path?query`, and the addresses behind them.
//!
//! Owns the text form. Only http and https are read; user names and fragments are refused, since a request
//! never carries them.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;

use crate::error::LoadError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadTarget {
    pub host: String,
    pub is_tls: bool,
    pub port: u16,
    pub path: String,
    pub authority: String,
}

impl FromStr for LoadTarget {
    type Err = LoadError;

    fn from_str(url: &str) -> Result<Self, LoadError> {
        let refuse = |why: &str| {
            let example = "http://localhost:8080/owners?page=1";
            LoadError::plan("URL", format!("`{url}` {why}; write for example {example}"))
        };
        let url = url.trim();
        let (is_tls, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err(refuse("is not an http URL")),
            None => (false, url),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(refuse("contains a user name; send it with --header"));
        }
        if path.contains('#') {
            return Err(refuse("contains a fragment, which is never sent"));
        }
        if path.bytes().any(|b| b < b' ' || b == 0x7f) || has_blank(path) {
            return Err(refuse(
                "has a path with blanks or control characters; encode them, for example as %20",
            ));
        }
        let (host, port) = split_port(authority).ok_or_else(|| refuse(wrong_port(authority)))?;
        if host.is_empty() {
            return Err(refuse("has no host"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            host: host.to_owned(),
            is_tls,
            port: port.unwrap_or(if is_tls { 443 } else { 80 }),
            path: format!("{slash}{path}"),
            authority: authority.to_owned(),
        })
    }
}

impl fmt::Display for LoadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// The URL of an instance, where a key takes a file or an instance.
pub fn instance_url(path: &Path) -> Option<&str> {
    let schemes = ["http://", "https://"];
    let text = path.to_str()?;
    let is_url = schemes.iter().any(|scheme| text.starts_with(scheme));
    is_url.then_some(text)
}

fn has_blank(path: &str) -> bool {
    let mut depth = 0_u32;
    path.bytes().any(|b| {
        match b {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        b == b' ' && depth == 0
    })
}

fn wrong_port(authority: &str) -> &'static str {
    let is_bare = !authority.starts_with('[');
    match authority.split_once(':') {
        _ if is_bare && authority.matches(':').count() > 1 => {
            "has an IPv6 address without brackets: http://[::1]:8080/"
        }
        Some((_, "")) | None => "has no port number",
        Some(_) => "has a port that is no number from 1 to 65535",
    }
}

fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, rest) = v6.split_once(']')?;
            let port = match rest {
                "" => None,
                _ => Some(rest.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port {
        None => Some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port > 0)?))),
    }
}

impl LoadTarget {
    /// The target address: the first that accepts a connection. Errors: [`LoadError::UnknownHost`]
    /// when the name is unknown, [`LoadError::Target`] when nothing listens.
    pub fn resolve_address(&self) -> Result<SocketAddr, LoadError> {
        self.connect().map(|(address, _)| address)
    }

    pub(crate) fn connect(&self) -> Result<(SocketAddr, TcpStream), LoadError> {
        let refuse = |why: std::io::Error| LoadError::Target {
            authority: self.authority.clone(),
            why: why.to_string(),
        };
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|why| LoadError::UnknownHost {
                authority: self.authority.clone(),
                why: why.to_string(),
            })?;
        let mut last = std::io::Error::other("the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => return Ok((address, stream)),
                Err(error) => last = error,
            }
        }
        Err(refuse(last))
    }
}

const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_give_host_port_and_path() {
        for (url, host, port, path) in [
            ("http://a/", "a", 80, "/"),
            ("http://a:81", "a", 81, "/"),
            ("a:82/x?y=z", "a", 82, "/x?y=z"),
            ("HTTP://[::1]:83?q", "::1", 83, "/?q"),
            ("http://[::1]", "::1", 80, "/"),
            ("https://a/b", "a", 443, "/b"),
            (" http://a/ ", "a", 80, "/"),
        ] {
            let target: LoadTarget = url.parse().unwrap();
            assert_eq!(
                (target.host.as_str(), target.port, target.path.as_str()),
                (host, port, path)
            );
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_refused() {
        for url in [
            "ftp://a/",
            "http://",
            "http://a:x/",
            "http://u@a/",
            "http://a/#f",
            "http://[::1/",
            "http://a:99999/",
            "http://a:0/",
            "http://::1:80/",
            "http://a/b c",
        ] {
            assert!(url.parse::<LoadTarget>().is_err(), "{url}");
        }
    }
}
