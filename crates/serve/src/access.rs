//! Who may read the pages, and who may stop a run.
//!
//! Owns the decision alone, over the words of a request. Without a token the server listens on the
//! loopback only, and a request must name a loopback host: a page of another site that lets its name
//! mean 127.0.0.1 names its own. With one, every request brings it along: in a header, or in the
//! cookie that the first visit with `?token=` sets. A request that changes something also brings a
//! secret that only our own pages were told.

use sha2::{Digest, Sha256};

pub const COOKIE: &str = "loadline";

/// Shortest token: half of what a UUID holds.
const SHORTEST: usize = 16;

#[derive(Debug)]
pub struct AccessRules {
    token: Option<String>,
    /// What a request that changes something brings along.
    pub secret: String,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct AccessRequest<'a> {
    pub host: Option<&'a str>,
    pub authorization: Option<&'a str>,
    pub cookie: Option<&'a str>,
    pub token: Option<&'a str>,
    /// The header `X-Loadline-Secret`.
    pub secret: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessDecision {
    Granted,
    /// Yes, after the token has moved from the address to a cookie.
    WithCookie,
    ForeignHost,
    NoToken,
}

impl AccessRules {
    /// The rules with a token, or without one for a server that only this machine reaches.
    /// Errors: A token that is short or has other characters than letters, digits and `-._~`, which
    /// pass through addresses and cookies as they are.
    pub fn new(token: Option<String>) -> Result<Self, String> {
        if let Some(token) = &token {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            if token.len() < SHORTEST || !token.bytes().all(is_plain) {
                return Err(format!(
                    "a token has at least {SHORTEST} characters, of letters, digits and -._~"
                ));
            }
        }
        Ok(Self {
            token,
            secret: random_token()?,
        })
    }

    pub fn decide_access(&self, asked: &AccessRequest<'_>) -> AccessDecision {
        let Some(token) = &self.token else {
            return match asked.host.is_some_and(is_loopback) {
                true => AccessDecision::Granted,
                false => AccessDecision::ForeignHost,
            };
        };
        let bearer = asked.authorization.and_then(|a| a.strip_prefix("Bearer "));
        if [bearer, token_cookie(asked.cookie)]
            .into_iter()
            .flatten()
            .any(|given| is_same(given, token))
        {
            return AccessDecision::Granted;
        }
        match asked.token.is_some_and(|given| is_same(given, token)) {
            true => AccessDecision::WithCookie,
            false => AccessDecision::NoToken,
        }
    }

    pub fn may_change(&self, asked: &AccessRequest<'_>) -> bool {
        asked.secret.is_some_and(|s| is_same(s, &self.secret))
    }

    /// The cookie that stands for the token; `None` without one.
    pub fn set_cookie(&self) -> Option<String> {
        let token = self.token.as_ref()?;
        Some(format!(
            "{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
        ))
    }
}

/// Whether a `Host` names the loopback, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn token_cookie(header: Option<&str>) -> Option<&str> {
    let mut pairs = header?
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value)
}

/// Compares digests, so that the time it takes says nothing of the text.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// 32 hexadecimal digits of the kernel's random numbers.
fn random_token() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match read {
        Ok(16) => Ok(bytes.iter().map(|b| format!("{b:02x}")).collect()),
        Ok(_) => Err("the kernel gave too few random numbers".to_owned()),
        Err(error) => Err(format!("the kernel gave no random numbers: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn asked(host: &str) -> AccessRequest<'_> {
        AccessRequest {
            host: Some(host),
            ..AccessRequest::default()
        }
    }

    #[test]
    fn without_a_token_only_names_of_the_loopback_are_answered() {
        let access = AccessRules::new(None).expect("rules");
        for host in [
            "localhost",
            "LOCALHOST:7007",
            "127.0.0.1:7007",
            "127.1.2.3",
            "[::1]:7007",
            "[::1]",
        ] {
            assert_eq!(
                access.decide_access(&asked(host)),
                AccessDecision::Granted,
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "evil.example:7007",
            "localhost.evil.example",
            "10.0.0.1",
            "",
        ] {
            assert_eq!(
                access.decide_access(&asked(host)),
                AccessDecision::ForeignHost,
                "{host}"
            );
        }
        assert_eq!(
            access.decide_access(&AccessRequest::default()),
            AccessDecision::ForeignHost
        );
    }

    #[test]
    fn with_a_token_every_request_brings_it_along() {
        let access = AccessRules::new(Some(TOKEN.to_owned())).expect("rules");
        let with = |authorization, cookie, token| AccessRequest {
            host: Some("node-1:7007"),
            authorization,
            cookie,
            token,
            secret: None,
        };
        let bearer = format!("Bearer {TOKEN}");
        let jar = format!("a=b; {COOKIE}={TOKEN}");
        let wrong = format!("{COOKIE}=0123456789abcdeX");
        for (request, decision) in [
            (with(None, None, None), AccessDecision::NoToken),
            (
                with(Some("Bearer x"), Some(&wrong), Some("x")),
                AccessDecision::NoToken,
            ),
            (with(Some(TOKEN), None, None), AccessDecision::NoToken),
            (with(Some(&bearer), None, None), AccessDecision::Granted),
            (with(None, Some(&jar), None), AccessDecision::Granted),
            (with(None, None, Some(TOKEN)), AccessDecision::WithCookie),
        ] {
            assert_eq!(access.decide_access(&request), decision, "{request:?}");
        }
    }

    #[test]
    fn to_change_something_takes_the_secret_of_this_server() {
        let access = AccessRules::new(None).expect("rules");
        let other = AccessRules::new(None).expect("rules");
        let with = |secret| AccessRequest {
            secret,
            ..asked("localhost")
        };
        assert!(access.may_change(&with(Some(&access.secret))));
        assert!(!access.may_change(&with(Some(&other.secret))));
        assert!(!access.may_change(&with(None)));
    }

    #[test]
    fn a_token_that_does_not_pass_through_an_address_is_refused() {
        for wrong in ["short", "0123456789abcde ", "0123456789abcde;", ""] {
            assert!(AccessRules::new(Some(wrong.to_owned())).is_err(), "{wrong}");
        }
    }
}
