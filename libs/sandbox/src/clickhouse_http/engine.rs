//! The engine and its sessions. As in ClickHouse, every HTTP request has a session of its own. Settings, current database,
//! temporary tables and parameters end with it. So does the partial output of a failed statement, which libchdb would
//! prepend to the same session's next output. A session costs 0.1 ms. One session stays open permanently, because the
//! engine shuts down with its last session.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use tokio::sync::Semaphore;

use super::chdb::{self, Connection, Functions};
use super::exception::Exception;
use super::request::Request;
use crate::clickhouse::server::backups_section;

/// libchdb with a data directory.
pub(crate) struct Engine {
    lib: &'static Functions,
    arguments: Vec<CString>,
    /// Permits of concurrent statements.
    pub(crate) permits: Arc<Semaphore>,
    /// The directory of large request bodies.
    pub(crate) spool: PathBuf,
    _anchor: Mutex<Connection>,
}

impl Engine {
    /// Loads the library and opens the data directory.
    pub(crate) fn open(
        library: &Path,
        data: &Path,
        max_concurrent: usize,
        backups: Option<&Path>,
    ) -> Result<Self> {
        let spool = data.join("spool");
        std::fs::create_dir_all(&spool).with_context(|| format!("creating {}", spool.display()))?;
        let lib = chdb::load(library).with_context(|| format!("loading {}", library.display()))?;
        let store = data.join("store");
        let path = [b"--path=".as_slice(), store.as_os_str().as_bytes()].concat();
        // Like a server, reject `selec 1` instead of reading it as `SELECT selec 1`.
        let mut arguments =
            vec![c"clickhouse".to_owned(), CString::new(path)?, c"--implicit_select=0".to_owned()];
        if let Some(folder) = backups {
            std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
            let file = data.join("backups.xml");
            std::fs::write(&file, format!("<clickhouse>{}</clickhouse>\n", backups_section(folder)))?;
            let argument = [b"--config-file=".as_slice(), file.as_os_str().as_bytes()].concat();
            arguments.push(CString::new(argument)?);
        }
        let anchor = Connection::open(lib, &arguments)
            .map_err(|exception| anyhow::anyhow!("opening {}: {exception}", store.display()))?;
        let permits = Arc::new(Semaphore::new(max_concurrent));
        Ok(Self { lib, arguments, permits, spool, _anchor: Mutex::new(anchor) })
    }

    /// Opens a session with the request's settings and database.
    pub(crate) fn session(&self, request: &Request) -> Result<Connection, Exception> {
        let mut session = Connection::open(self.lib, &self.arguments)?;
        let mut settings: Vec<String> = request
            .settings
            .iter()
            .map(|(name, value)| format!("{} = {}", name_of(name), quoted(value)))
            .collect();
        if request.readonly {
            settings.push("readonly = 2".to_owned());
        }
        settings.extend(request.kill_id.as_deref().map(|id| format!("log_comment = {}", quoted(id))));
        if let Some(database) = request.database.as_deref().filter(|name| !name.is_empty()) {
            session.query(format!("USE {}", name_of(database)).as_bytes(), "Null", &[])?;
        }
        if !settings.is_empty() {
            session.query(format!("SET {}", settings.join(", ")).as_bytes(), "Null", &[])?;
        }
        Ok(session)
    }

    /// Cancels the running statement with that id. The statement ends soon after.
    pub(crate) fn kill(&self, kill_id: &str) -> Result<(), Exception> {
        let mut session = Connection::open(self.lib, &self.arguments)?;
        let kill = format!("KILL QUERY WHERE Settings['log_comment'] = {} ASYNC", quoted(kill_id));
        session.query(kill.as_bytes(), "Null", &[]).map(drop)
    }
}

fn escaped(text: &str, quote: char) -> String {
    text.chars().flat_map(|c| (c == quote || c == '\\').then_some('\\').into_iter().chain([c])).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", escaped(text, '\''))
}

fn name_of(text: &str) -> String {
    format!("`{}`", escaped(text, '`'))
}
