//! Bindings to libchdb, loaded at run time. The only file that calls C, and one of two with `unsafe` (see `child.rs`).
//!
//! The library is ClickHouse's engine. A process has one engine. Connections to it are cheap sessions (0.07 ms), each of
//! which runs one statement at a time. The functions follow chdb.h of version 26.7.
#![expect(unsafe_code, reason = "calls a C library; each call states why it is sound")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::slice;

use libloading::Library;

use super::exception::Exception;

type Handle = *mut c_void;
type Text = *const c_char;
type Query = unsafe extern "C" fn(
    Handle,
    Text,
    usize,
    Text,
    usize,
    *const Text,
    *const usize,
    *const Text,
    *const usize,
    usize,
) -> Handle;

macro_rules! functions {
    ($($name:ident: $type:ty),* $(,)?) => {
        /// The functions of libchdb in use. Never freed: the engine's threads run until the process ends.
        pub(crate) struct Functions { $($name: $type,)* _library: Library }

        impl Functions {
            fn find(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of chdb.h; the pointers live as long as `_library`.
                unsafe { $(let $name = *library.get::<$type>(stringify!($name))?;)*
                    Ok(Self { $($name,)* _library: library }) }
            }
        }
    };
}

functions! {
    chdb_set_signal_handlers_enabled: unsafe extern "C" fn(c_int),
    chdb_connect: unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut Handle,
    chdb_close_conn: unsafe extern "C" fn(*mut Handle),
    chdb_query_with_params_n: Query,
    chdb_stream_query_with_params_n: Query,
    chdb_stream_fetch_result: unsafe extern "C" fn(Handle, Handle) -> Handle,
    chdb_stream_cancel_query: unsafe extern "C" fn(Handle, Handle),
    chdb_stream_insert_with_params_n: Query,
    chdb_stream_append: unsafe extern "C" fn(Handle, *const c_void, usize) -> c_int,
    chdb_stream_done: unsafe extern "C" fn(Handle) -> Handle,
    chdb_stream_insert_error: unsafe extern "C" fn(Handle) -> Text,
    chdb_destroy_insert_stream: unsafe extern "C" fn(Handle),
    chdb_result_buffer: unsafe extern "C" fn(Handle) -> *const u8,
    chdb_result_length: unsafe extern "C" fn(Handle) -> usize,
    chdb_result_rows_read: unsafe extern "C" fn(Handle) -> u64,
    chdb_result_bytes_read: unsafe extern "C" fn(Handle) -> u64,
    chdb_result_rows_written: unsafe extern "C" fn(Handle) -> u64,
    chdb_result_bytes_written: unsafe extern "C" fn(Handle) -> u64,
    chdb_result_error: unsafe extern "C" fn(Handle) -> Text,
    chdb_destroy_query_result: unsafe extern "C" fn(Handle),
    chdb_classify_query_n: unsafe extern "C" fn(Handle, Text, usize, Text, usize, *mut Analysis) -> c_int,
}

/// Loads the library until the process ends, without its signal handlers.
pub(crate) fn load(path: &Path) -> Result<&'static Functions, libloading::Error> {
    // SAFETY: libchdb's initialisers may run by dlopen in any program.
    let functions = Functions::find(unsafe { Library::new(path)? })?;
    // SAFETY: called before any connection, as chdb.h requires.
    unsafe { (functions.chdb_set_signal_handlers_enabled)(0) };
    Ok(Box::leak(Box::new(functions)))
}

/// `chdb_query_analysis_v1`.
#[repr(C)]
#[derive(Default)]
struct Analysis {
    struct_size: u32,
    statement_count: u32,
    flags: u32,
    query_class: u32,
}

/// Values of `{name:Type}` in a statement, escaped like ClickHouse's TSV.
pub(crate) type Parameters = [(String, String)];

/// A session of the engine.
pub(crate) struct Connection {
    lib: &'static Functions,
    raw: *mut Handle,
}

