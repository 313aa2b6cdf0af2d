//! An SMTP server that keeps what it is given, and refuses what it is told to. Its protocol is a library's; here it
//! gets a socket and a letter box.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mailin::{Action, AuthMechanism, Handler, Response, SessionBuilder, response};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

const USER: &str = "us";
const PASSWORD: &str = "p@ss word";

/// The address of a postbox at that port.
pub(crate) fn url_at(port: u16) -> String {
    format!("smtp://{USER}:p%40ss%20word@127.0.0.1:{port}")
}

/// One mail, byte for byte, and who it is from and to as the server was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) data: Vec<u8>,
}

/// A running server; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Postbox {
    pub(crate) port: u16,
    script: Arc<Mutex<VecDeque<u16>>>,
    taken: Arc<Mutex<Vec<Mail>>>,
    sign_ins: Arc<AtomicUsize>,
}

impl Postbox {
    /// Answers recipients by the script, then takes everything.
    pub(crate) async fn answering(script: impl IntoIterator<Item = u16>) -> Self {
        Self::at(0, script).await
    }

    pub(crate) async fn at(port: u16, script: impl IntoIterator<Item = u16>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let postbox = Self {
            port: listener.local_addr().unwrap().port(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            taken: Arc::default(),
            sign_ins: Arc::default(),
        };
        let this = postbox.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(this.clone().talk(client));
            }
        });
        postbox
    }

    /// Where it is, and how to sign in: it takes nothing from anybody else.
    pub(crate) fn url(&self) -> String {
        url_at(self.port)
    }

    /// Everything it took so far.
    pub(crate) fn taken(&self) -> Vec<Mail> {
        self.taken.lock().unwrap().clone()
    }

    /// How often somebody signed in.
    pub(crate) fn sign_ins(&self) -> usize {
        self.sign_ins.load(Ordering::SeqCst)
    }

    async fn talk(self, client: TcpStream) -> std::io::Result<()> {
        let mut server = SessionBuilder::new("postbox.test");
        server.insecure_enable_plaintext_auth().enable_auth(AuthMechanism::Plain);
        let clerk = Clerk { postbox: self, mail: Mail::default() };
        let mut session = server.build(IpAddr::V4(Ipv4Addr::LOCALHOST), clerk);
        let (mut client, mut line) = (BufStream::new(client), Vec::new());
        client.write_all(&session.greeting().buffer()?).await?;
        client.flush().await?;
        while client.read_until(b'\n', &mut line).await? > 0 {
            let answer = session.process(&line);
            client.write_all(&answer.buffer()?).await?;
            client.flush().await?;
            if answer.action == Action::Close {
                break;
            }
            line.clear();
        }
        Ok(())
    }
}

/// Serves one connection.
struct Clerk {
    postbox: Postbox,
    mail: Mail,
}

impl Handler for Clerk {
    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.mail = Mail { from: from.to_owned(), ..Mail::default() };
        response::OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.mail.to.push(to.to_owned());
        let code = self.postbox.script.lock().unwrap().pop_front();
        code.map_or(response::OK, |code| Response::custom(code, "as I was told".to_owned()))
    }

    fn data(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.mail.data.extend_from_slice(part);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        self.postbox.taken.lock().unwrap().push(std::mem::take(&mut self.mail));
        response::OK
    }

    fn auth_plain(&mut self, _: &str, user: &str, password: &str) -> Response {
        if (user, password) != (USER, PASSWORD) {
            return response::INVALID_CREDENTIALS;
        }
        self.postbox.sign_ins.fetch_add(1, Ordering::SeqCst);
        response::AUTH_OK
    }
}
