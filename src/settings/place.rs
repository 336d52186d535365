//! Where the file of profiles is, and what else lies around a program that settings come from.

use std::io;
use std::path::{Path, PathBuf};

use super::CONFIG;

/// Whose habits the folder of configuration files follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Unix,
    /// `~/Library/Application Support`.
    MacOs,
    /// `%APPDATA%`.
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
            // A relative path is to be ignored, says the XDG specification.
            Platform::Unix => self
                .get("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or_else(|| Some(self.home()?.join(".config"))),
            Platform::MacOs => Some(self.home()?.join("Library").join("Application Support")),
            Platform::Windows => self.get("APPDATA").map(PathBuf::from),
        };
        Some(folder?.join("siteline").join("config.toml"))
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
        let variable = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        Surroundings { variable: &variable, read: &read, platform }.config_file()
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
