//! Requests as bytes: fixed ones are rendered once before the load begins, those with variables
//! into the memory of their connection.
//!
//! Owns the choice from a mix (seeded), and the form of a request in both versions of HTTP.

use loadline_analysis::random::RandomStream;

use crate::error::LoadError;
use crate::http2::{FixedFields, HeaderFields, HpackEncoder};
use crate::plan::{LoadPlan, RequestSpec, check_request};
use crate::schedule::shard_seed;
use crate::template::{TemplateVariables, TextTemplate, ValueEncoding, push_number};
use crate::user::User;

pub(crate) struct CompiledRequests {
    requests: Vec<CompiledRequest>,
    /// The requests within a session, and the requests that start one; empty means no separate
    /// ones.
    following: WeightedDraw,
    first: WeightedDraw,
    variables: TemplateVariables,
    random: RandomStream,
    fixed: FixedFields,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct WeightedDraw {
    /// Each request and the sum of the shares up to it, the last one 1.
    shares: Vec<(usize, f64)>,
}

struct CompiledRequest {
    is_head: bool,
    bytes: RequestBytes,
}

enum RequestBytes {
    Fixed(Vec<u8>),
    /// The head up to the value of Content-Length (or its end), and the body.
    Templated {
        head: TextTemplate,
        has_length: bool,
        body: TextTemplate,
    },
    /// The header fields of HTTP/2, and the body, rendered for good when it has no variables.
    Stream {
        fields: HeaderFields,
        body: TextTemplate,
        fixed_body: Option<Vec<u8>>,
    },
}

impl CompiledRequests {
    pub(crate) fn new(plan: &LoadPlan, stream: u32) -> Result<Self, LoadError> {
        let address = plan.targets[0].to_string();
        let mut requests = Vec::new();
        let mut fixed = FixedFields::default();
        let is_tls = plan.tls.is_some();
        for (_, spec) in plan.weighted_requests() {
            check_request(spec)?;
            requests.push(match plan.http2 {
                None if plan.users.is_some() => compile_request(spec, &address)?,
                None => compile_request(spec, &address)?.render_if_fixed(),
                Some(_) => compile_stream(spec, &address, is_tls, &mut fixed)?,
            });
        }
        Ok(Self {
            requests,
            following: WeightedDraw::for_plan(plan, false),
            first: WeightedDraw::for_plan(plan, true),
            variables: TemplateVariables::new(plan.seed, stream, plan.stream_count()),
            random: RandomStream::from_seed(shard_seed(plan.seed ^ MIX_SEED, stream)),
            fixed,
            scratch: Vec::new(),
        })
    }

    pub(crate) fn pick(&mut self, is_first: bool) -> usize {
        let draw = if is_first && !self.first.shares.is_empty() {
            &self.first
        } else {
            &self.following
        };
        draw.pick(&mut self.random)
    }

    /// Writes an HTTP/1.1 request to `rendered`, with the cookies of its user, unless its bytes are
    /// fixed.
    pub(crate) fn render_request(
        &mut self,
        kind: usize,
        user: Option<&User>,
        rendered: &mut Vec<u8>,
    ) {
        if let RequestBytes::Templated {
            head,
            has_length,
            body,
        } = &self.requests[kind].bytes
        {
            rendered.clear();
            self.scratch.clear();
            self.variables.next_request();
            head.render(&mut self.variables, rendered);
            body.render(&mut self.variables, &mut self.scratch);
            if *has_length {
                push_number(rendered, self.scratch.len() as u64);
                rendered.extend_from_slice(b"\r\n\r\n");
            }
            rendered.extend_from_slice(&self.scratch);
        }
        if let Some(user) = user.filter(|u| !u.cookies.0.is_empty()) {
            self.scratch.clear();
            user.cookies.write(target_of(rendered), &mut self.scratch);
            let at = after_host(rendered);
            rendered.splice(at..at, self.scratch.iter().copied());
        }
    }

    /// The bytes of an HTTP/1.1 request; `rendered` is what [`Self::render_request`] wrote.
    pub(crate) fn request_bytes<'a>(&'a self, kind: usize, rendered: &'a [u8]) -> &'a [u8] {
        match &self.requests[kind].bytes {
            RequestBytes::Fixed(bytes) => bytes,
            RequestBytes::Templated { .. } | RequestBytes::Stream { .. } => rendered,
        }
    }