// SAFETY: a connection may be used from any thread, but by one at a time, which `&mut self` ensures.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens a session. `arguments` are those of `clickhouse local`, such as `--path=…` or `--setting=value`.
    pub(crate) fn open(lib: &'static Functions, arguments: &[CString]) -> Result<Self, Exception> {
        let mut argv: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
        let count =
            c_int::try_from(argv.len()).map_err(|error| Exception::from_engine(&error.to_string()))?;
        // SAFETY: argv outlives the call, which copies it.
        let raw = unsafe { (lib.chdb_connect)(count, argv.as_mut_ptr()) };
        if raw.is_null() {
            return Err(Exception::from_engine("the engine refused to open its data directory"));
        }
        Ok(Self { lib, raw })
    }

    fn handle(&self) -> Handle {
        // SAFETY: `raw` is the result of chdb_connect and is closed only in drop.
        unsafe { *self.raw }
    }

    fn call(&self, function: Query, sql: &[u8], format: &str, parameters: &Parameters) -> Handle {
        let names: Vec<Text> = parameters.iter().map(|(name, _)| name.as_ptr().cast()).collect();
        let name_lengths: Vec<usize> = parameters.iter().map(|(name, _)| name.len()).collect();
        let values: Vec<Text> = parameters.iter().map(|(_, value)| value.as_ptr().cast()).collect();
        let value_lengths: Vec<usize> = parameters.iter().map(|(_, value)| value.len()).collect();
        // SAFETY: every pointer has its length and outlives the call, which copies the data.
        unsafe {
            function(
                self.handle(),
                sql.as_ptr().cast(),
                sql.len(),
                format.as_ptr().cast(),
                format.len(),
                names.as_ptr(),
                name_lengths.as_ptr(),
                values.as_ptr(),
                value_lengths.as_ptr(),
                names.len(),
            )
        }
    }

    /// Returns the number of statements in the text, or 0 if it can't be parsed.
    pub(crate) fn count_statements(&mut self, sql: &[u8]) -> u32 {
        let mut analysis = Analysis {
            struct_size: u32::try_from(size_of::<Analysis>()).unwrap_or(0),
            ..Analysis::default()
        };
        // SAFETY: the struct contains its own size, the text comes with its length, and a null target is allowed.
        unsafe {
            let (text, length) = (sql.as_ptr().cast(), sql.len());
            (self.lib.chdb_classify_query_n)(self.handle(), text, length, ptr::null(), 0, &raw mut analysis);
        }
        analysis.statement_count
    }

    /// Runs a statement to its end and returns its whole output.
    pub(crate) fn query(
        &mut self,
        sql: &[u8],
        format: &str,
        params: &Parameters,
    ) -> Result<Output, Exception> {
        let raw = self.call(self.lib.chdb_query_with_params_n, sql, format, params);
        Output { lib: self.lib, raw }.checked()
    }

    /// Begins a SELECT. Its output is fetched piece by piece.
    pub(crate) fn stream(
        &mut self,
        sql: &[u8],
        format: &str,
        params: &Parameters,
    ) -> Result<Stream<'_>, Exception> {
        let raw = self.call(self.lib.chdb_stream_query_with_params_n, sql, format, params);
        let head = Output { lib: self.lib, raw }.checked()?;
        Ok(Stream { head, connection: self, ended: false })
    }

    /// Begins an INSERT. Its rows follow. `sql` ends before its FORMAT clause. Rows must never be part of a statement's
    /// text, where the library silently cuts binary data at the first blank line.
    pub(crate) fn insert(
        &mut self,
        sql: &[u8],
        format: &str,
        params: &Parameters,
    ) -> Result<Insert<'_>, Exception> {
        let raw = self.call(self.lib.chdb_stream_insert_with_params_n, sql, format, params);
        let insert = Insert { lib: self.lib, raw, connection: PhantomData };
        insert.check().map(|()| insert)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened by chdb_connect and closed once. Streams borrow the connection, so none is left.
        unsafe { (self.lib.chdb_close_conn)(self.raw) };
    }
}

