//! Hiding secrets in what is printed.

/// Words in a property's name that mark its value as secret.
const WORDS: &[&str] = &["password", "passwd", "secret", "token", "apikey", "api-key", "api_key", "credential", "private"];

/// The option as it may be shown: `-Ddb.password=***`.
pub fn mask(option: &str) -> String {
    let Some((name, _)) = option.split_once('=') else {
        return option.to_owned();
    };
    let lower = name.to_ascii_lowercase();
    let is_secret = WORDS.iter().any(|word| lower.contains(word)) || lower.ends_with("key");
    // The debugger and agents take options after `=`; their own secrets cannot be told apart.
    let is_agent = lower.starts_with("-javaagent") || lower.starts_with("-agent");
    if is_secret || is_agent { format!("{name}=***") } else { option.to_owned() }
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
}
