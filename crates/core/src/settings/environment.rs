//! [`Environment`]: the environment of a program, and the paths of the file of profiles and of
//! siteline's own files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::variables::{AS_WRITTEN, CONFIG, PASSPHRASE, PRIVATE_KEY, SANDBOX_CLOCK};
use crate::error::{Error, Kind, Result};
use crate::system;
use crate::written::{fault, trimmed, unquoted};

/// A file of profiles is not longer than this.
const LARGEST_CONFIG: u64 = 1 << 20;
/// A file of certificates is not longer than this.
const LARGEST_BUNDLE: u64 = 1 << 24;

/// The platform, which determines the folders of configuration files and of state files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `$XDG_CONFIG_HOME`, else `~/.config`; `$XDG_STATE_HOME`, else `~/.local/state`.
    Unix,
    /// `~/Library/Application Support` for both. Not tested.
    MacOs,
    /// `%APPDATA%`, else `~\AppData\Roaming`; `%LOCALAPPDATA%`, else `~\AppData\Local`.
    Windows,
}

impl Platform {
    /// The platform for which this program was built.
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

/// The environment of a program: its variables, its files, its platform.
pub struct Environment<'a> {
    /// Looks up a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The user's home folder by the password database, for programs without the variable: of cron,
    /// of a service.
    pub home: &'a dyn Fn() -> Option<PathBuf>,
    /// The platform.
    pub platform: Platform,
}

impl Environment<'static> {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let platform = Platform::current();
        Self { variable: &variable, read: &read_profiles, home: &home, platform }
    }
}

/// The value of a variable of this process, from which a pickled credential was made.
///
/// # Errors
/// `CredentialError` where it is not set.
pub fn variable_of_pickle(name: &str) -> Result<Zeroizing<String>> {
    let text = std::env::var(name).ok().map(Zeroizing::new);
    let text = text.map(|text| Zeroizing::new(value_of(name, &text)));
    text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        let message = format!("{name} is not set in this process.");
        let hint = "The pickled credential was made from it: set it to the same value here.";
        Error::new(Kind::CredentialError, message).with_hint(hint)
    })
}

