//! The kernel's copy of the process's environment, which `/proc/<pid>/environ` shows. The memory is fixed at the
//! start of a program. Removing a variable from the process's own list leaves the memory unchanged.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    os::unix::fs::FileExt,
};

/// The index of the environment's start and end in `/proc/self/stat`, counted after the name of the program.
const START_FIELD: usize = 47;
const END_FIELD: usize = 48;
/// The largest environment. With the usual stack limit, the kernel accepts at most 2 MiB.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The memory of the environment.
pub(super) struct Block {
    memory: File,
    region: Range<u64>,
}

impl Block {
    /// Opens the memory. The kernel allows it as long as the process is not shut.
    pub(super) fn open() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        let region = region(&stat).ok_or(io::ErrorKind::InvalidData)?;
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")?;
        Ok(Self { memory, region })
    }

    /// Overwrites every entry with a chosen name, or with a name outside UTF-8, with zeros.
    pub(super) fn clear(&self, is_chosen: impl Fn(&str) -> bool) -> io::Result<()> {
        let length = self.region.end.saturating_sub(self.region.start);
        if length > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.memory.read_exact_at(&mut bytes, self.region.start)?;
        clear(&mut bytes, is_chosen);
        self.memory.write_all_at(&bytes, self.region.start)
    }
}

/// Returns the memory region of the environment.
fn region(stat: &str) -> Option<Range<u64>> {
    // The name of the program may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let start = fields.nth(START_FIELD)?.parse().ok()?;
    let end = fields.nth(END_FIELD - START_FIELD - 1)?.parse().ok()?;
    (start != 0 && start <= end).then_some(start..end)
}

fn clear(bytes: &mut [u8], is_chosen: impl Fn(&str) -> bool) {
    for entry in bytes.split_mut(|byte| *byte == 0) {
        let name = entry.split(|byte| *byte == b'=').next().unwrap_or_default();
        if str::from_utf8(name).ok().is_none_or(&is_chosen) {
            entry.fill(0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_chosen_entries_are_cleared() {
        let mut bytes = b"PATH=/bin\0KEY=secret=1\0\xff=x\0HOME=/\0".to_vec();
        let before = bytes.len();
        clear(&mut bytes, |name| name == "KEY");
        assert_eq!(bytes.len(), before);
        assert!(bytes.starts_with(b"PATH=/bin\0") && bytes.ends_with(b"\0HOME=/\0"));
        let left = bytes.iter().filter(|byte| **byte != 0).count();
        assert_eq!(left, b"PATH=/binHOME=/".len(), "{bytes:?}");
    }

    #[test]
    fn the_region_is_that_of_the_kernel() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let region = region(&stat).unwrap();
        let shown = fs::read("/proc/self/environ").unwrap();
        assert_eq!(region.end - region.start, shown.len() as u64);
        assert!(super::region("1 (a) b) S 1 2 3").is_none());
    }

    /// Reads and writes the memory of the test's own process, without a change.
    #[test]
    fn the_memory_can_be_written() {
        let before = fs::read("/proc/self/environ").unwrap();
        Block::open().unwrap().clear(|_| false).unwrap();
        assert_eq!(fs::read("/proc/self/environ").unwrap(), before);
    }
}
