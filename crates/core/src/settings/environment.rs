//! The environment of a program, and the paths of siteline's own files.

use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::variables::{AS_WRITTEN, CONFIG, PASSPHRASE, PRIVATE_KEY};
use crate::error::{Error, Kind, Result};
use crate::files::read_whole;
use crate::system;
use crate::written::{fault, trimmed, unquoted};

const LARGEST_CONFIG: u64 = 1 << 20;
const LARGEST_BUNDLE: u64 = 1 << 24;

/// Determines the folders for configuration and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `$XDG_CONFIG_HOME`, otherwise `~/.config`; `$XDG_STATE_HOME`, otherwise `~/.local/state`.
    Unix,
    /// `~/Library/Application Support` for both. Not tested.
    MacOs,
    /// `%APPDATA%`, otherwise `~\AppData\Roaming`; `%LOCALAPPDATA%`, otherwise `~\AppData\Local`.
    Windows,
}

impl Platform {
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

pub struct Environment<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The home folder from the password database, for programs without the variable (cron,
    /// services).
    pub home: &'a dyn Fn() -> Option<PathBuf>,
    pub platform: Platform,
}

impl Environment<'static> {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let platform = Platform::current();
        Self { variable: &variable, read: &read_profiles, home: &home, platform }
    }
}

/// The variable of a pickled credential, in this process.
pub fn variable_of_pickle(name: &str) -> Result<Zeroizing<String>> {
    let text = std::env::var(name).ok().map(Zeroizing::new);
    let text = text.map(|text| Zeroizing::new(value_of(name, &text)));
    text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        let message = format!("{name} is not set in this process.");
        let hint = "The pickled credential was made from it. Set it to the same value here.";
        Error::new(Kind::CredentialError, message).with_hint(hint)
    })
}

