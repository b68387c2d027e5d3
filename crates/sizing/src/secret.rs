//! Names of secrets: the values of these variables, properties and options are never shown.
//!
//! Owns what name makes a value a secret, for reports and for the launcher.

/// Texts inside a name that make its value a secret (`dbPassword`, `ACCESS_TOKEN`).
const INSIDE: &str = "passw passphrase pwd secret token apikey api_key credential";
/// Whole words of a name that do so (`ssl.key`, `basic-auth`, `accountKey`), where a part would hit
/// too much (`monkey`, `author`, `passes`).
const WORDS: [&str; 8] = [
    "pass",
    "key",
    "cred",
    "creds",
    "auth",
    "authorization",
    "cookie",
    // The address of a webhook is all that it takes to write there.
    "notify",
];
/// Words after `key` that make it the name of something else: `keyStore` is a path.
const NO_KEYS: [&str; 4] = ["store", "alias", "serializer", "deserializer"];

pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if INSIDE.split(' ').any(|part| lower.contains(part)) {
        return true;
    }
    let words = name_words(name.strip_prefix("-D").unwrap_or(name));
    let is_other = |next: Option<&String>| next.is_some_and(|w| NO_KEYS.contains(&w.as_str()));
    let is_secret = |(at, word): (usize, &String)| {
        WORDS.contains(&word.as_str()) && !(word == "key" && is_other(words.get(at + 1)))
    };
    words.iter().enumerate().any(is_secret)
}

/// The words of a name in lower case: `storage.accountKey` is `storage`, `account`, `key`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_capitals = before.is_uppercase() && rest.peek().is_some_and(|n| n.is_lowercase());
        let begins = c.is_uppercase() && (!before.is_uppercase() || ends_capitals);
        if begins || ['.', '_', '-'].contains(&c) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && !['.', '_', '-'].contains(&c)
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}
