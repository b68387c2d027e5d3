//! One user of a load with sessions: the cookies that the server set, and how long the user stays.
//!
//! Owns the parts of RFC 6265 that a client of a single server needs: names, values, paths (§5.1.4)
//! and removal by Max-Age or Expires (§5.2). Domain and Secure are ignored, because all requests go
//! to the server that set the cookie; lifetimes are ignored, because sessions are shorter. The
//! server is not trusted: stored data are bounded. Knows no connection and no schedule.

use std::fmt;
use std::time::SystemTime;

use loadline_analysis::random::RandomStream;
use serde::{Deserialize, Serialize};

/// Cookies kept; RFC 6265 §6.1 asks for at least 50 of a domain.
const MOST: usize = 50;
/// Octets of names and values kept: longer ones would not fit the head that servers accept.
const LONGEST: usize = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub(crate) cookies: Cookies,
    pub(crate) left: u64,
    pub(crate) is_new: bool,
}

impl User {
    /// A user with this mean number of requests in a session: each may be the last with the same
    /// probability, as in partly-open models (Schroeder et al., NSDI 2006).
    pub(crate) fn with_mean_requests(mean: f64, random: &mut RandomStream) -> Self {
        let more = if mean > 1.0 {
            random.uniform_open().ln() / (1.0 - 1.0 / mean).ln()
        } else {
            0.0
        };
        Self {
            cookies: Cookies::default(),
            left: 1 + more as u64,
            is_new: true,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Cookies(pub(crate) Vec<Cookie>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cookie {
    name: String,
    value: String,
    path: String,
}

// A session's cookie is a credential.
impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cookies", self.0.len())
    }
}

impl Cookies {
    /// Takes a `Set-Cookie` field of the answer to a request for `target`. One that is malformed,
    /// holds other than ASCII, or finds no room, is passed over.
    pub(crate) fn store_cookie(&mut self, field: &[u8], target: &str) {
        let Some((new, is_removed)) = parse_cookie(field, target) else {
            return;
        };
        self.0
            .retain(|old| (&old.name, &old.path) != (&new.name, &new.path));
        let held: usize = self.0.iter().map(Cookie::byte_length).sum();
        if is_removed || self.0.len() == MOST || held + new.byte_length() > LONGEST {
            return;
        }
        let before = |old: &Cookie| old.path.len() >= new.path.len();
        let at = self.0.partition_point(before);
        self.0.insert(at, new);
    }

    pub(crate) fn write(&self, target: &str, out: &mut Vec<u8>) {
        let path = without_query(target);
        let mut lead = "Cookie: ";
        for cookie in self.0.iter().filter(|c| c.is_for(path)) {
            for part in [lead, &cookie.name, "=", &cookie.value] {
                out.extend_from_slice(part.as_bytes());
            }
            lead = "; ";
        }
        if lead == "; " {
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl Cookie {
    fn byte_length(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len()
    }

    /// RFC 6265 §5.1.4.
    fn is_for(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.path);
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        })
    }
}

fn parse_cookie(field: &[u8], target: &str) -> Option<(Cookie, bool)> {
    let text = std::str::from_utf8(field).ok()?;
    let is_plain = text.bytes().all(|b| (b' '..=b'~').contains(&b));
    let mut parts = text.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !is_plain {
        return None;
    }
    let path = without_query(target);
    // RFC 6265 §5.1.4: the directory of the request.
    let mut path = match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    };
    let (mut max_age, mut expires) = (None, None);
    for attribute in parts {
        let (key, of) = attribute.split_once('=').unwrap_or((attribute, ""));
        let of = of.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "path" if of.starts_with('/') => path = of,
            "max-age" => max_age = of.parse::<i64>().ok().or(max_age),
            "expires" => expires = httpdate::parse_http_date(of).ok().or(expires),
            _ => {}
        }
    }
    let is_past = expires.is_some_and(|at| at <= SystemTime::now());
    let cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        path: path.to_owned(),
    };
    // Max-Age has precedence (§5.3).
    Some((cookie, max_age.map_or(is_past, |seconds| seconds <= 0)))
}

fn without_query(target: &str) -> &str {
    target.split('?').next().unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cookies sent with a request for `target` after an answer to `/shop/cart?x=/1` set these.
    fn sent(fields: &[&str], target: &str) -> String {
        let mut cookies = Cookies::default();
        for field in fields {
            cookies.store_cookie(field.as_bytes(), "/shop/cart?x=/1");
        }
        let mut line = Vec::new();
        cookies.write(target, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn what_was_set_is_sent_where_it_belongs() {
        let fields = [
            "JSESSIONID=0F3; Path=/shop; HttpOnly; Secure",
            "all=1; path=/",
            " here = 2 ",
        ];
        let here = "Cookie: JSESSIONID=0F3; here=2; all=1\r\n";
        assert_eq!(sent(&fields, "/shop/orders?id=7"), here);
        assert_eq!(sent(&fields, "/shop"), here);
        assert_eq!(sent(&fields, "/shopping"), "Cookie: all=1\r\n");
        assert_eq!(sent(&fields[..1], "/"), "");
    }

    #[test]
    fn one_is_replaced_and_removed_by_its_name_and_path() {
        assert_eq!(sent(&["a=1", "a=2"], "/shop/"), "Cookie: a=2\r\n");
        for removal in [
            "a=; Max-Age=0",
            "a=; Max-Age=-1; Expires=Fri, 31 Dec 9999 23:59:59 GMT",
            "a=gone; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ] {
            assert_eq!(sent(&["a=1", removal], "/shop/"), "", "{removal}");
            assert_eq!(sent(&["a=1; Path=/", removal], "/shop/"), "Cookie: a=1\r\n");
        }
        let kept = "a=3; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        assert_eq!(sent(&[kept], "/shop/"), "Cookie: a=3\r\n");
    }

    #[test]
    fn a_server_cannot_fill_the_memory_or_break_the_line() {
        for field in ["", "=1", "a", "a=1\u{7f}", "a=\t1", "a=\u{e9}"] {
            assert_eq!(sent(&[field], "/shop/"), "", "{field:?}");
        }
        let mut cookies = Cookies::default();
        for n in 0..10_000 {
            let many = format!("name{n}={}", "v".repeat(n % 3_000));
            cookies.store_cookie(many.as_bytes(), "/");
        }
        let held: usize = cookies.0.iter().map(Cookie::byte_length).sum();
        assert!(cookies.0.len() <= MOST && held <= LONGEST, "{held}");
        assert!(!cookies.0.is_empty());
    }

    #[test]
    fn sessions_have_the_mean_asked_for() {
        let mut random = RandomStream::from_seed(3);
        for mean in [1.0, 1.5, 8.0, 400.0] {
            let n = 100_000;
            let all: u64 = (0..n)
                .map(|_| User::with_mean_requests(mean, &mut random).left)
                .sum();
            let found = all as f64 / f64::from(n);
            assert!((found / mean - 1.0).abs() < 0.02, "{found} for {mean}");
        }
    }

    #[test]
    fn nothing_of_a_cookie_is_shown() {
        let mut user = User::with_mean_requests(1.0, &mut RandomStream::from_seed(1));
        user.cookies.store_cookie(b"token=secret", "/");
        assert!(!format!("{user:?}").contains("secret"), "{user:?}");
    }
}
