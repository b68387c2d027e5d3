//! Rules over the words of documents: every page is listed with its question, pages are short, and
//! phrases that read like a translation are rare.
//!
//! Pages are those of `docs`, without the generated `docs/reference` and the tables of promises in
//! `docs/specification`.

use super::documents::{resolve, targets};
use super::tree::File;
use super::{Finding, Project};

const SUMMARY: &str = "docs/SUMMARY.md";

/// A new page takes its words from another.
const WORDS_OF_DOCS: usize = 28_000;

/// Ten minutes of reading.
const WORDS_OF_A_GUIDE: usize = 1_200;

/// In 10,000 words. Documents of rebar, jj, firecracker and hyperfine have 5.
const PHRASES_ALLOWED: usize = 12;

/// Phrases, and the alternatives of a word. None is wrong alone; many make a text unreadable.
const PHRASES: &str = "beside; what is|was|are|were; of it|them; whose; say|says|said so; \
    stand|stands in|at|on|beside|there|behind; somebody|nobody; is|are|was|were told; for who; \
    that of; where there is|are; by itself; of its|their|your own; anew; nothing|none of; \
    one|those that";

fn pages(project: &Project) -> impl Iterator<Item = &File> {
    let generated = ["docs/reference/", "docs/specification/"];
    project.tree.files.iter().filter(move |file| {
        let is_page = file.path.starts_with("docs/") && file.path.ends_with(".md");
        is_page && !generated.iter().any(|place| file.path.starts_with(place))
    })
}

/// `docs/SUMMARY.md` lists each page as `- [Title](page.md): its question?`.
pub fn questions(project: &Project) -> Vec<Finding> {
    let summary = project.tree.files.iter().find(|file| file.path == SUMMARY);
    let lines = summary.map_or("", |file| file.text.as_str()).lines();
    let asked: Vec<String> = lines
        .filter(|line| line.contains("): ") && line.ends_with('?'))
        .flat_map(targets)
        .map(|target| resolve(SUMMARY, target))
        .collect();
    pages(project)
        .filter(|page| page.path != SUMMARY && !asked.contains(&page.path))
        .map(|page| Finding::new(SUMMARY, 0, format!("list {} with its question", page.path)))
        .collect()
}

pub fn lengths(project: &Project) -> Vec<Finding> {
    let words = |file: &File| file.text.split_whitespace().count();
    let is_long = |page: &&File| page.path.contains("/guides/") && words(page) > WORDS_OF_A_GUIDE;
    let long = pages(project)
        .filter(is_long)
        .map(|page| (page.path.as_str(), words(page)));
    let all = pages(project).map(words).sum();
    let all = Some(("docs", all)).filter(|_| all > WORDS_OF_DOCS);
    let say = |(path, words)| Finding::new(path, 0, format!("{words} words are too many"));
    long.chain(all).map(say).collect()
}

pub fn phrases(project: &Project) -> Vec<Finding> {
    let is_document = |file: &&File| {
        let is_prose = !file.path.contains('/') || file.path.starts_with("docs/");
        is_prose && file.path.ends_with(".md") && !file.path.starts_with("docs/reference/")
    };
    let documents = project.tree.files.iter().filter(is_document);
    let count = |file: &File| (hits(&prose(&file.text)), prose(&file.text).len());
    let counts = documents.map(|file| (count(file), &file.path));
    let counts: Vec<((usize, usize), &String)> = counts.collect();
    let found: usize = counts.iter().map(|((found, _), _)| found).sum();
    let words: usize = counts.iter().map(|((_, words), _)| words).sum();
    let is_much = found * 10_000 > PHRASES_ALLOWED * words;
    let worst = counts.iter().max().filter(|_| is_much);
    let message = format!("{found} house phrases in {words} words of documents, most of them here");
    let worst = worst.map(|(_, path)| Finding::new(path, 0, message));
    worst.into_iter().collect()
}

/// The words outside of commands, lower case and without punctuation.
fn prose(text: &str) -> Vec<String> {
    let is_prose = |line: &&str| !line.starts_with("    ") && !line.starts_with("```");
    let words = text.lines().filter(is_prose);
    let words = words.flat_map(str::split_whitespace);
    let bare = |word: &str| {
        word.trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase()
    };
    words.map(bare).collect()
}

fn hits(words: &[String]) -> usize {
    let fits = |phrase: &str, at: usize| {
        let mut parts = phrase.split(' ').zip(at..);
        parts.all(|(part, at)| {
            let word = words.get(at);
            word.is_some_and(|word| part.split('|').any(|choice| choice == word))
        })
    };
    let phrases = || PHRASES.split("; ");
    let found = |at: usize| phrases().filter(|phrase| fits(phrase, at)).count();
    (0..words.len()).map(found).sum()
}

#[cfg(test)]
mod tests {
    use super::super::packages::Packages;
    use super::super::tree::sample;
    use super::*;

    fn project(files: &[(&str, &str)]) -> Project {
        Project {
            tree: sample::tree(files),
            packages: Packages::default(),
        }
    }

    #[test]
    fn a_page_is_listed_with_its_question() {
        let found = questions(&project(&[
            (SUMMARY, "# all\n\n- [a](a.md): how?\n- [b](guides/b.md)\n"),
            ("docs/a.md", ""),
            ("docs/guides/b.md", ""),
            ("docs/reference/c.md", ""),
            ("README.md", ""),
        ]));
        let found: Vec<_> = found.into_iter().map(|f| f.message).collect();
        assert_eq!(found, ["list docs/guides/b.md with its question"]);
    }

    #[test]
    fn guides_and_all_pages_together_are_bounded() {
        let guide = "word ".repeat(WORDS_OF_A_GUIDE + 1);
        let page = "word ".repeat(WORDS_OF_DOCS);
        let paths = |files: &[(&str, &str)]| -> Vec<String> {
            let found = lengths(&project(files));
            found.into_iter().map(|f| f.path).collect()
        };
        let other = ("docs/specification/x.md", guide.as_str());
        assert_eq!(
            paths(&[("docs/guides/a.md", &guide), other]),
            ["docs/guides/a.md"]
        );
        assert_eq!(paths(&[("docs/b.md", &page)]), [""; 0]);
        assert_eq!(
            paths(&[("docs/b.md", &page), ("docs/c.md", "one")]),
            ["docs"]
        );
    }

    #[test]
    fn house_phrases_are_counted_outside_of_commands() {
        let text = "It is told.\n\n    what is it\n\nThose that stand in, of *them*";
        assert_eq!(hits(&prose(text)), 4);
        let many = "word ".repeat(1_000);
        let rare = format!("beside {many}");
        assert!(phrases(&project(&[("README.md", &rare)])).is_empty());
        let often = format!("beside whose {many}");
        assert_eq!(
            phrases(&project(&[("README.md", &often), ("src/a.md", &many)])).len(),
            1
        );
    }
}
