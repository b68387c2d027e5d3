//! Hiding secrets in printed text: values of options and properties with a secret's name, passwords
//! in addresses, options of agents.

use std::ffi::OsString;

use loadline_sizing::secret::is_secret_name;

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

fn names_value(word: &str) -> bool {
    let is_option = word.starts_with("-D") || word.starts_with("-X") || word.contains('=');
    word.starts_with('-') && !is_option && is_secret_name(word)
}

/// Every `scheme://user:password@host` without its password.
fn mask_addresses(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find('/').unwrap_or(part.len());
        let at = part[..end].rfind('@');
        let colon = at.and_then(|at| part[..at].find(':'));
        shown.push_str("://");
        match (colon, at) {
            (Some(colon), Some(at)) => {
                shown.push_str(&part[..colon]);
                shown.push_str(":***");
                shown.push_str(&part[at..]);
            }
            _ => shown.push_str(part),
        }
    }
    shown
}

/// A sentence, or a value, without the values in it that have a secret's name, as `name=value` or as
/// `"name": value`: parameters of addresses (`?user=u&password=p`, `;password=p`) and of modules
/// (`username="u" password="p"`), options in other options, and JSON.
pub fn mask_text(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        let bare = before[..at].trim_end_matches(['"', '\'']);
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = &bare[bare.trim_end_matches(is_letter).len()..];
        let is_pair = before.ends_with('=') || bare.len() < at;
        shown.push_str(before);
        rest = after;
        if is_pair && is_secret_name(name) {
            shown.push_str("***");
            let blanks = after.len() - after.trim_start().len();
            rest = &after[blanks + value_length(&after[blanks..])..];
        }
    }
    shown.push_str(rest);
    mask_addresses(&shown)
}

fn value_length(text: &str) -> usize {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    match quote {
        // An open quote hides the rest.
        Some(quote) => text[1..].find(quote).map_or(text.len(), |end| end + 2),
        None => {
            let end = text.find(|c: char| matches!(c, '&' | ';' | '}') || c.is_whitespace());
            end.unwrap_or(text.len())
        }
    }
}

pub fn mask(option: &str) -> String {
    let name = option.split('=').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    // The debugger and agents take options after `=`; their own secrets cannot be told apart.
    let is_agent = lower.starts_with("-javaagent") || lower.starts_with("-agent");
    if name.len() < option.len() && (is_secret_name(name) || is_agent) {
        format!("{name}=***")
    } else {
        mask_text(option)
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
        for name in [
            "Authorization",
            "basic.auth",
            "session.cookie",
            "db.pwd",
            "db.pass",
            "ssl.passphrase",
            "javax.net.ssl.keyStorePassword",
        ] {
            assert_eq!(mask(&format!("-D{name}=x")), format!("-D{name}=***"));
        }
    }

    #[test]
    fn secrets_inside_a_value_are_masked_and_the_rest_is_not() {
        for (option, shown) in [
            (
                "-Durl=jdbc:mysql://db/x?user=u&password=geheim&ssl=true",
                "-Durl=jdbc:mysql://db/x?user=u&password=***&ssl=true",
            ),
            (
                "-Durl=jdbc:sqlserver://db;user=u;password=geheim",
                "-Durl=jdbc:sqlserver://db;user=u;password=***",
            ),
            (
                "-Djaas=M required username=\"u\" password=\"ge;heim\";",
                "-Djaas=M required username=\"u\" password=***;",
            ),
            ("-Durl=x?token=\"open", "-Durl=x?token=***"),
            // Quotes around several options make one of them.
            ("-Xmx1g -Dpass=geheim -Dx=y", "-Xmx1g -Dpass=*** -Dx=y"),
            (
                "--spring.application.json={\"db\":{\"password\": \"geheim\"},\"a\":\"b\"}",
                "--spring.application.json={\"db\":{\"password\":***},\"a\":\"b\"}",
            ),
            ("-Dpaths=a:token:b", "-Dpaths=a:token:b"),
            ("-Dq=a=b&c=d", "-Dq=a=b&c=d"),
            (
                "-Dmq=amqp://u1:p1@h1,amqp://u2:p2@h2",
                "-Dmq=amqp://u1:***@h1,amqp://u2:***@h2",
            ),
        ] {
            assert_eq!(mask(option), shown);
        }
    }

    #[test]
    fn addresses_lose_their_password_and_flags_the_next_word() {
        let url = "-Ddb.url=jdbc:postgresql://u:p@ss@db/x?a=b";
        assert_eq!(mask(url), "-Ddb.url=jdbc:postgresql://u:***@db/x?a=b");
        assert_eq!(mask("http://host/a@b"), "http://host/a@b");
        for flag in ["--api-token", "--auth", "-password"] {
            let words = ["java", flag, "geheim", "--port", "80"].map(OsString::from);
            assert_eq!(mask_words(&words), ["java", flag, "***", "--port", "80"]);
        }
    }
}
