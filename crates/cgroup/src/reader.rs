//! Reads the statistics files of one group again and again: descriptors stay open, one buffer is
//! reused, every file is read from its start by `pread`.
//!
//! Three rates: [`CgroupReader::read_cpu`] is made for 1 kHz (two files on v1, one on v2),
//! [`CgroupReader::read_memory`] for 20 ms and more, [`CgroupReader::read_pressure`] never faster than 20 ms.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_sizing::Bytes;

use crate::error::CgroupError;
use crate::group::ControlGroup;
use crate::layout::{CgroupVersion, Controller};
use crate::sample::{self, CgroupSample, CpuSample, MemorySample, Pressure, PressureSample};

/// First size of the buffer: memory.stat is about 1.5 KiB, usage_percpu 12 bytes a CPU.
const BUFFER: usize = 8 << 10;

const MAX_BUFFER: usize = 1 << 20;

#[derive(Debug)]
struct StatFile {
    path: PathBuf,
    file: File,
}

impl StatFile {
    fn open_stat(dir: &Path, name: &str) -> Result<Option<Self>, CgroupError> {
        let path = dir.join(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(Self { path, file })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(CgroupError::for_file("open", &path, e)),
        }
    }

    /// The whole text. `None` when the kernel does not offer it (PSI switched off: EOPNOTSUPP).
    fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<Option<&'a str>, CgroupError> {
        let length = loop {
            match self.file.read_at(buffer, 0) {
                // The kernel makes the whole text in one go, so a read that does not fill the
                // buffer has everything, and a second one to see the end would cost as much again.
                Ok(n) if n < buffer.len() || n >= MAX_BUFFER => break n,
                Ok(_) => buffer.resize(buffer.len() * 2, 0),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if is_unsupported(&e) => return Ok(None),
                Err(e) => return Err(CgroupError::for_file("read", &self.path, e)),
            }
        };
        Ok(std::str::from_utf8(&buffer[..length]).ok())
    }

    fn read_u64(&self, buffer: &mut Vec<u8>) -> Result<Option<u64>, CgroupError> {
        Ok(self.read(buffer)?.and_then(|text| text.trim().parse().ok()))
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error())
}

#[derive(Debug)]
pub struct CgroupReader {
    buffer: Vec<u8>,
    cpu_version: CgroupVersion,
    cpu_stat: Option<StatFile>,
    usage_percpu: Option<StatFile>,
    usage: Option<StatFile>,
    usage_user: Option<StatFile>,
    usage_system: Option<StatFile>,
    memory_version: CgroupVersion,
    memory_usage: Option<StatFile>,
    memory_peak: Option<StatFile>,
    memory_stat: Option<StatFile>,
    memory_kernel: Option<StatFile>,
    memory_events: Option<StatFile>,
    pids_current: Option<StatFile>,
    cpu_pressure: Option<StatFile>,
    memory_pressure: Option<StatFile>,
    io_pressure: Option<StatFile>,
}

impl CgroupReader {
    pub(crate) fn open_files(group: &ControlGroup) -> Result<Self, CgroupError> {
        let v2 = group.v2_dir();
        let in_v2 = |name| v2.map_or(Ok(None), |dir| StatFile::open_stat(dir, name));
        let (cpu_version, cpu) = match (group.controller_dir(Controller::Cpu), v2) {
            (Some((version, dir)), _) => (version, Some(dir)),
            // cpu.stat with the usage alone is there without any controller.
            (None, dir) => (CgroupVersion::V2, dir),
        };
        let acct = group
            .controller_dir(Controller::Cpuacct)
            .map(|(_, dir)| dir);
        let in_acct = |name| acct.map_or(Ok(None), |dir| StatFile::open_stat(dir, name));
        let memory = group.controller_dir(Controller::Memory);
        let memory_version = memory.map_or(CgroupVersion::V2, |(version, _)| version);
        let in_memory = |v1, v2| match memory {
            Some((CgroupVersion::V1, dir)) => StatFile::open_stat(dir, v1),
            Some((CgroupVersion::V2, dir)) => StatFile::open_stat(dir, v2),
            None => Ok(None),
        };
        let pids = group.controller_dir(Controller::Pids).map(|(_, dir)| dir);
        // The local file does not count kills in sub-groups; it came with Linux 5.2.
        let events = match in_memory("memory.oom_control", "memory.events.local")? {
            None => in_memory("memory.oom_control", "memory.events")?,
            local => local,
        };
        let this = Self {
            buffer: vec![0; BUFFER],
            cpu_version,
            cpu_stat: cpu.map_or(Ok(None), |dir| StatFile::open_stat(dir, "cpu.stat"))?,
            usage_percpu: in_acct("cpuacct.usage_percpu")?,
            usage: in_acct("cpuacct.usage")?,
            usage_user: in_acct("cpuacct.usage_user")?,
            usage_system: in_acct("cpuacct.usage_sys")?,
            memory_version,
            memory_usage: in_memory("memory.usage_in_bytes", "memory.current")?,
            memory_peak: in_memory("memory.max_usage_in_bytes", "memory.peak")?,
            memory_stat: in_memory("memory.stat", "memory.stat")?,
            memory_kernel: match memory {
                Some((CgroupVersion::V1, dir)) => {
                    StatFile::open_stat(dir, "memory.kmem.usage_in_bytes")?
                }
                _ => None,
            },
            memory_events: events,
            pids_current: pids.map_or(Ok(None), |dir| StatFile::open_stat(dir, "pids.current"))?,
            cpu_pressure: in_v2("cpu.pressure")?,
            memory_pressure: in_v2("memory.pressure")?,
            io_pressure: in_v2("io.pressure")?,
        };
        match group.hierarchy_dirs().find(|dir| dir.is_dir()) {
            Some(_) => Ok(this),
            None => Err(CgroupError::for_file(
                "open",
                group.first_dir(),
                rustix::io::Errno::NOENT,
            )),
        }
    }

