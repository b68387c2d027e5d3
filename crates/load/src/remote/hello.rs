//! The first words on a connection: both sides show that they know the secret, and neither says it.
//!
//! Owns the proof: HMAC-SHA-256 of both nonces under the secret, with the side's own name before them,
//! so that no answer can be sent back as one's own. Compared in constant time (crate `ring`).

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::frame::{MOST_OF_STRANGERS, read, write};
use super::messages::VERSION;
use crate::timed_stream::TimedStream;

const TAKES: Duration = Duration::from_secs(5);
const CLIENT: &[u8] = b"loadline client";
const GENERATOR: &[u8] = b"loadline generator";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
enum HelloMessage {
    Hello {
        version: u32,
        nonce: String,
        /// Only a generator can have one: it knows both nonces.
        proof: Option<String>,
    },
    Proof {
        proof: String,
    },
    Welcome,
    Busy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    Welcome,
    Busy,
}

/// The client's side.
/// Errors: Whoever is there does not know the secret, is of another version, or says nothing.
pub(super) fn greet(stream: &TcpStream, secret: &str) -> io::Result<Greeting> {
    let mut timed = TimedStream::new(stream, TAKES);
    let own = nonce()?;
    let hello = HelloMessage::Hello {
        version: VERSION,
        nonce: own.clone(),
        proof: None,
    };
    write(stream, &hello)?;
    let Some(HelloMessage::Hello {
        version,
        nonce: theirs,
        proof: Some(shown),
    }) = read(&mut timed, MOST_OF_STRANGERS)?
    else {
        return Err(stranger_error("it is not a generator"));
    };
    if version != VERSION {
        return Err(stranger_error("it is of another version of loadline"));
    }
    if !is_proof(secret, GENERATOR, (&own, &theirs), &shown) {
        return Err(stranger_error("it does not know the secret of this trial"));
    }
    let proof = proof(secret, CLIENT, (&own, &theirs));
    write(stream, &HelloMessage::Proof { proof })?;
    match read(&mut timed, MOST_OF_STRANGERS)? {
        Some(HelloMessage::Welcome) => Ok(Greeting::Welcome),
        Some(HelloMessage::Busy) => Ok(Greeting::Busy),
        _ => Err(stranger_error("it closed the connection")),
    }
}

/// The generator's side; `take` says whether it has no other client.
/// Errors: Whoever is there does not know the secret, is of another version, or says nothing.
pub(super) fn receive_client(
    stream: &TcpStream,
    secret: &str,
    take: impl FnOnce() -> bool,
) -> io::Result<Greeting> {
    let mut timed = TimedStream::new(stream, TAKES);
    let Some(HelloMessage::Hello {
        version: VERSION,
        nonce: theirs,
        ..
    }) = read(&mut timed, MOST_OF_STRANGERS)?
    else {
        return Err(stranger_error("it is not a client"));
    };
    let own = nonce()?;
    let hello = HelloMessage::Hello {
        version: VERSION,
        nonce: own.clone(),
        proof: Some(proof(secret, GENERATOR, (&theirs, &own))),
    };
    write(stream, &hello)?;
    let shown = match read(&mut timed, MOST_OF_STRANGERS)? {
        Some(HelloMessage::Proof { proof }) => proof,
        _ => return Err(stranger_error("it gave no proof")),
    };
    if !is_proof(secret, CLIENT, (&theirs, &own), &shown) {
        return Err(stranger_error("it does not know the secret"));
    }
    let (greeting, word) = if take() {
        (Greeting::Welcome, HelloMessage::Welcome)
    } else {
        (Greeting::Busy, HelloMessage::Busy)
    };
    write(stream, &word).map(|()| greeting)
}

fn stranger_error(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why.to_owned())
}

fn nonce() -> io::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the kernel gives no random bytes"))?;
    Ok(STANDARD.encode(bytes))
}

fn proof(secret: &str, side: &[u8], nonces: (&str, &str)) -> String {
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    STANDARD.encode(hmac::sign(&key, &proof_text(side, nonces)))
}

fn is_proof(secret: &str, side: &[u8], nonces: (&str, &str), shown: &str) -> bool {
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    let shown = STANDARD.decode(shown).unwrap_or_default();
    hmac::verify(&key, &proof_text(side, nonces), &shown).is_ok()
}

/// Side, client's nonce, generator's nonce; different inputs give different texts.
fn proof_text(side: &[u8], (client, generator): (&str, &str)) -> Vec<u8> {
    [side, client.as_bytes(), generator.as_bytes()].join(&0)
}

pub(super) fn set_timeouts(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    stream.set_write_timeout(Some(silence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_side_one_secret_and_these_nonces() {
        let of = |secret, side, nonces| proof(secret, side, nonces);
        let right = of("s", CLIENT, ("a", "b"));
        assert!(is_proof("s", CLIENT, ("a", "b"), &right));
        for wrong in [
            of("t", CLIENT, ("a", "b")),
            of("s", GENERATOR, ("a", "b")),
            of("s", CLIENT, ("b", "a")),
            of("s", CLIENT, ("ab", "")),
            String::new(),
            "not base64!".to_owned(),
        ] {
            assert!(!is_proof("s", CLIENT, ("a", "b"), &wrong), "{wrong}");
        }
    }
}