    /// Appends the header block of an HTTP/2 request, writes its body to `rendered` unless that
    /// is fixed, and returns the body's length.
    pub(crate) fn render_stream(
        &mut self,
        kind: usize,
        encoder: &mut HpackEncoder,
        rendered: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> usize {
        let RequestBytes::Stream {
            fields,
            body,
            fixed_body,
        } = &self.requests[kind].bytes
        else {
            return 0;
        };
        self.variables.next_request();
        let length = match fixed_body {
            Some(body) => body.len(),
            None => {
                rendered.clear();
                body.render(&mut self.variables, rendered);
                rendered.len()
            }
        };
        let memory = (length, &mut self.scratch);
        fields.render(&self.fixed, encoder, &mut self.variables, memory, out);
        length
    }

    /// The body of an HTTP/2 request; `rendered` is what [`Self::render_stream`] wrote.
    pub(crate) fn request_body<'a>(&'a self, kind: usize, rendered: &'a [u8]) -> &'a [u8] {
        match &self.requests[kind].bytes {
            RequestBytes::Stream {
                fixed_body: Some(body),
                ..
            } => body,
            _ => rendered,
        }
    }

    pub(crate) fn is_head(&self, kind: usize) -> bool {
        self.requests[kind].is_head
    }
}

impl WeightedDraw {
    fn for_plan(plan: &LoadPlan, is_first: bool) -> Self {
        let requests = plan.weighted_requests().into_iter().enumerate();
        let belongs = |(kind, _): &(usize, _)| plan.is_first(*kind) == is_first;
        let own: Vec<_> = requests.filter(belongs).collect();
        let sum: f64 = own.iter().map(|(_, (weight, _))| weight).sum();
        let mut share = 0.0;
        let add = |(kind, (weight, _)): (usize, (f64, _))| {
            share += weight / sum;
            (kind, share)
        };
        Self {
            shares: own.into_iter().map(add).collect(),
        }
    }

