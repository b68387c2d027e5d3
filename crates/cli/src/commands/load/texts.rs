//! How the arguments of `loadline load` are written that say where it runs: CPU lists and parts.

use loadline_load::LoadPart;

pub(super) fn parse_part(text: &str) -> Result<LoadPart, String> {
    let read = text.split_once('/').and_then(|(index, of)| {
        Some(LoadPart {
            index: index.parse().ok()?,
            of: of.parse().ok()?,
        })
    });
    read.filter(|p| p.index < p.of)
        .ok_or_else(|| "it is not a part; the first of four is 0/4, the last 3/4".to_owned())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CpuList(pub(super) Vec<u32>);

pub(super) fn parse_cpus(text: &str) -> Result<CpuList, String> {
    let mut list = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < 1024 => list.extend(first..=last),
            _ => return Err("it is not a list of CPUs; write for example 1 or 0,2-3".to_owned()),
        }
    }
    Ok(CpuList(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_parts_are_read() {
        assert_eq!(parse_cpus("0,2-3"), Ok(CpuList(vec![0, 2, 3])));
        assert_eq!(parse_part("3/4"), Ok(LoadPart { index: 3, of: 4 }));
        for text in ["", "3-2", "a", "1-"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
        for text in ["4/4", "0/0", "1", "a/b"] {
            assert!(parse_part(text).is_err(), "{text}");
        }
    }
}
