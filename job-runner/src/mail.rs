//! The way out for mail: one SMTP server, which the operator sets. Nobody else chooses which, so it does without the
//! guard that other outgoing calls have.

use std::time::Duration;

use anyhow::Context;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, MIME_VERSION_1_0};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use service::config::ExposeSecret;

use crate::config;

/// Mails the operator, and owners of forms.
pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Mailbox,
    /// How long an attempt may take.
    pub(crate) timeout: Duration,
    /// Pauses before each attempt.
    pub(crate) schedule: Vec<Duration>,
    /// Mails of submissions that a form may cause.
    pub(crate) per_form_and_hour: u32,
}

/// What somebody is told.
pub(crate) struct Letter {
    /// Names it in all mailboxes: the same each time it is sent.
    pub(crate) id: String,
    /// Who is told; the operator, if nobody is named.
    pub(crate) to: Option<String>,
    /// Where an answer goes; whoever wrote may have given nothing, or nothing that is an address.
    pub(crate) reply_to: Option<String>,
    pub(crate) subject: String,
    pub(crate) text: String,
    /// When it was written.
    pub(crate) written_at: std::time::SystemTime,
}

impl Mailer {
    /// None where no server is set.
    ///
    /// # Errors
    /// A setting can't be used.
    pub(crate) fn new(config: &config::Mail) -> anyhow::Result<Option<Self>> {
        let url = config.smtp_url.expose_secret();
        if url.is_empty() {
            return Ok(None);
        }
        // The parser's own words may repeat the address, which holds the password.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).ok();
        let transport = transport.context("mail.smtp_url must be like smtps://user:password@host")?;
        let mailbox = |name: &str, text: &str| {
            text.parse::<Mailbox>().with_context(|| format!("{name} must be like Name <name@example.com>"))
        };
        anyhow::ensure!(!config.schedule.is_empty(), "mail.schedule needs at least one attempt");
        Ok(Some(Self {
            transport: transport.timeout(Some(config.timeout)).build(),
            from: mailbox("mail.from", &config.from)?,
            to: mailbox("mail.to", &config.to)?,
            timeout: config.timeout,
            schedule: config.schedule.clone(),
            per_form_and_hour: config.per_form_and_hour.max(1),
        }))
    }

    /// Hands a letter to the server. Headers are encoded as they must be: no text of a letter ends one.
    ///
    /// # Errors
    /// The server is away, takes too long, or refuses it.
    pub(crate) async fn send(&self, letter: Letter) -> anyhow::Result<()> {
        let message = self.message(letter)?;
        let sent = tokio::time::timeout(self.timeout, self.transport.send(message)).await;
        sent.context("the server takes too long")??;
        Ok(())
    }

    fn message(&self, letter: Letter) -> anyhow::Result<Message> {
        let to = match &letter.to {
            Some(address) => Mailbox::new(None, address.parse().context("nobody can be mailed there")?),
            None => self.to.clone(),
        };
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(letter.subject)
            .date(letter.written_at)
            .message_id(Some(format!("<{}@{}>", letter.id, self.from.email.domain())))
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        if let Some(address) = letter.reply_to.and_then(|address| address.parse().ok()) {
            message = message.reply_to(Mailbox::new(None, address));
        }
        Ok(message.body(letter.text)?)
    }
}