/// Environment files and container secrets may add a line break at the end or quotation marks.
fn value_of(name: &str, written: &str) -> String {
    match name {
        // A passphrase may contain any other character.
        PASSPHRASE => written.trim_end_matches(['\r', '\n']).to_owned(),
        PRIVATE_KEY => {
            let text = unquoted(written);
            // Environment files have no line breaks, so they are often written as `\n`.
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

#[cfg(windows)]
fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

pub fn read_profiles(path: &Path) -> io::Result<String> {
    let bytes = read_whole(path, LARGEST_CONFIG)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
}

pub fn read_certificates(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    read_whole(path, LARGEST_BUNDLE).map_err(|error| {
        let why = system::reason(&error);
        let message = format!("The file ca_bundle={:?} cannot be read: {why}.", path.display());
        let hint = "Use a file of certificates in PEM form. SSL_CERT_DIR accepts a folder.";
        Error::new(Kind::ConfigError, message).with_hint(hint).passing_as(&error)
    })
}

impl Environment<'_> {
    /// Without the white space and quotation marks around it. `None` if unset or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let text = value_of(name, &(self.variable)(name)?);
        (!text.trim().is_empty()).then_some(text)
    }

    /// The error of an impossible value does not contain it.
    pub(super) fn check(&self, names: impl Iterator<Item = &'static str>) -> Result<()> {
        for name in names.filter(|name| !AS_WRITTEN.contains(name)) {
            if let Some(why) = self.get(name).and_then(|value| fault(&value)) {
                let message = format!("{name} cannot be used: {why}.");
                let hint = "Write the value on one line, without quotation marks.";
                return Err(Error::new(Kind::ConfigError, message).with_hint(hint));
            }
        }
        Ok(())
    }

    fn home(&self) -> Option<PathBuf> {
        let name = if self.platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
        self.get(name).map(PathBuf::from).or_else(|| (self.home)())
    }

    /// [`CONFIG`], otherwise `siteline/config.toml` in the platform's folder. `None` without a home
    /// folder.
    pub fn config_file(&self) -> Option<PathBuf> {
        if let Some(path) = self.get(CONFIG) {
            return Some(self.resolved(Path::new(""), &path));
        }
        let folder = match self.platform {
            Platform::Unix => self.folder("XDG_CONFIG_HOME", &[".config"]),
            Platform::MacOs => self.folder("", &["Library", "Application Support"]),
            Platform::Windows => self.folder("APPDATA", &["AppData", "Roaming"]),
        };
        Some(folder?.join("siteline").join("config.toml"))
    }

    /// `siteline` in the platform's folder. It need not exist. `None` without a home folder.
    pub fn state_folder(&self) -> Option<PathBuf> {
        let folder = match self.platform {
            Platform::Unix => self.folder("XDG_STATE_HOME", &[".local", "state"]),
            Platform::MacOs => self.folder("", &["Library", "Application Support"]),
            Platform::Windows => self.folder("LOCALAPPDATA", &["AppData", "Local"]),
        };
        Some(folder?.join("siteline"))
    }

    /// It need not exist.
    pub fn state_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.state_folder()?.join(name))
    }

    /// The folder in the variable, otherwise `default` in the home folder. Services may lack the
    /// variable. The XDG specification requires to ignore a relative path.
    fn folder(&self, variable: &str, default: &[&str]) -> Option<PathBuf> {
        let is_used = |path: &PathBuf| path.is_absolute() || self.platform == Platform::Windows;
        let named = self.get(variable).map(PathBuf::from).filter(is_used);
        named.or_else(|| {
            let mut folder = self.home()?;
            folder.extend(default);
            Some(folder)
        })
    }

    /// Paths start at the home folder after `~/`, and otherwise at `folder`.
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

    /// A folder that is absolute on this system, and the folder in it.
    const ABSOLUTE: &str = if cfg!(windows) { "C:/x" } else { "/x" };
    const ABSOLUTE_SITELINE: &str = if cfg!(windows) { "C:/x/siteline" } else { "/x/siteline" };

    /// The profile file and a state file.
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
    fn b20_the_password_database_provides_the_home_folder() {
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
    fn each_platform_has_its_own_folders_which_variables_override() {
        use Platform::{MacOs, Unix, Windows};
        let home = ("HOME", "/home/ada");
        let (config, state) = ("/home/ada/.config/siteline", "/home/ada/.local/state/siteline");
        let library = "/home/ada/Library/Application Support/siteline";
        let (roaming, local) = ("/ada/AppData/Roaming/siteline", "/ada/AppData/Local/siteline");
        for (platform, pairs, config, state) in [
            (Unix, vec![home], config, state),
            (Unix, vec![home, ("XDG_CONFIG_HOME", ABSOLUTE)], ABSOLUTE_SITELINE, state),
            (Unix, vec![home, ("XDG_STATE_HOME", ABSOLUTE)], config, ABSOLUTE_SITELINE),
            (Unix, vec![home, ("XDG_CONFIG_HOME", "x"), ("XDG_STATE_HOME", "x")], config, state),
            (MacOs, vec![home], library, library),
            (
                Windows,
                vec![("APPDATA", "/r"), ("LOCALAPPDATA", "/l")],
                "/r/siteline",
                "/l/siteline",
            ),
            (Windows, vec![("USERPROFILE", "/ada")], roaming, local),
        ] {
            let expected =
                [Path::new(config).join("config.toml"), Path::new(state).join("own.txt")];
            assert_eq!(files(platform, &pairs), expected.map(Some), "{pairs:?}");
        }
        let named = |pairs: &[(&str, &str)]| files(Unix, pairs)[0].clone();
        assert_eq!(named(&[home, (CONFIG, "~/plants.toml")]), Some("/home/ada/plants.toml".into()));
        assert_eq!(named(&[(CONFIG, " plants.toml\n")]), Some("plants.toml".into()));
        for platform in [Unix, MacOs, Windows] {
            assert_eq!(files(platform, &[]), [None, None]);
        }
    }
}
