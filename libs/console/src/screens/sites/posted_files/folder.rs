//! A folder, which browsers post as one file after the other: packed into a zip on disk, as the API takes it.

use std::fs::File;
use std::io::{self, Write};

use axum::body::Bytes;
use domain::static_sites::limits::{ZIP_BYTES_MAX, ZIP_ENTRIES_MAX};
use multer::Field;
use tokio::sync::mpsc;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::multipart_form::{PostedFile, PostedParts, failed, incomplete, too_large, too_many, unreadable};
use crate::api_client::Refusal;

/// Pieces that wait for the disk.
const QUEUED_PIECES: usize = 4;

/// What is written next.
enum Piece {
    /// The path of a file that begins.
    Begin(String),
    Bytes(Bytes),
}

/// Reads the files of a folder, of which the first has begun, into a zip.
pub(in crate::screens::sites) async fn read_folder(
    first: Field<'static>,
    parts: &mut PostedParts,
) -> Result<PostedFile, Refusal> {
    let (pieces, received) = mpsc::channel(QUEUED_PIECES);
    let writing = tokio::task::spawn_blocking(move || write_zip(received));
    let read = send_files(first, parts, pieces).await;
    let written = writing.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    let file_count = read?;
    let file = written.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            incomplete("Two files have the same path, or one that a zip can't have.")
        }
        _ => failed(error),
    })?;
    if file_count == 0 {
        return Err(incomplete("Choose a folder that has files."));
    }
    let size_bytes = file.metadata().map_err(failed)?.len();
    if size_bytes > ZIP_BYTES_MAX.unsigned_abs() {
        return Err(too_large());
    }
    Ok(PostedFile { file, size_bytes })
}

/// Sends all files to the thread that writes. Returns their number.
async fn send_files(
    first: Field<'static>,
    parts: &mut PostedParts,
    pieces: mpsc::Sender<Piece>,
) -> Result<u64, Refusal> {
    let (mut next, mut count, mut size_bytes) = (Some(first), 0, 0);
    while let Some(mut field) = next.take() {
        let path = field.file_name().map(path_in_folder).filter(|path| !path.is_empty());
        if let Some(path) = path {
            count += 1;
            if count > ZIP_ENTRIES_MAX {
                return Err(too_many());
            }
            // The thread has ended with an error, which its caller returns.
            if pieces.send(Piece::Begin(path)).await.is_err() {
                return Ok(count);
            }
            while let Some(bytes) = field.chunk().await.map_err(|error| unreadable(&error))? {
                size_bytes += bytes.len() as u64;
                if size_bytes > ZIP_BYTES_MAX.unsigned_abs() {
                    return Err(too_large());
                }
                if pieces.send(Piece::Bytes(bytes)).await.is_err() {
                    return Ok(count);
                }
            }
        }
        drop(field);
        next = parts.next().await?;
    }
    Ok(count)
}

fn write_zip(mut pieces: mpsc::Receiver<Piece>) -> io::Result<File> {
    // Uncompressed: the zip goes no farther than the store of this installation.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut zip = ZipWriter::new(tempfile::tempfile()?);
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Begin(path) => zip.start_file(path, options).map_err(invalid_path)?,
            Piece::Bytes(bytes) => zip.write_all(&bytes)?,
        }
    }
    zip.finish().map_err(io::Error::other)
}

fn invalid_path(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    }
}

/// Returns the path of a file inside of the folder that was chosen, whose own name comes first.
fn path_in_folder(path: &str) -> String {
    path.split_once('/').map_or(path, |(_, inside)| inside).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use axum::body::Body;
    use http::{Request, StatusCode};

    use super::*;

    fn posted(files: &[(&str, &str)]) -> axum::extract::Request {
        let mut body = "--B\r\nContent-Disposition: form-data; name=\"account\"\r\n\r\na\r\n".to_owned();
        for (name, content) in files {
            body += &format!(
                "--B\r\nContent-Disposition: form-data; name=\"folder\"; filename=\"{name}\"\r\n\r\n{content}\r\n"
            );
        }
        let request = Request::post("/").header("Content-Type", "multipart/form-data; boundary=B");
        request.body(Body::from(body + "--B--\r\n")).unwrap()
    }

    async fn read(files: &[(&str, &str)]) -> Result<PostedFile, Refusal> {
        let mut parts = PostedParts::of(posted(files))?;
        let (form, first) = parts.fields().await?;
        assert_eq!(form.account(), Some("a"));
        read_folder(first, &mut parts).await
    }

    #[tokio::test]
    async fn a_folder_becomes_a_zip_without_its_own_name() {
        let posted = read(&[("site/index.html", "<h1>A</h1>"), ("site/css/a.css", "a {}")]).await.unwrap();
        let mut zip = zip::ZipArchive::new(posted.file).unwrap();
        let mut text = String::new();
        zip.by_name("css/a.css").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a {}");
        let names: Vec<_> = zip.file_names().map(Result::unwrap).collect();
        assert_eq!(names, ["index.html", "css/a.css"]);
    }

    #[tokio::test]
    async fn a_flood_of_empty_files_is_refused_before_it_takes_memory() {
        let names: Vec<String> = (0..=ZIP_ENTRIES_MAX).map(|number| format!("site/{number}")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        let refusal = read(&files).await.err().unwrap();
        assert_eq!(refusal.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert!(refusal.detail.contains("40000 files"), "{}", refusal.detail);
    }

    #[tokio::test]
    async fn a_path_that_comes_twice_is_refused() {
        let refusal = read(&[("site/a.html", "1"), ("site/a.html", "2")]).await.err().unwrap();
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        assert!(refusal.detail.contains("the same path"), "{}", refusal.detail);
    }

    #[tokio::test]
    async fn a_form_without_a_folder_is_refused() {
        let refusal = read(&[("", "")]).await.err().unwrap();
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
    }
}
