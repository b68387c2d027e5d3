//! As much of the zip form as jars take: the list of entries, one entry, stored or deflated, and a
//! new file of entries that are taken over as they are packed.
//!
//! Owns sizes and places in the file, never what entries mean. Sizes are capped. Source: PKWARE
//! APPNOTE 6.3, sections 4.3.7, 4.3.12, 4.3.16, 4.4.4.

use std::io::{self, Read, Seek, SeekFrom, Write};

const END: u64 = 22 + 65_535;
const DIRECTORY: usize = 64 << 20;

/// General purpose bit 11.
const UTF8: usize = 1 << 11;

pub(super) fn no_zip(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_le_bytes(bytes)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

pub(super) fn central_directory(file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let begin = length.saturating_sub(END);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.take(END).read_to_end(&mut tail)?;
    let at = memchr::memmem::rfind(&tail, b"PK\x05\x06").ok_or_else(|| no_zip("no zip file"))?;
    let (size, offset) = u32_at(&tail, at + 12)
        .zip(u32_at(&tail, at + 16))
        .filter(|(size, _)| *size <= DIRECTORY)
        .ok_or_else(|| no_zip("a zip file whose directory is cut or too large"))?;
    file.seek(SeekFrom::Start(offset as u64))?;
    let mut directory = vec![0; size.min(usize::try_from(length).unwrap_or(size))];
    file.read_exact(&mut directory)?;
    Ok(directory)
}

pub(super) struct ZipEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) size: usize,
    is_utf8: bool,
    method: usize,
    /// Time and date, in the form of MS-DOS.
    modified: usize,
    checksum: usize,
    packed: usize,
    offset: usize,
}

impl<'a> ZipEntry<'a> {
    fn parse_first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if bytes.get(..4)? != b"PK\x01\x02" {
            return None;
        }
        let (name, extra, comment) = (u16_at(bytes, 28)?, u16_at(bytes, 30)?, u16_at(bytes, 32)?);
        let entry = Self {
            name: bytes.get(46..46 + name)?,
            size: u32_at(bytes, 24)?,
            is_utf8: u16_at(bytes, 8)? & UTF8 != 0,
            method: u16_at(bytes, 10)?,
            modified: u32_at(bytes, 12)?,
            checksum: u32_at(bytes, 16)?,
            packed: u32_at(bytes, 20)?,
            offset: u32_at(bytes, 42)?,
        };
        Some((entry, bytes.get(46 + name + extra + comment..)?))
    }

    pub(super) fn unpacked_bytes(
        &self,
        file: &mut (impl Read + Seek),
        most: u64,
    ) -> io::Result<Vec<u8>> {
        let packed = self.packed_bytes(file)?;
        let mut bytes = Vec::new();
        match self.method {
            0 => packed.take(most).read_to_end(&mut bytes)?,
            8 => flate2::read::DeflateDecoder::new(packed)
                .take(most)
                .read_to_end(&mut bytes)?,
            _ => return Err(no_zip("an entry is packed in an unknown way")),
        };
        Ok(bytes)
    }

    fn packed_bytes<'f, F: Read + Seek>(&self, file: &'f mut F) -> io::Result<io::Take<&'f mut F>> {
        let mut header = [0; 30];
        file.seek(SeekFrom::Start(self.offset as u64))?;
        file.read_exact(&mut header)?;
        let skip = u16_at(&header, 26).zip(u16_at(&header, 28));
        let (name, extra) = skip.ok_or_else(|| no_zip("an entry is cut"))?;
        file.seek(SeekFrom::Current((name + extra) as i64))?;
        Ok(file.take(self.packed as u64))
    }
}

/// The entries of a central directory; the first that is cut ends them.
pub(super) fn directory_entries(mut directory: &[u8]) -> impl Iterator<Item = ZipEntry<'_>> {
    std::iter::from_fn(move || {
        let (entry, rest) = ZipEntry::parse_first(directory)?;
        directory = rest;
        Some(entry)
    })
}

pub(super) struct ZipWriter<W> {
    to: W,
    written: usize,
    directory: Vec<u8>,
    entries: usize,
}

impl<W: Write> ZipWriter<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            written: 0,
            directory: Vec::new(),
            entries: 0,
        }
    }

    pub(super) fn copy_entry(
        &mut self,
        name: &[u8],
        entry: &ZipEntry<'_>,
        from: &mut (impl Read + Seek),
    ) -> io::Result<()> {
        self.write_entry_header(name, entry)?;
        let copied = io::copy(&mut entry.packed_bytes(from)?, &mut self.to)?;
        self.written += entry.packed;
        if copied == entry.packed as u64 {
            Ok(())
        } else {
            Err(no_zip("an entry is cut"))
        }
    }

    pub(super) fn store(
        &mut self,
        name: &[u8],
        content: &[u8],
        like: &ZipEntry<'_>,
    ) -> io::Result<()> {
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let entry = ZipEntry {
            name,
            size: content.len(),
            is_utf8: true,
            method: 0,
            modified: like.modified,
            checksum: checksum.sum() as usize,
            packed: content.len(),
            offset: 0,
        };
        self.write_entry_header(name, &entry)?;
        self.written += content.len();
        self.to.write_all(content)
    }

    fn write_entry_header(&mut self, name: &[u8], entry: &ZipEntry<'_>) -> io::Result<()> {
        let mut head = Vec::new();
        // Version 2.0: deflated, directories. Lengths come first, so no flag for those behind.
        let flags = if entry.is_utf8 { UTF8 } else { 0 };
        put_short(&mut head, &[20, flags, entry.method])?;
        put_long(&mut head, &[entry.modified, entry.checksum, entry.packed])?;
        put_long(&mut head, &[entry.size])?;
        put_short(&mut head, &[name.len(), 0])?;
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(&head);
        // No comment, first disk, no attributes.
        self.directory.extend([0; 10]);
        put_long(&mut self.directory, &[self.written])?;
        self.directory.extend(name);
        self.to.write_all(b"PK\x03\x04")?;
        self.to.write_all(&head)?;
        self.to.write_all(name)?;
        self.written += 4 + head.len() + name.len();
        self.entries += 1;
        Ok(())
    }

    pub(super) fn finish_zip(mut self) -> io::Result<()> {
        let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
        put_short(&mut end, &[self.entries, self.entries])?;
        put_long(&mut end, &[self.directory.len(), self.written])?;
        put_short(&mut end, &[0])?;
        self.to.write_all(&self.directory)?;
        self.to.write_all(&end)
    }
}

fn put_short(to: &mut Vec<u8>, values: &[usize]) -> io::Result<()> {
    values.iter().try_for_each(|value| {
        let value =
            u16::try_from(*value).map_err(|_| no_zip("more entries than a jar may have"))?;
        to.extend(value.to_le_bytes());
        Ok(())
    })
}

fn put_long(to: &mut Vec<u8>, values: &[usize]) -> io::Result<()> {
    values.iter().try_for_each(|value| {
        let value = u32::try_from(*value).map_err(|_| no_zip("more than 4 GiB"))?;
        to.extend(value.to_le_bytes());
        Ok(())
    })
}
