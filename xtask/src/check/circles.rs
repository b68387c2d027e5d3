//! The rule against circles: files of a crate that can only be understood all at once.
//!
//! An arrow leads from a file to each file that it names in a path of `crate`, `super`, `self` or a
//! child module. A name that the file behind a path imports (`use`, `pub use`) leads to the file
//! that defines it. Method calls are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Project};

const MOST: usize = 7;
const MOST_IN: &[(&str, usize)] = &[("kubernetes", 3)];
const HOPS: usize = 8;

pub fn small(project: &Project) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<Module>> = BTreeMap::new();
    for file in project.tree.shipped() {
        if let Some((name, place)) = module_of(&file.path) {
            let module = Module::new(&file.path, place, &file.plain);
            crates.entry(name).or_default().push(module);
        }
    }
    let mut findings = Vec::new();
    for (name, modules) in &crates {
        let own = MOST_IN.iter().find(|(one, _)| one == name);
        let most = own.map_or(MOST, |(_, most)| *most);
        for circle in Crate::new(modules).circles() {
            if circle.len() > most {
                let message = format!(
                    "stands in a circle of {} files, more than {most}; move what ties them into a file below: {}",
                    circle.len(),
                    circle[1..].join(" ")
                );
                findings.push(Finding::new(circle[0], 0, message));
            }
        }
    }
    findings
}

fn module_of(path: &str) -> Option<(&str, Vec<String>)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut place: Vec<String> = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    let is_root = place.len() == 1 && matches!(place[0].as_str(), "lib" | "main");
    if is_root || place.last().is_some_and(|last| last == "mod") {
        place.pop();
    }
    Some((name, place))
}

struct Module<'a> {
    path: &'a str,
    place: Vec<String>,
    imports: Vec<(String, Vec<String>)>,
    paths: Vec<Vec<String>>,
}

impl<'a> Module<'a> {
    fn new(path: &'a str, place: Vec<String>, plain: &str) -> Self {
        let tokens = tokens(plain);
        let (mut imports, mut paths) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < tokens.len() {
            match tokens[at] {
                "use" => {
                    let end = tokens[at..].iter().position(|token| *token == ";");
                    let end = end.map_or(tokens.len(), |end| at + end);
                    read_use(&tokens[at + 1..end], &[], &mut imports);
                    at = end;
                }
                word if is_word(word) && tokens.get(at + 1) == Some(&"::") => {
                    let mut found = vec![word.to_owned()];
                    while tokens.get(at + 1) == Some(&"::")
                        && tokens.get(at + 2).is_some_and(|next| is_word(next))
                    {
                        at += 2;
                        found.push(tokens[at].to_owned());
                    }
                    paths.push(found);
                }
                _ => {}
            }
            at += 1;
        }
        Self {
            path,
            place,
            imports,
            paths,
        }
    }
}

