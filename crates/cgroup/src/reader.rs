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
use rustix::io::Errno;

use crate::error::CgroupError;
use crate::group::ControlGroup;
use crate::layout::{CgroupVersion, Controller};
use crate::sample::{self, CgroupSample, CpuSample, MemorySample, Pressure, PressureSample};

/// First size of the buffer: memory.stat is about 1.5 KiB, usage_percpu 12 bytes a CPU.
const BUFFER: usize = 8 << 10;
const MAX_BUFFER: usize = 1 << 20;

#[derive(Debug, Default)]
struct StatFile {
    path: PathBuf,
    /// `None`: this kernel has no such file, or the group no such directory.
    file: Option<File>,
}

impl StatFile {
    fn open_stat(dir: Option<&Path>, name: &str) -> Result<Self, CgroupError> {
        let Some(dir) = dir else {
            return Ok(Self::default());
        };
        let path = dir.join(name);
        let file = match File::open(&path) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(CgroupError::for_file("open", &path, e)),
        };
        Ok(Self { path, file })
    }

    /// The whole text. `None` when the kernel does not offer it (PSI switched off: EOPNOTSUPP).
    fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<Option<&'a str>, CgroupError> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let length = loop {
            match file.read_at(buffer, 0) {
                // The kernel makes the whole text in one go, so a read that does not fill the
                // buffer has everything, and a second one to see the end would cost as much again.
                Ok(n) if n < buffer.len() || n >= MAX_BUFFER => break n,
                Ok(_) => buffer.resize(buffer.len() * 2, 0),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if Errno::from_io_error(&e) == Some(Errno::OPNOTSUPP) => return Ok(None),
                Err(e) => return Err(CgroupError::for_file("read", &self.path, e)),
            }
        };
        Ok(std::str::from_utf8(&buffer[..length]).ok())
    }

    fn read_u64(&self, buffer: &mut Vec<u8>) -> Result<Option<u64>, CgroupError> {
        Ok(self.read(buffer)?.and_then(|text| text.trim().parse().ok()))
    }
}

#[derive(Debug)]
pub struct CgroupReader {
    buffer: Vec<u8>,
    cpu_version: CgroupVersion,
    cpu_stat: StatFile,
    usage_percpu: StatFile,
    usage: StatFile,
    usage_user: StatFile,
    usage_system: StatFile,
    memory_version: CgroupVersion,
    memory_usage: StatFile,
    memory_peak: StatFile,
    memory_stat: StatFile,
    memory_kernel: StatFile,
    memory_events: StatFile,
    pids_current: StatFile,
    cpu_pressure: StatFile,
    memory_pressure: StatFile,
    io_pressure: StatFile,
}

