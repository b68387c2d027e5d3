//! Users in place of connections that stay: the part of a plan that says how long their sessions and
//! pauses are.
//!
//! Owns what goes together with them. Who a user is and what one keeps is [`User`]'s; who sends which
//! request is the thread's (`shard`). Model: partly-open (Schroeder, Wierman, Harchol-Balter, "Open
//! versus closed: a cautionary tale", NSDI 2006), with the requests on the schedule, not the arrivals.

use std::time::Duration;

use loadline_analysis::wire::nanos;
use serde::{Deserialize, Serialize};

use super::{LoadModel, LoadPlan};
use crate::error::LoadError;
use crate::user::User;

/// A pause between an answer and the next request, drawn evenly between two bounds for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkTime {
    #[serde(rename = "from_ns", with = "nanos")]
    pub from: Duration,
    #[serde(rename = "to_ns", with = "nanos")]
    pub to: Duration,
}

/// Users: each has a connection and cookies, sends one request at a time, pauses between requests,
/// and leaves when the session is over. An open model keeps its schedule: a due request goes to the
/// user with the longest finished pause, else to a new user, and when all connections are taken to
/// the user with the earliest end of the pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// Requests of a session on average; at least 1.
    pub requests: f64,
    /// Users from the load before this one ([`crate::LoadOutcome::users`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present: Vec<User>,
}

pub(super) fn check_users(plan: &LoadPlan) -> Result<(), LoadError> {
    let refuse = |field, why: &str| Err(LoadError::plan(field, why));
    let is_open = matches!(plan.model, LoadModel::Open { .. });
    if plan.think.is_some() && is_open && plan.users.is_none() {
        return refuse(
            "think",
            "in an open model the schedule decides when requests are sent; pauses need sessions: \
             give their length (--session 8), or leave it out",
        );
    }
    let firsts = plan.mix.iter().filter(|w| w.is_first).count();
    let Some(users) = &plan.users else {
        return match firsts {
            0 => Ok(()),
            _ => refuse(
                "request",
                "`first` needs sessions: give their length (--session 8), or leave `first` out",
            ),
        };
    };
    if !(1.0..=1e9).contains(&users.requests) {
        return refuse("session", "a session has at least 1 request; write 8");
    }
    if plan.http2.is_some() {
        return refuse(
            "session",
            "each user has a connection, and requests of HTTP/2 share theirs: sessions need \
                 HTTP/1.1; leave http2 and streams out",
        );
    }
    if firsts > 0 && firsts == plan.mix.len() {
        return refuse(
            "request",
            "every request is the first of a session; leave `first` out of the later ones",
        );
    }
    let headers = plan.weighted_requests().into_iter();
    let mut headers = headers.flat_map(|(_, r)| &r.headers);
    if headers.any(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
        return refuse(
            "session",
            "users send the cookies that the server sets, but a request already has a Cookie \
                 header; leave one out",
        );
    }
    Ok(())
}
