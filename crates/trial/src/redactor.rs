//! Removes credentials from the output of a trial's programs, before it is stored.
//!
//! Owns the search across reads. The values come with the order and are in no file.

const REDACTED: &[u8] = b"[redacted]";

/// A shorter text would be found everywhere: it protects nothing.
const SHORTEST: usize = 4;

#[derive(Debug, Default)]
pub struct Redactor {
    secrets: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Redactor {
    pub fn new(secrets: &[String]) -> Self {
        let mut secrets: Vec<Vec<u8>> = secrets.iter().map(|s| s.clone().into_bytes()).collect();
        secrets.retain(|secret| secret.len() >= SHORTEST);
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self {
            secrets,
            held: Vec::new(),
        }
    }

    pub fn redact_chunk(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(chunk);
        for secret in &self.secrets {
            all = replace_secret(&all, secret);
        }
        let secrets = self.secrets.iter();
        let begun = secrets.map(|secret| partial_secret_length(&all, secret));
        let keep = all.len() - begun.max().unwrap_or(0);
        self.held = all.split_off(keep);
        all
    }

    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

fn replace_secret(text: &[u8], secret: &[u8]) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(text.len()), 0);
    for at in memchr::memmem::find_iter(text, secret) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(REDACTED);
        from = at + secret.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

fn partial_secret_length(text: &[u8], secret: &[u8]) -> usize {
    let longest = text.len().min(secret.len() - 1);
    let is_begin = |length: &usize| secret.starts_with(&text[text.len() - length..]);
    (1..=longest).rev().find(is_begin).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(secrets: &[&str], chunks: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|s| (*s).to_owned()).collect();
        let mut redactor = Redactor::new(&secrets);
        let mut out: Vec<u8> = Vec::new();
        for chunk in chunks {
            out.extend(redactor.redact_chunk(chunk.as_bytes()));
        }
        out.extend(redactor.take_rest());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_credential_is_found_wherever_the_reads_cut_it() {
        let text = "password=hunter22, again hunter22.";
        for cut in 0..text.len() {
            let (one, two) = text.split_at(cut);
            let out = passed(&["hunter22"], &[one, two]);
            assert_eq!(out, "password=[redacted], again [redacted].", "{cut}");
        }
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert!(!passed(&["hunter22"], &bytes).contains("hunter"));
    }

    #[test]
    fn what_only_looks_like_one_arrives_whole() {
        assert_eq!(passed(&["hunter22"], &["hunter", "2 hunt"]), "hunter2 hunt");
        assert_eq!(passed(&["abc"], &["abc abc"]), "abc abc");
        assert_eq!(passed(&[], &["a", "b"]), "ab");
    }

    #[test]
    fn of_two_credentials_the_longer_is_taken_first() {
        assert_eq!(
            passed(&["secret", "secret-2"], &["secret-2 secret"]),
            "[redacted] [redacted]"
        );
    }
}