impl CgroupReader {
    pub(crate) fn open_files(group: &ControlGroup) -> Result<Self, CgroupError> {
        let v2 = group.v2_dir();
        let in_v2 = |name| StatFile::open_stat(v2, name);
        let (cpu_version, cpu) = match (group.controller_dir(Controller::Cpu), v2) {
            (Some((version, dir)), _) => (version, Some(dir)),
            // cpu.stat with the usage alone is there without any controller.
            (None, dir) => (CgroupVersion::V2, dir),
        };
        let dir_of = |controller| group.controller_dir(controller).map(|(_, dir)| dir);
        let in_acct = |name| StatFile::open_stat(dir_of(Controller::Cpuacct), name);
        let memory = group.controller_dir(Controller::Memory);
        let (memory_version, memory) = match memory {
            Some((version, dir)) => (version, Some(dir)),
            None => (CgroupVersion::V2, None),
        };
        let in_memory = |v1, v2| match memory_version {
            CgroupVersion::V1 => StatFile::open_stat(memory, v1),
            CgroupVersion::V2 => StatFile::open_stat(memory, v2),
        };
        // The local file does not count kills in sub-groups; it came with Linux 5.2.
        let mut events = in_memory("memory.oom_control", "memory.events.local")?;
        if events.file.is_none() {
            events = in_memory("memory.oom_control", "memory.events")?;
        }
        let kernel = memory.filter(|_| memory_version == CgroupVersion::V1);
        let this = Self {
            buffer: vec![0; BUFFER],
            cpu_version,
            cpu_stat: StatFile::open_stat(cpu, "cpu.stat")?,
            usage_percpu: in_acct("cpuacct.usage_percpu")?,
            usage: in_acct("cpuacct.usage")?,
            usage_user: in_acct("cpuacct.usage_user")?,
            usage_system: in_acct("cpuacct.usage_sys")?,
            memory_version,
            memory_usage: in_memory("memory.usage_in_bytes", "memory.current")?,
            memory_peak: in_memory("memory.max_usage_in_bytes", "memory.peak")?,
            memory_stat: in_memory("memory.stat", "memory.stat")?,
            memory_kernel: StatFile::open_stat(kernel, "memory.kmem.usage_in_bytes")?,
            memory_events: events,
            pids_current: StatFile::open_stat(dir_of(Controller::Pids), "pids.current")?,
            cpu_pressure: in_v2("cpu.pressure")?,
            memory_pressure: in_v2("memory.pressure")?,
            io_pressure: in_v2("io.pressure")?,
        };
        let first = group.first_dir();
        if group.hierarchy_dirs().any(Path::is_dir) {
            Ok(this)
        } else {
            Err(CgroupError::for_file("open", first, Errno::NOENT))
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
        if let Some(text) = self.cpu_stat.read(buffer)? {
            match self.cpu_version {
                CgroupVersion::V1 => sample::cpu_stat_v1(text, cpu),
                CgroupVersion::V2 => sample::cpu_stat_v2(text, cpu),
            }
        }
        if let Some(text) = self.usage_percpu.read(buffer)? {
            sample::usage_percpu(text, cpu);
        } else if let Some(usage) = self.usage.read_u64(buffer)? {
            cpu.usage = Some(Duration::from_nanos(usage));
        }
        Ok(())
    }

    /// User and system time from separate files (v1).
    fn read_cpu_modes(&mut self, cpu: &mut CpuSample) -> Result<(), CgroupError> {
        let buffer = &mut self.buffer;
        let user = self.usage_user.read_u64(buffer)?;
        let system = self.usage_system.read_u64(buffer)?;
        cpu.user = user.map(Duration::from_nanos).or(cpu.user);
        cpu.system = system.map(Duration::from_nanos).or(cpu.system);
        Ok(())
    }

    pub fn read_memory(&mut self) -> Result<MemorySample, CgroupError> {
        let buffer = &mut self.buffer;
        let mut memory = MemorySample {
            usage: self.memory_usage.read_u64(buffer)?.map(Bytes::from_bytes),
            peak: self.memory_peak.read_u64(buffer)?.map(Bytes::from_bytes),
            ..MemorySample::default()
        };
        if let Some(text) = self.memory_stat.read(buffer)? {
            match self.memory_version {
                CgroupVersion::V1 => sample::memory_stat_v1(text, &mut memory),
                CgroupVersion::V2 => sample::memory_stat_v2(text, &mut memory),
            }
        }
        if let Some(kernel) = self.memory_kernel.read_u64(buffer)? {
            memory.kernel = Some(Bytes::from_bytes(kernel));
        }
        memory.oom_kill = self.memory_events.read(buffer)?.and_then(sample::oom_kill);
        Ok(memory)
    }

    /// The pressure totals. Not faster than every 20 ms, see [`PressureSample`].
    pub fn read_pressure(&mut self) -> Result<PressureSample, CgroupError> {
        let buffer = &mut self.buffer;
        let mut one = |stat: &StatFile| -> Result<Option<Pressure>, CgroupError> {
            Ok(stat.read(buffer)?.and_then(sample::parse_pressure))
        };
        Ok(PressureSample {
            cpu: one(&self.cpu_pressure)?,
            memory: one(&self.memory_pressure)?,
            io: one(&self.io_pressure)?,
        })
    }

    pub fn read_pids(&mut self) -> Result<Option<u64>, CgroupError> {
        self.pids_current.read_u64(&mut self.buffer)
    }
}

/// CLOCK_MONOTONIC in ns.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
