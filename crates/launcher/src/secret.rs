//! Hiding secrets in what is printed: values of options and properties whose name says so, passwords
//! in addresses, options of agents.

use std::ffi::OsString;

/// Words in a property's name that mark its value as secret.
const WORDS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api-key",
    "api_key",
    "credential",
    "private",
];

/// The words of a command as they may be shown. A flag with a secret's name and no `=` hides the
/// word after it: `--password x`.
pub fn mask_words(words: &[OsString]) -> Vec<String> {
    let mut is_next_secret = false;
    let show = |word: &OsString| {
        let word = word.to_string_lossy();
        let is_hidden = std::mem::replace(&mut is_next_secret, names_value(&word));
        if is_hidden {
            "***".to_owned()
        } else {
            mask(&word)
        }
    };
    words.iter().map(show).collect()
}

/// Whether the word after this one is a secret.
fn names_value(word: &str) -> bool {
    let is_flag = word.starts_with("--") && !word.contains('=');
    is_flag && is_secret(&word.to_ascii_lowercase())
}

fn is_secret(name: &str) -> bool {
    WORDS.iter().any(|word| name.contains(word)) || name.ends_with("key")
}

/// `scheme://user:password@host` without its password.
fn mask_address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end]
        .rfind('@')
        .and_then(|at| Some((at, rest[..at].find(':')?)))
    {
        Some((at, colon)) => format!("{scheme}://{}:***{}", &rest[..colon], &rest[at..]),
        None => text.to_owned(),
    }
}

/// The option as it may be shown: `-Ddb.password=***`.
pub fn mask(option: &str) -> String {
    let Some((name, _)) = option.split_once('=') else {
        return mask_address(option);
    };
    let lower = name.to_ascii_lowercase();
    // The debugger and agents take options after `=`; their own secrets cannot be told apart.
    let is_agent = lower.starts_with("-javaagent") || lower.starts_with("-agent");
    if is_secret(&lower) || is_agent {
        format!("{name}=***")
    } else {
        mask_address(option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_sizes_are_not() {
        assert_eq!(mask("-Ddb.password=x=y"), "-Ddb.password=***");
        assert_eq!(mask("-Dapi.KEY=x"), "-Dapi.KEY=***");
        assert_eq!(mask("-javaagent:a.jar=license=x"), "-javaagent:a.jar=***");
        assert_eq!(mask("-XX:MaxHeapSize=1g"), "-XX:MaxHeapSize=1g");
        assert_eq!(mask("-Xmx1g"), "-Xmx1g");
    }

    #[test]
    fn addresses_lose_their_password_and_flags_the_next_word() {
        let url = "-Ddb.url=jdbc:postgresql://u:p@ss@db/x?a=b";
        assert_eq!(mask(url), "-Ddb.url=jdbc:postgresql://u:***@db/x?a=b");
        assert_eq!(mask("http://host/a@b"), "http://host/a@b");
        let words = ["java", "--api-token", "geheim", "--port", "80"].map(OsString::from);
        assert_eq!(
            mask_words(&words),
            ["java", "--api-token", "***", "--port", "80"]
        );
    }
}
