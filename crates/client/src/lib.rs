//! Requests to external services: a Prometheus, a webhook.
//!
//! Owns which certificates are trusted and that redirects are not followed; never the content. Load
//! on the measured application is crate `load`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loadline_protocol::RunRefusal;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

pub use ureq::{Agent, Error};

const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

#[derive(Debug, Clone, Default)]
pub struct Trust {
    pub cacert: Option<PathBuf>,
    pub insecure: bool,
}

/// Agent for requests to the service at `url`. A status is an answer, not an error, and redirects
/// are not followed: requests may hold a credential. `flag` is where the URL was given. Errors: A
/// URL without a scheme, trust without encryption, certificates that cannot be read.
pub fn agent(flag: &str, url: &str, trust: &Trust, timeout: Duration) -> Result<Agent, RunRefusal> {
    let is_tls = url.starts_with("https://");
    if !is_tls && !url.starts_with("http://") {
        return Err(RunRefusal::new(
            flag,
            match url.split_once("://") {
                Some((scheme, _)) => format!("{scheme} is not spoken here, only http and https"),
                None => "the address has no scheme".to_owned(),
            },
            "begin it with http:// or https://",
        ));
    }
    if !is_tls && (trust.cacert.is_some() || trust.insecure) {
        return Err(RunRefusal::new(
            "--cacert, --insecure",
            format!("what {flag} names is not encrypted"),
            "give an https address, or leave them out",
        ));
    }
    let mut config = Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent("loadline");
    if is_tls {
        config = config.tls_config(tls(trust)?);
    }
    Ok(config.build().into())
}

fn tls(trust: &Trust) -> Result<TlsConfig, RunRefusal> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    if trust.insecure {
        return Ok(config.disable_verification(true).build());
    }
    let path = trust.cacert.as_deref().unwrap_or(Path::new(SYSTEM_ROOTS));
    let refused = |why: String| {
        RunRefusal::new(
            format!("certificates in {}", path.display()),
            why,
            "give a PEM file with --cacert, or --insecure",
        )
    };
    let text = std::fs::read(path).map_err(|e| refused(e.to_string()))?;
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(refused("it holds none".to_owned()));
    }
    let roots = RootCerts::Specific(Arc::new(certificates));
    Ok(config.root_certs(roots).build())
}
