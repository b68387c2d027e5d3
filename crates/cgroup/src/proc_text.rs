//! Parsers of the texts under /proc with fields and counters, after proc(5). Pure functions.

/// Field 22 of /proc/pid/stat: start time in clock ticks after boot. `None` for a process that
/// has ended and was not yet waited for (state Z or X).
pub(crate) fn stat_start_time(text: &str) -> Option<u64> {
    let state = text[text.rfind(')')? + 1..].trim_start().chars().next()?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    stat_field(text, 22)
}

/// A numeric field of /proc/pid/stat, counted from 1 as proc(5) does, after the name (2), which
/// may hold spaces and parentheses.
pub(crate) fn stat_field(text: &str, field: usize) -> Option<u64> {
    let after_name = &text[text.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace();
    fields.nth(field.checked_sub(3)?)?.parse().ok()
}

pub(crate) fn keyed_value(text: &str, wanted: &str) -> Option<u64> {
    let mut found = None;
    visit_keyed_values(text, |key, value| {
        found = (key == wanted).then_some(value).or(found)
    });
    found
}

/// `key value` lines (cpu.stat, memory.stat, vmstat): the value of each wanted key, in one pass.
pub(crate) fn visit_keyed_values(text: &str, mut found: impl FnMut(&str, u64)) {
    for line in text.lines() {
        if let Some((key, value)) = line.split_once(' ')
            && let Ok(value) = value.trim().parse()
        {
            found(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_found_after_any_name() {
        let text = "4242 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20";
        assert_eq!(stat_start_time(text), Some(987_654));
        assert_eq!(stat_start_time(&text.replace(" S ", " Z ")), None);
        assert_eq!(stat_start_time("no name"), None);
    }
}
