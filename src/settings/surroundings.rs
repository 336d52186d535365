//! Where the file of profiles is and where a program keeps its own files, and what else lies around
//! a program that settings come from.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::variables::CONFIG;

/// A file of profiles is not longer than this.
const LARGEST_CONFIG: u64 = 1 << 20;

/// Whose habits the folders of configuration files and of a program's own files follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `$XDG_CONFIG_HOME`, else `~/.config`; `$XDG_STATE_HOME`, else `~/.local/state`.
    Unix,
    /// `~/Library/Application Support` for both. Not tried.
    MacOs,
    /// `%APPDATA%`; `%LOCALAPPDATA%`. Not tried.
    Windows,
}

impl Platform {
    /// The one that this program was built for.
    #[must_use]
    pub fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Unix
        }
    }
}

/// What lies around a program: its variables, its files, its platform.
pub struct Surroundings<'a> {
    /// Looks a variable up.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The habits that are followed.
    pub platform: Platform,
}

impl Surroundings<'static> {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self { variable: &variable, read: &read_profiles, platform: Platform::current() }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
}

fn read_profiles(path: &Path) -> io::Result<String> {
    let bytes = read_file(path, LARGEST_CONFIG)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The contents of a file that has at most so many bytes. It may be a device or a pipe, which has no
/// end.
pub(crate) fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

impl Surroundings<'_> {
    /// The variable, where it is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|text| !text.trim().is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        let name = if self.platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
        self.get(name).map(PathBuf::from)
    }

    /// The file of profiles: that of [`CONFIG`], else `siteline/config.toml` in the platform's
    /// folder. `None` where there is neither variable nor home.
    pub(super) fn config_file(&self) -> Option<PathBuf> {
        if let Some(path) = self.get(CONFIG) {
            return Some(self.resolved(Path::new(""), path.trim()));
        }
        let folder = match self.platform {
            Platform::Unix => self.below_home("XDG_CONFIG_HOME", ".config"),
            Platform::MacOs => self.application_support(),
            Platform::Windows => self.get("APPDATA").map(PathBuf::from),
        };
        Some(folder?.join("siteline").join("config.toml"))
    }

    /// A file that siteline keeps for itself: in `siteline` in the platform's folder. `None` where
    /// there is neither variable nor home. Neither it nor its folder need be there yet.
    #[must_use]
    pub fn state_file(&self, name: &str) -> Option<PathBuf> {
        let folder = match self.platform {
            Platform::Unix => self.below_home("XDG_STATE_HOME", ".local/state"),
            Platform::MacOs => self.application_support(),
            Platform::Windows => self.get("LOCALAPPDATA").map(PathBuf::from),
        };
        Some(folder?.join("siteline").join(name))
    }

    /// The folder of the variable, else this one below home. A relative path is to be ignored, says
    /// the XDG specification.
    fn below_home(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home()?.join(usual)))
    }

    fn application_support(&self) -> Option<PathBuf> {
        Some(self.home()?.join("Library").join("Application Support"))
    }

    /// A path as it was written: `~/` is the home folder, a relative one begins at `folder`.
    pub(super) fn resolved(&self, folder: &Path, written: &str) -> PathBuf {
        let below_home = written
            .strip_prefix("~/")
            .or_else(|| written.strip_prefix("~\\").filter(|_| self.platform == Platform::Windows));
        match (below_home, self.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => folder.join(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(platform: Platform, pairs: &[(&str, &str)]) -> Option<PathBuf> {
        files(platform, pairs)[0].clone()
    }

    /// The file of profiles, and one of siteline's own.
    fn files(platform: Platform, pairs: &[(&str, &str)]) -> [Option<PathBuf>; 2] {
        let variable = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let around = Surroundings { variable: &variable, read: &read, platform };
        [around.config_file(), around.state_file("own.txt")]
    }

    #[test]
    fn what_siteline_keeps_lies_apart_from_what_the_user_writes() {
        let home = ("HOME", "/home/ada");
        for (platform, pairs, expected) in [
            (Platform::Unix, vec![home], "/home/ada/.local/state/siteline"),
            (Platform::Unix, vec![home, ("XDG_STATE_HOME", "/x")], "/x/siteline"),
            (
                Platform::Unix,
                vec![home, ("XDG_STATE_HOME", "x")],
                "/home/ada/.local/state/siteline",
            ),
            (Platform::MacOs, vec![home], "/home/ada/Library/Application Support/siteline"),
            (Platform::Windows, vec![("LOCALAPPDATA", "/local")], "/local/siteline"),
        ] {
            let found = files(platform, &pairs)[1].clone();
            assert_eq!(found, Some(Path::new(expected).join("own.txt")), "{pairs:?}");
        }
        for platform in [Platform::Unix, Platform::MacOs, Platform::Windows] {
            assert_eq!(files(platform, &[])[1], None);
        }
    }

    #[test]
    fn each_platform_has_its_own_folder_and_the_variable_goes_before_it() {
        let home = ("HOME", "/home/ada");
        for (platform, pairs, expected) in [
            (Platform::Unix, vec![home], "/home/ada/.config/siteline/config.toml"),
            (Platform::Unix, vec![home, ("XDG_CONFIG_HOME", "/x")], "/x/siteline/config.toml"),
            (
                Platform::Unix,
                vec![home, ("XDG_CONFIG_HOME", "x")],
                "/home/ada/.config/siteline/config.toml",
            ),
            (
                Platform::MacOs,
                vec![home],
                "/home/ada/Library/Application Support/siteline/config.toml",
            ),
            (Platform::Windows, vec![("APPDATA", "/roaming")], "/roaming/siteline/config.toml"),
            (Platform::Unix, vec![home, (CONFIG, "~/plants.toml")], "/home/ada/plants.toml"),
            (Platform::Unix, vec![(CONFIG, " plants.toml\n")], "plants.toml"),
        ] {
            assert_eq!(file(platform, &pairs), Some(PathBuf::from(expected)), "{pairs:?}");
        }
        assert_eq!(file(Platform::Unix, &[]), None);
    }
}
