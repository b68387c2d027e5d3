//! Words arrive at the JVM as they were given, whatever is in them.
//!
//! 1,000 random vectors; `LOADLINE_VECTORS=10000` runs more.

mod stage;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use stage::Stage;

/// Pieces that shells, launchers and the JVM's own readers stumble over.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"'",
    b" ",
    b"\n",
    b"\t",
    b"*",
    b"?",
    b"[a-z]",
    b"$HOME",
    b"$(id)",
    b"`id`",
    b"\\",
    b"\\\\",
    b"~",
    b";",
    b"&",
    b"|",
    b">",
    b"#",
    b"!",
    b"%",
    b"=",
    b"@",
    b"-",
    b"--",
    b"-D",
    b"-Xmx",
    b"-XX:+",
    b"-cp",
    b"-jar",
    b"{a,b}",
    b"\x01",
    b"\x7f",
    b"\xff\xfe",
    "é".as_bytes(),
    "日本".as_bytes(),
    b"a",
    b"Zz9",
    b"",
];

/// Small and good enough for tests: xorshift64*, from a fixed seed.
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end.max(1)
    }
}

fn vector(random: &mut Random) -> Vec<OsString> {
    let words = random.below(9);
    let word = |random: &mut Random| {
        let pieces = random.below(7);
        let bytes = (0..pieces).flat_map(|_| PIECES[random.below(PIECES.len())].to_vec());
        OsString::from_vec(bytes.collect())
    };
    (0..words).map(|_| word(random)).collect()
}

#[test]
fn random_vectors_arrive_unchanged() {
    let count: u64 = std::env::var("LOADLINE_VECTORS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1000);
    let stage = Stage::new();
    let mut random = Random(0x10ad_11ed);
    for number in 0..count {
        let words = vector(&mut random);
        // One of three is started unchanged, the others with options in front.
        let mode = ["off", "apply", "apply"][(number % 3) as usize];
        let mut command = stage.launcher("words");
        command
            .env("LOADLINE_MODE", mode)
            .arg("--memory=300Mi")
            .arg("--")
            .arg(stage.java())
            .args(&words);
        let output = command.output().expect("the launcher starts");
        let mut arrived: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(arrived.pop(), Some(&b""[..]), "vector {number}: {words:?}");
        assert_eq!(
            arrived[0],
            stage.java().as_os_str().as_bytes(),
            "vector {number}"
        );
        let added = arrived.len() - 1 - words.len();
        let expected: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(arrived[1 + added..], expected, "vector {number}");
        assert!(
            mode == "apply" || added == 0,
            "vector {number}: {added} words added"
        );
        for option in &arrived[1..=added] {
            assert!(
                option.starts_with(b"-X") || option.starts_with(b"-D"),
                "vector {number}"
            );
        }
    }
    println!("{count} vectors arrived unchanged");
}

#[test]
fn java_opts_are_split_once_and_never_by_a_shell() {
    let stage = Stage::new();
    let mut command = stage.launcher("words");
    command
        .env("LOADLINE_MODE", "off")
        .env("JAVA_OPTS", "-Dx=\"a b\" '-Dy=$(id) *'");
    let output = command
        .arg(stage.java())
        .arg("Main")
        .output()
        .expect("the launcher starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let words: Vec<&str> = text.split('\0').skip(1).collect();
    assert_eq!(words, ["-Dx=a b", "-Dy=$(id) *", "Main", ""]);
}
