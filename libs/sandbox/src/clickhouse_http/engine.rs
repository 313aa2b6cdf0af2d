//! The engine and its sessions. Every request gets a session of its own, as ClickHouse gives every HTTP
//! request one: settings, current database, temporary tables and parameters end with it, and so does the
//! partial output of a statement that failed, which libchdb puts in front of the same session's next answer.
//! A session costs 0.1 ms. One more stays open for ever: the engine ends with its last session.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use tokio::sync::Semaphore;

use super::chdb::{self, Connection, Functions};
use super::exception::Exception;
use super::request::Request;

/// libchdb with a data directory.
pub(crate) struct Engine {
    lib: &'static Functions,
    arguments: Vec<CString>,
    /// Places for statements under way.
    pub(crate) places: Arc<Semaphore>,
    /// Where large bodies wait.
    pub(crate) spool: PathBuf,
    _anchor: Mutex<Connection>,
}

impl Engine {
    /// Loads the library and opens the data directory.
    pub(crate) fn open(library: &Path, data: &Path, places: usize) -> Result<Self> {
        let spool = data.join("spool");
        std::fs::create_dir_all(&spool).with_context(|| format!("creating {}", spool.display()))?;
        let lib = chdb::load(library).with_context(|| format!("loading {}", library.display()))?;
        let store = data.join("store");
        let path = [b"--path=".as_slice(), store.as_os_str().as_bytes()].concat();
        // A server doesn't read `selec 1` as `SELECT selec 1`.
        let arguments =
            vec![c"clickhouse".to_owned(), CString::new(path)?, c"--implicit_select=0".to_owned()];
        let anchor = Connection::open(lib, &arguments)
            .map_err(|exception| anyhow::anyhow!("opening {}: {exception}", store.display()))?;
        let places = Arc::new(Semaphore::new(places));
        Ok(Self { lib, arguments, places, spool, _anchor: Mutex::new(anchor) })
    }

    /// A session as the request wants it.
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
        settings.extend(request.mark.as_deref().map(|mark| format!("log_comment = {}", quoted(mark))));
        if let Some(database) = request.database.as_deref().filter(|name| !name.is_empty()) {
            session.query(format!("USE {}", name_of(database)).as_bytes(), "Null", &[])?;
        }
        if !settings.is_empty() {
            session.query(format!("SET {}", settings.join(", ")).as_bytes(), "Null", &[])?;
        }
        Ok(session)
    }

    /// Ends the statement with that mark, if it runs; it ends by itself soon after.
    pub(crate) fn kill(&self, mark: &str) -> Result<(), Exception> {
        let mut session = Connection::open(self.lib, &self.arguments)?;
        let kill = format!("KILL QUERY WHERE Settings['log_comment'] = {} ASYNC", quoted(mark));
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