    fn pick(&self, random: &mut RandomStream) -> usize {
        match self.shares.as_slice() {
            [(kind, _)] => *kind,
            shares => {
                let draw = random.uniform_open();
                let found = shares.iter().find(|(_, share)| draw <= *share);
                // Rounding may leave the last share just below 1.
                found.or(shares.last()).map_or(0, |(kind, _)| *kind)
            }
        }
    }
}

pub(crate) fn target_of(rendered: &[u8]) -> &str {
    let target = rendered.split(|b| *b == b' ').nth(1).unwrap_or_default();
    std::str::from_utf8(target).unwrap_or("/")
}

/// Where the first header ends, which is Host (RFC 9110 §7.2) unless the user has written others.
fn after_host(rendered: &[u8]) -> usize {
    let mut lines = memchr::memmem::find_iter(rendered, b"\r\n");
    lines.nth(1).map_or(rendered.len(), |at| at + 2)
}

/// Keeps the choice from the mix apart from the arrivals, which use the same seed.
const MIX_SEED: u64 = 0x6d69_7800;

fn compile_request(spec: &RequestSpec, address: &str) -> Result<CompiledRequest, LoadError> {
    let has = |name: &str| {
        spec.headers
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let mut head = TextTemplate::default();
    head.append_text(&format!("{} ", spec.method));
    head.append_compiled(spec.path.as_bytes(), ValueEncoding::Path)?;
    head.append_text(" HTTP/1.1\r\n");
    if !has("host") {
        let host = spec.host.as_deref().unwrap_or(address);
        head.append_text(&format!("Host: {host}\r\n"));
    }
    for (name, value) in &spec.headers {
        head.append_text(&format!("{name}: "));
        head.append_compiled(value.as_bytes(), ValueEncoding::Plain)?;
        head.append_text("\r\n");
    }
    let mut body = TextTemplate::default();
    body.append_compiled(&spec.body, ValueEncoding::Plain)?;
    let has_length = needs_length(spec) && !has("content-length");
    head.append_text(if has_length {
        "Content-Length: "
    } else {
        "\r\n"
    });
    Ok(CompiledRequest {
        is_head: spec.method == "HEAD",
        bytes: RequestBytes::Templated {
            head,
            has_length,
            body,
        },
    })
}

fn needs_length(spec: &RequestSpec) -> bool {
    !spec.body.is_empty() || matches!(spec.method.as_str(), "POST" | "PUT" | "PATCH")
}

/// Header names that HTTP/2 has no place for (RFC 9113 §8.2.2), and those it says otherwise.
const CONNECTION_HEADERS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

fn compile_stream(
    spec: &RequestSpec,
    address: &str,
    is_tls: bool,
    fixed: &mut FixedFields,
) -> Result<CompiledRequest, LoadError> {
    let mut fields = HeaderFields::default();
    let mut add = |name: &str, value: &str, encoding| {
        let mut template = TextTemplate::default();
        template.append_compiled(value.as_bytes(), encoding)?;
        fields.add_field(name, template, fixed);
        Ok(())
    };
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let host = spec.headers.iter().find(|(name, _)| is_host(name));
    let host = host.map(|(_, value)| value).or(spec.host.as_ref());
    add(":method", &spec.method, ValueEncoding::Plain)?;
    add(
        ":scheme",
        if is_tls { "https" } else { "http" },
        ValueEncoding::Plain,
    )?;
    add(":path", &spec.path, ValueEncoding::Path)?;
    add(
        ":authority",
        host.map_or(address, String::as_str),
        ValueEncoding::Plain,
    )?;
    let mut has_length = false;
    for (name, value) in spec.headers.iter().filter(|(name, _)| !is_host(name)) {
        let name = name.to_ascii_lowercase();
        if CONNECTION_HEADERS.contains(&name.as_str()) {
            let why = format!("`{name}` is not allowed in HTTP/2; leave it out");
            return Err(LoadError::plan("header", why));
        }
        has_length |= name == "content-length";
        add(&name, value, ValueEncoding::Plain)?;
    }
    let mut body = TextTemplate::default();
    body.append_compiled(&spec.body, ValueEncoding::Plain)?;
    let fixed_body = body.fixed_text();
    match &fixed_body {
        _ if has_length || !needs_length(spec) => {}
        Some(body) => add(
            "content-length",
            &body.len().to_string(),
            ValueEncoding::Plain,
        )?,
        None => fields.add_length(),
    }
    Ok(CompiledRequest {
        is_head: spec.method == "HEAD",
        bytes: RequestBytes::Stream {
            fields,
            body,
            fixed_body,
        },
    })
}

impl CompiledRequest {
    fn render_if_fixed(mut self) -> Self {
        let RequestBytes::Templated {
            head,
            has_length,
            body,
        } = &self.bytes
        else {
            return self;
        };
        let (Some(head), Some(body)) = (head.fixed_text(), body.fixed_text()) else {
            return self;
        };
        let mut bytes = head;
        if *has_length {
            push_number(&mut bytes, body.len() as u64);
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        bytes.extend_from_slice(&body);
        self.bytes = RequestBytes::Fixed(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadModel, WeightedRequest};

    fn requests(mix: Vec<(f64, RequestSpec)>) -> Result<CompiledRequests, LoadError> {
        let model = LoadModel::ClosedRequests { requests: 1 };
        let target = "127.0.0.1:80".parse().expect("an address");
        let mut plan = LoadPlan::new(vec![target], RequestSpec::for_get("/"), model);
        plan.mix = mix
            .into_iter()
            .map(|(weight, request)| WeightedRequest {
                name: request.path.clone(),
                weight,
                is_first: false,
                request,
            })
            .collect();
        CompiledRequests::new(&plan, 0)
    }

    fn render(spec: RequestSpec) -> Result<String, LoadError> {
        let mut requests = requests(vec![(1.0, spec)])?;
        let mut rendered = Vec::new();
        let kind = requests.pick(false);
        requests.render_request(kind, None, &mut rendered);
        Ok(String::from_utf8_lossy(requests.request_bytes(kind, &rendered)).into_owned())
    }

    #[test]
    fn a_get_is_as_short_as_it_can_be() {
        assert_eq!(
            render(RequestSpec::for_get("/a?b=c")).unwrap(),
            "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
        );
    }

    #[test]
    fn a_body_brings_its_length_and_headers_stay_in_order() {
        let spec = RequestSpec {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            host: Some("h".to_owned()),
            headers: vec![("X".to_owned(), "1".to_owned())],
            body: b"abc".to_vec(),
        };
        let fixed = "POST / HTTP/1.1\r\nHost: h\r\nX: 1\r\nContent-Length: ";
        assert_eq!(
            render(spec.clone()).unwrap(),
            format!("{fixed}3\r\n\r\nabc")
        );
        let counted = RequestSpec {
            body: b"{\"n\": {seq}}".to_vec(),
            ..spec
        };
        assert_eq!(
            render(counted).unwrap(),
            format!("{fixed}8\r\n\r\n{{\"n\": 0}}")
        );
    }

    #[test]
    fn what_could_smuggle_a_second_request_is_refused() {
        let mut header = RequestSpec::for_get("/");
        header
            .headers
            .push(("X".to_owned(), "1\r\nY: 2".to_owned()));
        let mut method = RequestSpec::for_get("/");
        method.method = "GET /x HTTP/1.1\r\n".to_owned();
        for spec in [
            RequestSpec::for_get("/a b"),
            RequestSpec::for_get("a"),
            header,
            method,
        ] {
            assert!(render(spec.clone()).is_err(), "{spec:?}");
        }
    }

    #[test]
    fn a_mix_keeps_its_weights() {
        let get = RequestSpec::for_get;
        let mut requests = requests(vec![(3.0, get("/a")), (1.0, get("/b"))]).unwrap();
        let mut counts = [0u32; 2];
        for _ in 0..100_000 {
            counts[requests.pick(false)] += 1;
        }
        assert!(
            (counts[0] as f64 / 100_000.0 - 0.75).abs() < 0.01,
            "{counts:?}"
        );
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, u64::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