    /// Everything, once.
    /// Errors: The group is gone ([`CgroupError::is_gone`]) or a file cannot be read.
    pub fn read(&mut self) -> Result<CgroupSample, CgroupError> {
        let at_ns = monotonic_ns();
        let mut cpu = CpuSample::default();
        self.read_cpu(&mut cpu)?;
        self.read_cpu_modes(&mut cpu)?;
        Ok(CgroupSample {
            at_ns,
            cpu,
            memory: Some(self.read_memory()?),
            pressure: Some(self.read_pressure()?),
            pids_current: self.read_pids()?,
        })
    }

    /// The CPU counters, into a reused sample. `user` and `system` stay unchanged where they cost
    /// further files (v1).
    pub fn read_cpu(&mut self, cpu: &mut CpuSample) -> Result<(), CgroupError> {
        let buffer = &mut self.buffer;
        if let Some(text) = read(&self.cpu_stat, buffer)? {
            match self.cpu_version {
                CgroupVersion::V1 => sample::cpu_stat_v1(text, cpu),
                CgroupVersion::V2 => sample::cpu_stat_v2(text, cpu),
            }
        }
        if let Some(text) = read(&self.usage_percpu, buffer)? {
            sample::usage_percpu(text, cpu);
        } else if let Some(usage) = read_u64(&self.usage, buffer)? {
            cpu.usage = Some(Duration::from_nanos(usage));
        }
        Ok(())
    }

    /// User and system time from separate files (v1).
    fn read_cpu_modes(&mut self, cpu: &mut CpuSample) -> Result<(), CgroupError> {
        if let Some(user) = read_u64(&self.usage_user, &mut self.buffer)? {
            cpu.user = Some(Duration::from_nanos(user));
        }
        if let Some(system) = read_u64(&self.usage_system, &mut self.buffer)? {
            cpu.system = Some(Duration::from_nanos(system));
        }
        Ok(())
    }

    pub fn read_memory(&mut self) -> Result<MemorySample, CgroupError> {
        let buffer = &mut self.buffer;
        let mut memory = MemorySample {
            usage: read_u64(&self.memory_usage, buffer)?.map(Bytes::from_bytes),
            peak: read_u64(&self.memory_peak, buffer)?.map(Bytes::from_bytes),
            ..MemorySample::default()
        };
        if let Some(text) = read(&self.memory_stat, buffer)? {
            match self.memory_version {
                CgroupVersion::V1 => sample::memory_stat_v1(text, &mut memory),
                CgroupVersion::V2 => sample::memory_stat_v2(text, &mut memory),
            }
        }
        if let Some(kernel) = read_u64(&self.memory_kernel, buffer)? {
            memory.kernel = Some(Bytes::from_bytes(kernel));
        }
        memory.oom_kill = read(&self.memory_events, buffer)?.and_then(sample::oom_kill);
        Ok(memory)
    }

    /// The pressure totals. Not faster than every 20 ms, see [`PressureSample`].
    pub fn read_pressure(&mut self) -> Result<PressureSample, CgroupError> {
        let buffer = &mut self.buffer;
        let mut one = |stat: &Option<StatFile>| -> Result<Option<Pressure>, CgroupError> {
            Ok(read(stat, buffer)?.and_then(sample::parse_pressure))
        };
        Ok(PressureSample {
            cpu: one(&self.cpu_pressure)?,
            memory: one(&self.memory_pressure)?,
            io: one(&self.io_pressure)?,
        })
    }

    pub fn read_pids(&mut self) -> Result<Option<u64>, CgroupError> {
        read_u64(&self.pids_current, &mut self.buffer)
    }
}

fn read<'a>(
    stat: &Option<StatFile>,
    buffer: &'a mut Vec<u8>,
) -> Result<Option<&'a str>, CgroupError> {
    stat.as_ref().map_or(Ok(None), |stat| stat.read(buffer))
}

fn read_u64(stat: &Option<StatFile>, buffer: &mut Vec<u8>) -> Result<Option<u64>, CgroupError> {
    stat.as_ref().map_or(Ok(None), |stat| stat.read_u64(buffer))
}

/// CLOCK_MONOTONIC in ns.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