/// What a variable means. An environment file and a secret of a container may leave a line break at its
/// end or quotation marks around it.
fn value_of(name: &str, written: &str) -> String {
    match name {
        // Everything else may be a part of it.
        PASSPHRASE => written.trim_end_matches(['\r', '\n']).to_owned(),
        PRIVATE_KEY => {
            let text = unquoted(written);
            // An environment file has no line breaks, so they are often written as `\n`.
            if text.contains('\n') { text.to_owned() } else { text.replace("\\n", "\n") }
        }
        _ if AS_WRITTEN.contains(&name) => trimmed(written).to_owned(),
        _ => unquoted(written).to_owned(),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
}

#[cfg(unix)]
fn home() -> Option<PathBuf> {
    use nix::unistd::{Uid, User};
    let home = User::from_uid(Uid::effective()).ok()??.dir;
    home.is_absolute().then_some(home)
}

/// The folder of the user's profile.
#[cfg(windows)]
fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// The text of a file of profiles.
///
/// # Errors
/// Those of the system, and `InvalidData` if it is not UTF-8.
pub fn read_profiles(path: &Path) -> io::Result<String> {
    let bytes = read_file(path, LARGEST_CONFIG)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The contents of a file that has at most so many bytes. It may be a device or a pipe, which has no
/// end.
fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The bytes of the file `ca_bundle=`.
///
/// # Errors
/// `ConfigError` that names the path if the file cannot be read or is longer than 16 MiB.
pub fn read_certificates(path: &Path) -> Result<Vec<u8>> {
    read_file(path, LARGEST_BUNDLE).map_err(|error| {
        let why = system::reason(&error);
        let message = format!("ca_bundle={:?} cannot be read: {why}.", path.display());
        let hint = "It is a file of certificates in PEM form; SSL_CERT_DIR takes a folder.";
        Error::new(Kind::ConfigError, message).with_hint(hint).passing_as(&error)
    })
}

impl Environment<'_> {
    /// The variable, if it is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let text = value_of(name, &(self.variable)(name)?);
        (!text.trim().is_empty()).then_some(text)
    }

    /// Refuses variables that cannot be meant as they are, without their values.
    ///
    /// # Errors
    /// `ConfigError` that names the variable.
    pub(super) fn check(&self, names: &[&str]) -> Result<()> {
        for name in names.iter().filter(|name| !AS_WRITTEN.contains(name)) {
            if let Some(why) = self.get(name).and_then(|value| fault(&value)) {
                let message = format!("{name} cannot be used: {why}.");
                let hint = "Write its value on one line; quotation marks are not needed.";
                return Err(Error::new(Kind::ConfigError, message).with_hint(hint));
            }
        }
        Ok(())
    }

    /// The variable [`SANDBOX_CLOCK`].
    #[must_use]
    pub fn sandbox_clock(&self) -> Option<String> {
        self.get(SANDBOX_CLOCK)
    }

    /// A variable that names an agent, or what proves a client to it.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<String> {
        self.get(name).map(|text| text.trim().to_owned())
    }

    fn home(&self) -> Option<PathBuf> {
        let name = if self.platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
        self.get(name).map(PathBuf::from).or_else(|| (self.home)())
    }

    /// The file of profiles: that of [`CONFIG`], else `siteline/config.toml` in the platform's folder.
    /// `None` if there is neither a variable nor a home folder.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        if let Some(path) = self.get(CONFIG) {
            return Some(self.resolved(Path::new(""), path.trim()));
        }
        let folder = match self.platform {
            Platform::Unix => self.below_home("XDG_CONFIG_HOME", ".config"),
            Platform::MacOs => self.application_support(),
            Platform::Windows => self.app_data("APPDATA", "Roaming"),
        };
        Some(folder?.join("siteline").join("config.toml"))
    }

    /// The folder of state files: `siteline` in the platform's folder. `None` if there is neither a
    /// variable nor a home folder. It need not exist.
    #[must_use]
    pub fn state_folder(&self) -> Option<PathBuf> {
        let folder = match self.platform {
            Platform::Unix => self.below_home("XDG_STATE_HOME", ".local/state"),
            Platform::MacOs => self.application_support(),
            Platform::Windows => self.app_data("LOCALAPPDATA", "Local"),
        };
        Some(folder?.join("siteline"))
    }

    /// The path of a state file, which need not exist.
    #[must_use]
    pub fn state_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.state_folder()?.join(name))
    }

    /// The folder of the variable, else `default` in the home folder. A relative path is ignored, as
    /// the XDG specification requires.
    fn below_home(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home()?.join(default)))
    }

    /// The folder of the variable, else the folder that it names by default: a service may lack it.
    fn app_data(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from);
        named.or_else(|| Some(self.home()?.join("AppData").join(default)))
    }

    fn application_support(&self) -> Option<PathBuf> {
        Some(self.home()?.join("Library").join("Application Support"))
    }

    /// Resolves a path: `~/` is the home folder, a relative path starts at `folder`.
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

    /// A folder that is absolute on this system, and what would be in it.
    const ABSOLUTE: &str = if cfg!(windows) { "C:/x" } else { "/x" };
    const ABSOLUTE_STATE: &str = if cfg!(windows) { "C:/x/siteline" } else { "/x/siteline" };
    const ABSOLUTE_CONFIG: &str =
        if cfg!(windows) { "C:/x/siteline/config.toml" } else { "/x/siteline/config.toml" };

    fn file(platform: Platform, pairs: &[(&str, &str)]) -> Option<PathBuf> {
        files(platform, pairs)[0].clone()
    }

    /// The file of profiles, and a state file.
    fn files(platform: Platform, pairs: &[(&str, &str)]) -> [Option<PathBuf>; 2] {
        let variable = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let environment =
            Environment { variable: &variable, read: &read, home: &|| None, platform };
        [environment.config_file(), environment.state_file("own.txt")]
    }

    #[test]
    fn state_files_have_their_own_folder() {
        let home = ("HOME", "/home/ada");
        for (platform, pairs, expected) in [
            (Platform::Unix, vec![home], "/home/ada/.local/state/siteline"),
            (Platform::Unix, vec![home, ("XDG_STATE_HOME", ABSOLUTE)], ABSOLUTE_STATE),
            (
                Platform::Unix,
                vec![home, ("XDG_STATE_HOME", "x")],
                "/home/ada/.local/state/siteline",
            ),
            (Platform::MacOs, vec![home], "/home/ada/Library/Application Support/siteline"),
            (Platform::Windows, vec![("LOCALAPPDATA", "/local")], "/local/siteline"),
            (Platform::Windows, vec![("USERPROFILE", "/ada")], "/ada/AppData/Local/siteline"),
        ] {
            let found = files(platform, &pairs)[1].clone();
            assert_eq!(found, Some(Path::new(expected).join("own.txt")), "{pairs:?}");
        }
        for platform in [Platform::Unix, Platform::MacOs, Platform::Windows] {
            assert_eq!(files(platform, &[])[1], None);
        }
    }

    #[test]
    fn b20_without_the_variable_the_home_folder_is_that_of_the_password_database() {
        let none = |_: &str| None;
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let platform = Platform::Unix;
        let home = || Some(PathBuf::from("/home/cron"));
        let cron = Environment { variable: &none, read: &read, home: &home, platform };
        let file = cron.state_file("own.txt").expect("a home");
        assert_eq!(file, Path::new("/home/cron/.local/state/siteline/own.txt"));
        assert!(super::home().is_none_or(|home| home.is_absolute()));
    }

    #[test]
    fn each_platform_has_its_own_folder_which_the_variable_overrides() {
        let home = ("HOME", "/home/ada");
        for (platform, pairs, expected) in [
            (Platform::Unix, vec![home], "/home/ada/.config/siteline/config.toml"),
            (Platform::Unix, vec![home, ("XDG_CONFIG_HOME", ABSOLUTE)], ABSOLUTE_CONFIG),
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
            (
                Platform::Windows,
                vec![("USERPROFILE", "/ada")],
                "/ada/AppData/Roaming/siteline/config.toml",
            ),
            (Platform::Unix, vec![home, (CONFIG, "~/plants.toml")], "/home/ada/plants.toml"),
            (Platform::Unix, vec![(CONFIG, " plants.toml\n")], "plants.toml"),
        ] {
            assert_eq!(file(platform, &pairs), Some(PathBuf::from(expected)), "{pairs:?}");
        }
        assert_eq!(file(Platform::Unix, &[]), None);
    }
}