fn tokens(plain: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = plain.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("::") {
            2
        } else if is_of_word(first) {
            rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Takes apart what stands between `use` and its semicolon, below `above`.
fn read_use(tokens: &[&str], above: &[String], found: &mut Vec<(String, Vec<String>)>) {
    if tokens.is_empty() {
        // Behind the last comma.
        return;
    }
    let mut path = above.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "{" => {
                for part in parts(&tokens[at + 1..]) {
                    read_use(part, &path, found);
                }
                return;
            }
            "as" => {
                let name = tokens.get(at + 1).copied().unwrap_or("_");
                found.push((name.to_owned(), path));
                return;
            }
            // `use a::{self}` names the module itself.
            "self" if !path.is_empty() => {}
            "::" => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned() {
        found.push((name, path));
    }
}

fn parts<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let (mut found, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => {
                found.push(&tokens[begin..at]);
                break;
            }
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

struct Crate<'a> {
    modules: &'a [Module<'a>],
    by_place: BTreeMap<&'a [String], usize>,
}

impl<'a> Crate<'a> {
    fn new(modules: &'a [Module<'a>]) -> Self {
        let places = modules.iter().enumerate();
        Self {
            modules,
            by_place: places
                .map(|(at, module)| (module.place.as_slice(), at))
                .collect(),
        }
    }

    fn arrows(&self) -> Vec<BTreeSet<usize>> {
        let of = |(at, module): (usize, &Module<'_>)| {
            let imported = module.imports.iter().map(|(_, path)| path);
            let paths = imported.chain(&module.paths);
            let ends = paths.filter_map(|path| self.follow(at, path, HOPS));
            ends.filter(|end| *end != at).collect()
        };
        self.modules.iter().enumerate().map(of).collect()
    }

    fn follow(&self, from: usize, path: &[String], hops: usize) -> Option<usize> {
        let mut place = self.modules[from].place.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => place.clear(),
            "self" => {}
            "super" => {
                place.pop()?;
            }
            child => {
                place.push(child.to_owned());
                self.by_place.get(place.as_slice())?;
            }
        }
        rest = &rest[1..];
        while let Some(next) = rest.first() {
            if next == "super" {
                place.pop()?;
            } else {
                place.push(next.clone());
                if !self.by_place.contains_key(place.as_slice()) {
                    place.pop();
                    break;
                }
            }
            rest = &rest[1..];
        }
        let at = *self.by_place.get(place.as_slice())?;
        let Some(name) = rest.first() else {
            return Some(at);
        };
        let import = self.modules[at].imports.iter().find(|(one, _)| one == name);
        match import {
            Some((_, path)) if hops > 0 && at != from => {
                let whole: Vec<String> = path.iter().chain(&rest[1..]).cloned().collect();
                // What comes from another crate is no file of this one.
                self.follow(at, &whole, hops - 1).or(Some(at))
            }
            _ => Some(at),
        }
    }

    fn circles(&self) -> Vec<Vec<&'a str>> {
        let arrows = self.arrows();
        let reach: Vec<BTreeSet<usize>> = (0..arrows.len())
            .map(|from| reached(&arrows, from))
            .collect();
        let mut circles = BTreeSet::new();
        for (from, reached) in reach.iter().enumerate() {
            let circle = reached.iter().filter(|to| reach[**to].contains(&from));
            let mut circle: Vec<&str> = circle.map(|at| self.modules[*at].path).collect();
            circle.sort_unstable();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

fn reached(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut waiting = vec![from];
    let mut found = BTreeSet::new();
    while let Some(at) = waiting.pop() {
        for next in &arrows[at] {
            if found.insert(*next) {
                waiting.push(*next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::packages::Packages;
    use super::super::tree::sample;
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let tree = sample::tree(files);
        let modules: Vec<Module<'_>> = tree
            .shipped()
            .map(|file| {
                let (_, place) = module_of(&file.path).expect("it is a module");
                Module::new(&file.path, place, &file.plain)
            })
            .collect();
        let short = |path: &str| path["crates/a/src/".len()..].to_owned();
        let found = Crate::new(&modules).circles();
        found
            .iter()
            .map(|circle| circle.iter().map(|path| short(path)).collect())
            .collect()
    }

    #[test]
    fn a_circle_is_found_through_uses_and_paths() {
        let found = circles(&[
            ("crates/a/src/lib.rs", "mod b; mod c; mod d;"),
            ("crates/a/src/b.rs", "use crate::{c::{self, C}, d};"),
            (
                "crates/a/src/c/mod.rs",
                "mod e;\n#[cfg(test)]\nuse super::d;",
            ),
            ("crates/a/src/c/e.rs", "fn f() { super::super::b::g(); }"),
            (
                "crates/a/src/d.rs",
                "// use crate::b;\nconst A: &str = \"crate::b::C\";",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
        let found = circles(&[
            ("crates/a/src/b.rs", "use crate::{c::{self, C}, d,};"),
            ("crates/a/src/c/mod.rs", "mod e;\npub fn f() -> e::F {}"),
            ("crates/a/src/c/e.rs", "fn f() { super::super::b::g(); }"),
            ("crates/a/src/d.rs", "fn f() { use crate::b::{G as H}; }"),
        ]);
        assert_eq!(found, [["b.rs", "c/e.rs", "c/mod.rs", "d.rs"]]);
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let found = circles(&[
            (
                "crates/a/src/lib.rs",
                "mod b;\nmod c;\npub use b::B;\nuse c::C as D;",
            ),
            ("crates/a/src/b.rs", "use crate::D; use std::fmt;"),
            ("crates/a/src/c.rs", "fn f() {}"),
        ]);
        assert!(found.is_empty(), "{found:?}");
        let found = circles(&[
            (
                "crates/a/src/lib.rs",
                "mod b;\npub use b::B;\npub fn e() {}",
            ),
            ("crates/a/src/b.rs", "use super::e;"),
        ]);
        assert_eq!(found, [["b.rs", "lib.rs"]]);
    }

    #[test]
    fn small_circles_are_no_finding() {
        let ring = |name: &str, count: usize| -> Vec<(String, String)> {
            let file = |at: usize| {
                let next = (at + 1) % count;
                (
                    format!("crates/{name}/src/m{at}.rs"),
                    format!("use crate::m{next}::N;"),
                )
            };
            (0..count).map(file).collect()
        };
        let findings = |name: &str, count: usize| {
            let ring = ring(name, count);
            let files: Vec<(&str, &str)> = ring
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str()))
                .collect();
            small(&Project {
                tree: sample::tree(&files),
                packages: Packages::default(),
            })
        };
        assert!(findings("load", MOST).is_empty());
        assert_eq!(findings("load", MOST + 1).len(), 1);
        assert!(findings("kubernetes", 3).is_empty());
        assert_eq!(findings("kubernetes", 4).len(), 1);
    }
}
