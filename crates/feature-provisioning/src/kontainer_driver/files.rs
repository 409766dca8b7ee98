//! Where drivers are in the data folder, and how they are started.
//!
//! A driver is in a folder named after the SHA-256 of what its URL gave, so two objects with the
//! same program share it, and another program never replaces one in place.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_management::KontainerDriver;
use driver_host::{Confinement, DriverProgram};
use kube::ResourceExt;
use tokio::sync::OnceCell;

use super::built_in::BuiltInDriver;
use super::download::Downloaded;
use super::program::{self, Installed, ProgramError};

/// What starts a driver that is part of Drover.
const DRIVER_PROCESS: &str = "driver-process";
/// The file of a program. Drivers with other names may be the same program.
const PROGRAM: &str = "driver";
/// Folders of downloads that are not complete. They are removed at the next start.
const UNFINISHED: &str = "unfinished-";

/// What the server gives to drivers.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// Folder of the programs.
    pub folder: PathBuf,
    /// How drivers are confined.
    pub confinement: Confinement,
    /// Those that are part of Drover.
    pub built_in: Arc<[BuiltInDriver]>,
    /// Where that is not possible, run drivers with the rights of the server.
    pub allow_unconfined: bool,
    /// Longest call of a driver that makes, changes or removes a cluster.
    pub call_time_max: Duration,
}

/// A driver cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    /// It was not fetched, or its file is gone.
    #[error("the driver's program is not on this server; it is fetched again")]
    Missing,
    /// The machine does not allow a sandbox.
    #[error(
        "drivers are not run, because this machine does not let the server confine them: {0}; \
         --allow-unconfined-drivers runs them with the rights of the server"
    )]
    NotConfined(String),
    /// The name of a driver that Drover does not have.
    #[error("this version of Drover has no driver \"{0}\"")]
    NotBuiltIn(String),
}

/// The programs of drivers.
pub struct DriverFiles {
    settings: DriverSettings,
    /// Why drivers cannot be confined here, if they cannot. Tried once, when it is needed first.
    unconfined: OnceCell<Option<String>>,
}

impl DriverFiles {
    /// The programs in the folder of the settings. Nothing is read or made yet.
    pub fn new(settings: DriverSettings) -> Self {
        Self { settings, unconfined: OnceCell::new() }
    }

    /// What the server gave to drivers: where they are, and how they are confined.
    pub fn settings(&self) -> &DriverSettings {
        &self.settings
    }

    /// A folder for a download, removed with the value.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn unfinished(&self) -> std::io::Result<tempfile::TempDir> {
        std::fs::create_dir_all(&self.settings.folder)?;
        tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.settings.folder)
    }

    /// Installs what was downloaded into `unfinished`.
    ///
    /// # Errors
    /// It is no driver for this machine, or the folder cannot be written.
    pub fn install(
        &self,
        unfinished: &Path,
        file: &Path,
        downloaded: &Downloaded,
    ) -> Result<Installed, ProgramError> {
        let inner = unfinished.join("installed");
        std::fs::create_dir(&inner)?;
        let Installed { name, file } = program::install(file, &downloaded.names, &inner)?;
        let folder = self.settings.folder.join(&downloaded.sha256);
        let program = folder.join(PROGRAM);
        // What is there came of the same download, and may be running.
        if !program.is_file() {
            std::fs::rename(file, inner.join(PROGRAM))?;
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::rename(&inner, &folder)?;
        }
        Ok(Installed { name, file: program })
    }

    /// Whether the program of an installed driver is on this server.
    pub fn has(&self, driver: &KontainerDriver) -> bool {
        self.path(driver).is_some_and(|path| path.is_file())
    }

    /// Where the program of an installed driver is on this server. Not what the status says: that
    /// is where another server of the same installation put it.
    fn path(&self, driver: &KontainerDriver) -> Option<PathBuf> {
        let checksum = &driver.status.installed_checksum;
        (!checksum.is_empty()).then(|| self.settings.folder.join(checksum).join(PROGRAM))
    }

    /// Removes the programs that none of the drivers use.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn remove_unused<'a>(
        &self,
        drivers: impl Iterator<Item = &'a KontainerDriver>,
    ) -> std::io::Result<()> {
        let used: HashSet<&str> =
            drivers.map(|driver| driver.status.installed_checksum.as_str()).collect();
        let entries = match std::fs::read_dir(&self.settings.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            // Downloads remove their own.
            if !used.contains(name) && !name.starts_with(UNFINISHED) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes what interrupted downloads left. Only at a start.
    pub fn remove_unfinished(&self) {
        let entries = std::fs::read_dir(&self.settings.folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED)) {
                // What stays costs disk, and is tried again at the next start.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Why drivers cannot be confined here; `None`: they are.
    pub async fn unconfined(&self) -> Option<&str> {
        let check = || async {
            self.settings.confinement.check().await.err().map(|error| error.to_string())
        };
        self.unconfined.get_or_init(check).await.as_deref()
    }

    /// The program of a driver, to be started.
    ///
    /// # Errors
    /// See [`NoProgram`].
    pub async fn program(&self, driver: &KontainerDriver) -> Result<DriverProgram, NoProgram> {
        let confinement = match self.unconfined().await {
            None => Some(self.settings.confinement.clone()),
            // Drivers of Drover are as trustworthy as the server.
            Some(_) if self.settings.allow_unconfined || driver.spec.built_in => None,
            Some(why) => return Err(NoProgram::NotConfined(why.to_owned())),
        };
        let (file, arguments) = if driver.spec.built_in {
            let found = BuiltInDriver::of(&self.settings.built_in, driver);
            let found = found.ok_or_else(|| NoProgram::NotBuiltIn(driver.name_any()))?;
            let file = std::env::current_exe().map_err(|_| NoProgram::Missing)?;
            (file, vec![DRIVER_PROCESS.into(), found.name.into()])
        } else {
            let file = self.path(driver).filter(|path| path.is_file());
            (file.ok_or(NoProgram::Missing)?, Vec::new())
        };
        Ok(DriverProgram { file, arguments, environment: Vec::new(), confinement })
    }
}
