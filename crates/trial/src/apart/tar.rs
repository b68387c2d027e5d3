//! Files packed for an engine: `import` and `cp` take nothing else.
//!
//! Owns the format, as far as it is needed: directories and regular files with names that fit. Facts:
//! POSIX.1-2017, pax, "ustar Interchange Format".

use std::io;

const BLOCK: usize = 512;
const NAME: usize = 100;

#[derive(Debug, Default)]
pub(super) struct TarArchive(Vec<u8>);

impl TarArchive {
    pub(super) fn add_directory(&mut self, path: &str, mode: u32) -> io::Result<()> {
        self.add_entry(b'5', &format!("{path}/"), mode, (0, 0), &[])
    }

    pub(super) fn add_file(
        &mut self,
        path: &str,
        mode: u32,
        owner: (u32, u32),
        bytes: &[u8],
    ) -> io::Result<()> {
        self.add_entry(b'0', path, mode, owner, bytes)
    }

    pub(super) fn finish_archive(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    fn add_entry(
        &mut self,
        kind: u8,
        path: &str,
        mode: u32,
        (uid, gid): (u32, u32),
        bytes: &[u8],
    ) -> io::Result<()> {
        let path = path.trim_start_matches('/');
        if path.is_empty() || path.len() >= NAME {
            let why = format!("the name {path} does not fit into an archive");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut head = [0; BLOCK];
        let mut put = |at: usize, text: &[u8]| head[at..at + text.len()].copy_from_slice(text);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, format!("{uid:07o}").as_bytes());
        put(116, format!("{gid:07o}").as_bytes());
        put(124, format!("{:011o}", bytes.len()).as_bytes());
        put(136, format!("{:011o}", 0).as_bytes());
        // The checksum counts itself as spaces.
        put(148, b"        ");
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(head);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tar_itself_takes_out_what_was_packed() {
        let mut tar = TarArchive::default();
        tar.add_directory("/work", 0o1777).expect("it fits");
        tar.add_file("/work/order", 0o400, (7, 8), &[b'x'; 700])
            .expect("it fits");
        assert!(tar.add_file(&"a/".repeat(60), 0o400, (0, 0), &[]).is_err());
        let mut listing = Command::new("tar")
            .args(["--numeric-owner", "-tvf", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar is everywhere");
        let mut input = listing.stdin.take().expect("it has one");
        input.write_all(&tar.finish_archive()).expect("it reads");
        drop(input);
        let output = listing.wait_with_output().expect("it ends");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect();
        let kept = |line: &[&str]| (line[0].to_owned(), line[1].to_owned(), line[2].to_owned());
        let of = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(kept(&lines[0]), of("drwxrwxrwt", "0/0", "0"));
        assert_eq!(kept(&lines[1]), of("-r--------", "7/8", "700"));
    }
}
