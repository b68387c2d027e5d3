//! Users on the connections of a thread: who comes, who pauses, who leaves.
//!
//! Owns which connection a request that is due goes to, where connections are users, so that the
//! schedule is kept whatever they do. What a user keeps is [`User`]'s.

use std::cmp::Reverse;

use super::{FreePlace, Shard, duration_ns};
use crate::plan::{LoadModel, Users};
use crate::user::User;

impl Shard<'_> {
    /// Seats the present users. The other connections have no user yet in an open model; in a
    /// closed one each gets a new user.
    pub(super) fn seat(&mut self, users: &Users, index: u32) {
        let step = self.plan.shard_count() as usize;
        let mut present = users.present.iter().skip(index as usize).step_by(step);
        let is_closed = !matches!(self.plan.model, LoadModel::Open { .. });
        for connection in &mut self.connections {
            let arriving = || User::with_mean_requests(users.requests, &mut self.thinking);
            let user = present.next().cloned();
            connection.user = user.or_else(|| is_closed.then(arriving));
        }
    }

    pub(super) fn vacate_connections(&mut self) {
        if self.plan.users.is_none() {
            return;
        }
        let connections = &self.connections;
        let is_seated = |free: &FreePlace| connections[free.connection as usize].user.is_some();
        let vacant = self.ready.iter().filter(|free| !is_seated(free));
        self.vacant = vacant.map(|free| free.connection).collect();
        self.ready.retain(is_seated);
    }

    pub(super) fn has_free(&self) -> bool {
        !self.ready.is_empty() || !self.vacant.is_empty() || self.may_cut()
    }

    /// A schedule may end pauses early, when a request is due; a closed model never does.
    fn may_cut(&self) -> bool {
        let is_open = matches!(self.plan.model, LoadModel::Open { .. });
        is_open && self.plan.users.is_some() && !self.paused.is_empty()
    }

    pub(super) fn take_free(&mut self, phase: usize) -> Option<FreePlace> {
        if let Some(free) = self.ready.pop_front() {
            return Some(free);
        }
        if let Some(connection) = self.vacant.pop() {
            return Some(FreePlace {
                connection,
                since: 0,
            });
        }
        if !self.may_cut() {
            return None;
        }
        let Reverse((since, connection)) = self.paused.pop()?;
        self.interval.totals[phase].cut_pauses += 1;
        Some(FreePlace { connection, since })
    }

    /// Counts a request of the user of a connection, creating the user if there is none; returns
    /// whether it is the first of a session.
    pub(super) fn count_request_of_user(&mut self, id: u32, phase: usize) -> bool {
        let Some(users) = &self.plan.users else {
            return false;
        };
        let user = &mut self.connections[id as usize].user;
        let user = user
            .get_or_insert_with(|| User::with_mean_requests(users.requests, &mut self.thinking));
        user.left -= 1;
        self.interval.totals[phase].sessions += u64::from(user.is_new);
        std::mem::take(&mut user.is_new)
    }

    /// Ends the session of a connection after its user's last request. In a closed model the next
    /// user comes at once; in an open one when a request is due and no other user is ready. Returns
    /// whether the connection has no user now.
    pub(super) fn part_with(&mut self, id: u32) -> bool {
        let connection = &mut self.connections[id as usize];
        let (Some(users), Some(user)) = (&self.plan.users, &connection.user) else {
            return false;
        };
        if user.left > 0 {
            return false;
        }
        connection.close_socket();
        let is_open = matches!(self.plan.model, LoadModel::Open { .. });
        connection.user =
            (!is_open).then(|| User::with_mean_requests(users.requests, &mut self.thinking));
        if is_open {
            self.vacant.push(id);
        }
        is_open
    }

    /// Users with unfinished sessions, for the load that comes after this one.
    pub(super) fn present_users(self) -> Vec<User> {
        let users = self.connections.into_iter().filter_map(|c| c.user);
        users.filter(|user| user.left > 0).collect()
    }

    pub(super) fn next_pause(&mut self) -> u64 {
        let Some(think) = self.plan.think else {
            return 0;
        };
        let spread = think.to.saturating_sub(think.from);
        duration_ns(think.from) + self.thinking.next_up_to(duration_ns(spread))
    }
}
