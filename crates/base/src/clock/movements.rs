//! [`Movements`]: the movements of a manual clock, in memory or in a file that processes share.
//!
//! The file is text. Its first line contains the time at which the clock is stopped, or says that it
//! runs with the system clock. Each other line is one movement, appended by the process that moved the
//! clock: seconds and nanoseconds of the wall time, then of the monotonic time. A clock shows the sum of
//! all lines.
//!
//! A sum does not depend on the order, and short appends to a local file are not mixed. So no lock is
//! needed, and a stopped process blocks no other. On Windows not every filesystem guarantees this
//! (Wine's loses writes), so each user of the file locks it. The file is closed between readings, so
//! forked children and children that close all files can read it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const HEAD: &str = "siteline-clock 1";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Movement {
    pub(super) wall: SignedDuration,
    pub(super) monotonic: Duration,
}

impl Movement {
    fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall.saturating_add(other.wall),
            monotonic: self.monotonic.saturating_add(other.monotonic),
        }
    }

    fn line(self) -> String {
        let (wall, monotonic) = (self.wall, self.monotonic);
        let [seconds, rest] = [wall.as_secs(), wall.subsec_nanos().into()];
        format!("{seconds} {rest} {} {}\n", monotonic.as_secs(), monotonic.subsec_nanos())
    }

    /// `None` for an invalid line.
    fn of_line(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ');
        let wall = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let monotonic = (numbers.next()?.parse().ok()?, numbers.next()?.parse::<u32>().ok()?);
        let nanoseconds = -999_999_999..=999_999_999_i32;
        let is_whole = nanoseconds.contains(&wall.1)
            && nanoseconds.contains(&i32::try_from(monotonic.1).ok()?)
            && numbers.next().is_none();
        // The remainder cannot carry, so `new` cannot overflow.
        is_whole.then(|| Self {
            wall: SignedDuration::new(wall.0, wall.1),
            monotonic: Duration::new(monotonic.0, monotonic.1),
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Movements {
    sum: Movement,
    file: Option<SharedFile>,
}

#[derive(Debug)]
struct SharedFile {
    path: PathBuf,
    /// The number of its bytes that are in the sum.
    read: u64,
    /// The process that made the file removes it.
    maker: Option<u32>,
}

impl Movements {
    /// The sum. If the file is gone, the last sum with the movements since then.
    pub(super) fn sum(&mut self) -> Movement {
        if let Some(file) = &mut self.file {
            // The sandbox has ended, or no file can be opened: the next reading tries again.
            let _ = file.read_on(&mut self.sum);
        }
        self.sum
    }

    pub(super) fn add(&mut self, movement: Movement) {
        let is_shared = self.file.as_ref().is_some_and(|file| file.append(movement).is_ok());
        if !is_shared {
            self.sum = self.sum.plus(movement);
        }
    }

    /// The file, which is created if the movements are only in memory.
    pub(super) fn share(&mut self, stands_since: Option<Timestamp>) -> io::Result<PathBuf> {
        if let Some(file) = &self.file {
            return Ok(file.path.clone());
        }
        let path = create(stands_since, self.sum)?;
        let read = path.metadata()?.len();
        self.file = Some(SharedFile { path: path.clone(), read, maker: Some(std::process::id()) });
        Ok(path)
    }

    /// The movements in another clock's file, and the time at which that clock is stopped.
    pub(super) fn of_file(path: &Path) -> io::Result<(Option<Timestamp>, Self)> {
        let damaged = || io::Error::new(ErrorKind::InvalidData, "it is no file of a clock");
        // Reading a pipe or a device may block.
        if !path.metadata()?.is_file() {
            return Err(damaged());
        }
        let mut text = String::new();
        open(path)?.read_to_string(&mut text)?;
        let (head, _) = text.split_once('\n').ok_or_else(damaged)?;
        let stands_since = match head.strip_prefix(HEAD).ok_or_else(damaged)?.trim() {
            "runs" => None,
            rest => {
                let since = rest.strip_prefix("stands ").and_then(|time| time.parse().ok());
                Some(since.ok_or_else(damaged)?)
            }
        };
        let read = head.len() as u64 + 1;
        let file = SharedFile { path: path.to_owned(), read, maker: None };
        let mut movements = Self { sum: Movement::default(), file: Some(file) };
        movements.sum();
        Ok((stands_since, movements))
    }

    /// Removes the file if this process created it. The sum stays in memory.
    pub(super) fn unshare(&mut self) {
        self.sum();
        drop(self.file.take_if(|file| file.is_ours()));
    }
}

impl SharedFile {
    fn is_ours(&self) -> bool {
        self.maker == Some(std::process::id())
    }

    /// Adds the movements that were appended since the last reading.
    fn read_on(&mut self, sum: &mut Movement) -> io::Result<()> {
        if fs::metadata(&self.path)?.len() <= self.read {
            return Ok(());
        }
        let mut file = open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // An incomplete line is left for the next reading.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let movements = String::from_utf8_lossy(&bytes[..complete]);
        *sum = movements.lines().filter_map(Movement::of_line).fold(*sum, Movement::plus);
        self.read += complete as u64;
        Ok(())
    }

    fn append(&self, movement: Movement) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true);
        // A handle that can only append cannot lock.
        #[cfg(windows)]
        options.read(true);
        let mut file = options.open(&self.path)?;
        #[cfg(windows)]
        file.lock()?;
        file.write_all(movement.line().as_bytes())
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // Together with other files in its folder. If this fails, the system cleans its temporary
            // files.
            let _ = self.path.parent().map(fs::remove_dir_all);
        }
    }
}

/// The file, locked against appends.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    #[cfg(windows)]
    file.lock_shared()?;
    Ok(file)
}

/// Creates the file in a new folder with mode 0700.
fn create(stands_since: Option<Timestamp>, sum: Movement) -> io::Result<PathBuf> {
    let name = format!("siteline-clock-{}", uuid::Uuid::new_v4().simple());
    let folder = std::path::absolute(std::env::temp_dir())?.join(name);
    #[cfg_attr(windows, expect(unused_mut, reason = "it takes over the list of its folder"))]
    let mut builder = DirBuilder::new();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    builder.create(&folder)?;
    let path = folder.join("clock");
    let head = stands_since.map_or("runs".to_owned(), |since| format!("stands {since}"));
    let text = format!("{HEAD} {head}\n{}", sum.line());
    let written = options.open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    if let Err(error) = written {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&folder);
        return Err(error);
    }
    Ok(path)
}
