//! Who may read the pages, and who may stop a run.
//!
//! Owns the decision alone, over the words of a request. Every request brings the token along in a
//! header, or the value of a session in the cookie that the first visit with `?token=` sets, also on
//! the loopback: an application with the machine's network is a visitor like others. A request that
//! changes something also brings a secret that only our own pages contain.
//!
//! Facts: a cookie goes to every port of its host (RFC 6265, section 8.5), so it holds no token, and
//! its name is the port's; a page of another site has no cookie of ours, by whatever name it reaches
//! this server (DNS rebinding).

use sha2::{Digest, Sha256};

use crate::http::RequestHead;

/// Shortest token: half of what a UUID holds.
const SHORTEST: usize = 16;

#[derive(Debug)]
pub struct AccessRules {
    pub token: String,
    session: String,
    /// What a request that changes something brings along.
    pub(crate) secret: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    Granted,
    /// Yes, after the token has moved from the address to a cookie.
    WithCookie,
    NoToken,
}

impl AccessRules {
    /// The rules with this token, or one made up.
    ///
    /// # Errors
    /// A token that is short or has other characters than letters, digits and `-._~`, which pass
    /// through addresses as they are.
    pub fn new(token: Option<String>) -> Result<Self, String> {
        let token = token.map_or_else(random_token, Ok)?;
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        if token.len() < SHORTEST || !token.bytes().all(is_plain) {
            return Err(format!(
                "a token has at least {SHORTEST} characters, of letters, digits and -._~"
            ));
        }
        Ok(Self {
            token,
            session: random_token()?,
            secret: random_token()?,
        })
    }

    pub(crate) fn decide_access(&self, asked: &RequestHead) -> AccessDecision {
        let is_token = |given: &str| is_same(given, &self.token);
        if asked.token.as_deref().is_some_and(is_token) {
            return AccessDecision::WithCookie;
        }
        let authorization = asked.authorization.as_deref();
        let bearer = authorization.and_then(|a| a.strip_prefix("Bearer "));
        if bearer.is_some_and(is_token) || self.has_session(asked) {
            AccessDecision::Granted
        } else {
            AccessDecision::NoToken
        }
    }

    fn has_session(&self, asked: &RequestHead) -> bool {
        let name = cookie_name(asked);
        let cookies = asked.cookie.as_deref().unwrap_or_default().split(';');
        cookies
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(of, value)| of == name && is_same(value, &self.session))
    }

    pub(crate) fn may_change(&self, asked: &RequestHead) -> bool {
        let secret = asked.secret.as_deref();
        secret.is_some_and(|s| is_same(s, &self.secret))
    }

    pub(crate) fn session_cookie(&self, asked: &RequestHead) -> String {
        let (name, session) = (cookie_name(asked), &self.session);
        let secure = if asked.is_over_tls { "; Secure" } else { "" };
        format!("{name}={session}; HttpOnly; SameSite=Strict; Path=/{secure}")
    }
}

fn cookie_name(asked: &RequestHead) -> String {
    let host = asked.host.as_deref().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    match port.parse::<u16>() {
        Ok(port) => format!("loadline-{port}"),
        Err(_) => "loadline".to_owned(),
    }
}

/// Compares digests, so that the duration does not depend on the text.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// 32 hexadecimal digits of the kernel's random numbers.
fn random_token() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    loadline_sys::fill_random(&mut bytes)
        .map_err(|error| format!("the kernel gave no random numbers: {error}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn rules() -> AccessRules {
        AccessRules::new(Some(TOKEN.to_owned())).expect("rules")
    }

    fn asked(host: &str) -> RequestHead {
        RequestHead {
            host: Some(host.to_owned()),
            ..RequestHead::default()
        }
    }

    #[test]
    fn every_request_brings_the_token_or_the_session_along_whatever_host_it_names() {
        let access = rules();
        for host in ["localhost", "127.0.0.1:7007", "[::1]", "evil.example", ""] {
            let bare = asked(host);
            assert_eq!(
                access.decide_access(&bare),
                AccessDecision::NoToken,
                "{host}"
            );
            let bearer = |text: &str| RequestHead {
                authorization: Some(text.to_owned()),
                ..asked(host)
            };
            let granted = access.decide_access(&bearer(&format!("Bearer {TOKEN}")));
            assert_eq!(granted, AccessDecision::Granted, "{host}");
            for wrong in ["Bearer x", TOKEN, "Bearer ", "Bearer 0123456789abcdeX"] {
                let decision = access.decide_access(&bearer(wrong));
                assert_eq!(decision, AccessDecision::NoToken, "{host} {wrong}");
            }
        }
    }

    #[test]
    fn a_link_sets_a_cookie_without_the_token_that_counts_for_its_port_only() {
        let access = rules();
        let link = RequestHead {
            token: Some(TOKEN.to_owned()),
            ..asked("node-1:7007")
        };
        assert_eq!(access.decide_access(&link), AccessDecision::WithCookie);
        let cookie = access.session_cookie(&link);
        assert!(!cookie.contains(TOKEN), "{cookie}");
        let (pair, rest) = cookie.split_once("; ").expect("attributes");
        assert!(pair.starts_with("loadline-7007="), "{pair}");
        assert_eq!(rest, "HttpOnly; SameSite=Strict; Path=/");
        let over_tls = RequestHead {
            is_over_tls: true,
            ..asked("node-1")
        };
        let secure = access.session_cookie(&over_tls);
        assert!(
            secure.starts_with("loadline=") && secure.ends_with("; Secure"),
            "{secure}"
        );
        let with = |cookie: String, host| RequestHead {
            cookie: Some(cookie),
            ..asked(host)
        };
        let decide = |cookie: String, host| access.decide_access(&with(cookie, host));
        assert_eq!(
            decide(format!("a=b; {pair}"), "node-1:7007"),
            AccessDecision::Granted
        );
        assert_eq!(
            decide(pair.to_owned(), "node-1:7008"),
            AccessDecision::NoToken
        );
        assert_eq!(
            decide(format!("{pair}0"), "node-1:7007"),
            AccessDecision::NoToken
        );
        let token = format!("loadline-7007={TOKEN}");
        assert_eq!(decide(token, "node-1:7007"), AccessDecision::NoToken);
        let other = rules().session_cookie(&link);
        assert_eq!(
            decide(other, "node-1:7007"),
            AccessDecision::NoToken,
            "of another server"
        );
    }

    #[test]
    fn to_change_something_takes_the_secret_of_this_server() {
        let (access, other) = (rules(), rules());
        let with = |secret: Option<&str>| RequestHead {
            secret: secret.map(str::to_owned),
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
        let made = AccessRules::new(None).expect("rules");
        assert_eq!(made.token.len(), 32, "made up where none is given");
    }
}