/// A statement's output, or a piece of it.
pub(crate) struct Output {
    lib: &'static Functions,
    raw: Handle,
}

// SAFETY: a result owns its bytes and is independent of the thread and connection it came from.
unsafe impl Send for Output {}

impl Output {
    fn checked(self) -> Result<Self, Exception> {
        // SAFETY: the text belongs to the result, which outlives this call.
        match unsafe { text((self.lib.chdb_result_error)(self.raw)) } {
            Some(error) => Err(Exception::from_engine(&error)),
            None => Ok(self),
        }
    }

    /// Returns the rows read, bytes read, rows written and bytes written for this output.
    pub(crate) fn counts(&self) -> [u64; 4] {
        // SAFETY: `raw` is a live result.
        unsafe {
            [
                (self.lib.chdb_result_rows_read)(self.raw),
                (self.lib.chdb_result_bytes_read)(self.raw),
                (self.lib.chdb_result_rows_written)(self.raw),
                (self.lib.chdb_result_bytes_written)(self.raw),
            ]
        }
    }
}

impl AsRef<[u8]> for Output {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: buffer and length describe memory the result owns until it is destroyed.
        unsafe {
            let (start, length) =
                ((self.lib.chdb_result_buffer)(self.raw), (self.lib.chdb_result_length)(self.raw));
            if start.is_null() { &[] } else { slice::from_raw_parts(start, length) }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: created by the library, destroyed once.
        unsafe { (self.lib.chdb_destroy_query_result)(self.raw) };
    }
}

/// A running SELECT. Dropping it before its end cancels it.
pub(crate) struct Stream<'c> {
    head: Output,
    connection: &'c mut Connection,
    ended: bool,
}

impl Stream<'_> {
    /// Returns the next piece, a complete document of the format with its header, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Output>, Exception> {
        let lib = self.connection.lib;
        // SAFETY: connection and stream are alive and belong together.
        let raw = unsafe { (lib.chdb_stream_fetch_result)(self.connection.handle(), self.head.raw) };
        let piece = Output { lib, raw }.checked().inspect_err(|_| self.ended = true)?;
        self.ended = piece.as_ref().is_empty();
        Ok(Some(piece).filter(|_| !self.ended))
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: as in `next`.
            unsafe {
                (self.connection.lib.chdb_stream_cancel_query)(self.connection.handle(), self.head.raw);
            }
        }
    }
}

/// A running INSERT. Dropping it before `finish` cancels it.
pub(crate) struct Insert<'c> {
    lib: &'static Functions,
    raw: Handle,
    connection: PhantomData<&'c mut Connection>,
}

impl Insert<'_> {
    fn check(&self) -> Result<(), Exception> {
        // SAFETY: the text belongs to the stream, which outlives this call.
        match unsafe { text((self.lib.chdb_stream_insert_error)(self.raw)) } {
            Some(error) => Err(Exception::from_engine(&error)),
            None => Ok(()),
        }
    }

    /// Appends bytes of the format, cut anywhere. Waits while the engine's buffer is full.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Exception> {
        // SAFETY: bytes come with their length and are copied.
        let failed =
            unsafe { (self.lib.chdb_stream_append)(self.raw, bytes.as_ptr().cast(), bytes.len()) != 0 };
        if failed {
            self.check()?;
            return Err(Exception::from_engine("the engine stopped reading this insert"));
        }
        Ok(())
    }

    /// Ends the rows and waits until they are written.
    pub(crate) fn finish(self) -> Result<Output, Exception> {
        // SAFETY: the stream is alive, and the caller owns the result.
        let raw = unsafe { (self.lib.chdb_stream_done)(self.raw) };
        Output { lib: self.lib, raw }.checked()
    }
}

impl Drop for Insert<'_> {
    fn drop(&mut self) {
        // SAFETY: created by the library, destroyed once. This cancels an unfinished insert.
        unsafe { (self.lib.chdb_destroy_insert_stream)(self.raw) };
    }
}

/// Copies a C string of the library.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string that outlives the call.
unsafe fn text(text: Text) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
