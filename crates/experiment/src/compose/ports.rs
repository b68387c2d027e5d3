//! Ports of a service, in the short and the long form, with ranges.
//!
//! Owns which ports a trial can use: TCP only. Source: compose-spec, `05-services.md`, `ports`.

use std::collections::BTreeSet;

use loadline_protocol::RunRefusal;
use serde_json::Value;

use super::service::{ServiceLocation, ServicePort, Table, scalar};
use crate::advice::fields::list_items;

pub(super) fn ports(
    table: &Table,
    at: &ServiceLocation<'_>,
) -> Result<Vec<ServicePort>, RunRefusal> {
    let list = |key: &str| {
        table
            .get(key)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let exposed = list("expose").into_iter().map(|value| (false, value));
    let published = list("ports").into_iter().map(|value| (true, value));
    let (mut all, mut wrong) = (Vec::<ServicePort>::new(), Vec::new());
    for (is_published, value) in published.chain(exposed) {
        let found = match &value {
            Value::Object(one) => port_of(one, at)?,
            text => short_ports(&at.check_plain_text("ports", text)?, is_published),
        };
        match found {
            None => wrong.push(format!("`{}`", scalar(&value).unwrap_or(value.to_string()))),
            Some(found) => all.extend(found),
        }
    }
    if !wrong.is_empty() {
        let why = format!(
            "{} is not a port that loadline understands",
            wrong.join(", ")
        );
        return Err(at.refuse_service(why, "write \"5432:5432\" or \"5432\""));
    }
    let mut seen = BTreeSet::new();
    all.retain(|port| seen.insert(port.target));
    Ok(all)
}

/// The ports of a service that a load may ask at, as far as they are understood.
pub(crate) fn guess_ports(service: &Value) -> Vec<u16> {
    let text = |port: &Value| match port {
        Value::Object(long) => {
            let protocol = long.get("protocol").and_then(Value::as_str);
            let target = scalar(long.get("target")?)?;
            Some(format!("{target}/{}", protocol.unwrap_or("tcp")))
        }
        short => scalar(short),
    };
    let texts = list_items(service, "ports").filter_map(text);
    let ports = texts.filter_map(|text| short_ports(&text, false)).flatten();
    ports.map(|port| port.target).collect()
}

/// `[IP:][PUBLISHED:]TARGET[/tcp]`, each also a range; none for UDP, which no trial asks at.
fn short_ports(text: &str, is_published: bool) -> Option<Vec<ServicePort>> {
    let (text, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let mut parts = text.rsplit(':');
    let targets = port_range(parts.next()?)?;
    let published = parts.next().filter(|text| is_published && !text.is_empty());
    let published = match published {
        Some(text) => Some(port_range(text)?),
        None => None,
    };
    if protocol != "tcp" {
        return Some(Vec::new());
    }
    let port = |(at, target): (usize, u16)| ServicePort {
        target,
        // A range for one port is a choice of compose.
        published: published.as_ref().and_then(|all| all.get(at)).copied(),
    };
    Some(targets.into_iter().enumerate().map(port).collect())
}

fn port_range(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last - first < MOST_PORTS).then(|| (first..=last).collect())
}

const MOST_PORTS: u16 = 1000;

fn port_of(one: &Table, at: &ServiceLocation<'_>) -> Result<Option<Vec<ServicePort>>, RunRefusal> {
    let text = |key: &str| at.optional_text("ports", one.get(key));
    let (published, protocol) = (text("published")?, text("protocol")?);
    let both = [published, text("target")?].into_iter();
    let joined = both.flatten().collect::<Vec<_>>().join(":");
    let protocol = protocol.unwrap_or_else(|| "tcp".to_owned());
    Ok(short_ports(&format!("{joined}/{protocol}"), true))
}
