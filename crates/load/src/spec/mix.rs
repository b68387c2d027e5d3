//! The requests of a load: the one of the URL, or a mix with weights; their bodies and headers.
//!
//! Owns what goes together in them.

use std::path::Path;

use super::{LoadSpec, read, refuse_key, secret};
use crate::error::LoadError;
use crate::plan::{LoadPlan, RequestSpec, WeightedRequest};
use crate::profile::{LoadProfile, MixRequest};
use crate::template;

impl LoadSpec {
    /// The requests with weights, from the load or its profile; empty means the URL's.
    pub fn mix(&self) -> &[MixRequest] {
        match self.loaded_profile() {
            Some(profile) if self.request.is_empty() => &profile.requests,
            _ => &self.request,
        }
    }

    pub fn request_names(&self) -> Vec<String> {
        self.mix().iter().map(MixRequest::request_name).collect()
    }

    /// Share of all requests that the one of this name has, in [0, 1].
    pub fn request_share(&self, name: &str) -> f64 {
        let mix = self.mix();
        let Some(named) = mix.iter().find(|request| request.request_name() == name) else {
            return 0.0;
        };
        let alike = mix.iter().filter(|r| r.is_first == named.is_first);
        let share = named.weight / alike.map(|r| r.weight).sum::<f64>();
        let firsts = match (self.session_requests(), mix.iter().any(|r| r.is_first)) {
            (Some(requests), true) => 1.0 / requests,
            _ => 0.0,
        };
        if named.is_first {
            share * firsts
        } else {
            share * (1.0 - firsts)
        }
    }

    pub(super) fn check_mix(&self) -> Result<(), LoadError> {
        if self.url.is_none() {
            return Err(refuse_key(
                "url",
                "it is missing; write url = \"http://localhost:8080/\" (--url), or say that the program ends: ends = true (--job), or that its metrics judge it: [metrics] (--metric, --probe)",
            ));
        }
        let profile = self.loaded_profile();
        profile.map_or(Ok(()), LoadProfile::check_profile)?;
        if profile.is_some_and(|p| !p.requests.is_empty()) && !self.request.is_empty() {
            let why = "the profile has its own requests; leave one out";
            return Err(refuse_key("request", why));
        }
        if self.body.is_some() && self.body_file.is_some() {
            return Err(refuse_key(
                "body-file",
                "a body is given too; leave one out",
            ));
        }
        let has_own = self.method.is_some() || self.body.is_some() || self.body_file.is_some();
        if has_own && !self.mix().is_empty() {
            return Err(refuse_key(
                "method",
                "method and body belong to the URL's request, but a mix is sent instead; write \
                 them into its requests",
            ));
        }
        let names = self.request_names();
        for (at, request) in self.mix().iter().enumerate() {
            let name = &names[at];
            let problem = if !(request.weight > 0.0 && request.weight.is_finite()) {
                format!(
                    "the weight of `{name}` is {}; its share is its weight over the sum of all: \
                     write one above 0, or leave the request out",
                    request.weight
                )
            } else if names[..at].contains(name) {
                format!("two requests are called `{name}`; give each its own name")
            } else if !request.path.starts_with(['/', '{']) {
                format!("the path of `{name}` does not start with a slash; write /owners?page=1")
            } else if !request.body.is_empty() && request.body_file.is_some() {
                request.two_bodies()
            } else {
                continue;
            };
            return Err(refuse_key("request", &problem));
        }
        Ok(())
    }

    pub(super) fn url_request(&self) -> Result<RequestSpec, LoadError> {
        let (path, host) = match &self.url {
            Some(url) => (url.path.as_str(), Some(url.authority.clone())),
            None => ("/", None),
        };
        let headers = self.headers.iter();
        Ok(RequestSpec {
            method: self.method.clone().unwrap_or_else(|| "GET".to_owned()),
            host,
            headers: headers.map(|(n, v)| (n.clone(), v.clone())).collect(),
            body: self.body.clone().unwrap_or_default().into_bytes(),
            ..RequestSpec::for_get(path)
        })
    }

    pub(super) fn weighted_mix(&self, base: &RequestSpec) -> Vec<WeightedRequest> {
        let weighted = |request: &MixRequest| {
            let own = request.headers.iter();
            let own = own.map(|(name, value)| (name.clone(), value.clone()));
            WeightedRequest {
                name: request.request_name(),
                weight: request.weight,
                is_first: request.is_first,
                request: RequestSpec {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    host: base.host.clone(),
                    headers: base.headers.iter().cloned().chain(own).collect(),
                    body: request.body.clone().into_bytes(),
                },
            }
        };
        self.mix().iter().map(weighted).collect()
    }

    pub(super) fn fill_plan(&self, plan: &mut LoadPlan) -> Result<(), LoadError> {
        if let Some(path) = &self.body_file {
            plan.request.body = read_body_file(path)?;
        }
        for (weighted, request) in plan.mix.iter_mut().zip(self.mix()) {
            weighted.request.body = request.read_body()?;
        }
        let authorization = secret::authorization(self.basic.as_deref(), self.bearer.as_deref())?;
        let mix = plan.mix.iter_mut().map(|weighted| &mut weighted.request);
        for request in std::iter::once(&mut plan.request).chain(mix) {
            request.path = secret::fill_variables(&request.path, "url")?;
            for (_, value) in &mut request.headers {
                *value = secret::fill_variables(value, "headers")?;
            }
            // A body that is no text has no variables.
            if let Ok(text) = std::str::from_utf8(&request.body) {
                request.body = secret::fill_variables(text, "body")?.into_bytes();
            }
            if let Some(value) = &authorization {
                let header = ("Authorization".to_owned(), value.clone());
                request.headers.push(header);
            }
        }
        Ok(())
    }
}

impl MixRequest {
    /// The body, from its file if it has one. Errors: [`LoadError::Plan`] when the file cannot be
    /// read, or there are two bodies.
    pub(crate) fn read_body(&self) -> Result<Vec<u8>, LoadError> {
        match &self.body_file {
            None => Ok(self.body.clone().into_bytes()),
            Some(_) if !self.body.is_empty() => Err(refuse_key("body-file", &self.two_bodies())),
            Some(path) => read_body_file(path),
        }
    }

    fn two_bodies(&self) -> String {
        format!(
            "`{}` has a body and a body-file; leave one out",
            self.request_name()
        )
    }
}

fn read_body_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    let bytes = read(path, "body-file")?;
    let beside = path.parent().unwrap_or(path);
    Ok(match String::from_utf8(bytes) {
        Ok(text) => template::absolute_tables(&text, beside).into_bytes(),
        Err(binary) => binary.into_bytes(),
    })
}
